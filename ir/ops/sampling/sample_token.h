// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/reduction/scan.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/sorting/sort.h"
#include "ir/ops/sorting/top_k.h"

namespace forge::ir {

struct SampleToken {
  int64_t top_k = 0;
  double top_p = 1, temperature = 1;

  static constexpr OpInfo kInfo{
      .name = "sample_token",
      .formula =
          "y[b] is drawn by uniform[b] from softmax(logits[b] / temperature), of the top_k "
          "likeliest tokens, and of these of the fewest whose shares reach top_p",
      .inputs = "logits: float[b, v]; uniform: f32|f64[b]",
      .outputs = "y: i64[b]",
      .source = "A. Holtzman and others, \"The Curious Case of Neural Text Degeneration\", 2020"};
  static constexpr Field kFields[] = {
      FieldOf<&SampleToken::top_k>("top_k", "0: all; at most v. 1 is the likeliest, the first."),
      FieldOf<&SampleToken::top_p>("top_p", "1: all; above 0."),
      FieldOf<&SampleToken::temperature>("temperature", "Above 0; below 1 favours likely tokens.")};

  Values decompose(Function& f, ValueSpan in) const {
    if (!(top_p > 0 && top_p <= 1) || !(temperature > 0))
      return f.Fail(InvalidArgument("top_p {} and temperature {} are not in 0..1 and above 0",
                                    top_p, temperature)),
             Values{in[0]};
    const Values best = top_k > 0 ? f.Add(TopK{.k = top_k}, in.first(1))
                                  : f.Add(Sort{.descending = true}, in.first(1));
    if (!f.status().ok()) return {in[0]};
    const Value scaled = Widened(best[0]) * (1 / temperature);
    Value share = f(Softmax{}, {scaled});
    const Value before = f(Scan{.axis = -1, .exclusive = true}, {share});
    if (top_p < 1) share = select(before < top_p, share, 0.0);
    const Value reached = f(Scan{.axis = -1}, {share});
    const Dim batch = in[1].type().shape()[0];
    const Reduce total{.kind = ReduceKind::kMax, .axes = {-1}};
    const Value goal =
        convert(f(Reshape{{batch, 1}}, {in[1]}), scaled.type().dtype()) * f(total, {reached});
    // How many tokens end at or before the goal; the goal is before the end of the last that
    // counts.
    const Value last = reached > goal;
    const Value ended = convert(~last, DType::kI64);
    const Value place = f(Reduce{.kind = ReduceKind::kSum, .axes = {-1}}, {ended});
    const Value token = f(GatherElements{.axis = -1, .oob = OutOfBounds::kClamp}, {best[1], place});
    return {f(Reshape{{batch}}, {token})};
  }
  static constexpr Zero gradient{};
  [[gnu::cold]] static Cases cases() {
    return {{SampleToken{}, {"float[4,7]", "f32[4] in 0..0.99"}},
            {SampleToken{.top_k = 3}, {"f64[5,19]", "f64[5] in 0..0.99"}},
            {SampleToken{.top_p = 0.5, .temperature = 2}, {"f64[6,11]", "f64[6] in 0..0.99"}},
            {SampleToken{}, {"f64[4,7]", "f64[4] in 0..0.99"}},
            {SampleToken{.top_k = 1}, {"f32[3,9]", "f32[3] in 0..0.99"}},
            {SampleToken{.top_k = 4, .top_p = 0.75}, {"f32[1,33]", "f32[1] in 0..0.99"}},
            {SampleToken{}, {"f32[0,5]", "f32[0]"}},
            {.op = SampleToken{.top_k = 50, .top_p = 0.9},
             .in = {"f32[1,32000]", "f32[1] in 0..0.99"},
             .bench = true},
            {SampleToken{.top_p = 0}, {"f32[2,3]", "f32[2]"}, "top_p 0"},
            {SampleToken{.temperature = 0}, {"f32[2,3]", "f32[2]"}, "temperature 0"},
            {SampleToken{.top_k = 4}, {"f32[2,3]", "f32[2]"}, "4"},
            {SampleToken{}, {"f32[2,3]", "f32[3]"}, "uniform"}};
  }
};
const OpDef& DefOf(const SampleToken*);

}  // namespace forge::ir
