// SPDX-License-Identifier: Apache-2.0
#include "ir/dim/index_program.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

namespace forge::ir {
namespace {

constexpr int kMaxIndexDepth = 64;  // maps of ops are shallow; attributes from files need not be

}  // namespace

absl::StatusOr<IndexProgram> IndexProgram::Compile(const Dim& d,
                                                   std::span<const SymbolRef> variables) {
  IndexProgram p;
  FORGE_RETURN_IF_ERROR(p.Append(d, variables, 0));
  return p;
}

absl::Status IndexProgram::Append(const Dim& d, std::span<const SymbolRef> variables, int depth) {
  if (depth > kMaxIndexDepth) return InvalidArgument("index {} is nested too deeply", d.ToText());
  const Dim::Part part = d.part();
  if (part.op == Dim::Op::kConstant) {
    steps_.push_back({part.op, part.constant});
    return absl::OkStatus();
  }
  if (part.op == Dim::Op::kSymbol) {
    const auto found = std::find(variables.begin(), variables.end(), part.symbol);
    if (found == variables.end())
      return InvalidArgument("symbol {} has no value", part.symbol->name);
    steps_.push_back({part.op, found - variables.begin()});
    return absl::OkStatus();
  }
  for (const Dim& operand : part.operands)
    FORGE_RETURN_IF_ERROR(Append(operand, variables, depth + 1));
  steps_.push_back({part.op, static_cast<int64_t>(part.operands.size())});
  return absl::OkStatus();
}

int64_t IndexProgram::Run(std::span<const int64_t> variables) const {
  absl::InlinedVector<int64_t, 32> stack;
  for (const Step& s : steps_) {
    if (s.op == Dim::Op::kConstant) {
      stack.push_back(s.value);
    } else if (s.op == Dim::Op::kSymbol) {
      stack.push_back(variables[static_cast<size_t>(s.value)]);
    } else {
      const size_t first = stack.size() - static_cast<size_t>(s.value);
      for (size_t i = first + 1; i < stack.size(); ++i)
        stack[first] = Combine(s.op, stack[first], stack[i]);
      stack.resize(first + 1);
    }
  }
  return stack.back();
}

}  // namespace forge::ir
