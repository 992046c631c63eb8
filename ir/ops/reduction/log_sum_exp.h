// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>

#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/reduction/softmax_statistics.h"

namespace forge::ir {

struct LogSumExp {
  std::vector<int64_t> axes = {};
  bool keep_dims = true;

  static constexpr OpInfo kInfo{
      .name = "log_sum_exp",
      .formula = "y = log(sum(exp(x))) over axes, without overflow; over no element: -infinity",
      .inputs = "x: float[*d]",
      .outputs = "y: =x[*r]",
      .source = "ONNX ReduceLogSumExp-18; torch.logsumexp"};
  static constexpr Field kFields[] = {
      FieldOf<&LogSumExp::axes>("axes", "Negative ones count from the end; none means all."),
      FieldOf<&LogSumExp::keep_dims>("keep_dims", "Keeps reduced axes with extent 1.")};

  // The greatest element is subtracted, or the greatest number where that is infinite.
  Values decompose(Function& f, ValueSpan in) const {
    const Value x = Widened(in[0]);
    const double most = -LeastFinite(x.type());
    Value y;
    if (axes.size() == 1 || x.type().rank() == 1) {
      const Values of_row = f.Add(SoftmaxStatistics{axes.empty() ? 0 : axes[0]}, in);
      if (!f.status().ok()) return {in[0]};
      y = select(of_row[0] > most, of_row[0], of_row[0] + of_row[1]);
    } else {
      const Value top = ReduceAxes(ReduceKind::kMax, x, axes);
      const Value finite = f(Clamp{.low = -most, .high = most}, {top});
      y = log(ReduceAxes(ReduceKind::kSum, exp(x - finite), axes)) + finite;
    }
    return {Narrowed(keep_dims ? y : WithoutAxes(y, axes), in[0].type().dtype())};
  }
  Values gradient(const GradArgs& g) const {
    const Dims& shape = g.in[0].type().shape();
    const Value y = WithAxes(g.out[0], shape, axes), dy = WithAxes(g.dout[0], shape, axes);
    const double most = std::numeric_limits<double>::max();
    return {dy * exp(g.in[0] - g.fn(Clamp{.low = -most, .high = most}, {y}))};
  }
  [[gnu::cold]] static Cases cases() {
    return {{LogSumExp{{-1}}, {"float[2,3,4]"}},
            {LogSumExp{{0, 2}, false}, {"float[5,3,4] in -30..30"}},
            {LogSumExp{}, {"float[3,7]"}},
            {LogSumExp{{}, false}, {"float[]"}},
            {LogSumExp{{1}}, {"f32[3,500] in -200..200"}},
            {LogSumExp{{0}}, {"f32[19,1] edges"}},
            {LogSumExp{{0}}, {"f32[1,19] edges"}},
            {LogSumExp{{1}}, {"f32[2,5] in -inf..-inf"}},
            {LogSumExp{{1}, false}, {"float[3,0]"}},
            {LogSumExp{{0}}, {"float[3,0]"}},
            {.op = LogSumExp{{-1}}, .in = {"f32[1024,4096]"}, .bench = true},
            {LogSumExp{{2}}, {"f32[2,3]"}, "axis 2 is outside rank 2"},
            {LogSumExp{{0, -2}}, {"f32[2,3]"}, "given twice"}};
  }
};
const OpDef& DefOf(const LogSumExp*);

}  // namespace forge::ir
