// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan.
#include <algorithm>

#include "formats/onnx/builders/families.h"
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

ir::Values BuildLoop(OnnxNode& n) {
  const auto [inputs, outputs] = n.BodyArity("body");
  const size_t carried = std::max<size_t>(n.inputs(), 2) - 2;
  if (inputs != static_cast<int>(carried) + 2 || outputs < static_cast<int>(carried) + 1) {
    n.Fail("its body has {} inputs and {} outputs, which does not fit {} carried values", inputs,
           outputs, carried);
    return {};
  }
  ir::Values in;
  // The types of carried values may change from step to step.
  ir::Types types = {ir::Type::Tensor(DType::kI64, {}), ir::Type::Tensor(DType::kBool, {})};
  for (size_t i = 0; i < carried + 2; ++i) {
    in.push_back(n.in(i));
    if (i >= 2) types.push_back(ir::Type::Unknown());
  }
  const ir::Values captured = n.ValuesOf(n.Captures());
  in.insert(in.end(), captured.begin(), captured.end());
  ir::Function* body = n.status().ok() ? n.Body("body", types) : nullptr;
  if (body == nullptr) return {};
  return n.fn().Add(ir::Loop{.body = body, .carried = static_cast<int64_t>(carried)}, in);
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
