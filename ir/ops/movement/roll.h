// SPDX-License-Identifier: Apache-2.0
// Elements in another order along an axis.
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/movement/pad.h"

namespace forge::ir {

struct Roll {
  std::vector<int64_t> shifts = {}, axes = {};

  static constexpr OpInfo kInfo{.name = "roll",
                                .formula = "y[i + shift] = x[i] along each axis, modulo its extent",
                                .inputs = "x: number|bool[*d]",
                                .outputs = "y: =x",
                                .source = "torch.roll"};
  static constexpr Field kFields[] = {
      FieldOf<&Roll::shifts>("shifts", "One for each of the axes, of any sign and size."),
      FieldOf<&Roll::axes>("axes",
                           "Negative ones count from the end, repeated ones add; none: one shift "
                           "of the elements in row-major order.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Dims& shape = in[0].type().shape();
    if (shifts.size() != std::max<size_t>(axes.size(), 1))
      f.Fail(InvalidArgument("roll: {} shifts for {} axes", shifts.size(), axes.size()));
    if (!f.status().ok()) return {in[0]};
    if (axes.empty()) {
      const Value flat = f(Reshape{{Product(shape)}}, {in[0]});
      return {f(Reshape{shape}, {f(Roll{shifts, {0}}, {flat})})};
    }
    Pad pad{.before = Dims(shape.size(), 0), .after = {}, .mode = PadMode::kWrap};
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto axis = NormalAxis(axes[i], in[0].type().rank());
      if (!axis.ok()) return f.Fail(axis.status()), Values{in[0]};
      const auto a = static_cast<size_t>(*axis);
      pad.before[a] = Mod(pad.before[a] + Dim(shifts[i]), Max(shape[a], 1));
    }
    for (const Dim& d : pad.before) pad.after.push_back(0 - d);
    return {f(pad, {in[0]})};
  }
  Values gradient(const GradArgs& g) const {
    Roll back = *this;
    for (int64_t& shift : back.shifts) shift = -shift;
    return {g.fn(back, {g.dout[0]})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Roll{{1}, {0}}, {"number|bool[5,2]"}},
            {Roll{{-2, 7}, {-1, 0}}, {"float[3,4]"}},
            {Roll{{5}, {}}, {"float[2,3,4]"}},
            {Roll{{1, 1}, {1, -1}}, {"f32[2,5]"}},
            {Roll{{3}, {1}}, {"f32[2,0]"}},
            {Roll{{3}, {}}, {"f32[]"}},
            {Roll{{-100}, {2}}, {"f32[1,2,7,1,3]"}},
            {Roll{{1, 2}, {0}}, {"f32[3]"}, "2 shifts for 1 axes"},
            {Roll{{1}, {1}}, {"f32[3]"}, "axis 1 is outside rank 1"}};
  }
};
const OpDef& DefOf(const Roll*);

struct Flip {
  std::vector<int64_t> axes = {};

  static constexpr OpInfo kInfo{.name = "flip",
                                .formula = "y[n - 1 - i] = x[i] along each axis",
                                .inputs = "x: any[*d]",
                                .outputs = "y: =x",
                                .source = "torch.flip"};
  static constexpr Field kFields[] = {
      FieldOf<&Flip::axes>("axes", "Negative ones count from the end; none means none.")};

  Values decompose(Function& f, ValueSpan in) const {
    const auto along = NormalAxes(axes, in[0].type().rank());
    if (!along.ok()) return f.Fail(along.status()), Values{in[0]};
    const size_t n = axes.size();
    return {
        f(Slice{Dims(n, -1), Dims(n, INT64_MIN), *along, std::vector<int64_t>(n, -1)}, {in[0]})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Flip{{0}}, {"any[5,2]"}},
            {Flip{{-1, 0}}, {"float[3,4,2]"}},
            {Flip{}, {"f32[3]"}},
            {Flip{{1}}, {"f32[2,0]"}},
            {Flip{{2}}, {"f32[1,2,7,1,3]"}},
            {Flip{{0, -1}}, {"f32[3]"}, "given twice"},
            {Flip{{0}}, {"f32[]"}, "axis 0 is outside rank 0"}};
  }
};
const OpDef& DefOf(const Flip*);

}  // namespace forge::ir
