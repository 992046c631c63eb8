// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/indexing/index.h"

#include <algorithm>

#include "ir/op/define.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/indexing/scatter_nd.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/movement/transpose.h"

namespace forge::ir {
namespace {

using Permutation = std::vector<int64_t>;

// The axes of x and of what is selected, and the indices in the form of gather_nd.
struct SelectedPlaces {
  Permutation to_front;    // of x: indexed axes first
  Permutation from_front;  // of the selection: from [i.., rest..] to its own order
  Value indices;           // [i.., k]
};

Permutation InverseOf(const Permutation& p) {
  Permutation out(p.size());
  for (size_t i = 0; i < p.size(); ++i) out[static_cast<size_t>(p[i])] = static_cast<int64_t>(i);
  return out;
}

Value PermutedBy(Value v, const Permutation& p) {
  return std::is_sorted(p.begin(), p.end()) ? v : (*v.fn)(Transpose{p}, {v});
}

absl::StatusOr<std::vector<int64_t>> IndexedAxes(std::span<const int64_t> axes, size_t indices,
                                                 int64_t rank) {
  std::vector<int64_t> out(axes.begin(), axes.end());
  for (size_t k = 0; axes.empty() && k < indices; ++k) out.push_back(static_cast<int64_t>(k));
  if (out.size() != indices || indices == 0)
    return InvalidArgument("{} tensors of indices for {} axes", indices, out.size());
  FORGE_ASSIGN_OR_RETURN(std::vector<int64_t> sorted, NormalAxes(out, rank));
  for (size_t k = 0; k < out.size(); ++k)
    if (sorted[k] != (out[k] < 0 ? out[k] + rank : out[k]))
      return InvalidArgument("axes {} are not ascending", fmt::join(out, ", "));
  return sorted;
}

// Broadcast, and side by side along a last axis.
absl::StatusOr<Value> StackedIndices(ValueSpan indices) {
  Function& f = *indices[0].fn;
  std::vector<const Dims*> shapes;
  for (const Value& v : indices) shapes.push_back(&v.type().shape());
  const auto all = BroadcastShapes(shapes);
  if (!all.ok()) return all.status();
  Dims column = *all;
  column.emplace_back(1);
  Values columns;
  for (const Value& v : indices)
    columns.push_back(f(Reshape{column}, {f(BroadcastTo{*all}, {convert(v, DType::kI64)})}));
  return columns.size() == 1 ? columns[0] : f.Add(Concat{-1}, columns)[0];
}

absl::StatusOr<SelectedPlaces> IndexedPlaces(std::span<const int64_t> axes, const Type& x,
                                             ValueSpan indices) {
  FORGE_ASSIGN_OR_RETURN(const auto along, IndexedAxes(axes, indices.size(), x.rank()));
  SelectedPlaces p{.to_front = along};
  for (int64_t a = 0; a < x.rank(); ++a)
    if (std::find(along.begin(), along.end(), a) == along.end()) p.to_front.push_back(a);
  FORGE_ASSIGN_OR_RETURN(p.indices, StackedIndices(indices));
  const int64_t selected = p.indices.type().rank() - 1;
  const auto count = static_cast<int64_t>(along.size());
  const int64_t before = along.back() - along.front() + 1 == count ? along.front() : 0;
  for (int64_t a = 0; a < selected + x.rank() - count; ++a) {
    const bool is_before = a < before, is_index = !is_before && a < before + selected;
    p.from_front.push_back(is_before ? selected + a : is_index ? a - before : a);
  }
  return p;
}

}  // namespace

Values IndexOp::decompose(Function& f, ValueSpan in) const {
  const auto places = IndexedPlaces(axes, in[0].type(), in.subspan(1));
  if (!places.ok()) return f.Fail(places.status()), Values{in[0]};
  const Value y = f(GatherNd{}, {PermutedBy(in[0], places->to_front), places->indices});
  return {PermutedBy(y, places->from_front)};
}

Values IndexPut::decompose(Function& f, ValueSpan in) const {
  const auto places = IndexedPlaces(axes, in[0].type(), in.subspan(2));
  if (!places.ok()) return f.Fail(places.status()), Values{in[0]};
  const Value x = PermutedBy(in[0], places->to_front);
  Dims front = places->indices.type().shape();
  const auto depth = front.back().constant();
  front.pop_back();
  front.insert(front.end(), x.type().shape().begin() + depth, x.type().shape().end());
  Dims own;
  for (int64_t a : places->from_front) own.push_back(front[static_cast<size_t>(a)]);
  const Value updates = PermutedBy(f(BroadcastTo{own}, {in[1]}), InverseOf(places->from_front));
  const Value y = f(ScatterNd{0, accumulate ? ScatterMode::kAdd : ScatterMode::kSet},
                    {x, places->indices, updates});
  return {PermutedBy(y, InverseOf(places->to_front))};
}

Cases IndexOp::cases() {
  return {{IndexOp{}, {"any[5,3]", "i64[4] in -5..4", "i64[4] in -3..2"}},
          {IndexOp{{1}}, {"any[2,7,3]", "i32[2,2] in -7..6"}},
          {IndexOp{{1, 2}}, {"f32[2,5,4,3]", "i64[2,1] in 0..4", "i32[3] in -4..3"}},
          {IndexOp{{0, -1}}, {"f64[4,2,3]", "i64[5] in 0..3", "i64[1] in 0..2"}},
          {IndexOp{{0, 2}}, {"f64[4,2,3,2]", "i64[] in 0..3", "i64[] in 0..2"}},
          {IndexOp{}, {"f32[4]", "i64[9] in -9..9"}},
          {IndexOp{}, {"f32[4,3]", "i64[0]"}},
          {IndexOp{{0, 1}}, {"f32[4,3]", "i64[2]"}, "1 tensors of indices for 2 axes"},
          {IndexOp{{1, 0}}, {"f32[4,3]", "i64[2]", "i64[2]"}, "axes 1, 0 are not ascending"},
          {IndexOp{{3}}, {"f32[4,3]", "i64[2]"}, "axis 3 is outside rank 2"}};
}

Cases IndexPut::cases() {
  const auto add = [](std::vector<int64_t> axes) { return IndexPut{std::move(axes), true}; };
  return {{IndexPut{}, {"number[5,3]", "number[4]", "i64[4] in -5..4", "i64[4] in -3..2"}},
          {add({1}), {"real[2,7,3]", "real[2,2,2,3]", "i32[2,2] in -7..6"}},
          {IndexPut{{1, 2}}, {"f32[2,5,4,3]", "f32[2,1,3]", "i64[2,1] in 0..4", "i32[1] in -4..3"}},
          {add({0, -1}), {"f64[4,2,3]", "f64[5,2]", "i64[5] in 0..3", "i64[1] in 0..2"}},
          {IndexPut{}, {"bool[3,8]", "bool[]", "i64[2] in -3..3"}},
          {IndexPut{}, {"f64[30,2]", "f64[2]", "i64[3] in -30..29"}},
          {add({}), {"f32[4]", "f32[9]", "i64[9] in -9..9"}},
          {add({}), {"f32[4,3]", "f32[0,3]", "i64[0]"}},
          {add({}), {"bool[4]", "bool[2]", "i64[2]"}, "bool are only set"},
          {IndexPut{}, {"f32[4]", "f32[3]", "i64[2]"}, "broadcast"},
          {IndexPut{{2}}, {"f32[4,3]", "f32[2]", "i64[2]"}, "axis 2 is outside rank 2"}};
}

FORGE_DEFINE_OP(IndexOp)
FORGE_DEFINE_OP(IndexPut)

}  // namespace forge::ir
