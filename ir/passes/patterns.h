// SPDX-License-Identifier: Apache-2.0
// Matching of idioms: normal forms of the expressions that define a value.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/module.h"

namespace forge::ir {

using Ids = std::span<const uint32_t>;

// Returns the node that defines a value; null for arguments and variables.
const Node* DefiningNode(const Function& f, uint32_t value);
// The same, but null unless the op is a T.
template <class T>
const Node* DefiningNode(const Function& f, uint32_t value) {
  const Node* node = DefiningNode(f, value);
  return node && node->op.Is<T>() ? node : nullptr;
}
// Returns the attributes of the defining op; null unless it is a T.
template <class T>
const T* OpOf(const Function& f, uint32_t value) {
  const Node* node = DefiningNode(f, value);
  return node ? node->op.As<T>() : nullptr;
}
// Returns the first operand of the defining node.
uint32_t Operand(const Function& f, uint32_t value);

// True for a movement or cast of one operand whose result, of type `result`, is that operand.
bool GivesItsOperand(const AnyOp& op, ValueSpan in, const Type& result);
// Returns the fill that a movement of a fill gives: equal elements are the same elsewhere.
std::optional<AnyOp> FillMoved(const AnyOp& op, ValueSpan in, const Type& result);
// By value: whether it depends on constants alone.
std::vector<bool> StaticValuesOf(const Function& f);
// Returns the literal that all elements of a value equal; nullopt otherwise.
std::optional<double> NumberOf(const Function& f, uint32_t value);
// True when two numbers are equal within the precision of f32, in which model files store them.
bool IsNear(double a, double b);

// scale * factors[0] * factors[1] ...
struct Factored {
  double scale = 1;
  std::vector<uint32_t> factors;  // in ascending order
  friend bool operator==(const Factored& a, const Factored& b) {
    return IsNear(a.scale, b.scale) && a.factors == b.factors;
  }
};
// The depth to which patterns look.
inline constexpr int kMaxPatternDepth = 6;

// Factors a value through products, and quotients by literals.
Factored FactoredOf(const Function& f, uint32_t value);
// The same for a node that is not yet in the function.
Factored FactoredOf(const Function& f, const AnyOp& op, Ids in, int depth = kMaxPatternDepth);

// slope * x + offset
struct Line {
  uint32_t x = kAbsent;
  double slope = 1, offset = 0;
  friend bool operator==(const Line& a, const Line& b) {
    return a.x == b.x && IsNear(a.slope, b.slope) && IsNear(a.offset, b.offset);
  }
};
// Writes a value as a linear function of another one, through sums and products with literals;
// stops at `until`.
Line LineOf(const Function& f, uint32_t value, uint32_t until = kAbsent);

// Returns v where the value is 1 / v; kAbsent otherwise.
uint32_t ReciprocalOf(const Function& f, uint32_t value);

}  // namespace forge::ir
