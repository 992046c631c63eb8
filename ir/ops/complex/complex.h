// SPDX-License-Identifier: Apache-2.0
// Complex numbers and their parts. Element-wise functions of complex numbers are rows of
// ir/ops/elementwise/families.
#pragma once
#include <numbers>

#include "ir/ops/complex/parts.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::ir {

struct Real {
  static constexpr OpInfo kInfo{.name = "real",
                                .formula = "y = re x",
                                .inputs = "x: complex",
                                .outputs = "y: real(x)",
                                .source = "torch.real"};
  Values decompose(Function&, ValueSpan in) const { return {PartOf(in[0], 0)}; }
  [[gnu::cold]] static Cases cases() {
    return {{Real{}, {"complex[2,3]"}},
            {Real{}, {"complex[19] edges"}},
            {Real{}, {"c64[]"}},
            {Real{}, {"c128[0,3]"}},
            {Real{}, {"f32[3]"}, "complex"}};
  }
};
const OpDef& DefOf(const Real*);

struct Imag {
  static constexpr OpInfo kInfo{.name = "imag",
                                .formula = "y = im x",
                                .inputs = "x: complex",
                                .outputs = "y: real(x)",
                                .source = "torch.imag"};
  Values decompose(Function&, ValueSpan in) const { return {PartOf(in[0], 1)}; }
  [[gnu::cold]] static Cases cases() {
    return {{Imag{}, {"complex[2,3]"}},
            {Imag{}, {"complex[19] edges"}},
            {Imag{}, {"c64[]"}},
            {Imag{}, {"c128[0,3]"}},
            {Imag{}, {"i32[3]"}, "complex"}};
  }
};
const OpDef& DefOf(const Imag*);

struct MakeComplex {
  static constexpr OpInfo kInfo{.name = "complex",
                                .formula = "y = re + i im",
                                .inputs = "re: f32|f64[*d]; im: =re[*d]",
                                .outputs = "y: complex(re)[*d]",
                                .source = "torch.complex"};
  Values decompose(Function&, ValueSpan in) const { return {FromParts(in[0], in[1])}; }
  [[gnu::cold]] static Cases cases() {
    return {
        {MakeComplex{}, {"f32[2,3]", "f32[2,3]"}},    {MakeComplex{}, {"f64[19] edges", "f64[19]"}},
        {MakeComplex{}, {"f32[]", "f32[]"}},          {MakeComplex{}, {"f32[3,0]", "f32[3,0]"}},
        {MakeComplex{}, {"f16[3]", "f16[3]"}, "f32"}, {MakeComplex{}, {"f32[3]", "f32[2]"}, "im"}};
  }
};
const OpDef& DefOf(const MakeComplex*);

struct Conj {
  static constexpr OpInfo kInfo{.name = "conj",
                                .formula = "y = re x - i im x",
                                .inputs = "x: complex",
                                .outputs = "y: =x",
                                .source = "torch.conj"};
  Values decompose(Function&, ValueSpan in) const {
    const ComplexParts x = PartsOf(in[0]);
    return {Joined({x.re, -x.im})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Conj{}, {"complex[2,3]"}},
            {Conj{}, {"complex[19] edges"}},
            {Conj{}, {"c64[]"}},
            {Conj{}, {"c128[0,3]"}},
            {Conj{}, {"f32[3]"}, "complex"}};
  }
};
const OpDef& DefOf(const Conj*);

struct Angle {
  static constexpr OpInfo kInfo{.name = "angle",
                                .formula = "y = atan2(im x, re x); of a real x pi below 0, else 0",
                                .inputs = "x: float|complex",
                                .outputs = "y: real(x)",
                                .source = "torch.angle"};
  Values decompose(Function& f, ValueSpan in) const {
    const ComplexParts x = PartsOf(in[0]);
    if (x.im) return {atan2(x.im, x.re)};
    const Value turned = select(x.re < 0.0, std::numbers::pi, ZeroLike(x.re));
    return {select(f(IsNan{}, {x.re}), x.re, turned)};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Angle{}, {"complex[2,3]"}},
            {Angle{}, {"c128[0,3]"}},
            {Angle{}, {"c64[]"}},
            {Angle{}, {"complex[37] in -1e-3..1e-3"}},
            {Angle{}, {"float[19] edges"}},
            {Angle{}, {"float[2,3]"}},
            {Angle{}, {"i32[3]"}, "complex"}};
  }
};
const OpDef& DefOf(const Angle*);

struct Polar {
  static constexpr OpInfo kInfo{.name = "polar",
                                .formula = "y = modulus (cos(angle) + i sin(angle))",
                                .inputs = "modulus: f32|f64[*d]; angle: =modulus[*d]",
                                .outputs = "y: complex(modulus)[*d]",
                                .source = "torch.polar"};
  Values decompose(Function&, ValueSpan in) const {
    const Value re = in[0] * cos(in[1]);
    return {Joined({re, in[0] * sin(in[1])})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Polar{}, {"f32[2,3] in 0..4", "f32[2,3]"}},
            {Polar{}, {"f64[37]", "f64[37] in -100..100"}},
            {Polar{}, {"f32[]", "f32[]"}},
            {Polar{}, {"f32[3,0]", "f32[3,0]"}},
            {Polar{}, {"f32[3]", "f32[2]"}, "angle"}};
  }
};
const OpDef& DefOf(const Polar*);

}  // namespace forge::ir
