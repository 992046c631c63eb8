// SPDX-License-Identifier: Apache-2.0
// Idioms that exporters write out, as the op they spell.
#include "ir/ops/elementwise.h"
#include "ir/ops/fill.h"
#include "ir/passes/passes.h"

namespace forge::ir {
namespace {

// A value's maker, if it is an op of type T.
template <class T>
const Node* Maker(const Function& f, uint32_t value) {
  if (value == kAbsent || f.origin(value).kind != Function::Origin::kNode) return nullptr;
  const Node& node = f.nodes()[f.origin(value).index];
  return node.op.Is<T>() ? &node : nullptr;
}

bool IsNumber(const Function& f, uint32_t value, double number) {
  const Node* fill = Maker<Fill>(f, value);
  return fill && fill->op.As<Fill>()->value == number;
}

// The other operand of a commutative node when one operand is the number; kAbsent otherwise.
uint32_t OtherThan(const Function& f, const Node& node, double number) {
  if (IsNumber(f, node.in[1], number)) return node.in[0];
  if (IsNumber(f, node.in[0], number)) return node.in[1];
  return kAbsent;
}

// x * clamp(x + 3, 0, 6) / 6
std::optional<Values> HardSwishIdiom(Function& f, const Node& node, ValueSpan in) {
  if (!node.op.Is<Div>() || !IsNumber(f, in[1].id, 6)) return std::nullopt;
  const Node* product = Maker<Mul>(f, in[0].id);
  if (product == nullptr) return std::nullopt;
  for (int side : {0, 1}) {
    const uint32_t x = product->in[side];
    const Node* clamp = Maker<Clamp>(f, product->in[1 - side]);
    if (clamp == nullptr || clamp->op.As<Clamp>()->low != 0 || clamp->op.As<Clamp>()->high != 6)
      continue;
    const Node* sum = Maker<Add>(f, clamp->in[0]);
    if (sum == nullptr || OtherThan(f, *sum, 3) != x) continue;
    if (!(f.type(x) == f.type(in[0].id))) continue;
    return f.Add(HardSwish{}, std::array{f.value(x)});
  }
  return std::nullopt;
}

using Idiom = std::optional<Values> (*)(Function& f, const Node& node, ValueSpan in);
constexpr Idiom kIdioms[] = {&HardSwishIdiom};

}  // namespace

absl::Status Recognise(const Function& in, Function& out) {
  Function named(in.name());
  auto rule = [](Function& f, const Node& node, ValueSpan operands) -> std::optional<Values> {
    for (Idiom idiom : kIdioms)
      if (auto made = idiom(f, node, operands)) return made;
    return std::nullopt;
  };
  FORGE_RETURN_IF_ERROR((Rewriter{.pass = "recognise"}.Run(in, named, rule)));
  // What the idioms were made of is now read by nobody.
  return Rewriter{.pass = "recognise"}.Run(
      named, out, [](Function&, const Node&, ValueSpan) { return std::optional<Values>(); });
}

}  // namespace forge::ir
