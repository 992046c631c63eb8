// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/pooling/max_pool.h"

#include "ir/op/define.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/indexing/scatter.h"
#include "ir/ops/spatial/pool.h"
#include "ir/ops/spatial/window.h"

namespace forge::ir {
namespace {

// [n, c, ..] with one axis for each plane.
Dims PlanesOf(const Dims& shape) {
  return {shape[0], shape[1], Product(Dims(shape.begin() + 2, shape.end()))};
}

Value ScatteredIntoPlanes(ScatterMode mode, const Dims& shape, Value indices, Value updates) {
  Function& f = *updates.fn;
  const Dims places = PlanesOf(updates.type().shape());
  const Value zeros = f(Fill{0, updates.type().dtype(), PlanesOf(shape)}, {});
  const Value y =
      f(Scatter{2, mode}, {zeros, f(Reshape{places}, {indices}), f(Reshape{places}, {updates})});
  return f(Reshape{shape}, {y});
}

}  // namespace

Value AddedIntoPlanes(const Dims& shape, Value indices, Value updates) {
  return ScatteredIntoPlanes(ScatterMode::kAdd, shape, indices, updates);
}

Values MaxPool::decompose(Function& f, ValueSpan in) const {
  return f.Add(Pool{.kernel = kernel,
                    .strides = strides,
                    .dilations = dilations,
                    .padding = padding,
                    .ceil_mode = ceil_mode,
                    .indices = true},
               in);
}

absl::StatusOr<Types> MaxUnpool::infer(TypeSpan in) const {
  const Dims& x = in[0].shape();
  if (sizes.size() + 2 != x.size() || sizes.empty() || sizes.size() > kMostSpatialAxes)
    return InvalidArgument("{} sizes for {} spatial axes", sizes.size(), x.size() - 2);
  Dims shape{x[0], x[1]};
  for (const Dim& s : sizes) {
    if (s.max() < 0) return InvalidArgument("a size of {}", s.ToText());
    shape.push_back(s);
  }
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

Values MaxUnpool::decompose(Function&, ValueSpan in) const {
  const Dims& x = in[0].type().shape();
  Dims shape{x[0], x[1]};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  return {ScatteredIntoPlanes(ScatterMode::kSet, shape, in[1], in[0])};
}

Cases MaxPool::cases() {
  return {{MaxPool{.kernel = {3}, .strides = {2}}, {"float[2,3,9]"}},
          {MaxPool{.kernel = {2, 2}, .strides = {2, 2}}, {"float[1,2,6,4]"}},
          {MaxPool{.kernel = {3, 3}, .strides = {2, 1}, .padding = {1, 1, 1, 1}},
           {"f32[2,2,7,6] in 0..2"}},
          {MaxPool{.kernel = {3, 3}, .strides = {2, 1}, .padding = {1, 1, 1, 1}},
           {"f16[2,2,7,6] in 1000..1003"}},
          {MaxPool{.kernel = {3, 2},
                   .strides = {2, 2},
                   .dilations = {2, 1},
                   .padding = {2, 0, 1, 1},
                   .ceil_mode = true},
           {"f64[1,2,8,7]"}},
          {MaxPool{.kernel = {2, 1, 3}, .padding = {1, 0, 0, 0, 0, 2}}, {"f64[1,1,3,2,5]"}},
          {MaxPool{.kernel = {5}, .padding = {2, 2}}, {"float[1,1,16] edges"}},
          {MaxPool{.kernel = {3, 3}}, {"f32[1,2,4,4] edges"}},
          {MaxPool{}, {"f32[1,2,3]"}},
          {MaxPool{.kernel = {1}}, {"f32[1,1,1]"}},
          {MaxPool{.kernel = {2}}, {"f32[0,2,3]"}},
          {.op = MaxPool{.kernel = {3, 3}, .strides = {2, 2}, .padding = {1, 1, 1, 1}},
           .in = {"f32[1,64,112,112]"},
           .bench = true},
          {MaxPool{.kernel = {4}}, {"f32[1,2,3]"}, "does not fit"},
          {MaxPool{.kernel = {2}, .padding = {2, 0}}, {"f32[1,2,3]"}, "padding 2"},
          {MaxPool{.kernel = {2, 2}}, {"f32[1,2,3]"}, "kernel has 2 numbers"}};
}

Cases MaxUnpool::cases() {
  return {{MaxUnpool{{9}}, {"float[2,3,4]", "i64[2,3,4] in 0..8"}},
          {MaxUnpool{{4, 5}}, {"real[1,2,2,2]", "i64[1,2,2,2] in 0..19"}},
          {MaxUnpool{{2, 3, 2}}, {"f64[1,2,1,2,1]", "i32[1,2,1,2,1] in -13..12"}},
          {MaxUnpool{{30}}, {"real[1,2,2]", "i64[1,2,2] in 0..29"}},
          {MaxUnpool{{9, 8}}, {"f64[1,1,2,2]", "i64[1,1,2,2] in 0..71"}},
          {MaxUnpool{{3}}, {"f32[1,1,50]", "i64[1,1,50] in 0..2"}},
          {MaxUnpool{{3}}, {"f32[1,2,0]", "i64[1,2,0]"}},
          {MaxUnpool{{0}}, {"f32[1,1,2]", "i64[1,1,2] in 0..1"}},
          {MaxUnpool{{3, 3}}, {"f32[1,2,3]", "i64[1,2,3]"}, "2 sizes for 1 spatial axes"},
          {MaxUnpool{{-1}}, {"f32[1,2,3]", "i64[1,2,3]"}, "a size of -1"},
          {MaxUnpool{{3}}, {"f32[1,2,3]", "i64[1,2,4]"}, "indices"}};
}

FORGE_DEFINE_OP(MaxPool)
FORGE_DEFINE_OP(MaxUnpool)

}  // namespace forge::ir
