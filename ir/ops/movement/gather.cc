// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/movement/gather.h"

#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/indexing/scatter_nd.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/slice.h"

namespace forge::ir {
namespace {

// Adds to `map` the read of an index at `where`, and to its only piece the condition that it lies
// in 0 .. extent; returns the index.
Dim ReadIndex(IndexMap& map, Dims where, const Dim& extent, OutOfBounds oob) {
  auto symbol = std::make_shared<Symbol>(Symbol{.name = fmt::format("t{}", map.loads.size()),
                                                .min = INT32_MIN,
                                                .max = INT32_MAX,
                                                .when = When::kStep});
  map.loads.push_back({.operand = 1, .index = std::move(where), .defines = symbol});
  const Dim given(symbol);
  const Dim wrapped = given + extent * Max(0, Min(1, 0 - given));
  if (oob == OutOfBounds::kClamp) return Max(0, Min(wrapped, extent - 1));
  map.pieces[0].when.push_back({.value = wrapped, .low = 0, .high = extent});
  return wrapped;
}

IndexMap OnePiece() { return {.pieces = {{.operand = 0, .index = {}}}}; }

size_t Normal(int64_t axis, int64_t rank) {
  const auto a = NormalAxis(axis, rank);
  FORGE_CHECK(a.ok());
  return static_cast<size_t>(*a);
}

// The indices of the elements that a gather takes; those of zeros stay outside.
Value Chosen(Value indices, const Dim& extent, OutOfBounds oob) {
  return oob == OutOfBounds::kClamp ? Clamped(Wrapped(indices, extent), extent) : indices;
}

// Clamping needs an element to clamp to.
absl::Status CheckExtent(const Dim& extent, OutOfBounds oob) {
  if (oob == OutOfBounds::kClamp && extent.max() < 1)
    return InvalidArgument("nothing to clamp indices to");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Types> Gather::infer(TypeSpan in) const {
  const Dims &x = in[0].shape(), &i = in[1].shape();
  FORGE_ASSIGN_OR_RETURN(const int64_t a, NormalAxis(axis, in[0].rank()));
  FORGE_RETURN_IF_ERROR(CheckExtent(x[static_cast<size_t>(a)], oob));
  Dims shape(x.begin(), x.begin() + a);
  shape.insert(shape.end(), i.begin(), i.end());
  shape.insert(shape.end(), x.begin() + a + 1, x.end());
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

IndexMap Gather::map(TypeSpan in, const Dims& at) const {
  const auto a = static_cast<int64_t>(Normal(axis, in[0].rank()));
  const int64_t after = a + in[1].rank();
  IndexMap map = OnePiece();
  const Dim index = ReadIndex(map, Dims(at.begin() + a, at.begin() + after),
                              in[0].shape()[static_cast<size_t>(a)], oob);
  Dims& from = map.pieces[0].index;
  from.assign(at.begin(), at.begin() + a);
  from.push_back(index);
  from.insert(from.end(), at.begin() + after, at.end());
  return map;
}

Values Gather::gradient(const GradArgs& g) const {
  const Type& x = g.in[0].type();
  const size_t a = Normal(axis, x.rank());
  const Value indices = Chosen(g.in[1], x.shape()[a], oob);
  return {AddedInto(x.shape(), indices, g.dout[0], static_cast<int64_t>(a)), Value{}};
}

Cases Gather::cases() {
  return {{Gather{}, {"any[5,3]", "i64[4] in -5..4"}},
          {Gather{.axis = 1}, {"any[2,7,3]", "i32[2,3] in -7..6"}},
          {Gather{.axis = -1}, {"any[3,5]", "i64[] in 0..4"}},
          {Gather{}, {"f32[4,33]", "i64[3,5] in -9..9"}},
          {Gather{.oob = OutOfBounds::kClamp}, {"f32[4,6]", "i64[17] in -9..9"}},
          {Gather{.axis = 1}, {"f32[3,5]", "i64[14] edges"}},
          {Gather{.axis = 1}, {"f32[3,5]", "i32[14] edges"}},
          {Gather{}, {"f32[1]", "i64[3] in -1..1"}},
          {Gather{}, {"f32[5,2]", "i64[0]"}},
          {Gather{}, {"f32[0,2]", "i64[3] in -1..1"}},
          {Gather{.axis = 1}, {"f32[2,3,0]", "i64[2] in 0..2"}},
          {.op = Gather{}, .in = {"f32[30522,384]", "i64[4,256] in 0..30521"}, .bench = true},
          {Gather{.axis = 2}, {"f32[2,3]", "i64[2]"}, "axis 2 is outside rank 2"},
          {Gather{}, {"f32[]", "i64[2]"}, "axis 0 is outside rank 0"},
          {Gather{.oob = OutOfBounds::kClamp}, {"f32[0]", "i64[2]"}, "nothing to clamp"},
          {Gather{}, {"f32[2,3]", "f32[2]"}, "indices"}};
}

absl::StatusOr<Types> GatherElements::infer(TypeSpan in) const {
  const Dims &x = in[0].shape(), &i = in[1].shape();
  if (x.size() != i.size())
    return InvalidArgument("indices of rank {} for rank {}", i.size(), x.size());
  FORGE_ASSIGN_OR_RETURN(const int64_t a, NormalAxis(axis, in[0].rank()));
  FORGE_RETURN_IF_ERROR(CheckExtent(x[static_cast<size_t>(a)], oob));
  for (size_t d = 0; d < x.size(); ++d)
    if (static_cast<int64_t>(d) != a && (i[d] - x[d]).min() > 0)
      return InvalidArgument("axis {} has {} indices for {} elements", d, i[d].ToText(),
                             x[d].ToText());
  return Types{Type::Tensor(in[0].dtype(), i)};
}

IndexMap GatherElements::map(TypeSpan in, const Dims& at) const {
  const size_t a = Normal(axis, in[0].rank());
  IndexMap map = OnePiece();
  const Dim index = ReadIndex(map, at, in[0].shape()[a], oob);
  map.pieces[0].index = at;
  map.pieces[0].index[a] = index;
  return map;
}

Values GatherElements::gradient(const GradArgs& g) const {
  const Type& x = g.in[0].type();
  const Value zeros = g.fn(Fill{0, x.dtype(), x.shape()}, {});
  const Value indices = Chosen(g.in[1], x.shape()[Normal(axis, x.rank())], oob);
  return {g.fn(Scatter{axis, ScatterMode::kAdd}, {zeros, indices, g.dout[0]}), Value{}};
}

Cases GatherElements::cases() {
  return {
      {GatherElements{}, {"any[5,3]", "i64[4,3] in -5..4"}},
      {GatherElements{.axis = 1}, {"any[2,7,3]", "i32[2,9,3] in -7..6"}},
      {GatherElements{.axis = -1}, {"f32[3,5]", "i64[2,3] in -8..8"}},
      {GatherElements{.axis = 1, .oob = OutOfBounds::kClamp}, {"f32[3,5]", "i64[3,4] in -9..9"}},
      {GatherElements{}, {"f32[1]", "i64[3] in -1..0"}},
      {GatherElements{}, {"f32[3,2]", "i64[0,2]"}},
      {GatherElements{}, {"f32[0,2]", "i64[2,2] in -1..1"}},
      {.op = GatherElements{.axis = 1},
       .in = {"f32[1024,1024]", "i64[1024,512] in 0..1023"},
       .bench = true},
      {GatherElements{.axis = 2}, {"f32[2,3]", "i64[2,3]"}, "axis 2 is outside rank 2"},
      {GatherElements{}, {"f32[2,3]", "i64[2]"}, "indices of rank 1"},
      {GatherElements{}, {"f32[2,3]", "i64[2,4]"}, "4 indices for 3"}};
}

absl::StatusOr<Types> GatherNd::infer(TypeSpan in) const {
  const Dims &x = in[0].shape(), &i = in[1].shape();
  if (i.empty()) return InvalidArgument("indices of rank 0 do not say what they select");
  if (!i.back().is_constant()) return Types{Type::Unranked(in[0].dtype())};
  const int64_t depth = i.back().constant(), rank = in[0].rank();
  if (batch_dims < 0 || batch_dims >= in[1].rank() || batch_dims > rank)
    return InvalidArgument("{} batch axes of ranks {} and {}", batch_dims, rank, i.size());
  if (depth < 1 || depth > rank - batch_dims)
    return InvalidArgument("{} axes selected of {}", depth, rank - batch_dims);
  Dims shape(i.begin(), i.end() - 1);
  for (size_t a = 0; a < static_cast<size_t>(batch_dims); ++a) {
    const auto same = Unify(i[a], x[a]);
    if (!same.ok()) return InvalidArgument("batch axis {} differs", a);
    shape[a] = *same;
  }
  for (int64_t a = batch_dims; a < batch_dims + depth; ++a)
    FORGE_RETURN_IF_ERROR(CheckExtent(x[static_cast<size_t>(a)], oob));
  shape.insert(shape.end(), x.begin() + batch_dims + depth, x.end());
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

IndexMap GatherNd::map(TypeSpan in, const Dims& at) const {
  const Dims& x = in[0].shape();
  const int64_t depth = in[1].shape().back().constant(), outer = in[1].rank() - 1;
  IndexMap map = OnePiece();
  Dims from(at.begin(), at.begin() + batch_dims);
  for (int64_t k = 0; k < depth; ++k) {
    Dims where(at.begin(), at.begin() + outer);
    where.emplace_back(k);
    from.push_back(ReadIndex(map, std::move(where), x[static_cast<size_t>(batch_dims + k)], oob));
  }
  from.insert(from.end(), at.begin() + outer, at.end());
  map.pieces[0].index = std::move(from);
  return map;
}

Values GatherNd::gradient(const GradArgs& g) const {
  const Type& x = g.in[0].type();
  const Value zeros = g.fn(Fill{0, x.dtype(), x.shape()}, {});
  Values columns;
  for (int64_t k = 0; k < g.in[1].type().shape().back().constant(); ++k)
    columns.push_back(Chosen(g.fn(Slice{.begin = {k}, .end = {k + 1}, .axes = {-1}}, {g.in[1]}),
                             x.shape()[static_cast<size_t>(batch_dims + k)], oob));
  const Value indices = columns.size() == 1 ? columns[0] : g.fn.Add(Concat{-1}, columns)[0];
  return {g.fn(ScatterNd{batch_dims, ScatterMode::kAdd}, {zeros, indices, g.dout[0]}), Value{}};
}

Cases GatherNd::cases() {
  return {{GatherNd{}, {"any[5,3]", "i64[4,2] in -3..2"}},
          {GatherNd{}, {"any[5,3,2]", "i32[4,7,1] in -5..4"}},
          {GatherNd{.batch_dims = 1}, {"f32[3,5,4]", "i64[3,2,1] in -7..7"}},
          {GatherNd{.batch_dims = 2}, {"f32[3,5,4]", "i64[3,5,1] in -4..3"}},
          {GatherNd{.oob = OutOfBounds::kClamp}, {"f32[3,5]", "i64[9,2] in -7..7"}},
          {GatherNd{}, {"f32[4]", "i64[1] in -4..3"}},
          {GatherNd{}, {"f32[4,3]", "i64[0,2]"}},
          {GatherNd{}, {"f32[0,3]", "i64[2,1] in -1..1"}},
          {.op = GatherNd{}, .in = {"f32[512,512]", "i64[256,1024,2] in 0..511"}, .bench = true},
          {GatherNd{}, {"f32[2,3]", "i64[4,3]"}, "3 axes selected of 2"},
          {GatherNd{}, {"f32[2,3]", "i64[4,0]"}, "0 axes selected"},
          {GatherNd{}, {"f32[2,3]", "i64[]"}, "do not say"},
          {GatherNd{.batch_dims = 1}, {"f32[2,3]", "i64[4,1]"}, "batch axis 0 differs"},
          {GatherNd{.batch_dims = 2}, {"f32[2,3]", "i64[2,1]"}, "2 batch axes"}};
}

FORGE_DEFINE_OP(Gather)
FORGE_DEFINE_OP(GatherElements)
FORGE_DEFINE_OP(GatherNd)

}  // namespace forge::ir
