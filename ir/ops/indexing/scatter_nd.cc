// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/indexing/scatter_nd.h"

#include "ir/op/define.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/indexing/index_arithmetic.h"

namespace forge::ir {
namespace {

Dims AxesOfShape(const Dims& shape, size_t begin, size_t end) {
  return {shape.begin() + static_cast<std::ptrdiff_t>(begin),
          shape.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

absl::StatusOr<Types> ScatterNd::infer(TypeSpan in) const {
  const Dims &x = in[0].shape(), &i = in[1].shape(), &u = in[2].shape();
  if (mode != ScatterMode::kSet && in[0].dtype() == DType::kBool)
    return InvalidArgument("elements of bool are only set");
  const bool ordered = mode == ScatterMode::kMin || mode == ScatterMode::kMax;
  if (ordered && !Has(kRealTypes, in[0].dtype()))
    return InvalidArgument("{} has no order", Name(in[0].dtype()));
  if (i.empty()) return InvalidArgument("indices of rank 0 do not say what they select");
  if (!i.back().is_constant()) return Types{Type::Tensor(in[0].dtype(), x)};
  const int64_t depth = i.back().constant(), rank = in[0].rank();
  if (batch_dims < 0 || batch_dims >= in[1].rank() || batch_dims > rank)
    return InvalidArgument("{} batch axes of ranks {} and {}", batch_dims, rank, i.size());
  if (depth < 1 || depth > rank - batch_dims)
    return InvalidArgument("{} axes selected of {}", depth, rank - batch_dims);
  for (size_t a = 0; a < static_cast<size_t>(batch_dims); ++a)
    if (!Unify(i[a], x[a]).ok()) return InvalidArgument("batch axis {} differs", a);
  Dims want = AxesOfShape(i, 0, i.size() - 1);
  const Dims rest = AxesOfShape(x, static_cast<size_t>(batch_dims + depth), x.size());
  want.insert(want.end(), rest.begin(), rest.end());
  if (!MayEqual(u, want))
    return InvalidArgument("updates {} instead of {}", ToText(u), ToText(want));
  return Types{Type::Tensor(in[0].dtype(), x)};
}

// One axis of all places that the indices select among, and one of what lies behind each.
Values ScatterNd::decompose(Function& f, ValueSpan in) const {
  const Dims x = in[0].type().shape(), i = in[1].type().shape();
  if (!i.back().is_constant()) {
    f.Fail(Unimplemented("scatter_nd selects {} axes, which is no number", i.back().ToText()));
    return {in[0]};
  }
  const auto batch = static_cast<size_t>(batch_dims);
  const auto depth = static_cast<size_t>(i.back().constant());
  const Dim places = Product(AxesOfShape(x, batch, batch + depth));
  const Dim behind = Product(AxesOfShape(x, batch + depth, x.size()));
  const Dim batches = Product(AxesOfShape(x, 0, batch)),
            count = Product(AxesOfShape(i, batch, i.size() - 1));
  Value place, inside;
  for (size_t k = 0; k < depth; ++k) {
    const auto at = static_cast<int64_t>(k);
    const Value given = f(Slice{.begin = {at}, .end = {at + 1}, .axes = {-1}}, {in[1]});
    const Value index = Wrapped(given, x[batch + k]), is_inside = IsInside(index, x[batch + k]);
    place = place ? place * DimValue(x[batch + k], place) + index : index;
    inside = inside ? f(And{}, {inside, is_inside}) : is_inside;
  }
  place = select(inside, place, DimValue(places, place));  // outside: is dropped
  const Value y =
      f(Scatter{.axis = 1, .mode = mode},
        {f(Reshape{{batches, places, behind}}, {in[0]}), f(Reshape{{batches, count, 1}}, {place}),
         f(Reshape{{batches, count, behind}}, {in[2]})});
  return {f(Reshape{x}, {y})};
}

Cases ScatterNd::cases() {
  const auto in = [](ScatterMode mode, int64_t batch_dims = 0) {
    return ScatterNd{batch_dims, mode};
  };
  constexpr auto kSet = ScatterMode::kSet, kAdd = ScatterMode::kAdd;
  return {{in(kSet), {"number[5,3]", "i64[4,2] in -4..3", "number[4]"}},
          {in(kSet), {"bool[5,3,2]", "i32[4,7,1] in -6..5", "bool[4,7,3,2]"}},
          {in(kAdd), {"real[5,3,2]", "i32[4,2,2] in -4..3", "real[4,2,2]"}},
          {in(kAdd, 1), {"f32[3,5,4]", "i64[3,2,1] in -7..7", "f32[3,2,4]"}},
          {in(kAdd, 2), {"f64[3,5,4]", "i64[3,5,1] in -4..3", "f64[3,5]"}},
          {in(kAdd), {"f64[2,3,2]", "i64[3,6,2] in -2..2", "f64[3,6,2]"}},
          {in(ScatterMode::kMul), {"f64[4,2]", "i64[5,1] in 0..3", "f64[5,2]"}},
          {in(ScatterMode::kMin), {"f32[7]", "i64[50,1] in -7..6", "f32[50]"}},
          {in(ScatterMode::kMax), {"i32[7,2]", "i64[50,2] in 0..1", "i32[50]"}},
          {in(kSet), {"f32[4]", "i64[1] in -4..3", "f32[]"}},
          {in(kSet), {"f32[4,3]", "i64[0,2]", "f32[0]"}},
          {in(kSet), {"f32[0,3]", "i64[2,1] in -1..1", "f32[2,3]"}},
          {in(kSet), {"f32[3,5]", "i64[14,2] edges", "f32[14]"}},
          {.op = in(kAdd),
           .in = {"f32[512,512]", "i64[256,1024,2] in 0..511", "f32[256,1024]"},
           .bench = true},
          {in(kAdd), {"bool[4]", "i64[1,1]", "bool[1]"}, "bool are only set"},
          {in(kSet), {"f32[2,3]", "i64[4,3]", "f32[4]"}, "3 axes selected of 2"},
          {in(kSet), {"f32[2,3]", "i64[4,0]", "f32[4]"}, "0 axes selected"},
          {in(kSet), {"f32[2,3]", "i64[]", "f32[]"}, "do not say"},
          {in(kSet, 1), {"f32[2,3]", "i64[4,1]", "f32[4]"}, "batch axis 0 differs"},
          {in(kSet, 2), {"f32[2,3]", "i64[2,1]", "f32[2]"}, "2 batch axes"},
          {in(kSet), {"f32[2,3]", "i64[4,1]", "f32[4]"}, "updates [4] instead of [4, 3]"}};
}

FORGE_DEFINE_OP(ScatterNd)

}  // namespace forge::ir
