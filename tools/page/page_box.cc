// SPDX-License-Identifier: Apache-2.0
#include "tools/page/page_box.h"

#include <algorithm>

#include "ir/graph/interpreter.h"
#include "ir/op/signature.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/creation/fill.h"

namespace forge::tools {
namespace {

// Pixels, for the fonts of viewer.css: letters of the head and of lines, and what is around them.
constexpr double kHeadLetter = 7.9, kLetter = 6.1, kAround = 22, kHead = 24, kLineHeight = 15,
                 kBelowLines = 7;
constexpr double kLeastWidth = 90, kMostWidth = 330;
constexpr size_t kMostLines = 8;
constexpr size_t kMostExtent = 8;  // letters of an extent that is an expression

// What a fused region does with its operand: the operand of the op inside that reads it.
std::string RoleOf(const ir::Node& node, size_t operand) {
  const auto* fused = node.op.As<ir::Fused>();
  if (fused == nullptr || fused->body == nullptr)
    return ir::SignatureOf(node.op.def()).input(operand).name;
  if (operand >= fused->body->arguments().size()) return "";
  const uint32_t value = fused->body->arguments()[operand].value;
  for (const ir::Node& n : fused->body->nodes())
    for (size_t i = 0; i < n.in.size(); ++i)
      if (n.in[i] == value) return RoleOf(n, i);
  return "";
}

// "padding = [1, 1, 1, 1]" of "conv{padding = [1, 1, 1, 1]}".
std::string AttributesOf(const ir::Node& node) {
  if (node.op.As<ir::Fused>() != nullptr) return "";
  const std::string text = node.op.ToText();
  const size_t begin = text.find('{');
  return begin == text.npos ? "" : text.substr(begin + 1, text.rfind('}') - begin - 1);
}

void AddAttributes(const ir::Node& node, std::vector<BoxLine>& lines) {
  if (const std::string own = AttributesOf(node); !own.empty()) lines.push_back({"attribute", own});
  const auto* fused = node.op.As<ir::Fused>();
  if (fused == nullptr || fused->body == nullptr) return;
  for (const ir::Node& n : fused->body->nodes()) {
    // Those of what moves and maps elements would hide those of the op that computes.
    if (n.op.def().map != nullptr || n.op.def().scalar != nullptr || n.in.empty()) continue;
    if (const std::string inner = AttributesOf(n); !inner.empty())
      lines.push_back({"attribute", fmt::format("{}: {}", n.op.name(), inner)});
  }
}

}  // namespace

size_t Letters(std::string_view utf8) {
  return static_cast<size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

LayoutBox SizeOf(const BoxText& text, size_t label) {
  double width = static_cast<double>(Letters(text.head)) * kHeadLetter;
  for (const BoxLine& line : text.lines)
    width = std::max(width, static_cast<double>(Letters(line.text)) * kLetter);
  // A label begins at the middle of the box.
  width = std::max(width, 2 * static_cast<double>(label) * kLetter - kAround);
  const double lines = static_cast<double>(text.lines.size()) * kLineHeight;
  return {std::clamp(width + kAround, kLeastWidth, kMostWidth),
          kHead + (text.lines.empty() ? 0 : lines + kBelowLines)};
}

std::string ShapeText(const ir::Type& type) {
  if (!type.is_tensor()) return type.ToText();
  std::string out = type.dtype() == DType::kF32 ? "" : std::string(Name(type.dtype())) + " ";
  if (type.shape().empty()) return std::string(Name(type.dtype())) + " scalar";
  for (size_t i = 0; i < type.shape().size(); ++i) {
    const std::string text = type.shape()[i].ToText();
    out += (i ? "×" : "") + (text.size() > kMostExtent ? "?" : text);
  }
  return out;
}

std::string NumberText(const Number& v) {
  return v.is_integer() || v.is_complex() ? v.ToText() : fmt::format("{:.6g}", v.f64());
}

std::string ScalarText(const ir::Variable& v) {
  const bool real = v.type.is_tensor() && v.type.is_constant() &&
                    Has(kRealTypes | Bit(DType::kBool), v.type.dtype());
  if (!real || !v.init || ir::Product(v.type.shape()).constant() != 1) return "";
  const auto value = ir::InitialValue(v);
  return value.ok() ? NumberText(value->number(0)) : "";
}

std::string FillText(const ir::Function& f, const ir::Node& node) {
  const auto* fill = node.op.As<ir::Fill>();
  if (fill == nullptr || !node.runtime_attributes.empty()) return "";
  const ir::Dim elements = ir::Product(fill->shape);
  const std::string number = NumberText(fill->value);
  if (elements.is_constant() && elements.constant() == 1) return number;
  return fmt::format("{} in {}", number, ShapeText(f.type(node.first_out)));
}

std::vector<BoxLine> LinesOf(const ir::Function& f, const ir::Node& node,
                             const std::vector<std::string>& fills) {
  std::vector<BoxLine> lines;
  for (size_t i = 0; i < node.in.size(); ++i) {
    const uint32_t v = node.in[i];
    if (v == ir::kAbsent) continue;
    std::string what = fills[v];
    if (const ir::Variable* variable = f.VariableOf(v)) {
      what = ScalarText(*variable);
      if (what.empty()) what = ShapeText(variable->type);
    }
    if (!what.empty()) lines.push_back({"weight", fmt::format("{} {}", RoleOf(node, i), what)});
  }
  AddAttributes(node, lines);
  if (lines.size() > kMostLines) {
    lines.resize(kMostLines - 1);
    lines.push_back({"attribute", "…"});
  }
  return lines;
}

}  // namespace forge::tools
