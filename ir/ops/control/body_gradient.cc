// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/control/body_gradient.h"

namespace forge::ir {

bool IsDifferentiable(const Type& type) {
  return type.is_tensor() && Has(kFloatTypes, type.dtype());
}

std::vector<size_t> WantedGradients(const GradArgs& g, size_t first) {
  std::vector<size_t> wanted;
  for (size_t i = first; i < g.in.size(); ++i)
    if (g.in[i] && IsDifferentiable(g.in[i].type()) && g.bodies->Wants(i)) wanted.push_back(i);
  return wanted;
}

Values Gradients(const GradArgs& g, const std::vector<size_t>& wanted, ValueSpan made) {
  Values out(g.in.size());
  for (size_t i = 0; i < wanted.size() && i < made.size(); ++i) out[wanted[i]] = made[i];
  return out;
}

}  // namespace forge::ir
