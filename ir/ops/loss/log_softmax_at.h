// SPDX-License-Identifier: Apache-2.0
// The logarithm of a class's probability. Two numbers of each row of scores say all that it and its
// gradient need, so that nothing of the size of the scores is stored between them.
#pragma once
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/loss/class_targets.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/reduction/softmax_statistics.h"

namespace forge::ir {

struct LogSoftmaxAt {
  static constexpr OpInfo kInfo{
      .name = "log_softmax_at",
      .formula = "y = log_softmax(x) along the classes, at target; 0 where that is no class",
      .inputs = "x: float[*d]; target: i32|i64[*t]",
      .outputs = "y: =x[*t]",
      .source = "torch.nn.functional.cross_entropy"};
  Values decompose(Function& f, ValueSpan in) const {
    const ClassTargets targets(f, in[0], in[1]);
    if (!f.status().ok()) return {in[0]};
    const Value place = f(Reshape{targets.column}, {in[1]});
    const Value score = Widened(f(GatherElements{targets.axis}, {in[0], place}));
    const Values of_row = f.Add(SoftmaxStatistics{targets.axis}, in.first(1));
    if (!f.status().ok()) return {in[0]};
    const Value y = WithoutAxes(score - of_row[0] - of_row[1], {targets.axis});
    return {Narrowed(select(targets.inside, y, 0.0), in[0].type().dtype())};
  }
  Values gradient(const GradArgs& g) const {
    const ClassTargets targets(g.fn, g.in[0], g.in[1]);
    const Values of_row = g.fn.Add(SoftmaxStatistics{targets.axis}, g.in.first(1));
    const Value counted = select(targets.inside, Widened(g.dout[0]), 0.0);
    const Value dy = g.fn(Reshape{targets.column}, {counted});
    const Value dx =
        select(targets.hit, dy, 0.0) - exp(Widened(g.in[0]) - of_row[0] - of_row[1]) * dy;
    return {Narrowed(dx, g.in[0].type().dtype()), {}};
  }
  [[gnu::cold]] static Cases cases() {
    return {{LogSoftmaxAt{}, {"float[4,5]", "i64[4] in 0..4"}},
            {LogSoftmaxAt{}, {"float[2,3,4,5]", "i32[2,4,5] in 0..2"}},
            {LogSoftmaxAt{}, {"float[5]", "i64[] in 0..4"}},
            {LogSoftmaxAt{}, {"float[9,3]", "i64[9] in -2..4"}},
            {LogSoftmaxAt{}, {"f32[9,3] edges", "i64[9] in -2..4"}},
            {LogSoftmaxAt{}, {"f32[4,300] in -80..80", "i64[4] in 0..299"}},
            {LogSoftmaxAt{}, {"f32[3,5] in -inf..-inf", "i64[3] in 0..4"}},
            {LogSoftmaxAt{}, {"f32[0,3]", "i64[0]"}},
            {.op = LogSoftmaxAt{}, .in = {"f32[256,32000]", "i64[256] in 0..31999"}, .bench = true},
            {LogSoftmaxAt{}, {"f32[4,5]", "i64[4,5]"}, "are not the scores"},
            {LogSoftmaxAt{}, {"f32[]", "i64[]"}, "has no classes"}};
  }
};
const OpDef& DefOf(const LogSoftmaxAt*);

}  // namespace forge::ir
