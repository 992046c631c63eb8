// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/creation/fill.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/movement/pad.h"

namespace forge::ir {

struct LocalResponseNorm {
  int64_t size = 1, before = -1;
  double alpha = 1e-4, beta = 0.75, bias = 1;

  static constexpr OpInfo kInfo{
      .name = "local_response_norm",
      .formula =
          "y = x / (bias + alpha * sum(x^2) / size)^beta, the sum over the channels of a "
          "window around that of x",
      .inputs = "x: float[n, c, *s]",
      .outputs = "y: =x",
      .source = "ONNX LRN-13; torch.nn.functional.local_response_norm"};
  static constexpr Field kFields[] = {
      FieldOf<&LocalResponseNorm::size>("size", "Of the window, at least 1."),
      FieldOf<&LocalResponseNorm::before>(
          "before",
          "Channels of the window before that of x, less than size; -1: size / 2, as PyTorch has "
          "it, where ONNX has (size - 1) / 2."),
      FieldOf<&LocalResponseNorm::alpha>("alpha", "Of the mean square."),
      FieldOf<&LocalResponseNorm::beta>("beta", "The exponent."),
      FieldOf<&LocalResponseNorm::bias>("bias", "Added to the mean square.")};

  // A sum of slices of the padded squares.
  Values decompose(Function& f, ValueSpan in) const {
    if (size < 1 || before < -1 || before >= size)
      f.Fail(InvalidArgument("a window of {} channels, {} of them before its own", size, before));
    if (!f.status().ok()) return {in[0]};
    const int64_t leading = before < 0 ? size / 2 : before;
    const Value x = Widened(in[0]);
    const Dims& shape = in[0].type().shape();
    Pad pad{.before = Dims(shape.size(), 0), .after = Dims(shape.size(), 0)};
    pad.before[1] = leading;
    pad.after[1] = size - 1 - leading;
    const Value squares = f(pad, {x * x});
    Value sum;
    for (int64_t i = 0; i < size; ++i) {
      const Value v = f(Slice{.begin = {i}, .end = {shape[1] + i}, .axes = {1}}, {squares});
      sum = sum ? sum + v : v;
    }
    const Value base = sum * (alpha / static_cast<double>(size)) + bias;
    const Value power = pow(base, f(Fill{beta, x.type().dtype()}, {}));
    return {Narrowed(x / power, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    using Op = LocalResponseNorm;
    return {{Op{.size = 3, .alpha = 0.5}, {"float[2,5,4]"}},
            {Op{.size = 4, .alpha = 1, .beta = 0.5, .bias = 2}, {"float[1,6,2,3]"}},
            {Op{.size = 4, .before = 1, .alpha = 0.3}, {"float[1,6,2]"}},
            {Op{.size = 5}, {"f32[2,3,1,2,2]"}},
            {Op{}, {"f32[1,7,1] in -50..50"}},
            {Op{.size = 2}, {"f32[0,3,4]"}},
            {Op{.size = 0}, {"f32[1,2,3]"}, "a window of 0 channels"},
            {Op{.size = 2, .before = 2}, {"f32[1,2,3]"}, "2 of them before its own"},
            {Op{.size = 2}, {"f32[3]"}, "rank"}};
  }
};
const OpDef& DefOf(const LocalResponseNorm*);

}  // namespace forge::ir
