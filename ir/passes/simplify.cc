// SPDX-License-Identifier: Apache-2.0
// Algebra that changes no bit of any result, NaN, infinities and zeros of either sign included, and
// nodes that compute the same.
#include <cmath>

#include "ir/graph/copier.h"
#include "ir/op/signature.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "ir/passes/passes.h"
#include "ir/passes/patterns.h"

namespace forge::ir {
namespace {

// A node of one result whose operands are simplified already.
struct AlgebraSite {
  Function& f;
  const AnyOp& op;
  ValueSpan in;
  const Type& result;

  // `v`, if it has the type of the result.
  std::optional<Value> Itself(Value v) const {
    return v && v.type() == result ? std::optional(v) : std::nullopt;
  }
  const Node* DefiningNodeOf(size_t operand) const { return DefiningNode(f, in[operand].id); }
  std::optional<double> NumberAt(size_t operand) const { return NumberOf(f, in[operand].id); }
};

bool IsZero(double v, bool negative) { return v == 0 && std::signbit(v) == negative; }

// x * 1, x / 1, x - 0 and x + -0; x + 0 turns -0 into 0, so of floats it stays. Of complex numbers
// all of them stay: infinity + i times 1 has an imaginary part of NaN.
std::optional<Value> NeutralNumber(const AlgebraSite& s) {
  if (Has(kComplexTypes, s.result.dtype())) return std::nullopt;
  const bool integer = Has(kIntTypes, s.result.dtype());
  const auto neutral = [&](double v) {
    if (s.op.Is<Mul>() || s.op.Is<Div>()) return v == 1;
    if (s.op.Is<Add>()) return integer ? v == 0 : IsZero(v, true);
    return s.op.Is<Sub>() && (integer ? v == 0 : IsZero(v, false));
  };
  if (s.in.size() != 2) return std::nullopt;
  if (const auto right = s.NumberAt(1); right && neutral(*right)) return s.Itself(s.in[0]);
  if (!s.op.Is<Mul>() && !s.op.Is<Add>()) return std::nullopt;
  const auto left = s.NumberAt(0);
  return left && neutral(*left) ? s.Itself(s.in[1]) : std::nullopt;
}

// -(-x), not not x.
std::optional<Value> Involution(const AlgebraSite& s) {
  if (!s.op.Is<Neg>() && !s.op.Is<Not>()) return std::nullopt;
  const Node* inner = s.DefiningNodeOf(0);
  return inner && inner->op == s.op ? s.Itself(s.f.value(inner->in[0])) : std::nullopt;
}

// abs(abs(x)), relu(relu(x)).
std::optional<Value> Idempotent(const AlgebraSite& s) {
  if (!s.op.Is<Abs>() && !s.op.Is<Relu>()) return std::nullopt;
  const Node* inner = s.DefiningNodeOf(0);
  return inner && inner->op == s.op ? s.Itself(s.in[0]) : std::nullopt;
}

// max(x, x), min(x, x), x and x, x or x; a select between x and x.
std::optional<Value> SameOperands(const AlgebraSite& s) {
  const bool picks = s.op.Is<Maximum>() || s.op.Is<Minimum>() || s.op.Is<And>() || s.op.Is<Or>();
  if (!picks && !s.op.Is<Select>()) return std::nullopt;
  const size_t n = s.in.size();
  return s.in[n - 2] == s.in[n - 1] ? s.Itself(s.in[n - 1]) : std::nullopt;
}

// Bits of the significand; 0 for what is no float.
int DigitsOf(DType t) {
  switch (t) {
    case DType::kF16:
      return 11;
    case DType::kBF16:
      return 8;
    case DType::kF32:
      return 24;
    case DType::kF64:
      return 53;
    default:
      return 0;
  }
}

// Has `to` every value of `from`? Of numbers and bool alone.
bool HoldsAll(DType from, DType to) {
  if (from == to || from == DType::kBool) return true;
  if (to == DType::kBool || !Has(kRealTypes, from) || !Has(kRealTypes, to)) return false;
  const int digits = DigitsOf(to), bits = BitWidth(from);
  if (DigitsOf(from) > 0) return digits >= 24 && digits > DigitsOf(from);  // to f32 or f64
  const bool is_signed = !Has(kUnsignedTypes, from);
  if (digits > 0) return bits - is_signed <= digits;
  if (!is_signed) return BitWidth(to) > bits || (Has(kUnsignedTypes, to) && BitWidth(to) == bits);
  return !Has(kUnsignedTypes, to) && BitWidth(to) >= bits;
}

// A cast of a cast that lost nothing. Integers that floats carried saturate in the second, and
// would wrap without the first.
std::optional<Value> CastOfCast(const AlgebraSite& s) {
  const Cast* op = s.op.As<Cast>();
  const Node* inner = op ? s.DefiningNodeOf(0) : nullptr;
  if (inner == nullptr || !inner->op.Is<Cast>()) return std::nullopt;
  const Value x = s.f.value(inner->in[0]);
  const DType from = x.type().dtype(), through = inner->op.As<Cast>()->to;
  constexpr DTypes kKnown = kRealTypes | Bit(DType::kBool);
  if (!Has(kKnown, from) || !Has(kKnown, op->to) || !HoldsAll(from, through)) return std::nullopt;
  if (from == op->to) return s.Itself(x);
  const bool carried = DigitsOf(through) > 0 && DigitsOf(from) == 0 && DigitsOf(op->to) == 0;
  if (carried && !HoldsAll(from, op->to)) return std::nullopt;
  return s.f(*op, {x});
}

std::optional<Value> TransposeOfTranspose(const AlgebraSite& s) {
  const Transpose* op = s.op.As<Transpose>();
  const Transpose* first = op ? OpOf<Transpose>(s.f, s.in[0].id) : nullptr;
  if (first == nullptr) return std::nullopt;
  const Value x = s.f.value(s.DefiningNodeOf(0)->in[0]);
  Transpose both;
  bool moves = false;
  for (int64_t axis : op->permutation) {
    const int64_t from = first->permutation[static_cast<size_t>(axis)];
    moves |= from != static_cast<int64_t>(both.permutation.size());
    both.permutation.push_back(from);
  }
  return moves ? std::optional(s.f(both, {x})) : s.Itself(x);
}

std::optional<Value> ReshapeOfReshape(const AlgebraSite& s) {
  const Node* inner = s.op.Is<Reshape>() ? s.DefiningNodeOf(0) : nullptr;
  if (inner == nullptr || !inner->op.Is<Reshape>()) return std::nullopt;
  const Value x = s.f.value(inner->in[0]);
  if (const auto same = s.Itself(x)) return same;
  return s.f(s.op, {x});
}

// A part of a concat that lies in one of its operands.
std::optional<Value> SliceOfConcat(const AlgebraSite& s) {
  const Slice* op = s.op.As<Slice>();
  const Node* inner = op ? s.DefiningNodeOf(0) : nullptr;
  const Concat* concat = inner ? inner->op.As<Concat>() : nullptr;
  if (concat == nullptr || op->axes.size() != 1 || !op->begin[0].is_constant() ||
      !op->end[0].is_constant() || (!op->steps.empty() && op->steps[0] != 1))
    return std::nullopt;
  const int64_t rank = s.result.rank(), begin = op->begin[0].constant();
  const int64_t axis = (op->axes[0] + rank) % rank, end = op->end[0].constant();
  if (axis != (concat->axis + rank) % rank || begin < 0) return std::nullopt;
  int64_t first = 0;
  for (uint32_t id : inner->in) {
    const Value x = s.f.value(id);
    const Dim extent = x.type().shape()[static_cast<size_t>(axis)];
    if (!extent.is_constant()) return std::nullopt;
    const int64_t last = first + extent.constant();
    if (begin == first && end == last) return s.Itself(x);
    if (begin >= first && begin < end && end <= last)
      return s.f(Slice{.begin = {begin - first}, .end = {end - first}, .axes = {axis}}, {x});
    first = last;
  }
  return std::nullopt;
}

// Complex numbers made of parts, whose parts are taken, and the reverse.
std::optional<Value> ViewOfView(const AlgebraSite& s) {
  const Node* inner = s.op.is_view() ? s.DefiningNodeOf(0) : nullptr;
  return inner && inner->op.is_view() ? s.Itself(s.f.value(inner->in[0])) : std::nullopt;
}

std::optional<Value> MovedFill(const AlgebraSite& s) {
  const std::optional<AnyOp> fill = FillMoved(s.op, s.in, s.result);
  return fill ? std::optional(s.f(*fill, {})) : std::nullopt;
}

// What decompositions leave: a slice of all, a pad of nothing.
std::optional<Value> Unmoved(const AlgebraSite& s) {
  return GivesItsOperand(s.op, s.in, s.result) ? std::optional(s.in[0]) : std::nullopt;
}

using Simplification = std::optional<Value> (*)(const AlgebraSite&);
constexpr Simplification kSimplifications[] = {
    &NeutralNumber,    &Involution,    &Idempotent, &SameOperands,
    &Unmoved,          &MovedFill,     &CastOfCast, &TransposeOfTranspose,
    &ReshapeOfReshape, &SliceOfConcat, &ViewOfView};

// True when a result that OpInfo::saved adds is read.
bool ReadsSaved(const Node& node, std::span<const int> uses) {
  const Signature& s = SignatureOf(node.op.def());
  for (uint16_t k = 0; k < node.outs; ++k)
    if (s.outputs[k].optional && uses[node.first_out + k] > 0) return true;
  return false;
}

// The op without the results that OpInfo::saved adds, where nobody reads one of them.
std::optional<Values> WithoutSaved(const Node& node, ValueSpan operands, std::span<const int> uses,
                                   Function& f) {
  if (!node.runtime_attributes.empty() || !node.op.saves() || ReadsSaved(node, uses))
    return std::nullopt;
  Values out = f.Add(node.op.Saving(false), operands);
  out.resize(node.outs);
  return out;
}

// True when the operands are equal values; `first` is that of EqualValues.
bool HaveEqualOperands(const Node& a, const Node& b, std::span<const uint32_t> first) {
  const auto number = [&](uint32_t v) { return v == kAbsent ? v : first[v]; };
  return std::ranges::equal(a.in, b.in, {}, number, number);
}

// For each value the first that is equal to it: same op, equal attributes and equal operands.
std::vector<uint32_t> EqualValues(const Function& f) {
  std::vector<uint32_t> first(f.value_count());
  for (uint32_t v = 0; v < first.size(); ++v) first[v] = v;
  absl::flat_hash_map<uint64_t, std::vector<const Node*>> seen;
  for (const Node& node : f.nodes()) {
    if (HasEffects(node) || !node.runtime_attributes.empty()) continue;
    const auto same = [&](const Node* other) {
      return other->op == node.op && HaveEqualOperands(*other, node, first);
    };
    uint64_t key = node.op.Hash();
    for (uint32_t v : node.in) key = key * 0x9e3779b97f4a7c15 + (v == kAbsent ? v : first[v]);
    std::vector<const Node*>& alike = seen[key];
    const auto at = std::ranges::find_if(alike, same);
    if (at == alike.end()) {
      alike.push_back(&node);
      continue;
    }
    for (uint32_t k = 0; k < node.outs; ++k) first[node.first_out + k] = (*at)->first_out + k;
  }
  return first;
}

// The nodes whose saved results are read, by their first operand.
struct SavingNodes {
  std::vector<uint32_t> first;  // of EqualValues
  absl::flat_hash_map<uint32_t, std::vector<const Node*>> by_operand = {};
};
SavingNodes SavingNodesOf(const Function& f, std::span<const int> uses) {
  SavingNodes all{EqualValues(f)};
  for (const Node& node : f.nodes())
    if (node.op.saves() && ReadsSaved(node, uses))
      all.by_operand[all.first[node.in[0]]].push_back(&node);
  return all;
}

// The op with these results, where another node has them of the same operands: both become one.
std::optional<Values> WithSaved(const Node& node, ValueSpan operands, const SavingNodes& saving,
                                Function& f) {
  if (node.op.def().info.saved.empty() || node.op.saves() || !node.runtime_attributes.empty())
    return std::nullopt;
  const auto at = saving.by_operand.find(saving.first[node.in[0]]);
  if (at == saving.by_operand.end()) return std::nullopt;
  const AnyOp op = node.op.Saving(true);
  if (std::ranges::none_of(at->second, [&](const Node* n) {
        return n->op == op && HaveEqualOperands(*n, node, saving.first);
      }))
    return std::nullopt;
  Values out = f.Add(op, operands);
  out.resize(node.outs);
  return out;
}

absl::Status ApplyAlgebra(const Function& in, Function& out) {
  const std::vector<int> uses = in.UseCounts();
  const SavingNodes saving = SavingNodesOf(in, uses);
  auto rule = [&](Function& f, const Node& node, ValueSpan operands) -> std::optional<Values> {
    if (auto made = WithoutSaved(node, operands, uses, f)) return made;
    if (auto made = WithSaved(node, operands, saving, f)) return made;
    const bool plain = node.runtime_attributes.empty() && node.outs == 1 && !HasEffects(node);
    if (!plain || operands.empty() || !std::ranges::all_of(operands, [](Value v) {
          return v && v.type().is_tensor() && !v.type().encoding();
        }))
      return std::nullopt;
    const AlgebraSite site{f, node.op, operands, in.type(node.first_out)};
    for (Simplification simplify : kSimplifications)
      if (const auto made = simplify(site)) return Values{*made};
    return std::nullopt;
  };
  return Rewriter{.pass = "simplify"}.Run(in, out, rule);
}

// Is a value better kept for all who read it than computed again in each of their kernels? What
// rounds once at most is an instruction, and movement is part of a load.
bool IsWorthKeeping(const AnyOp& op) {
  const OpDef& def = op.def();
  return def.scalar ? def.scalar->info.ulps > 0 : def.map == nullptr;
}

absl::Status MergeEqual(const Function& in, Function& out) {
  const std::vector<uint32_t> first = EqualValues(in);
  Copier copy(in, out);
  copy.CopyArguments();
  for (const Node& node : in.nodes()) {
    if (HasEffects(node) || first[node.first_out] == node.first_out || !IsWorthKeeping(node.op)) {
      copy.CopyNode(node);
      FORGE_RETURN_IF_ERROR(out.status());
      continue;
    }
    for (uint32_t k = 0; k < node.outs; ++k)
      copy.Map(node.first_out + k, copy[first[node.first_out + k]]);
  }
  return copy.Finish();
}

}  // namespace

absl::Status Simplify(const Function& in, Function& out) {
  Function algebra(in.name(), in.module()), merged(in.name(), in.module());
  FORGE_RETURN_IF_ERROR(ApplyAlgebra(in, algebra));
  FORGE_RETURN_IF_ERROR(MergeEqual(algebra, merged));
  // Leaves out what is now read by nobody.
  return Rewriter{.pass = "simplify"}.Run(merged, out);
}

}  // namespace forge::ir
