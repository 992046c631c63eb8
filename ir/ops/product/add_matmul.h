// SPDX-License-Identifier: Apache-2.0
// Matrix products with a term.
#pragma once
#include "ir/ops/norm/affine.h"
#include "ir/ops/product/matmul.h"

namespace forge::ir {

struct AddMatMul {
  double alpha = 1, beta = 1;

  static constexpr OpInfo kInfo{
      .name = "add_matmul",
      .formula = "y = beta * c + alpha * matmul(a, b), without c for beta 0",
      .inputs = "c: float|complex[*t]; a: =c[*d, m, k]; b: =c[*e, k, n]",
      .outputs = "y: =c[*f, p, q]",
      .source = "torch.addmm, torch.baddbmm",
      .product = true};
  static constexpr Field kFields[] = {
      FieldOf<&AddMatMul::alpha>("alpha", "Of the product."),
      FieldOf<&AddMatMul::beta>("beta", "Of c, which broadcasts to the product.")};

  // In f32 for narrow floats, so that the result is rounded once.
  Values decompose(Function& f, ValueSpan in) const {
    const Value product = f(MatMul{}, {Widened(in[1]), Widened(in[2])});
    if (!f.status().ok()) return {product};
    CheckBroadcasts(in[0], product.type().shape());
    Value y = alpha == 1 ? product : product * alpha;
    if (beta != 0) y = (beta == 1 ? Widened(in[0]) : Widened(in[0]) * beta) + y;
    return {Narrowed(y, in[0].type().dtype())};
  }
  [[gnu::cold]] static Cases cases() {
    return {{AddMatMul{}, {"float[3,5]", "float[3,4]", "float[4,5]"}},
            {AddMatMul{.alpha = 0.5, .beta = -2}, {"float[5]", "float[3,4]", "float[4,5]"}},
            {AddMatMul{.alpha = 2}, {"float[2,3,5]", "float[2,3,4]", "float[2,4,5]"}},
            {AddMatMul{.alpha = 0.5}, {"complex[5]", "complex[3,4]", "complex[4,5]"}},
            {AddMatMul{.beta = 0}, {"f32[3,5] edges", "f32[3,4]", "f32[4,5]"}},
            {AddMatMul{}, {"f32[3,1]", "f32[3,0]", "f32[0,5]"}},
            {AddMatMul{}, {"f32[]", "f32[1,1]", "f32[1,1]"}},
            {AddMatMul{}, {"f32[3,4]", "f32[3,4]", "f32[4,5]"}, "does not broadcast to"},
            {AddMatMul{}, {"f32[2,3,5]", "f32[3,4]", "f32[4,5]"}, "does not broadcast to"},
            {AddMatMul{}, {"f32[3,5]", "f32[3,4]", "f32[3,5]"}, "b"}};
  }
};
const OpDef& DefOf(const AddMatMul*);

struct Linear {
  static constexpr OpInfo kInfo{
      .name = "linear",
      .formula = "y[.., o] = sum over i of x[.., i] * weight[o, i] + bias[o]",
      .inputs = "x: float|complex[*d, i]; weight: =x[o, i]; bias: =x[o]?",
      .outputs = "y: =x[*d, o]",
      .source = "torch.nn.functional.linear",
      .product = true};

  Values decompose(Function& f, ValueSpan in) const {
    Dims shape = in[0].type().shape();
    Value x = in[2] ? Widened(in[0]) : in[0];
    if (shape.size() == 1) x = f(Reshape{{1, shape[0]}}, {x});
    const Value weight = in[2] ? Widened(in[1]) : in[1];
    Value y = f(MatMul{.transpose_b = true}, {x, weight});
    if (in[2]) y = Narrowed(y + Widened(in[2]), in[0].type().dtype());
    if (shape.size() > 1) return {y};
    return {f(Reshape{{in[1].type().shape()[0]}}, {y})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Linear{}, {"float[3,4]", "float[5,4]", "float[5]"}},
            {Linear{}, {"float[2,3,4]", "float[5,4]"}},
            {Linear{}, {"float[4]", "float[5,4]", "float[5]"}},
            {Linear{}, {"complex[3,4]", "complex[5,4]", "complex[5]"}},
            {Linear{}, {"f32[4]", "f32[1,4]"}},
            {Linear{}, {"f32[0,4]", "f32[5,4]", "f32[5]"}},
            {.op = Linear{}, .in = {"f32[512,1024]", "f32[1024,1024]", "f32[1024]"}, .bench = true},
            {Linear{}, {"f32[3,4]", "f32[4,5]"}, "weight"},
            {Linear{}, {"f32[3,4]", "f32[5,4]", "f32[4]"}, "bias"},
            {Linear{}, {"f32[]", "f32[5,4]"}, "rank"}};
  }
};
const OpDef& DefOf(const Linear*);

}  // namespace forge::ir
