// SPDX-License-Identifier: Apache-2.0
// Symbolic evaluation of shape arithmetic: the elements of small integer tensors as dimensions.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph/module.h"

namespace forge::ir {

// Derives values of a function from constants and extents: shape_of gives extents; movement ops use
// their index maps, element-wise ops their expressions on dimensions, other ops on constants their
// evaluators. Nodes may be appended to the function between calls.
class DimValues {
 public:
  explicit DimValues(const Function& f) : f_(f) {}

  // Returns the elements of `value` in row-major order; nullopt when they are unknown, or `value`
  // is not an integer tensor of fixed shape with at most 1,024 elements.
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
