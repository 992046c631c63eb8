// SPDX-License-Identifier: Apache-2.0
#include "ir/training/optimizer.h"

#include <cmath>

#include "base/alternatives.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {
namespace {

Variable* State(Function& f, std::string name, const Type& type) {
  return f.module()->AddVariable(
      {.name = std::move(name), .role = Variable::Role::kState, .type = type});
}

struct Named {
  std::string_view name;
  OptimizerKind kind;
};
constexpr Named kOptimizers[] = {
    {"sgd", OptimizerKind::kSgd},         {"adam", OptimizerKind::kAdam},
    {"adamw", OptimizerKind::kAdamW},     {"adagrad", OptimizerKind::kAdagrad},
    {"rmsprop", OptimizerKind::kRmsprop}, {"lion", OptimizerKind::kLion},
    {"muon", OptimizerKind::kMuon},
};

// About the nearest matrix with orthonormal rows or columns: five steps of a Newton-Schulz
// iteration that takes all singular values to 0.7 to 1.2. source: torch.optim.Muon
Value Orthogonalised(Value x) {
  constexpr double kLeastNorm = 1e-7, kA = 3.4445, kB = -4.775, kC = 2.0315;
  constexpr int kSteps = 5;
  Function& f = *x.fn;
  const Dims shape = x.type().shape();
  const bool tall = (shape[0] - shape[1]).min() > 0;
  if (tall) x = f(Transpose{.permutation = {1, 0}}, {x});
  x = x / max(sqrt(ReduceAxes(ReduceKind::kSum, x * x, {0, 1})), kLeastNorm);
  for (int i = 0; i < kSteps; ++i) {
    const Value gram = f(MatMul{.transpose_b = true}, {x, x});
    const Value by = gram * kB + f(MatMul{}, {gram, gram}) * kC;
    x = x * kA + f(MatMul{}, {by, x});
  }
  return tall ? f(Transpose{.permutation = {1, 0}}, {x}) : x;
}

class Step {
 public:
  Step(Function& f, const OptimizerOptions& options, const StepInputs& in)
      : f_(f), o_(options), in_(in) {
    if (o_.kind != OptimizerKind::kAdam && o_.kind != OptimizerKind::kAdamW &&
        o_.kind != OptimizerKind::kMuon)
      return;
    Variable* const count = State(f, "optimizer.step", Type::Tensor(DType::kF32, {}));
    const Value t = f.Read(count) + 1.0;
    Store(count, t);
    // 1 - beta^t, without the cancellation of a power near one.
    correction1_ = -f(Expm1{}, {t * std::log(o_.beta1)});
    correction2_ = sqrt(-f(Expm1{}, {t * std::log(o_.beta2)}));
  }

  // Returns the parameter after the step.
  Value Update(Variable* parameter, Value gradient) {
    Value p = f_.Read(parameter);
    const double factor = o_.rate_factor == nullptr ? 1 : o_.rate_factor(*parameter);
    rate_ = factor == 1 ? in_.learning_rate : in_.learning_rate * factor;
    const bool shrinks = o_.kind == OptimizerKind::kAdamW || o_.kind == OptimizerKind::kLion ||
                         o_.kind == OptimizerKind::kMuon;
    const double decay = o_.decays == nullptr || o_.decays(*parameter) ? o_.weight_decay : 0;
    if (decay != 0 && !shrinks) gradient = gradient + p * decay;
    if (decay != 0 && shrinks) p = p - p * (rate_ * decay);
    return Store(parameter, p - Change(parameter, gradient));
  }

 private:
  Value Store(Variable* v, Value value) { return StoreIf(in_.commits, v, value); }

