// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/op.h"

namespace forge::ir {

enum class PoolKind : uint8_t { kMax, kAverage };

struct Pool2d {
  PoolKind kind = PoolKind::kMax;
  std::vector<int64_t> kernel = {1, 1}, strides = {1, 1}, dilations = {1, 1};
  std::vector<int64_t> padding = {0, 0, 0, 0};
  bool ceil_mode = false, count_include_pad = false;

  static constexpr OpInfo kInfo{
      .name = "pool2d",
      .formula =
          "y[n,c,p,q] = max or mean over the window of x[n,c] at p * stride - padding; a "
          "window without elements gives the lowest value or 0",
      .inputs = "x: float[n, c, h, w]",
      .outputs = "y: =x[n, c, p, q]",
      .source = "ONNX MaxPool-12, AveragePool-19; torch.nn.functional.max_pool2d, avg_pool2d"};
  static constexpr Field kFields[] = {
      FieldOf<&Pool2d::kind>("kind", "Max propagates NaN.", "max|average"),
      FieldOf<&Pool2d::kernel>("kernel", "Rows, columns of the window; each at least 1."),
      FieldOf<&Pool2d::strides>("strides", "Rows, columns; each at least 1."),
      FieldOf<&Pool2d::dilations>("dilations", "Rows, columns; each at least 1."),
      FieldOf<&Pool2d::padding>("padding",
                                "Top, left, bottom, right; less than the window's reach."),
      FieldOf<&Pool2d::ceil_mode>("ceil_mode",
                                  "Rounds the number of windows up, but each begins inside x or "
                                  "its leading padding."),
      FieldOf<&Pool2d::count_include_pad>("count_include_pad",
                                          "Means divide by positions in x and its padding; else "
                                          "by those in x.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  static constexpr Pending gradient{};
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Pool2d*);

}  // namespace forge::ir
