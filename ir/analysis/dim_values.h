// SPDX-License-Identifier: Apache-2.0
// The elements of small integer tensors as dimensions: what shape arithmetic in a model comes to,
// before any number is known.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/module.h"

namespace forge::ir {

// Knows a function's values as far as they follow from constants and extents: shape_of gives the
// extents, movement ops follow from their index maps, element-wise ops from their expressions on
// dimensions, anything else on plain numbers from its evaluator. A function may grow meanwhile.
class DimValues {
 public:
  explicit DimValues(const Function& f) : f_(f) {}

  // The elements of `value` in row-major order; nullopt when they do not follow, or `value` is no
  // integer tensor of a fixed shape with at most 1,024 elements.
  std::optional<Dims> ContentsOf(uint32_t value);

 private:
  using Known = std::optional<Dims>;
  Known OfVariable(uint32_t value) const;
  Known OfNode(const Node& node);
  Known OfElementWise(const Node& node, TypeSpan in, const std::vector<Known>& known) const;
  Known OfMovement(const Node& node, TypeSpan in, const std::vector<Known>& known) const;
  Known OfNumbers(const Node& node, TypeSpan in, const std::vector<Known>& known) const;
  bool Trackable(uint32_t value) const;

  const Function& f_;
  std::vector<Known> known_;  // by value
  size_t nodes_seen_ = 0;
};

}  // namespace forge::ir
