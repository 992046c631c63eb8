// SPDX-License-Identifier: Apache-2.0
#include "ir/training/optimizer.h"

#include <cmath>

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"

namespace forge::ir {
namespace {

Variable* State(Function& f, std::string name, const Type& type) {
  return f.module()->AddVariable(
      {.name = std::move(name), .role = Variable::Role::kState, .type = type});
}

class Step {
 public:
  Step(Function& f, const OptimizerOptions& options, Value learning_rate)
      : f_(f), o_(options), rate_(learning_rate) {
    if (o_.kind == OptimizerKind::kSgd) return;
    Variable* const count = State(f, "optimizer.step", Type::Tensor(DType::kF32, {}));
    const Value t = f.Read(count) + 1.0;
    f.Store(count, t);
    // 1 - beta^t, without the cancellation of a power near one.
    correction1_ = -f(Expm1{}, {t * std::log(o_.beta1)});
    correction2_ = sqrt(-f(Expm1{}, {t * std::log(o_.beta2)}));
  }

  void Update(Variable* parameter, Value gradient) {
    Value p = f_.Read(parameter);
    if (o_.weight_decay != 0 && o_.kind != OptimizerKind::kAdamW)
      gradient = gradient + p * o_.weight_decay;
    if (o_.weight_decay != 0 && o_.kind == OptimizerKind::kAdamW)
      p = p - p * (rate_ * o_.weight_decay);
    f_.Store(parameter, o_.kind == OptimizerKind::kSgd ? Sgd(parameter, p, gradient)
                                                       : Adam(parameter, p, gradient));
  }

 private:
  Value Sgd(const Variable* parameter, Value p, Value gradient) {
    if (o_.momentum == 0) return p - gradient * rate_;
    Variable* const state = State(f_, parameter->name + ".momentum", parameter->type);
    const Value velocity = f_.Read(state) * o_.momentum + gradient;
    f_.Store(state, velocity);
    return p - (o_.nesterov ? gradient + velocity * o_.momentum : velocity) * rate_;
  }

  Value Adam(const Variable* parameter, Value p, Value gradient) {
    Variable* const first = State(f_, parameter->name + ".exp_avg", parameter->type);
    Variable* const second = State(f_, parameter->name + ".exp_avg_sq", parameter->type);
    const Value m = f_.Read(first) * o_.beta1 + gradient * (1 - o_.beta1);
    const Value v = f_.Read(second) * o_.beta2 + gradient * gradient * (1 - o_.beta2);
    f_.Store(first, m);
    f_.Store(second, v);
    return p - m * (rate_ / correction1_) / (sqrt(v) / correction2_ + o_.epsilon);
  }

  Function& f_;
  const OptimizerOptions o_;
  const Value rate_;
  Value correction1_, correction2_;  // Adam: 1 - beta1^t, sqrt(1 - beta2^t)
};

}  // namespace

absl::StatusOr<OptimizerKind> ParseOptimizer(std::string_view name) {
  if (name == "sgd") return OptimizerKind::kSgd;
  if (name == "adam") return OptimizerKind::kAdam;
  if (name == "adamw") return OptimizerKind::kAdamW;
  return InvalidArgument("optimizer '{}' is not sgd, adam or adamw", name);
}

absl::Status AppendStep(Function& f, const OptimizerOptions& options, Value learning_rate,
                        std::span<Variable* const> parameters, ValueSpan gradients) {
  Step step(f, options, learning_rate);
  for (size_t i = 0; i < parameters.size(); ++i) step.Update(parameters[i], gradients[i]);
  return f.status();
}

}  // namespace forge::ir
