// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/sorting/order_statistics.h"

namespace forge::ir {

enum class Interpolation : uint8_t { kLinear, kLower, kHigher, kMidpoint, kNearest };

struct Quantile {
  std::vector<double> q = {0.5};
  int64_t axis = -1;
  bool keep_dims = false, skip_nan = false;
  Interpolation interpolation = Interpolation::kLinear;

  static constexpr OpInfo kInfo{
      .name = "quantile",
      .formula =
          "y[i] is x sorted along axis at the place q[i] (n - 1), between two elements as "
          "interpolation says; NaN if a row has one",
      .inputs = "x: float[*d]",
      .outputs = "y: =x[*r]",
      .source = "torch.quantile, nanquantile"};
  static constexpr Field kFields[] = {
      FieldOf<&Quantile::q>("q", "Numbers from 0 to 1; the first axis of y counts them."),
      FieldOf<&Quantile::axis>("axis", "Negative counts from the end."),
      FieldOf<&Quantile::keep_dims>("keep_dims", "Keeps the axis with extent 1."),
      FieldOf<&Quantile::skip_nan>("skip_nan", "Of the elements that are numbers."),
      FieldOf<&Quantile::interpolation>("interpolation", "Nearest rounds half to even.",
                                        "linear|lower|higher|midpoint|nearest")};

  // place: in the sorted row, from 0 on
  Value Between(const SortedRows& rows, Value place) const {
    Function& f = *place.fn;
    if (interpolation == Interpolation::kNearest)
      return rows.Pick(rows.values, f(Round{}, {place}));
    const Value down = f(Floor{}, {place}), low = rows.Pick(rows.values, down);
    if (interpolation == Interpolation::kLower) return low;
    const Value high = rows.Pick(rows.values, f(Ceil{}, {place}));
    if (interpolation == Interpolation::kHigher) return high;
    const Value whole = f(Equal{}, {low, high});
    const Value part = interpolation == Interpolation::kMidpoint ? (high - low) * 0.5
                                                                 : (high - low) * (place - down);
    return select(whole, low, low + part);  // also of infinities
  }
  Values decompose(Function& f, ValueSpan in) const {
    const Value x = Widened(in[0]);
    const auto sorted = SortedRows::Of(x, axis);
    for (const double at : q)
      if (!(at >= 0 && at <= 1)) f.Fail(InvalidArgument("q is {}, not in 0..1", at));
    if (q.empty()) f.Fail(InvalidArgument("there is no q"));
    if (!f.status().ok()) return {in[0]};
    const SortedRows& rows = *sorted;
    const DType t = x.type().dtype();
    const Value count = skip_nan ? rows.Numbers(t) : rows.Elements(t);
    Values all;
    for (const double at : q) {
      const Value y = Between(rows, max((count - 1.0) * at, 0.0));
      const Value kept = rows.Kept(skip_nan ? y : rows.UnlessNan(y), keep_dims);
      Dims shape = kept.type().shape();
      shape.insert(shape.begin(), Dim(1));
      all.push_back(f(Reshape{shape}, {kept}));
    }
    const Value y = all.size() == 1 ? all[0] : f.Add(Concat{0}, all)[0];
    return {Narrowed(y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using I = Interpolation;
    return {{Quantile{}, {"float[3,7]"}},
            {Quantile{{0, 0.3, 0.5, 1}, 0, true}, {"float[6,4]"}},
            {Quantile{{0.25, 0.6}, 1, false, false, I::kLower}, {"float[2,9,3]"}},
            {Quantile{{0.25, 0.6}, 1, false, false, I::kHigher}, {"float[2,9,3]"}},
            {Quantile{{0.25, 0.6}, -1, false, false, I::kMidpoint}, {"float[2,8]"}},
            {Quantile{{0.25, 0.5}, -1, false, false, I::kNearest}, {"float[2,8]"}},
            {Quantile{{0.5}, -1, false, true, I::kLower}, {"float[2,38] edges"}},
            {Quantile{{0.1, 0.9}, -1, false, true}, {"float[5]"}},
            {Quantile{.axis = -2}, {"f32[2,1,3]"}},
            {Quantile{.axis = 1}, {"f32[0,3]"}},
            {Quantile{{1.5}}, {"f32[3]"}, "q is 1.5, not in 0..1"},
            {Quantile{{}}, {"f32[3]"}, "there is no q"},
            {Quantile{}, {"f32[3,0]"}, "axis 1 of f32[3, 0] has no element"},
            {Quantile{}, {"i32[3]"}, "x"}};
  }
};
const OpDef& DefOf(const Quantile*);

}  // namespace forge::ir
