// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan.
#include <algorithm>

#include "formats/onnx/builders/families.h"
#include "ir/graph/interpreter.h"
#include "ir/ops/control/if.h"
#include "ir/ops/control/loop.h"

namespace forge::formats {
namespace {

ir::Values BuildIf(OnnxNode& n) {
  ir::Values in = {n.in(0)};
  const std::vector<std::string> captures = n.Captures();
  const ir::Values captured = n.ValuesOf(captures);
  in.insert(in.end(), captured.begin(), captured.end());
  if (!n.status().ok()) return {};
  ir::Function* yes = n.Body("then_branch", {});
  ir::Function* no = n.Body("else_branch", {});
  if (!n.status().ok()) return {};
  return n.fn().Add(ir::If{.yes = yes, .no = no}, in);
}

// The types of a loop's carried values, from `first` at the first step: unknown for those that
// change from step to step.
//   types: of the arguments of the body, at which this writes
void FindCarriedTypes(OnnxNode& n, ir::Types& types) {
  constexpr int kMostTrials = 3;  // each finds values that change because others do
  const auto carried = std::span(types).subspan(2);
  if (std::ranges::none_of(carried, &ir::Type::is_tensor)) return;
  for (int trial = 0; trial < kMostTrials; ++trial) {
    const std::optional<ir::Types> after = n.TryBody("body", types);
    if (!after) break;
    bool stays = true;
    for (size_t i = 0; i < carried.size(); ++i) {
      if (carried[i] == (*after)[i + 1]) continue;
      stays = false;
      carried[i] = ir::Type::Unknown();
    }
    if (stays) return;
  }
  std::ranges::fill(carried, ir::Type::Unknown());
}

bool IsTrue(const ir::HostValue& v) { return v.elements() == 1 && v.i64(0) != 0; }

// Whether nothing but the number of steps ends the loop.
bool TakesAllSteps(OnnxNode& n, const ir::Function& body) {
  if (n.HasInput(1)) {
    const std::optional<ir::HostValue> first = n.Constant(1);
    if (!first || !IsTrue(*first)) return false;
  }
  const uint32_t next = body.results()[0].value;
  if (next == body.arguments()[1].value) return true;
  const ir::Variable* v = body.VariableOf(next);
  if (v == nullptr || v->role != ir::Variable::Role::kConstant) return false;
  const absl::StatusOr<ir::HostValue> value = ir::InitialValue(*v);
  return value.ok() && IsTrue(*value);
}

// Whether the types of the results from `first` have no symbols of the body's own.
bool AreKnownOutside(const ir::Function& body, size_t first) {
  std::vector<ir::SymbolRef> outside, symbols;
  for (const auto& a : body.arguments())
    for (const ir::Dim& d : body.type(a.value).shape()) d.CollectSymbols(outside);
  for (size_t i = first; i < body.results().size(); ++i)
    for (const ir::Dim& d : body.type(body.results()[i].value).shape()) d.CollectSymbols(symbols);
  return std::ranges::all_of(symbols, [&](const ir::SymbolRef& s) {
    return std::ranges::find(outside, s) != outside.end();
  });
}

// How many steps there are, where that decides the types of rows; -1 where it does not.
ir::Dim StepsOf(OnnxNode& n, const ir::Function& body, size_t carried) {
  if (!n.HasInput(0) || !TakesAllSteps(n, body) || !AreKnownOutside(body, carried + 1)) return -1;
  const std::optional<ir::Dims> steps = n.Contents(0);
  return steps && steps->size() == 1 && steps->front().min() >= 0 ? steps->front() : ir::Dim(-1);
}

ir::Values BuildLoop(OnnxNode& n) {
  const auto [inputs, outputs] = n.BodyArity("body");
  const size_t carried = std::max<size_t>(n.inputs(), 2) - 2;
  if (inputs != static_cast<int>(carried) + 2 || outputs < static_cast<int>(carried) + 1) {
    n.Fail("its body has {} inputs and {} outputs, which does not fit {} carried values", inputs,
           outputs, carried);
    return {};
  }
  ir::Values in;
  ir::Types types = {ir::Type::Tensor(DType::kI64, {}), ir::Type::Tensor(DType::kBool, {})};
  for (size_t i = 0; i < carried + 2; ++i) {
    in.push_back(n.in(i));
    if (i >= 2) types.push_back(in[i].type().is_tensor() ? in[i].type() : ir::Type::Unknown());
  }
  const ir::Values captured = n.ValuesOf(n.Captures());
  in.insert(in.end(), captured.begin(), captured.end());
  if (n.status().ok()) FindCarriedTypes(n, types);
  ir::Function* body = n.status().ok() ? n.Body("body", types) : nullptr;
  if (body == nullptr) return {};
  return n.fn().Add(ir::Loop{.body = body,
                             .carried = static_cast<int64_t>(carried),
                             .rows = StepsOf(n, *body, carried)},
                    in);
}

constexpr OnnxOp kControlOps[] = {
    {"", "If", 1, 1, 1, BuildIf},
    {"", "Loop", 1, 0, kAnyNumber, BuildLoop},
    {"", "Scan", 8, 2, kAnyNumber, nullptr},
    {"", "Scan", 9, 1, kAnyNumber, nullptr},  // rewritten before it is built: see scan.h
};

}  // namespace

std::span<const OnnxOp> ControlOps() { return kControlOps; }

}  // namespace forge::formats
