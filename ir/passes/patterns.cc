// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/patterns.h"

#include <algorithm>
#include <cmath>

#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"

namespace forge::ir {
namespace {

void Multiply(const Function& f, const AnyOp& op, Ids in, int depth, Factored& p);

void Multiply(const Function& f, uint32_t value, int depth, Factored& p) {
  if (const std::optional<double> number = NumberOf(f, value)) {
    p.scale *= *number;
    return;
  }
  const Node* node = DefiningNode(f, value);
  const bool divides = node && node->op.Is<Div>() && NumberOf(f, node->in[1]);
  if (node == nullptr || depth == 0 || !(node->op.Is<Mul>() || divides))
    p.factors.push_back(value);
  else
    Multiply(f, node->op, node->in, depth - 1, p);
}

void Multiply(const Function& f, const AnyOp& op, Ids in, int depth, Factored& p) {
  Multiply(f, in[0], depth, p);
  if (op.Is<Mul>())
    Multiply(f, in[1], depth, p);
  else
    p.scale /= *NumberOf(f, in[1]);
}

}  // namespace

const Node* DefiningNode(const Function& f, uint32_t value) {
  if (value == kAbsent || f.origin(value).kind != Function::Origin::kNode) return nullptr;
  return &f.nodes()[f.origin(value).index];
}

uint32_t Operand(const Function& f, uint32_t value) {
  const Node* node = DefiningNode(f, value);
  return node && !node->in.empty() ? node->in[0] : kAbsent;
}

bool GivesItsOperand(const AnyOp& op, ValueSpan in, const Type& result) {
  if (in.size() != 1 || !in[0] || !(in[0].type() == result)) return false;
  const OpDef& def = op.def();
  if (op.Is<Cast>()) return true;
  if (!result.is_tensor()) return false;  // types without shapes say nothing of them
  if (def.info.keeps_order) return true;
  if (!def.map) return false;
  // Same type and every element from its own place.
  Dims at;
  for (int64_t a = 0; a < result.rank(); ++a) {
    const int64_t last = std::max<int64_t>(0, result.shape()[a].max() - 1);
    at.push_back(Dim(
        std::make_shared<Symbol>(Symbol{.name = fmt::format("i{}", a), .min = 0, .max = last})));
  }
  const Types types{in[0].type()};
  const IndexMap map = op.Map(types, at);
  return map.loads.empty() && map.pieces.size() == 1 && map.pieces[0].when.empty() &&
         !map.pieces[0].value && map.pieces[0].index == at;
}

std::optional<AnyOp> FillMoved(const AnyOp& op, ValueSpan in, const Type& result) {
  const bool moves =
      op.Is<Reshape>() || op.Is<Slice>() || op.Is<Transpose>() || op.Is<BroadcastTo>();
  const Fill* fill = moves && in[0] ? OpOf<Fill>(*in[0].fn, in[0].id) : nullptr;
  if (fill == nullptr || !result.is_tensor()) return std::nullopt;
  return Fill{fill->value, fill->dtype, result.shape()};
}

std::vector<bool> StaticValuesOf(const Function& f) {
  std::vector<bool> is_static(f.value_count());
  for (const auto& r : f.reads())
    is_static[r.value] = r.variable->role == Variable::Role::kConstant;
  for (const Node& node : f.nodes()) {
    bool all = node.runtime_attributes.empty() && !node.in.empty() && !HasEffects(node);
    for (uint32_t v : node.in) all &= v != kAbsent && (is_static[v] || NumberOf(f, v));
    for (uint16_t k = 0; k < node.outs; ++k) is_static[node.first_out + k] = all;
  }
  return is_static;
}

std::optional<double> NumberOf(const Function& f, uint32_t value) {
  const Fill* fill = OpOf<Fill>(f, value);
  if (fill == nullptr || fill->value != Number(fill->value.f64())) return std::nullopt;
  return fill->value.f64();
}

bool IsNear(double a, double b) {
  // Infinity is near nothing but itself.
  return a == b ||
         (std::isfinite(a - b) && std::fabs(a - b) <= 1e-6 * std::fmax(std::fabs(a), std::fabs(b)));
}

Factored FactoredOf(const Function& f, uint32_t value) {
  Factored p;
  Multiply(f, value, kMaxPatternDepth, p);
  std::sort(p.factors.begin(), p.factors.end());
  return p;
}

Factored FactoredOf(const Function& f, const AnyOp& op, Ids in, int depth) {
  Factored p;
  if (op.Is<Mul>() || (op.Is<Div>() && NumberOf(f, in[1]))) Multiply(f, op, in, depth, p);
  std::sort(p.factors.begin(), p.factors.end());
  return p;
}

Line LineOf(const Function& f, uint32_t value, uint32_t until) {
  Line line{.x = value};
  for (int depth = 0; depth < kMaxPatternDepth && line.x != until; ++depth) {
    const Node* node = DefiningNode(f, line.x);
    if (node == nullptr || node->in.size() != 2) break;
    const std::optional<double> left = NumberOf(f, node->in[0]), right = NumberOf(f, node->in[1]);
    if (left.has_value() == right.has_value()) break;
    const double number = left ? *left : *right;
    const uint32_t x = node->in[left ? 1 : 0];
    if (node->op.Is<Add>())
      line.offset += line.slope * number;
    else if (node->op.Is<Sub>() && right)
      line.offset -= line.slope * number;
    else if (node->op.Is<Sub>()) {
      line.offset += line.slope * number;
      line.slope = -line.slope;
    } else if (node->op.Is<Mul>())
      line.slope *= number;
    else if (node->op.Is<Div>() && right && number != 0)
      line.slope /= number;
    else
      break;
    line.x = x;
  }
  return line;
}

uint32_t ReciprocalOf(const Function& f, uint32_t value) {
  const Node* node = DefiningNode<Div>(f, value);
  return node && NumberOf(f, node->in[0]) == 1.0 ? node->in[1] : kAbsent;
}

}  // namespace forge::ir
