// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

enum class PoolKind : uint8_t { kMax, kAverage };

struct Pool {
  PoolKind kind = PoolKind::kMax;
  std::vector<int64_t> kernel, strides, dilations, padding;  // empty: see window.h
  bool ceil_mode = false, count_include_pad = false, indices = false;

  static constexpr OpInfo kInfo{
      .name = "pool",
      .formula =
          "y[n,c,p...] = max or mean over the window of x[n,c] at p * stride - padding; a "
          "window without elements gives the lowest value or 0; indices[n,c,p...] is where in the "
          "row-major order of x[n,c] the first largest element of the window lies, the last NaN "
          "where there is one",
      .inputs = "x: float[n, c, *d]",
      .outputs = "y: =x[n, c, *p]; indices: i64[n, c, *p]?",
      .source =
          "ONNX MaxPool-12, AveragePool-19; torch.nn.functional.max_pool1d to 3d, avg_pool1d to "
          "3d",
      .saved = "indices"};
  static constexpr Field kFields[] = {
      FieldOf<&Pool::kind>("kind", "Max propagates NaN.", "max|average"),
      FieldOf<&Pool::kernel>(
          "kernel",
          "Extents of the window along 1 to 3 spatial axes, each at least 1; empty: ones."),
      FieldOf<&Pool::strides>("strides", "One for each axis, each at least 1; empty: ones."),
      FieldOf<&Pool::dilations>("dilations", "One for each axis, each at least 1; empty: ones."),
      FieldOf<&Pool::padding>(
          "padding",
          "Before each axis, then behind each; less than the window's reach; empty: none."),
      FieldOf<&Pool::ceil_mode>("ceil_mode",
                                "Rounds the number of windows up, but each begins inside x or "
                                "its leading padding."),
      FieldOf<&Pool::count_include_pad>("count_include_pad",
                                        "Means divide by positions in x and its padding; else "
                                        "by those in x."),
      FieldOf<&Pool::indices>("indices", "Of max: adds where each largest element lies.")};

  bool finds_places() const { return indices && kind == PoolKind::kMax; }
  absl::StatusOr<Types> infer(TypeSpan in) const;
  // Along one axis after the other; nothing where no more than one has a window. Indices are
  // compared tap by tap.
  Values decompose(Function& f, ValueSpan in) const;
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Pool*);

}  // namespace forge::ir
