// SPDX-License-Identifier: Apache-2.0
// Idioms that exporters write out, as the op they spell.
#include "ir/ops/elementwise.h"
#include "ir/ops/fill.h"
#include "ir/passes/passes.h"
#include "ir/scalar_math.h"

namespace forge::ir {
namespace {

using Ids = std::span<const uint32_t>;

const Node* Maker(const Function& f, uint32_t value) {
  if (value == kAbsent || f.origin(value).kind != Function::Origin::kNode) return nullptr;
  return &f.nodes()[f.origin(value).index];
}

// A value's maker, if it is an op of type T.
template <class T>
const Node* Maker(const Function& f, uint32_t value) {
  const Node* node = Maker(f, value);
  return node && node->op.Is<T>() ? node : nullptr;
}

// Files hold numbers as f32.
bool Equal(double a, double b) { return static_cast<float>(a) == static_cast<float>(b); }

bool IsNumber(const Function& f, uint32_t value, double number) {
  const Node* fill = Maker<Fill>(f, value);
  return fill && Equal(fill->op.As<Fill>()->value, number);
}

// The other one of two operands when one is the number; kAbsent otherwise.
uint32_t OtherThan(const Function& f, Ids in, double number) {
  if (IsNumber(f, in[1], number)) return in[0];
  if (IsNumber(f, in[0], number)) return in[1];
  return kAbsent;
}

// v of v / 6 or v * (1 / 6); kAbsent where the op is neither.
uint32_t DividedBySix(const Function& f, const AnyOp& op, Ids in) {
  if (op.Is<Div>()) return IsNumber(f, in[1], 6) ? in[0] : kAbsent;
  return op.Is<Mul>() ? OtherThan(f, in, 1.0 / 6) : kAbsent;
}

// x of clamp(x + 3, 0, 6).
uint32_t Gated(const Function& f, uint32_t value) {
  const Node* clamp = Maker<Clamp>(f, value);
  if (clamp == nullptr || clamp->op.As<Clamp>()->low != 0 || clamp->op.As<Clamp>()->high != 6)
    return kAbsent;
  const Node* sum = Maker<Add>(f, clamp->in[0]);
  return sum ? OtherThan(f, sum->in, 3) : kAbsent;
}

// x of clamp(x + 3, 0, 6) / 6, which a hard sigmoid may say.
uint32_t GatedToOne(const Function& f, uint32_t value) {
  const Node* node = Maker(f, value);
  if (node == nullptr) return kAbsent;
  if (const auto* gate = node->op.As<HardSigmoid>())
    return Equal(gate->alpha, 1.0 / 6) && gate->beta == 0.5 ? node->in[0] : kAbsent;
  return Gated(f, DividedBySix(f, node->op, node->in));
}

// x of x * gate(x).
uint32_t GatedByItself(const Function& f, Ids in, uint32_t (*gate)(const Function&, uint32_t)) {
  for (int side : {0, 1})
    if (gate(f, in[1 - side]) == in[side]) return in[side];
  return kAbsent;
}

// x * clamp(x + 3, 0, 6) / 6, divided at the end or before the product.
std::optional<Values> HardSwishIdiom(Function& f, const Node& node, ValueSpan in) {
  if (!node.op.Is<Div>() && !node.op.Is<Mul>()) return std::nullopt;
  const uint32_t ids[] = {in[0].id, in[1].id};
  uint32_t x = kAbsent;
  if (const Node* product = Maker<Mul>(f, DividedBySix(f, node.op, ids)))
    x = GatedByItself(f, product->in, &Gated);
  if (x == kAbsent && node.op.Is<Mul>()) x = GatedByItself(f, ids, &GatedToOne);
  if (x == kAbsent || !Has(kFloatTypes, f.type(x).dtype())) return std::nullopt;
  // The numbers may be tensors along which x is repeated.
  const absl::StatusOr<Types> result = node.op.Infer(std::array{in[0].type(), in[1].type()});
  if (!result.ok() || result->front() != f.type(x)) return std::nullopt;
  return f.Add(HardSwish{}, std::array{f.value(x)});
}

// x to a power that is a product, a root or a quotient.
std::optional<Values> SmallPower(Function& f, const Node& node, ValueSpan in) {
  if (!node.op.Is<Pow>()) return std::nullopt;
  const Value x = in[0];
  const absl::StatusOr<Types> result = node.op.Infer(std::array{x.type(), in[1].type()});
  if (!result.ok() || result->front() != x.type()) return std::nullopt;
  const auto is = [&](double number) { return IsNumber(f, in[1].id, number); };
  if (is(1)) return Values{x};
  if (is(2)) return Values{x * x};
  if (is(3)) return Values{x * x * x};
  if (is(4)) {
    const Value square = x * x;
    return Values{square * square};
  }
  if (is(0.5)) return Values{sqrt(x)};
  if (is(-0.5)) return Values{1.0 / sqrt(x)};
  if (is(-1)) return Values{1.0 / x};
  if (is(-2)) return Values{1.0 / (x * x)};
  return std::nullopt;
}

using Idiom = std::optional<Values> (*)(Function& f, const Node& node, ValueSpan in);
constexpr Idiom kIdioms[] = {&HardSwishIdiom, &SmallPower};

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
