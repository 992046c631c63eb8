// SPDX-License-Identifier: Apache-2.0
#include "ir/training/loss_scale.h"

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/type/host_value.h"

namespace forge::ir {
namespace {

constexpr double kFirstScale = 65536, kGrowth = 2, kBackoff = 0.5, kInterval = 2000;

Variable* ScalarState(Module& m, std::string name, double initial) {
  const HostValue value = HostValue::Scalar(DType::kF32, initial);
  return m.AddVariable({.name = std::move(name),
                        .role = Variable::Role::kState,
                        .type = value.type(),
                        .init = Variable::Storage{value.shared_bytes(), value.type(), {}}});
}

}  // namespace

LossScale::LossScale(Module& m)
    : scale_(ScalarState(m, "loss_scale", kFirstScale)),
      steps_(ScalarState(m, "loss_scale.steps", 0)) {}

void LossScale::Update(Function& f, Value finite) const {
  const Value scale = f.Read(scale_), steps = f.Read(steps_) + 1.0;
  const Value waits = steps < kInterval;
  f.Store(scale_, select(finite, select(waits, scale, scale * kGrowth), scale * kBackoff));
  f.Store(steps_, select(finite, select(waits, steps, 0.0), 0.0));
}

}  // namespace forge::ir
