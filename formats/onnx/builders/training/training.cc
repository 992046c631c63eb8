// SPDX-License-Identifier: Apache-2.0
// Gradients, and the steps of optimisers. Their operands are the rate, the step count, then
// tensors, gradients and states, as many of each as there are tensors.
#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/training/differentiate.h"

namespace forge::formats {
namespace {

// What an optimiser reads for tensor `i` of `count`, in `kinds` lists.
struct Slot {
  ir::Value x, gradient;
  ir::Values states;
};

std::vector<Slot> SlotsOf(OnnxNode& n, size_t kinds) {
  const size_t given = n.inputs() - 2;
  if (given == 0 || given % kinds != 0) {
    n.Fail("{} operands are not {} for each tensor", given, kinds);
    return {};
  }
  const size_t count = given / kinds;
  std::vector<Slot> slots(count);
  const double decay = n.Float("norm_coefficient", 0);
  for (size_t i = 0; i < count; ++i) {
    const auto in = [&](size_t kind) { return n.in(2 + kind * count + i); };
    slots[i] = {in(0), in(1), {}};
    if (decay != 0) slots[i].gradient = slots[i].x * decay + slots[i].gradient;
    for (size_t k = 2; k < kinds; ++k) slots[i].states.push_back(in(k));
  }
  if (!n.fn().status().ok()) return {};
  return slots;
}

// The results, one list after the other.
ir::Values ListAfterList(const std::vector<ir::Values>& of_tensor) {
  ir::Values out;
  for (size_t k = 0; !of_tensor.empty() && k < of_tensor[0].size(); ++k)
    for (const ir::Values& results : of_tensor) out.push_back(results[k]);
  return out;
}

// `factor` after the first step, 1 at it.
ir::Value AfterFirst(OnnxNode& n, ir::Value factor) {
  return ir::select(n.in(1) > 0.0, factor, 1.0);
}

ir::Value NumberLike(OnnxNode& n, double v, ir::Value like) {
  return n.fn()(ir::Fill{v, like.type().dtype(), {}}, {});
}

ir::Values BuildAdagrad(OnnxNode& n) {
  const double decay = n.Float("decay_factor", 0), epsilon = n.Float("epsilon", 0);
  const ir::Value steps = Converted(n, n.in(1), n.type(0).dtype());
  const ir::Value rate = n.in(0) / (steps * decay + 1.0);
  std::vector<ir::Values> out;
  for (const Slot& s : SlotsOf(n, 3)) {
    const ir::Value sum = s.states[0] + s.gradient * s.gradient;
    out.push_back({s.x - rate * s.gradient / (ir::sqrt(sum) + epsilon), sum});
  }
  return ListAfterList(out);
}

ir::Values BuildAdam(OnnxNode& n) {
  const double alpha = n.Float("alpha", 0.9f), beta = n.Float("beta", 0.999f);
  const double epsilon = n.Float("epsilon", 0), post = n.Float("norm_coefficient_post", 0);
  const ir::Value steps = Converted(n, n.in(1), n.type(0).dtype());
  const auto power = [&](double base) { return ir::pow(NumberLike(n, base, steps), steps); };
  const ir::Value correction = ir::sqrt(1.0 - power(beta)) / (1.0 - power(alpha));
  const ir::Value rate = n.in(0) * AfterFirst(n, correction);
  std::vector<ir::Values> out;
  for (const Slot& s : SlotsOf(n, 4)) {
    const ir::Value mean = s.states[0] * alpha + s.gradient * (1 - alpha);
    const ir::Value square = s.states[1] * beta + s.gradient * s.gradient * (1 - beta);
    ir::Value x = s.x - rate * mean / (ir::sqrt(square) + epsilon);
    if (post != 0) x = x * (1 - post);
    out.push_back({x, mean, square});
  }
  return ListAfterList(out);
}

ir::Values BuildMomentum(OnnxNode& n) {
  const double alpha = n.Float("alpha", 0), beta = n.Float("beta", 0);
  const std::string mode = n.String("mode", "");
  if (mode != "standard" && mode != "nesterov") n.Fail("unknown mode '{}'", mode);
  const ir::Value rate = n.in(0);
  const ir::Value share = AfterFirst(n, NumberLike(n, beta, rate));
  std::vector<ir::Values> out;
  for (const Slot& s : SlotsOf(n, 3)) {
    const ir::Value velocity = s.states[0] * alpha + share * s.gradient;
    const ir::Value way = mode == "nesterov" ? s.gradient + velocity * alpha : velocity;
    out.push_back({s.x - rate * way, velocity});
  }
  return ListAfterList(out);
}

// The gradients of the tensor named by `y` with respect to those that `xs` names, where those of
// `zs` are constants. Operands are the values of xs and zs.
ir::Values BuildGradient(OnnxNode& n) {
  const std::vector<std::string> xs = n.Strings("xs");
  std::vector<std::string> names = xs;
  for (std::string& z : n.Strings("zs")) names.push_back(std::move(z));
  const std::string y = n.String("y", "");
  names.push_back(y);
  const ir::Values named = n.ValuesOf(names);
  if (!n.status().ok()) return {};
  if (names.size() != n.inputs() + 1)
    n.Fail("{} inputs for {} tensors in xs and zs", n.inputs(), names.size() - 1);
  for (size_t i = 0; i < n.inputs() && n.status().ok(); ++i)
    if (n.in(i).id != named[i].id)
      n.Fail("input {} is not '{}': gradients at other values are not supported", i, names[i]);
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  const ir::Value sum = n.fn()(ir::Reduce{.keep_dims = false}, {named.back()});
  if (!n.fn().status().ok()) return {};
  const auto with = std::span(named).first(xs.size());
  absl::StatusOr<ir::Values> gradients = ir::Differentiate(n.fn(), sum, with);
  if (!gradients.ok()) n.Fail("{}", Message(gradients.status()));
  return gradients.ok() ? *std::move(gradients) : ir::Values();
}

constexpr std::string_view kTraining = "ai.onnx.preview.training";
constexpr OnnxOp kTrainingOps[] = {
    {kTraining, "Adagrad", 1, 3, kAnyNumber, BuildAdagrad},
    {kTraining, "Adam", 1, 3, kAnyNumber, BuildAdam},
    {kTraining, "Gradient", 1, 1, kAnyNumber, BuildGradient},
    {kTraining, "Momentum", 1, 3, kAnyNumber, BuildMomentum},
};

}  // namespace

std::span<const OnnxOp> TrainingOps() { return kTrainingOps; }

}  // namespace forge::formats
