// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/sorting/scatter_sum.h"

#include "ir/graph/module.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {

// As a comparison of each index with each place: n extent comparisons for each lane.
Value ScatterSum(Value x, Value index, int64_t axis, const Dim& extent) {
  Function& f = *x.fn;
  const auto after = static_cast<ptrdiff_t>(axis) + 1;
  Dims apart = x.type().shape(), places;
  apart.insert(apart.begin() + after, Dim(1));
  places.assign(apart.size() - static_cast<size_t>(after), Dim(1));
  places[0] = extent;
  const Value place = f(Reshape{places}, {f(Iota{.count = extent}, {})});
  const Value here = f(Equal{}, {f(Reshape{apart}, {index}), place});
  const Value spread = f(Reshape{apart}, {Widened(x)});
  const Value sum = f(Reduce{.axes = {axis}, .keep_dims = false}, {select(here, spread, 0.0)});
  return Narrowed(sum, x.type().dtype());
}

}  // namespace forge::ir
