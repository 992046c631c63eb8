// SPDX-License-Identifier: Apache-2.0
#include "ir/training/step.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "base/alternatives.h"
#include "ir/graph/capture_reads.h"
#include "ir/graph/copier.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/loss/binary.h"
#include "ir/ops/loss/classification.h"
#include "ir/ops/loss/distribution.h"
#include "ir/ops/loss/regression.h"
#include "ir/ops/norm/batch_norm.h"
#include "ir/ops/reduction/arg_reduce.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/passes/precision.h"
#include "ir/training/differentiate.h"
#include "ir/training/loss_scale.h"

namespace forge::ir {
namespace {

// The loss of a function on a batch, inside a function under construction.
struct Graded {
  Value loss, correct;  // `correct` is absent where the loss compares no classes
};

// The means and variances that batch norms of `f` and of its bodies read.
std::set<const Variable*> StatisticsOf(const Function& f) {
  std::set<const Variable*> statistics;
  std::vector<const Function*> all = BodiesUnder(f);
  all.push_back(&f);
  for (const Function* part : all)
    for (const Node& node : part->nodes()) {
      if (!node.op.Is<BatchNorm>()) continue;
      for (const size_t i : {size_t{3}, size_t{4}}) statistics.insert(part->VariableOf(node.in[i]));
    }
  return statistics;
}

// The variables that a training of `f` updates.
std::vector<Variable*> ParametersOf(const Function& f, const std::set<const Variable*>& statistics,
                                    const TrainingOptions& o) {
  std::vector<Variable*> out;
  for (const Function::VariableRead& r : f.reads()) {
    Variable* const v = r.variable;
    if (v->role == Variable::Role::kParameter && v->type.dtype() == DType::kF32 &&
        !statistics.contains(v) && (o.trains == nullptr || o.trains(*v)))
      out.push_back(v);
  }
  return out;
}

// Returns the value that the scores come from: the operand of a last softmax.
uint32_t ClassScoresOf(const Function& f, uint32_t prediction) {
  const Function::Origin& origin = f.origin(prediction);
  if (origin.kind != Function::Origin::kNode) return prediction;
  const Node& node = f.nodes()[origin.index];
  const auto* softmax = node.op.As<Softmax>();
  return softmax != nullptr && !softmax->log ? node.in[0] : prediction;
}

Value Sum(Value x) {
  return (*x.fn)(Reduce{.kind = ReduceKind::kSum, .axes = {}, .keep_dims = false}, {x});
}

absl::StatusOr<Graded> GradeClasses(Function& f, Value scores) {
  const Type& type = scores.type();
  if (!type.is_tensor() || type.rank() != 2 || !Has(kFloatTypes, type.dtype()))
    return InvalidArgument(
        "cross_entropy needs scores [batch, classes], and the first result is {}", type.ToText());
  const Value label = f.Argument("label", Type::Tensor(DType::kI64, {type.shape()[0]}));
  const Value loss = f(CrossEntropy{}, {scores, label});
  const Value best = f(ArgReduce{.axis = 1, .keep_dims = false}, {scores});
  const Value right = f(Equal{}, {best, label});
  const Value one = f(Fill{.value = 1, .dtype = DType::kF32}, {});
  const Value zero = f(Fill{.value = 0, .dtype = DType::kF32}, {});
  const Value correct = Sum(f(Select{}, {right, one, zero}));
  FORGE_RETURN_IF_ERROR(f.status());
  return Graded{loss, correct};
}

// A loss of a prediction and a target of the same type.
template <class Op>
Value LossOf(Function& f, Value prediction, Value target) {
  return f(Op{}, {prediction, target});
}
struct NamedLoss {
  std::string_view name;
  Value (*make)(Function& f, Value prediction, Value target);
};
constexpr NamedLoss kLosses[] = {
    {"cross_entropy", nullptr},  // of classes: GradeClasses
    {"mse", LossOf<MseLoss>},
    {"l1", LossOf<L1Loss>},
    {"smooth_l1", LossOf<SmoothL1Loss>},
    {"huber", LossOf<HuberLoss>},
    {"binary_cross_entropy", LossOf<BinaryCrossEntropy>},
    {"binary_cross_entropy_with_logits", LossOf<BinaryCrossEntropyWithLogits>},
    {"kl_div", LossOf<KlDivergence>},
    {"poisson_nll", LossOf<PoissonNllLoss>},
};

// The averages of parameters in place of the parameters.
using Averages = absl::flat_hash_map<const Variable*, Variable*>;

// The function of a training, and what its steps keep from one to the next.
struct Plan {
  const Function& main;
  const TrainingOptions& options;
  std::span<Variable* const> parameters;
  std::vector<Variable*> sums = {};             // of the gradients of earlier batches, if any
  Averages averages = {};                       // if any are kept
  std::optional<LossScale> loss_scale = {};     // where the gradients need it
  const ActivationPlan* activations = nullptr;  // with a budget
};

struct LossTerms {
  DType precision = DType::kF32;       // of products
  const Averages* averages = nullptr;  // used instead of the parameters
};
// Copies the function into `f` and appends its loss.
absl::StatusOr<Graded> AppendLoss(const Plan& plan, Function& f, const LossTerms& with) {
  const Function& main = plan.main;
  if (main.results().empty()) return InvalidArgument("'{}' has no result", main.name());
  Copier copy(main, f);
  for (const Function::VariableRead& read : main.reads())
    if (with.averages != nullptr && with.averages->contains(read.variable))
      copy.Set(read.value, f.Read(with.averages->at(read.variable)));
  copy.CopyArguments();
  for (const Node& node : main.nodes()) CopyAtPrecision(node, with.precision, copy, f);
  FORGE_RETURN_IF_ERROR(f.status());
  const uint32_t prediction = main.results()[0].value;
  const std::string& loss_name = plan.options.loss;
  const auto* const known = std::ranges::find(kLosses, loss_name, &NamedLoss::name);
  if (known == std::end(kLosses))
    return InvalidArgument("loss '{}' is not {}", loss_name, LossNames());
  if (known->make == nullptr) return GradeClasses(f, copy[ClassScoresOf(main, prediction)]);
  const Value y = copy[prediction], label = f.Argument("label", y.type());
  const Value loss = known->make(f, y, label);
  FORGE_RETURN_IF_ERROR(f.status());
  return Graded{loss, {}};
}

// A loss and its gradients for the parameters.
struct Differentiated {
  Graded graded;
  Values gradients;
  size_t forward;  // how many nodes the loss takes
};

// Adds to the gradients what earlier batches left of them.
absl::StatusOr<Differentiated> AppendGradients(const Plan& plan, Function& f) {
  const TrainingOptions& o = plan.options;
  FORGE_ASSIGN_OR_RETURN(const Graded graded,
                         AppendLoss(plan, f, {.precision = o.precision.products}));
  Values with;
  for (Variable* v : plan.parameters) with.push_back(f.Read(v));
  const Value scale = plan.loss_scale ? plan.loss_scale->Of(f) : Value{};
  const Value loss = scale ? graded.loss * scale : graded.loss;
  const size_t forward = f.nodes().size();
  FORGE_ASSIGN_OR_RETURN(Values gradients, Differentiate(f, loss, with, plan.activations));
  if (scale)
    for (Value& g : gradients) g = g * (1.0 / scale);
  for (size_t i = 0; i < plan.sums.size(); ++i)
    gradients[i] = f.Read(plan.sums[i]) + gradients[i] * (1.0 / o.accumulate);
  return Differentiated{graded, std::move(gradients), forward};
}

// What the gradients of a step without a budget read decides what is kept with one.
absl::StatusOr<ActivationPlan> ActivationsOf(Module& m, const Plan& plan) {
  Bindings sizes;
  for (const auto& [name, size] : plan.options.sizes) {
    const SymbolRef symbol = m.FindSymbol(name);
    if (symbol == nullptr) return InvalidArgument("the model has no size '{}'", name);
    sizes[symbol] = size;
  }
  Module trial(&m);
  Function& f = *trial.AddFunction("trial");
  FORGE_ASSIGN_OR_RETURN(const Differentiated d, AppendGradients(plan, f));
  return PlanActivations(f, d.forward, plan.options.activation_budget, sizes);
}

void ReturnGrades(Function& f, const Graded& graded) {
  f.Return("loss", graded.loss);
  if (graded.correct) f.Return("correct", graded.correct);
}

absl::Status AddAccumulate(Module& m, const Plan& plan) {
  Function& f = *m.AddFunction("accumulate");
  FORGE_ASSIGN_OR_RETURN(const Differentiated d, AppendGradients(plan, f));
  for (size_t i = 0; i < plan.sums.size(); ++i) f.Store(plan.sums[i], d.gradients[i]);
  ReturnGrades(f, d.graded);
  return f.status();
}

// Limits the gradients as the options say.  Returns their norm before it is limited where it is
// needed, which reads every gradient once more; otherwise null.
Value Clip(Function& f, const TrainingOptions& o, bool needs_norm, Values& gradients) {
  const auto number = [&](double v) { return f(Fill{.value = v, .dtype = DType::kF32}, {}); };
  for (Value& g : gradients)
    if (o.clip_value > 0) g = f(Clamp{.low = -o.clip_value, .high = o.clip_value}, {g});
  if (o.clip_norm <= 0 && !needs_norm) return {};
  Value squares;
  for (const Value& g : gradients) squares = squares ? squares + Sum(g * g) : Sum(g * g);
  const Value norm = sqrt(squares);
  if (o.clip_norm <= 0) return norm;
  // As torch.nn.utils.clip_grad_norm_.
  const Value factor = f(Minimum{}, {number(o.clip_norm) / (norm + 1e-6), number(1)});
  for (Value& g : gradients) g = g * factor;
  return norm;
}

absl::Status AddTrain(Module& m, const Plan& plan) {
  const TrainingOptions& o = plan.options;
  Function& f = *m.AddFunction("train");
  FORGE_ASSIGN_OR_RETURN(Differentiated d, AppendGradients(plan, f));
  StepInputs in{.learning_rate = f.Argument("learning_rate", Type::Tensor(DType::kF32, {}))};
  const Value norm = Clip(f, o, o.gradient_norm || plan.loss_scale, d.gradients);
  if (plan.loss_scale) {
    in.commits = norm < std::numeric_limits<double>::infinity();
    plan.loss_scale->Update(f, in.commits);
  }
  FORGE_ASSIGN_OR_RETURN(const Values after,
                         AppendStep(f, o.optimizer, in, plan.parameters, d.gradients));
  for (Variable* v : plan.sums)
    f.Store(v, f(Fill{.value = 0, .dtype = DType::kF32, .shape = v->type.shape()}, {}));
  for (size_t i = 0; i < after.size() && !plan.averages.empty(); ++i) {
    Variable* const average = plan.averages.at(plan.parameters[i]);
    StoreIf(in.commits, average,
            f.Read(average) * o.average_decay + after[i] * (1 - o.average_decay));
  }
  ReturnGrades(f, d.graded);
  if (norm) f.Return("gradient_norm", norm);
  return f.status();
}

absl::Status AddEvaluate(Module& m, const Plan& plan) {
  Function& f = *m.AddFunction("evaluate");
  FORGE_ASSIGN_OR_RETURN(const Graded graded, AppendLoss(plan, f, {.averages = &plan.averages}));
  ReturnGrades(f, graded);
  return f.status();
}

absl::Status AddAccess(Module& m, const TrainingVariables& variables) {
  Function &read = *m.AddFunction("read_variables"), &write = *m.AddFunction("write_variables");
  for (const auto* list : {&variables.parameters, &variables.states}) {
    for (Variable* v : *list) {
      read.Return(v->name, read.Read(v));
      write.Store(v, write.Argument(v->name, v->type));
    }
  }
  write.Return("one", write(Fill{.value = 1, .dtype = DType::kF32}, {}));
  FORGE_RETURN_IF_ERROR(read.status());
  return write.status();
}

}  // namespace

std::string LossNames() { return Alternatives(kLosses, &NamedLoss::name); }

absl::StatusOr<TrainingVariables> AddTraining(Module& m, const TrainingOptions& o) {
  if (m.Find(o.function) == nullptr)
    return InvalidArgument("the model has no function '{}'", o.function);
  const std::set<const Variable*> statistics = StatisticsOf(*m.Find(o.function));
  FORGE_RETURN_IF_ERROR(CaptureReads(m, o.function));
  const Function* const main = m.Find(o.function);
  for (const char* name : {"train", "accumulate", "evaluate", "read_variables", "write_variables"})
    if (m.Find(name) != nullptr) return InvalidArgument("the model has a function '{}'", name);
  TrainingVariables out{.parameters = ParametersOf(*main, statistics, o)};
  if (out.parameters.empty()) return InvalidArgument("the model has no f32 parameter to train");
  const DType p = o.precision.products;
  if (p != DType::kF32 && p != DType::kF16 && p != DType::kBF16)
    return InvalidArgument("products are computed in f32, f16 or bf16, not in {}", Name(p));
  const size_t before = m.variables().size();
  Plan plan{.main = *main, .options = o, .parameters = out.parameters};
  for (Variable* v : out.parameters) {
    v->trainable = true;
    Variable state{.name = v->name + ".gradient", .role = Variable::Role::kState, .type = v->type};
    if (o.accumulate > 1) plan.sums.push_back(m.AddVariable(state));
    if (o.average_decay <= 0) continue;
    state.name = v->name + ".average";
    state.init = v->init;
    out.averages.push_back(plan.averages[v] = m.AddVariable(std::move(state)));
  }
  if (p == DType::kF16) plan.loss_scale.emplace(m);
  if (o.activation_budget > 0) {
    FORGE_ASSIGN_OR_RETURN(out.activations, ActivationsOf(m, plan));
    plan.activations = &out.activations;
  }
  FORGE_RETURN_IF_ERROR(AddTrain(m, plan));
  if (o.accumulate > 1) FORGE_RETURN_IF_ERROR(AddAccumulate(m, plan));
  for (const auto& v : m.variables().subspan(before)) out.states.push_back(v.get());
  FORGE_RETURN_IF_ERROR(AddEvaluate(m, plan));
  FORGE_RETURN_IF_ERROR(AddAccess(m, out));
  FORGE_RETURN_IF_ERROR(Verify(m));
  return out;
}

}  // namespace forge::ir
