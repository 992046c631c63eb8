// SPDX-License-Identifier: Apache-2.0
// A region: the ops that one program computes, analysed for a device.
#pragma once
#include "codegen/kernel/caps.h"
#include "ir/graph/module.h"

namespace forge::codegen {

// An op by itself or a fused body with its anchor, with bound types and the device's capabilities.
class Region {
 public:
  // `body` and `caps` must outlive the region. A body has at most one node that is neither
  // element-wise nor movement, the anchor; a layer norm may come before it, and a reduction may
  // follow. What follows the anchor keeps its elements one to one: element-wise ops, reshapes and
  // permutations; results may be parts of them, such as slices. Of an anchor with several results,
  // each node that follows reads one.
  //   errors: Unimplemented, naming what no schedule supports
  static absl::StatusOr<Region> Of(const ir::Function& body, const Caps& caps);

  const ir::Function& body() const { return *body_; }
  const Caps& caps() const { return *caps_; }
  // As Kernel::approximate, of its kernels.
  bool approximate() const { return approximate_; }
  void set_approximate(bool approximate) { approximate_ = approximate; }
  const ir::Node* anchor() const { return anchor_; }  // null: element-wise and movement only
  // The anchor's attributes when it is a T; null otherwise.
  template <class T>
  const T* AnchorAs() const {
    return anchor_ != nullptr ? anchor_->op.As<T>() : nullptr;
  }
  const ir::Types& anchor_inputs() const { return anchor_inputs_; }  // absent operands included
  // Whether the anchor has this operand.
  bool has_input(int operand) const {
    const auto at = static_cast<size_t>(operand);
    return at < anchor_inputs_.size() && anchor_inputs_[at];
  }
  const ir::Type& anchor_output(int result = 0) const;  // without an anchor: the first result
  int operand_count() const;                            // arguments, then results
  bool is_dense() const { return encoding_ == nullptr; }
  const ir::EncodingRef& encoding() const { return encoding_; }  // the first there is, or null
  // The layer norm before the anchor, or null. Its elements are computed where the anchor loads
  // them; scratch 0 holds the mean and 1 / deviation of each row: first all means, then all others.
  const ir::Node* norm() const { return norm_; }
  Region OfNorm() const;  // the same region with the norm as its anchor
  // The reduction after the anchor, or null. It reduces the anchor's elements, and every result
  // depends on it.
  const ir::Node* reduction() const { return reduction_; }
  // Whether the reduction reduces this axis of anchor_output().
  bool Reduces(size_t axis) const { return reduced_[axis]; }
  Region WithoutReduction() const;  // schedules choose the tiles of the anchor with it
  int scratch_begin() const { return operand_count() + (norm_ != nullptr ? 1 : 0); }
  // Returns the argument that an operand of the anchor is, if the anchor is its only user.
  std::optional<int> ArgumentOf(int anchor_operand) const;

  // The number of storage buffers that an operand of the region takes: more than one if it is
  // larger than a buffer's range.
  int PartsOf(int operand) const;
  int64_t bindings() const;  // storage buffers of all operands
  // Storage buffers of the arguments that these values are computed from without the anchor.
  int64_t BindingsBehind(const std::vector<uint32_t>& values) const;

  // Where an element of result `operand` of the anchor ends up, as an index of `value`, over
  // axes(operand), and which elements do (`when`); null when `value` does not depend on the anchor.
  using Place = ir::IndexMap::Piece;
  const Place* PlaceOf(uint32_t value) const;
  // Of anchor_output(result).
  std::span<const ir::SymbolRef> axes(int result = 0) const {
    return axes_[static_cast<size_t>(result)];
  }
  // Whether the elements of an operand of the anchor at `index`, for lane = 0 .. lanes - 1, are
  // loaded as one vector.
  bool Contiguous(int anchor_operand, const ir::Dims& index, const ir::SymbolRef& lane,
                  int lanes) const;
  // The element of an argument that an operand of the anchor has at `index`, where that is one for
  // all values of the coordinates and nothing is computed of it.
  struct Source {
    int argument = 0;
    ir::Dim flat;  // index
  };
  std::optional<Source> SourceOf(int anchor_operand, ir::Dims index) const;
  // Without an anchor: whether some operand that varies along `other` stores `lanes` neighbours
  // along `axis` of the result side by side.
  bool LiesAlong(size_t axis, size_t other, int lanes) const;

 private:
  // Which operands of element-wise and movement ops are followed to their loads.
  enum class Through : uint8_t { kLargest, kAll };
  using LoadTest = absl::FunctionRef<bool(const ir::Type& type, const ir::Dim& flat)>;

  Region() = default;
  absl::Status FindAnchor();
  absl::Status CheckOperands();
  absl::Status PlaceResults();
  absl::Status PlaceElementWise(const ir::Node& node);
  absl::Status PlaceMovement(const ir::Node& node);
  absl::Status PlaceReduction();
  // Whether any load that the element of `value` at `at` depends on passes the test.
  bool AnyLoad(uint32_t value, const ir::Dims& at, Through through, LoadTest test) const;
  bool PrecedesReduction(uint32_t value) const;
  bool FollowsAnchor(const ir::Node& node) const;

  const ir::Function* body_ = nullptr;
  const Caps* caps_ = nullptr;
  bool approximate_ = false;
  const ir::Node *anchor_ = nullptr, *norm_ = nullptr, *reduction_ = nullptr;
  ir::Types anchor_inputs_;
  std::vector<int> parts_;  // by operand; 0: unused
  ir::EncodingRef encoding_;
  std::vector<std::vector<ir::SymbolRef>> axes_;  // by result of the anchor
  std::vector<bool> reduced_;                     // by axis
  std::vector<std::optional<Place>> places_;      // for each value of the body
};

}  // namespace forge::codegen
