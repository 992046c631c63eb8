// SPDX-License-Identifier: Apache-2.0
// Idioms that exporters write out, as the op they spell. Exporters differ in the order of factors
// and terms and in where they put constants, so idioms are stated over products and lines.
#include "ir/ops/axes.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/layer_norm.h"
#include "ir/ops/reduce.h"
#include "ir/ops/softmax.h"
#include "ir/passes/passes.h"
#include "ir/passes/patterns.h"
#include "ir/scalar_math.h"

namespace forge::ir {
namespace {

// The node being rewritten is not in the function yet; its operands are.
struct Site {
  Function& f;
  const AnyOp& op;
  Ids in;
  const Type& type;  // of its result
};

std::optional<Values> Unary(const Site& s, uint32_t x, const AnyOp& op) {
  if (x == kAbsent || s.f.type(x) != s.type) return std::nullopt;
  if (!Has(kFloatTypes, s.type.dtype())) return std::nullopt;
  return s.f.Add(op, std::array{s.f.value(x)});
}

// x * 1/6 * clamp(x + 3, 0, 6), or x times the hard sigmoid of that slope.
bool IsHardSwishGate(const Function& f, uint32_t gate, uint32_t x, double scale) {
  if (const auto* sigmoid = OpOf<HardSigmoid>(f, gate))
    return IsNear(scale, 1) && IsNear(sigmoid->alpha, 1.0 / 6) && IsNear(sigmoid->beta, 0.5) &&
           Operand(f, gate) == x;
  const auto* clamp = OpOf<Clamp>(f, gate);
  return clamp && clamp->low == 0 && clamp->high == 6 && IsNear(scale, 1.0 / 6) &&
         LineOf(f, Operand(f, gate), x) == Line{x, 1, 3};
}

// x * 1/2 * (1 + erf(x / sqrt(2)))
bool IsGeluGate(const Function& f, uint32_t gate, uint32_t x, double scale) {
  const Line line = LineOf(f, gate);
  return Maker<Erf>(f, line.x) && IsNear(line.slope, line.offset) &&
         IsNear(scale * line.slope, 0.5) &&
         LineOf(f, Operand(f, line.x), x) == Line{x, 1 / std::numbers::sqrt2, 0};
}

// c * (x + 0.044715 * x^3), or c * x * (1 + 0.044715 * x^2).
bool IsGeluCubic(const Function& f, uint32_t value, uint32_t x) {
  Factored p = FactoredOf(f, value);
  if (!IsNear(p.scale, Gelu::kTanhScale)) return false;
  const auto is_square = [&](const Line& line) {
    Factored square = FactoredOf(f, line.x);
    square.scale *= line.slope;
    return square == Factored{Gelu::kCube, {x, x}} && line.offset == 1;
  };
  if (p.factors.size() == 2)
    for (size_t i : {0, 1})
      if (p.factors[i] == x && is_square(LineOf(f, p.factors[1 - i]))) return true;
  if (p.factors.size() != 1 || !Maker<Add>(f, p.factors[0])) return false;
  const Ids terms = Maker(f, p.factors[0])->in;
  for (size_t i : {0, 1})
    if (terms[i] == x && FactoredOf(f, terms[1 - i]) == Factored{Gelu::kCube, {x, x, x}})
      return true;
  return false;
}

// x * 1/2 * (1 + tanh(...))
bool IsGeluTanhGate(const Function& f, uint32_t gate, uint32_t x, double scale) {
  const Line line = LineOf(f, gate);
  return Maker<Tanh>(f, line.x) && IsNear(line.slope, line.offset) &&
         IsNear(scale * line.slope, 0.5) && IsGeluCubic(f, Operand(f, line.x), x);
}

bool IsSiluGate(const Function& f, uint32_t gate, uint32_t x, double scale) {
  return IsNear(scale, 1) && Maker<Sigmoid>(f, gate) && Operand(f, gate) == x;
}

std::optional<Values> GatedFactors(const Site& s, const Factored& p) {
  if (p.factors.size() != 2) return std::nullopt;
  for (size_t i : {0, 1}) {
    const uint32_t x = p.factors[i], gate = p.factors[1 - i];
    if (IsHardSwishGate(s.f, gate, x, p.scale)) return Unary(s, x, HardSwish{});
    if (IsGeluGate(s.f, gate, x, p.scale)) return Unary(s, x, Gelu{});
    if (IsGeluTanhGate(s.f, gate, x, p.scale)) return Unary(s, x, Gelu{.tanh_form = true});
    if (IsSiluGate(s.f, gate, x, p.scale)) return Unary(s, x, Silu{});
  }
  return std::nullopt;
}

// scale * x * gate(x). The fewest levels first, since x may be a product too.
std::optional<Values> Gated(const Site& s) {
  if (!s.op.Is<Mul>() && !s.op.Is<Div>()) return std::nullopt;
  for (int depth = 0; depth <= kMaxPatternDepth; ++depth)
    if (auto made = GatedFactors(s, FactoredOf(s.f, s.op, s.in, depth))) return made;
  return std::nullopt;
}

// The gate of squeeze-and-excite as some exporters spell it: clamp(a * x + b, 0, c) / c.
std::optional<Values> HardGate(const Site& s) {
  if (!s.op.Is<Mul>() && !s.op.Is<Div>() && !s.op.Is<Clamp>()) return std::nullopt;
  double scale = 1;
  const Clamp* clamp = s.op.As<Clamp>();
  uint32_t inner = clamp ? s.in[0] : kAbsent;
  if (clamp == nullptr) {
    const Factored p = FactoredOf(s.f, s.op, s.in);
    if (p.factors.size() != 1) return std::nullopt;
    clamp = OpOf<Clamp>(s.f, p.factors[0]);
    if (clamp == nullptr) return std::nullopt;
    scale = p.scale;
    inner = Operand(s.f, p.factors[0]);
  }
  if (clamp->low != 0 || !IsNear(clamp->high * scale, 1)) return std::nullopt;
  const Line line = LineOf(s.f, inner);
  // A plain clamp is no gate.
  if (line.offset == 0) return std::nullopt;
  return Unary(s, line.x, HardSigmoid{.alpha = line.slope * scale, .beta = line.offset * scale});
}

// The means over `axes` of value `x` with those axes kept.
bool IsMeanOf(const Function& f, uint32_t mean, uint32_t x, std::span<const int64_t> axes) {
  const auto* reduce = OpOf<Reduce>(f, mean);
  if (!reduce || reduce->kind != ReduceKind::kMean || !reduce->keep_dims) return false;
  const auto normal = NormalAxes(reduce->axes, f.type(x).rank());
  return Operand(f, mean) == x && normal.ok() &&
         std::equal(normal->begin(), normal->end(), axes.begin(), axes.end());
}

// x of x - mean(x), where the means are over the last axes.
struct Centred {
  uint32_t x = kAbsent;
  std::vector<int64_t> axes;
};
std::optional<Centred> CentredOf(const Function& f, uint32_t value) {
  const Node* sub = Maker<Sub>(f, value);
  if (!sub) return std::nullopt;
  const auto* reduce = OpOf<Reduce>(f, sub->in[1]);
  const int rank = f.type(sub->in[0]).rank();
  if (!reduce || rank < 1) return std::nullopt;
  const auto axes = NormalAxes(reduce->axes, rank);
  if (!axes.ok() || axes->empty() || axes->back() != rank - 1 ||
      axes->back() - axes->front() + 1 != static_cast<int64_t>(axes->size()))
    return std::nullopt;
  if (!IsMeanOf(f, sub->in[1], sub->in[0], *axes)) return std::nullopt;
  return Centred{sub->in[0], *axes};
}

// Two spellings of one difference may be two nodes.
bool IsSameCentred(const Function& f, uint32_t value, const Centred& c) {
  const auto other = CentredOf(f, value);
  return other && other->x == c.x && other->axes == c.axes;
}

// The epsilon of sqrt(mean(c * c) + epsilon) over the axes of `c`.
std::optional<double> DeviationOf(const Function& f, uint32_t value, const Centred& c) {
  if (!Maker<Sqrt>(f, value)) return std::nullopt;
  const Line line = LineOf(f, Operand(f, value));
  if (line.slope != 1 || !OpOf<Reduce>(f, line.x)) return std::nullopt;
  const uint32_t squares = Operand(f, line.x);
  const Factored p = FactoredOf(f, squares);
  if (!IsMeanOf(f, line.x, squares, c.axes) || p.scale != 1 || p.factors.size() != 2)
    return std::nullopt;
  for (uint32_t factor : p.factors)
    if (!IsSameCentred(f, factor, c)) return std::nullopt;
  return line.offset;
}

// (x - mean) / sqrt(variance + epsilon), or times its reciprocal; gamma and beta stay behind.
std::optional<Values> LayerNormIdiom(const Site& s) {
  if (!s.op.Is<Div>() && !s.op.Is<Mul>()) return std::nullopt;
  for (size_t i : {0, 1}) {
    const auto c = CentredOf(s.f, s.in[i]);
    if (!c || (i == 1 && s.op.Is<Div>())) continue;
    const uint32_t other = s.in[1 - i];
    const auto epsilon = DeviationOf(s.f, s.op.Is<Div>() ? other : ReciprocalOf(s.f, other), *c);
    if (epsilon) return Unary(s, c->x, LayerNorm{.axis = c->axes.front(), .epsilon = *epsilon});
  }
  return std::nullopt;
}

// e / sum(e) along an axis, e = exp(x) or exp(x - max(x)).
std::optional<Values> SoftmaxIdiom(const Site& s) {
  if (!s.op.Is<Div>() || !Maker<Exp>(s.f, s.in[0])) return std::nullopt;
  const auto* sum = OpOf<Reduce>(s.f, s.in[1]);
  if (!sum || sum->kind != ReduceKind::kSum || !sum->keep_dims || sum->axes.size() != 1 ||
      Operand(s.f, s.in[1]) != s.in[0])
    return std::nullopt;
  uint32_t x = Operand(s.f, s.in[0]);
  if (const Node* sub = Maker<Sub>(s.f, x)) {
    const auto* top = OpOf<Reduce>(s.f, sub->in[1]);
    if (top && top->kind == ReduceKind::kMax && top->keep_dims && top->axes == sum->axes &&
        Operand(s.f, sub->in[1]) == sub->in[0])
      x = sub->in[0];
  }
  return Unary(s, x, Softmax{.axis = sum->axes[0]});
}

// x to a power that is a product, a root or a quotient.
std::optional<Values> SmallPower(const Site& s) {
  if (!s.op.Is<Pow>() || s.type != s.f.type(s.in[0])) return std::nullopt;
  const Value x = s.f.value(s.in[0]);
  const std::optional<double> power = NumberOf(s.f, s.in[1]);
  if (!power) return std::nullopt;
  const auto is = [&](double number) { return *power == number; };
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

using Idiom = std::optional<Values> (*)(const Site& s);
constexpr Idiom kIdioms[] = {&Gated, &HardGate, &LayerNormIdiom, &SoftmaxIdiom, &SmallPower};

}  // namespace

absl::Status Recognise(const Function& in, Function& out) {
  Function named(in.name());
  auto rule = [](Function& f, const Node& node, ValueSpan operands) -> std::optional<Values> {
    if (!node.late.empty() || node.outs != 1) return std::nullopt;
    std::vector<uint32_t> ids;
    Types types;
    for (const Value& v : operands) {
      ids.push_back(v ? v.id : kAbsent);
      types.push_back(v ? v.type() : Type());
    }
    // Numbers may be tensors along which an operand is repeated: what counts is the result's type.
    const absl::StatusOr<Types> result = node.op.Infer(types);
    if (!result.ok()) return std::nullopt;
    for (Idiom idiom : kIdioms)
      if (auto made = idiom({f, node.op, ids, result->front()})) return made;
    return std::nullopt;
  };
  FORGE_RETURN_IF_ERROR((Rewriter{.pass = "recognise"}.Run(in, named, rule)));
  // What the idioms were made of is now read by nobody.
  return Rewriter{.pass = "recognise"}.Run(
      named, out, [](Function&, const Node&, ValueSpan) { return std::optional<Values>(); });
}

}  // namespace forge::ir
