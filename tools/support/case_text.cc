// SPDX-License-Identifier: Apache-2.0
#include "tools/support/case_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "ir/text/parts.h"

namespace forge::tools {
namespace {

// Operands are separated by the commas that lie outside of brackets.
std::vector<std::string> Operands(std::string_view text) {
  std::vector<std::string> all;
  int depth = 0;
  bool starts = true;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      starts = true;
      continue;
    }
    if (std::exchange(starts, false)) all.emplace_back();
    if (c != ' ' || depth == 0) all.back() += c;
  }
  for (std::string& operand : all) absl::StripAsciiWhitespace(&operand);
  return all;
}

}  // namespace

absl::StatusOr<std::vector<ir::ConcreteCase>> ParseCase(const std::string& text) {
  const size_t brace = text.find('{'), close = text.find('}');
  const size_t open = text.find('(', brace < text.find('(') ? close : 0);
  if (open == std::string::npos || text.empty() || text.back() != ')')
    return InvalidArgument("'{}' is no case such as 'matmul(f32[64,32], f32[32,8])'", text);
  const bool has_attributes = brace < open && close < open;
  const std::string name = text.substr(0, has_attributes ? brace : open);
  const std::string attributes =
      has_attributes ? text.substr(brace + 1, close - brace - 1) : std::string();
  ir::Module module;
  absl::StatusOr<ir::AnyOp> op = ir::ParseOp(name, attributes, module);
  if (!op.ok()) return Annotate(op.status(), text);
  ir::Case c{.op = *std::move(op),
             .in = Operands(std::string_view(text).substr(open + 1, text.size() - open - 2))};
  absl::StatusOr<std::vector<ir::ConcreteCase>> all = ir::Concretize(c);
  if (!all.ok()) return Annotate(all.status(), text);
  for (const ir::ConcreteCase& one : *all)
    if (absl::Status s = one.op.Infer(one.types()).status(); !s.ok()) return Annotate(s, text);
  return all;
}

}  // namespace forge::tools
