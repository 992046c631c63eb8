// SPDX-License-Identifier: Apache-2.0
#include "ir/training/step.h"

#include <algorithm>
#include <set>

#include "ir/graph/copier.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/loss/classification.h"
#include "ir/ops/loss/regression.h"
#include "ir/ops/norm/batch_norm.h"
#include "ir/ops/reduction/arg_reduce.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/training/differentiate.h"

namespace forge::ir {
namespace {

// The loss of a function on a batch, inside a function under construction.
struct Graded {
  Value loss, correct;  // `correct` is absent where the loss compares no classes
};

// The variables that a training of `f` updates.
std::vector<Variable*> ParametersOf(const Function& f) {
  std::set<const Variable*> statistics;
  for (const Node& node : f.nodes()) {
    if (!node.op.Is<BatchNorm>()) continue;
    for (const size_t i : {size_t{3}, size_t{4}}) statistics.insert(f.VariableOf(node.in[i]));
  }
  std::vector<Variable*> out;
  for (const Function::VariableRead& r : f.reads()) {
    Variable* const v = r.variable;
    if (v->role == Variable::Role::kParameter && v->type.dtype() == DType::kF32 &&
        !statistics.contains(v))
      out.push_back(v);
  }
  return out;
}

// Returns the value that the scores come from: the operand of a last softmax.
uint32_t ScoresOf(const Function& f, uint32_t prediction) {
  const Function::Origin& origin = f.origin(prediction);
  if (origin.kind != Function::Origin::kNode) return prediction;
  const Node& node = f.nodes()[origin.index];
  return node.op.Is<Softmax>() ? node.in[0] : prediction;
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

// Copies `main` into `f` and appends its loss.
absl::StatusOr<Graded> AppendLoss(const Function& main, Function& f, const TrainingOptions& o) {
  if (main.results().empty()) return InvalidArgument("'{}' has no result", main.name());
  Copier copy(main, f);
  copy.CopyArguments();
  for (const Node& node : main.nodes()) copy.CopyNode(node);
  FORGE_RETURN_IF_ERROR(f.status());
  const uint32_t prediction = main.results()[0].value;
  if (o.loss == "cross_entropy") return GradeClasses(f, copy[ScoresOf(main, prediction)]);
  if (o.loss != "mse") return InvalidArgument("loss '{}' is not cross_entropy or mse", o.loss);
  const Value y = copy[prediction], label = f.Argument("label", y.type());
  const Value loss = f(MseLoss{}, {y, label});
  FORGE_RETURN_IF_ERROR(f.status());
  return Graded{loss, {}};
}

absl::Status AddTrain(Module& m, const Function& main, const TrainingOptions& o,
                      std::span<Variable* const> parameters) {
  Function& f = *m.AddFunction("train");
  FORGE_ASSIGN_OR_RETURN(const Graded graded, AppendLoss(main, f, o));
  const Value rate = f.Argument("learning_rate", Type::Tensor(DType::kF32, {}));
  Values with;
  for (Variable* v : parameters) with.push_back(f.Read(v));
  FORGE_ASSIGN_OR_RETURN(Values gradients, Differentiate(f, graded.loss, with));
  Value squares;
  for (const Value& g : gradients) squares = squares ? squares + Sum(g * g) : Sum(g * g);
  const Value norm = sqrt(squares);
  if (o.clip_norm > 0) {
    const Value limit = f(Fill{.value = o.clip_norm, .dtype = DType::kF32}, {});
    // As torch.nn.utils.clip_grad_norm_.
    const Value factor =
        f(Minimum{}, {limit / (norm + 1e-6), f(Fill{.value = 1, .dtype = DType::kF32}, {})});
    for (Value& g : gradients) g = g * factor;
  }
  FORGE_RETURN_IF_ERROR(AppendStep(f, o.optimizer, rate, parameters, gradients));
  f.Return("loss", graded.loss);
  if (graded.correct) f.Return("correct", graded.correct);
  f.Return("gradient_norm", norm);
  return f.status();
}

absl::Status AddEvaluate(Module& m, const Function& main, const TrainingOptions& o) {
  Function& f = *m.AddFunction("evaluate");
  FORGE_ASSIGN_OR_RETURN(const Graded graded, AppendLoss(main, f, o));
  f.Return("loss", graded.loss);
  if (graded.correct) f.Return("correct", graded.correct);
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

absl::StatusOr<TrainingVariables> AddTraining(Module& m, const TrainingOptions& o) {
  const Function* const main = m.Find(o.function);
  if (main == nullptr) return InvalidArgument("the model has no function '{}'", o.function);
  for (const char* name : {"train", "evaluate", "read_variables", "write_variables"})
    if (m.Find(name) != nullptr) return InvalidArgument("the model has a function '{}'", name);
  TrainingVariables out{.parameters = ParametersOf(*main)};
  if (out.parameters.empty()) return InvalidArgument("the model has no f32 parameter to train");
  for (Variable* v : out.parameters) v->trainable = true;
  const size_t before = m.variables().size();
  FORGE_RETURN_IF_ERROR(AddTrain(m, *main, o, out.parameters));
  for (const auto& v : m.variables().subspan(before)) out.states.push_back(v.get());
  FORGE_RETURN_IF_ERROR(AddEvaluate(m, *main, o));
  FORGE_RETURN_IF_ERROR(AddAccess(m, out));
  FORGE_RETURN_IF_ERROR(Verify(m));
  return out;
}

}  // namespace forge::ir
