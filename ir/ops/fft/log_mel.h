// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/product/matmul.h"

namespace forge::ir {

struct LogMel {
  static constexpr OpInfo kInfo{
      .name = "log_mel",
      .formula =
          "y = (max(v, most - 8) + 4) / 4 with v[.., m] = log10(max(1e-10, sum over b of "
          "filters[m, b] (re[.., b]^2 + im[.., b]^2))) and `most` the largest v",
      .inputs = "re: float[*d, b]; im: =re[*d, b]; filters: =re[m, b]",
      .outputs = "y: =re[*d, m]",
      .source = "openai/whisper, audio.py, log_mel_spectrogram"};

  Values decompose(Function& f, ValueSpan in) const {
    constexpr double kLeast = 1e-10, kRange = 8;
    const Value re = Widened(in[0]), im = Widened(in[1]), squared = re * re;
    const Value power = squared + im * im;
    const Dims shape = power.type().shape();
    Dims rows{Product(std::span(shape).first(shape.size() - 1)), shape.back()}, out = shape;
    const Value flat = f(Reshape{rows}, {power});
    const Value mel = f(MatMul{.transpose_b = true}, {flat, Widened(in[2])});
    if (!f.status().ok()) return {mel};
    const Value v = log10(max(mel, kLeast));
    const Value most = f(Reduce{.kind = ReduceKind::kMax, .axes = {}}, {v});
    out.back() = in[2].type().shape()[0];
    const Value y = (max(v, most - kRange) + 4.0) * 0.25;
    return {Narrowed(f(Reshape{out}, {y}), in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{LogMel{}, {"float[4,9]", "float[4,9]", "float[5,9] in 0..1"}},
            {LogMel{}, {"f32[2,3,17]", "f32[2,3,17]", "f32[8,17] in 0..0.01"}},
            {LogMel{}, {"f32[5]", "f32[5]", "f32[3,5] in 0..1"}},
            {LogMel{}, {"f32[2,3] in 0..0", "f32[2,3] in 0..0", "f32[4,3] in 0..1"}},
            {.op = LogMel{},
             .in = {"f32[3000,201]", "f32[3000,201]", "f32[80,201] in 0..0.1"},
             .bench = true},
            {LogMel{}, {"f32[4,9]", "f32[4,8]", "f32[5,9]"}, "im"},
            {LogMel{}, {"f32[4,9]", "f32[4,9]", "f32[5,8]"}, "filters"}};
  }
};
const OpDef& DefOf(const LogMel*);

}  // namespace forge::ir
