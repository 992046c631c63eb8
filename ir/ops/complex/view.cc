// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/complex/view.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"

namespace forge::ir {

Values ViewAsReal::gradient(const GradArgs& g) const {
  return {g.fn(ViewAsComplex{}, {g.dout[0]})};
}

absl::Status ViewAsReal::evaluate(Eval& e) const {
  std::vector<double> parts;
  for (const std::complex<double>& z : Complexes(*e.in(0)))
    parts.insert(parts.end(), {z.real(), z.imag()});
  Store(parts, e.out(0));
  return absl::OkStatus();
}

Cases ViewAsReal::cases() {
  return {{ViewAsReal{}, {"complex[2,3]"}},
          {ViewAsReal{}, {"complex[19] edges"}},
          {ViewAsReal{}, {"complex[]"}},
          {ViewAsReal{}, {"c64[2,0]"}},
          {ViewAsReal{}, {"f32[2,3]"}, "complex"}};
}

Values ViewAsComplex::gradient(const GradArgs& g) const {
  return {g.fn(ViewAsReal{}, {g.dout[0]})};
}

absl::Status ViewAsComplex::evaluate(Eval& e) const {
  const std::vector<double> parts = Doubles(*e.in(0));
  std::vector<std::complex<double>> z;
  for (size_t i = 0; i < parts.size(); i += 2) z.emplace_back(parts[i], parts[i + 1]);
  Store(z, e.out(0));
  return absl::OkStatus();
}

Cases ViewAsComplex::cases() {
  return {{ViewAsComplex{}, {"f32[3,2]"}},        {ViewAsComplex{}, {"f64[2,3,2]"}},
          {ViewAsComplex{}, {"f32[19,2] edges"}}, {ViewAsComplex{}, {"f64[2]"}},
          {ViewAsComplex{}, {"f32[0,2]"}},        {ViewAsComplex{}, {"f32[2,3]"}, "2"},
          {ViewAsComplex{}, {"f16[3,2]"}, "f32"}};
}

FORGE_DEFINE_OP(ViewAsReal)
FORGE_DEFINE_OP(ViewAsComplex)

}  // namespace forge::ir
