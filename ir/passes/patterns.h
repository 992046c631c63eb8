// SPDX-License-Identifier: Apache-2.0
// Looking at a function backwards from a value, in the forms that idioms are stated in.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/module.h"

namespace forge::ir {

using Ids = std::span<const uint32_t>;

// The node that makes a value; null where none does.
const Node* DefiningNode(const Function& f, uint32_t value);
// It, if it is an op of type T.
template <class T>
const Node* DefiningNode(const Function& f, uint32_t value) {
  const Node* node = DefiningNode(f, value);
  return node && node->op.Is<T>() ? node : nullptr;
}
// Its attributes; null for an op without any.
template <class T>
const T* OpOf(const Function& f, uint32_t value) {
  const Node* node = DefiningNode(f, value);
  return node ? node->op.As<T>() : nullptr;
}
// The first operand of the node that makes a value.
uint32_t Operand(const Function& f, uint32_t value);

// The number that every element of a value is, if one was written there.
std::optional<double> NumberOf(const Function& f, uint32_t value);
// Equal as far as files that hold numbers as f32 can tell.
bool IsNear(double a, double b);

// scale * factors[0] * factors[1] ...
struct Factored {
  double scale = 1;
  std::vector<uint32_t> factors;  // in rising order
  friend bool operator==(const Factored& a, const Factored& b) {
    return IsNear(a.scale, b.scale) && a.factors == b.factors;
  }
};
// Idioms have a handful of factors and terms; chains of a thousand are no idiom.
inline constexpr int kMaxPatternDepth = 6;

// Looks through products and quotients by numbers, so many levels deep.
Factored FactoredOf(const Function& f, uint32_t value);
// Of a node that is not in the function yet.
Factored FactoredOf(const Function& f, const AnyOp& op, Ids in, int depth = kMaxPatternDepth);

// slope * x + offset
struct Line {
  uint32_t x = kAbsent;
  double slope = 1, offset = 0;
  friend bool operator==(const Line& a, const Line& b) {
    return a.x == b.x && IsNear(a.slope, b.slope) && IsNear(a.offset, b.offset);
  }
};
// Looks through sums and products with numbers, as far as `until` where that comes on the way.
Line LineOf(const Function& f, uint32_t value, uint32_t until = kAbsent);

// v of 1 / v; kAbsent where the value is none.
uint32_t ReciprocalOf(const Function& f, uint32_t value);

}  // namespace forge::ir
