// SPDX-License-Identifier: Apache-2.0
// Idioms that exporters write out, as the op they spell. Exporters differ in the order of factors
// and terms and in where they put constants, so idioms are stated over products and lines.
#include <numeric>
#include <set>

#include "ir/op/axes.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/attention.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/passes/passes.h"
#include "ir/passes/patterns.h"

namespace forge::ir {
namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

// The node being rewritten is not in the function yet; its operands are.
struct Site {
  Function& f;
  const AnyOp& op;
  Ids in;
  const Type& type;    // of its result
  bool alone = false;  // nobody else reads the first operand
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
  return DefiningNode<Erf>(f, line.x) && IsNear(line.slope, line.offset) &&
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
  if (p.factors.size() != 1 || !DefiningNode<Add>(f, p.factors[0])) return false;
  const Ids terms = DefiningNode(f, p.factors[0])->in;
  for (size_t i : {0, 1})
    if (terms[i] == x && FactoredOf(f, terms[1 - i]) == Factored{Gelu::kCube, {x, x, x}})
      return true;
  return false;
}

// x * 1/2 * (1 + tanh(...))
bool IsGeluTanhGate(const Function& f, uint32_t gate, uint32_t x, double scale) {
  const Line line = LineOf(f, gate);
  return DefiningNode<Tanh>(f, line.x) && IsNear(line.slope, line.offset) &&
         IsNear(scale * line.slope, 0.5) && IsGeluCubic(f, Operand(f, line.x), x);
}

bool IsSiluGate(const Function& f, uint32_t gate, uint32_t x, double scale) {
  return IsNear(scale, 1) && DefiningNode<Sigmoid>(f, gate) && Operand(f, gate) == x;
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

// The axes of a reduction when they are the last of its operand, none left out.
std::optional<std::vector<int64_t>> LastAxesOf(const Function& f, uint32_t value) {
  const auto* reduce = OpOf<Reduce>(f, value);
  if (!reduce) return std::nullopt;
  const int rank = f.type(Operand(f, value)).rank();
  const auto axes = NormalAxes(reduce->axes, rank);
  if (rank < 1 || !axes.ok() || axes->empty() || axes->back() != rank - 1 ||
      axes->back() - axes->front() + 1 != static_cast<int64_t>(axes->size()))
    return std::nullopt;
  return *axes;
}

// The mean over `axes` of x squared.
bool IsMeanOfSquare(const Function& f, uint32_t mean, uint32_t x, std::span<const int64_t> axes) {
  return IsMeanOf(f, mean, Operand(f, mean), axes) &&
         FactoredOf(f, Operand(f, mean)) == Factored{1, {x, x}};
}

// x of x - mean(x), where the means are over the last axes.
struct Centred {
  uint32_t x = kAbsent;
  std::vector<int64_t> axes;
};
std::optional<Centred> CentredOf(const Function& f, uint32_t value) {
  const Node* sub = DefiningNode<Sub>(f, value);
  if (!sub) return std::nullopt;
  const auto axes = LastAxesOf(f, sub->in[1]);
  if (!axes || !IsMeanOf(f, sub->in[1], sub->in[0], *axes)) return std::nullopt;
  return Centred{sub->in[0], *axes};
}

// Two spellings of one difference may be two nodes.
bool IsSameCentred(const Function& f, uint32_t value, const Centred& c) {
  const auto other = CentredOf(f, value);
  return other && other->x == c.x && other->axes == c.axes;
}

// mean(x * x) - mean(x) * mean(x)
bool IsVarianceByMoments(const Function& f, uint32_t value, const Centred& c) {
  const Node* sub = DefiningNode<Sub>(f, value);
  if (!sub || !IsMeanOfSquare(f, sub->in[0], c.x, c.axes)) return false;
  const Factored square = FactoredOf(f, sub->in[1]);
  return square.scale == 1 && square.factors.size() == 2 &&
         IsMeanOf(f, square.factors[0], c.x, c.axes) && IsMeanOf(f, square.factors[1], c.x, c.axes);
}

// mean(c * c) over the axes of `c`, or the same by moments.
bool IsVariance(const Function& f, uint32_t value, const Centred& c) {
  if (IsVarianceByMoments(f, value, c)) return true;
  if (!IsMeanOf(f, value, Operand(f, value), c.axes)) return false;
  const Factored square = FactoredOf(f, Operand(f, value));
  return square.scale == 1 && square.factors.size() == 2 &&
         std::all_of(square.factors.begin(), square.factors.end(),
                     [&](uint32_t factor) { return IsSameCentred(f, factor, c); });
}

// x / sqrt(under + epsilon)
struct OverRoot {
  uint32_t x, under;
  double epsilon;
};

// The ways in which the node is a quotient by a root, or a product with its reciprocal.
std::vector<OverRoot> OverRootsOf(const Site& s) {
  std::vector<OverRoot> found;
  const bool divides = s.op.Is<Div>();
  if (!divides && !s.op.Is<Mul>()) return found;
  for (size_t i = 0; i < (divides ? 1 : 2); ++i) {
    const uint32_t root = divides ? s.in[1] : ReciprocalOf(s.f, s.in[1 - i]);
    if (!DefiningNode<Sqrt>(s.f, root)) continue;
    const Line line = LineOf(s.f, Operand(s.f, root));
    if (line.slope == 1) found.push_back({s.in[i], line.x, line.offset});
  }
  return found;
}

// (x - mean) / sqrt(variance + epsilon); gamma and beta stay behind.
std::optional<Values> LayerNormIdiom(const Site& s) {
  for (const OverRoot& q : OverRootsOf(s)) {
    const auto c = CentredOf(s.f, q.x);
    if (c && IsVariance(s.f, q.under, *c))
      return Unary(s, c->x, LayerNorm{.axis = c->axes.front(), .epsilon = q.epsilon});
  }
  return std::nullopt;
}

// x / sqrt(mean(x * x) + epsilon); gamma stays behind.
std::optional<Values> RmsNormIdiom(const Site& s) {
  for (const OverRoot& q : OverRootsOf(s)) {
    const auto axes = LastAxesOf(s.f, q.under);
    if (axes && IsMeanOfSquare(s.f, q.under, q.x, *axes))
      return Unary(s, q.x,
                   LayerNorm{.axis = axes->front(), .epsilon = q.epsilon, .subtract_mean = false});
  }
  return std::nullopt;
}

// e / sum(e) along an axis, e = exp(x) or exp(x - max(x)).
std::optional<Values> SoftmaxIdiom(const Site& s) {
  if (!s.op.Is<Div>() || !DefiningNode<Exp>(s.f, s.in[0])) return std::nullopt;
  const auto* sum = OpOf<Reduce>(s.f, s.in[1]);
  if (!sum || sum->kind != ReduceKind::kSum || !sum->keep_dims || sum->axes.size() != 1 ||
      Operand(s.f, s.in[1]) != s.in[0])
    return std::nullopt;
  uint32_t x = Operand(s.f, s.in[0]);
  if (const Node* sub = DefiningNode<Sub>(s.f, x)) {
    const auto* top = OpOf<Reduce>(s.f, sub->in[1]);
    if (top && top->kind == ReduceKind::kMax && top->keep_dims && top->axes == sum->axes &&
        Operand(s.f, sub->in[1]) == sub->in[0])
      x = sub->in[0];
  }
  return Unary(s, x, Softmax{.axis = sum->axes[0]});
}

// k of a value that holds k with its last two axes swapped.
Value Swapped(Function& f, uint32_t value) {
  std::vector<int64_t> order(static_cast<size_t>(f.type(value).rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const Node* node = DefiningNode<Transpose>(f, value);
  if (node && node->op.As<Transpose>()->permutation == order) return f.value(node->in[0]);
  return f(Transpose{.permutation = std::move(order)}, {f.value(value)});
}

// scale * q k^T, however the scale is shared out; k is kAbsent where the value is none.
struct Scores {
  uint32_t q = kAbsent, k = kAbsent;
  bool swapped = false;  // k's last two axes are
  double scale = 1;
};
Scores ScoresOf(const Function& f, uint32_t value) {
  const Factored outer = FactoredOf(f, value);
  if (outer.factors.size() != 1) return {};
  const Node* product = DefiningNode<MatMul>(f, outer.factors[0]);
  if (!product || product->op.As<MatMul>()->transpose_a) return {};
  Scores s{product->in[0], product->in[1], !product->op.As<MatMul>()->transpose_b, outer.scale};
  for (uint32_t* side : {&s.q, &s.k}) {
    const Factored inner = FactoredOf(f, *side);
    if (inner.factors.size() != 1 || f.type(inner.factors[0]) != f.type(*side)) continue;
    s.scale *= inner.scale;
    *side = inner.factors[0];
  }
  return s;
}

// softmax(scale * q k^T [+ mask]) v, or with a selection between the scores and -infinity.
std::optional<Values> AttentionIdiom(const Site& s) {
  const MatMul* op = s.op.As<MatMul>();
  // Probabilities that somebody else reads are computed anyway.
  if (!op || op->transpose_a || op->transpose_b || !s.alone) return std::nullopt;
  const auto* softmax = OpOf<Softmax>(s.f, s.in[0]);
  const uint32_t masked = Operand(s.f, s.in[0]);
  if (!softmax || softmax->log) return std::nullopt;
  const int rank = s.f.type(s.in[0]).rank();
  const auto axis = NormalAxis(softmax->axis, rank);
  if (!axis.ok() || *axis != rank - 1 || rank < 2) return std::nullopt;
  Scores scores = ScoresOf(s.f, masked);
  uint32_t mask = kAbsent;
  if (const Node* node = DefiningNode(s.f, masked); scores.k == kAbsent && node) {
    const bool adds = node->op.Is<Add>();
    const bool selects = node->op.Is<Select>() && NumberOf(s.f, node->in[2]) == kLowest;
    for (size_t i = adds ? 0 : 1; (adds || selects) && i < 2 && scores.k == kAbsent; ++i) {
      if (!(s.f.type(node->in[i]) == s.f.type(masked))) continue;
      scores = ScoresOf(s.f, node->in[i]);
      mask = node->in[adds ? 1 - i : 0];
    }
  }
  if (scores.k == kAbsent || scores.scale == 0) return std::nullopt;
  Function& f = s.f;
  const Value k = scores.swapped ? Swapped(f, scores.k) : f.value(scores.k);
  Values in = {f.value(scores.q), k, f.value(s.in[1])};
  if (mask != kAbsent) in.push_back(f.value(mask));
  Types types;
  for (const Value& v : in) types.push_back(v.type());
  const Attention attention{.scale = scores.scale};
  const auto result = AnyOp(attention).Infer(types);
  if (!result.ok() || result->front() != s.type) return std::nullopt;
  return f.Add(attention, in);
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

// Where what an idiom replaces came from: the nodes from the idiom's operands down to `in`, and
// `root`, in order.
ProvenanceRef ProvenanceOf(const Function& f, const Node& made, Ids in, const ProvenanceRef& root) {
  constexpr size_t kMostNodes = 64;  // idioms have a handful
  std::vector<bool> seen(f.value_count());
  for (uint32_t v : made.in)
    if (v != kAbsent) seen[v] = true;
  std::vector<uint32_t> left(in.begin(), in.end());
  std::set<uint32_t> nodes;
  while (!left.empty() && nodes.size() < kMostNodes) {
    const uint32_t v = left.back();
    left.pop_back();
    const Node* node = v != kAbsent && !seen[v] ? DefiningNode(f, v) : nullptr;
    if (node == nullptr || node->in.empty()) continue;
    seen[v] = true;
    nodes.insert(f.origin(v).index);
    left.insert(left.end(), node->in.begin(), node->in.end());
  }
  std::vector<ProvenanceRef> parts;
  for (uint32_t n : nodes) parts.push_back(f.nodes()[n].from);
  parts.push_back(root);
  return MadeBy("recognise", parts);
}

using Idiom = std::optional<Values> (*)(const Site& s);
constexpr Idiom kIdioms[] = {&Gated,        &HardGate,       &LayerNormIdiom, &RmsNormIdiom,
                             &SoftmaxIdiom, &AttentionIdiom, &SmallPower};

}  // namespace

absl::Status Recognise(const Function& in, Function& out) {
  Function named(in.name(), in.module());
  const std::vector<int> uses = in.UseCounts();
  absl::flat_hash_map<const Provenance*, ProvenanceRef> from;  // of what idioms make, by its own
  auto rule = [&](Function& f, const Node& node, ValueSpan operands) -> std::optional<Values> {
    if (!node.runtime_attributes.empty() || node.outs != 1) return std::nullopt;
    std::vector<uint32_t> ids;
    Types types;
    for (const Value& v : operands) {
      ids.push_back(v ? v.id : kAbsent);
      types.push_back(v ? v.type() : Type());
    }
    // Numbers may be tensors along which an operand is repeated: what counts is the result's type.
    const absl::StatusOr<Types> result = node.op.Infer(types);
    if (!result.ok()) return std::nullopt;
    const bool alone = !node.in.empty() && node.in[0] != kAbsent && uses[node.in[0]] == 1;
    for (Idiom idiom : kIdioms) {
      const uint32_t before = f.value_count();
      auto made = idiom({f, node.op, ids, result->front(), alone});
      if (!made) continue;
      if (const Value y = made->front(); f.status().ok() && y.id >= before)
        from[DefiningNode(f, y.id)->from.get()] =
            ProvenanceOf(f, *DefiningNode(f, y.id), ids, node.from);
      return made;
    }
    return std::nullopt;
  };
  FORGE_RETURN_IF_ERROR((Rewriter{.pass = "recognise"}.Run(in, named, rule)));
  // What the idioms were made of is now read by nobody.
  auto name = [&](Function& f, const Node& node, ValueSpan operands) -> std::optional<Values> {
    const auto at = from.find(node.from.get());
    if (at == from.end()) return std::nullopt;
    const Function::Scope scope(f, at->second);
    return f.Add(node.op, operands);
  };
  return Rewriter{.pass = "recognise"}.Run(named, out, name);
}

}  // namespace forge::ir