  Value Change(const Variable* parameter, Value gradient) {
    switch (o_.kind) {
      case OptimizerKind::kSgd:
        return Sgd(parameter, gradient) * rate_;
      case OptimizerKind::kAdam:
      case OptimizerKind::kAdamW:
        return Adam(parameter, gradient);
      case OptimizerKind::kAdagrad: {
        const Value sum = Updated(parameter, ".sum", 1, gradient * gradient, 1);
        return gradient * rate_ / (sqrt(sum) + o_.epsilon);
      }
      case OptimizerKind::kRmsprop: {
        const Value mean = Updated(parameter, ".square_avg", o_.alpha, gradient * gradient);
        const Value scaled = gradient / (sqrt(mean) + o_.epsilon);
        if (o_.momentum == 0) return scaled * rate_;
        return Updated(parameter, ".momentum", o_.momentum, scaled, 1) * rate_;
      }
      case OptimizerKind::kLion: {
        Variable* const state = State(f_, parameter->name + ".exp_avg", parameter->type);
        const Value m = f_.Read(state);
        Store(state, m * o_.beta2 + gradient * (1 - o_.beta2));
        return f_(Sign{}, {m * o_.beta1 + gradient * (1 - o_.beta1)}) * rate_;
      }
      case OptimizerKind::kMuon: {
        const bool matrix =
            parameter->type.rank() >= 2 && Product(parameter->type.shape()).min() > 0;
        const bool by_adamw = !matrix || (o_.by_adamw != nullptr && o_.by_adamw(*parameter));
        return by_adamw ? Adam(parameter, gradient) : Muon(parameter, gradient);
      }
    }
    return {};
  }

  // A state of the parameter after this step: state * decay + value * share.
  Value Updated(const Variable* parameter, std::string_view name, double decay, Value value,
                double share) {
    Variable* const state = State(f_, parameter->name + std::string(name), parameter->type);
    const Value kept = decay == 1 ? f_.Read(state) : f_.Read(state) * decay;
    const Value next = kept + (share == 1 ? value : value * share);
    Store(state, next);
    return next;
  }
  Value Updated(const Variable* parameter, std::string_view name, double decay, Value value) {
    return Updated(parameter, name, decay, value, 1 - decay);
  }

  Value Sgd(const Variable* parameter, Value gradient) {
    if (o_.momentum == 0) return gradient;
    const Value velocity = Updated(parameter, ".momentum", o_.momentum, gradient, 1);
    return o_.nesterov ? gradient + velocity * o_.momentum : velocity;
  }

  Value Adam(const Variable* parameter, Value gradient) {
    const Value m = Updated(parameter, ".exp_avg", o_.beta1, gradient);
    const Value v = Updated(parameter, ".exp_avg_sq", o_.beta2, gradient * gradient);
    return m * (rate_ / correction1_) / (sqrt(v) / correction2_ + o_.epsilon);
  }

  Value Muon(const Variable* parameter, Value gradient) {
    const Value m = Updated(parameter, ".momentum", o_.momentum, gradient);
    const Value along = o_.nesterov ? gradient * (1 - o_.momentum) + m * o_.momentum : m;
    const Dims& shape = parameter->type.shape();
    const int64_t rows = shape[0].constant(), columns = Product(shape).constant() / rows;
    const Value change = Orthogonalised(f_(Reshape{.shape = {rows, columns}}, {along}));
    const double scale = 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
    return f_(Reshape{.shape = shape}, {change}) * (rate_ * scale);
  }

  Function& f_;
  const OptimizerOptions o_;
  const StepInputs in_;
  Value rate_;                       // of the parameter that is being updated
  Value correction1_, correction2_;  // Adam: 1 - beta1^t, sqrt(1 - beta2^t)
};

}  // namespace

OptimizerOptions DefaultsOf(OptimizerKind kind) {
  OptimizerOptions o{.kind = kind};
  if (kind == OptimizerKind::kAdagrad) o.epsilon = 1e-10;
  if (kind == OptimizerKind::kLion) o.beta2 = 0.99;
  if (kind == OptimizerKind::kMuon) o.momentum = 0.95, o.nesterov = true;
  return o;
}

absl::StatusOr<OptimizerKind> ParseOptimizer(std::string_view name) {
  for (const Named& o : kOptimizers)
    if (o.name == name) return o.kind;
  return InvalidArgument("optimizer '{}' is not {}", name, OptimizerNames());
}

std::string OptimizerNames() { return Alternatives(kOptimizers, &Named::name); }

Value StoreIf(Value commits, Variable* v, Value value) {
  Function& f = *value.fn;
  if (commits) value = select(commits, value, f.Read(v));
  f.Store(v, value);
  return value;
}

absl::StatusOr<Values> AppendStep(Function& f, const OptimizerOptions& options,
                                  const StepInputs& in, std::span<Variable* const> parameters,
                                  ValueSpan gradients) {
  Step step(f, options, in);
  Values after;
  for (size_t i = 0; i < parameters.size(); ++i)
    after.push_back(step.Update(parameters[i], gradients[i]));
  FORGE_RETURN_IF_ERROR(f.status());
  return after;
}

}  // namespace forge::ir
