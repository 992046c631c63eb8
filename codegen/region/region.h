// SPDX-License-Identifier: Apache-2.0
// What is compiled at once: a node, with what fused into it.
#pragma once
#include "codegen/kernel/caps.h"
#include "ir/graph/module.h"

namespace forge::codegen {

// One node to compile in a device's eyes: an op by itself or a fused body with its anchor; bound
// types.
class Region {
 public:
  // `body` and `caps` must outlive the region. A body has at most one node that is neither
  // element-wise nor movement, the anchor; a layer norm may come before it, and a reduction may
  // follow. What follows the anchor keeps its elements one to one: element-wise ops, reshapes and
  // permutations; results may be parts of them, such as slices. Of an anchor with several results,
  // each node that follows reads one.
  //   errors: Unimplemented, saying what no schedule takes
  static absl::StatusOr<Region> Of(const ir::Function& body, const Caps& caps);

  const ir::Function& body() const { return *body_; }
  const Caps& caps() const { return *caps_; }
  const ir::Node* anchor() const { return anchor_; }  // null: element-wise and movement only
  // The anchor's attributes when it is a T; null otherwise.
  template <class T>
  const T* AnchorAs() const {
    return anchor_ != nullptr ? anchor_->op.As<T>() : nullptr;
  }
  const ir::Types& anchor_inputs() const { return anchor_inputs_; }  // absent operands included
  const ir::Type& anchor_output(int result = 0) const;  // without an anchor: the first result
  int operand_count() const;                            // arguments, then results
  bool is_dense() const { return encoding_ == nullptr; }
  const ir::EncodingRef& encoding() const { return encoding_; }  // the first there is, or null
  // The layer norm before the anchor, if there is one: its elements are computed where they are
  // loaded, from scratch 0 with the mean and 1 / deviation of each row, one after the other.
  const ir::Node* norm() const { return norm_; }
  Region OfNorm() const;  // the same region with the norm as its anchor
  // The reduction that every result is made of, of all elements that the anchor makes; null: none.
  const ir::Node* reduction() const { return reduction_; }
  // Are elements along this axis of anchor_output() reduced to one?
  bool Reduces(size_t axis) const { return reduced_[axis]; }
  Region WithoutReduction() const;  // for schedules to choose tiles of the anchor alone by
  int scratch_begin() const { return operand_count() + (norm_ != nullptr ? 1 : 0); }
  // Which argument an operand of the anchor is, when nothing else reads that.
  std::optional<int> ArgumentOf(int anchor_operand) const;

  // Storage buffers that hold an operand of the region: several where one cannot.
  int PartsOf(int operand) const;
  int64_t bindings() const;  // of all operands
  // The same of the arguments that these values are computed from, other than through the anchor.
  int64_t BindingsBehind(const std::vector<uint32_t>& values) const;

  // Where an element of result `operand` of the anchor ends up, as an index of `value`, over
  // axes(operand), and which elements do (`when`); null when `value` does not depend on the anchor.
  using Place = ir::IndexMap::Piece;
  const Place* PlaceOf(uint32_t value) const;
  // Of anchor_output(result).
  std::span<const ir::SymbolRef> axes(int result = 0) const {
    return axes_[static_cast<size_t>(result)];
  }
  // Are the elements of an anchor's operand that `index` reaches with lane = 0 .. lanes - 1 loaded
  // at once?
  bool Contiguous(int anchor_operand, const ir::Dims& index, const ir::SymbolRef& lane,
                  int lanes) const;
  // Without an anchor: does an operand, of which elements differ along `other` too, have as many
  // neighbours along `axis` of the result side by side?
  bool LiesAlong(size_t axis, size_t other, int lanes) const;

 private:
  // Which operands of element-wise ops and movements are followed to what is loaded.
  enum class Through : uint8_t { kLargest, kAll };
  using LoadTest = absl::FunctionRef<bool(const ir::Type& type, const ir::Dim& flat)>;

  Region() = default;
  absl::Status FindAnchor();
  absl::Status CheckOperands();
  absl::Status PlaceResults();
  absl::Status PlaceElementWise(const ir::Node& node);
  absl::Status PlaceMovement(const ir::Node& node);
  absl::Status PlaceReduction();
  // Does any load that the element of `value` at `at` is computed from pass the test?
  bool AnyLoad(uint32_t value, const ir::Dims& at, Through through, LoadTest test) const;
  bool PrecedesReduction(uint32_t value) const;
  bool FollowsAnchor(const ir::Node& node) const;

  const ir::Function* body_ = nullptr;
  const Caps* caps_ = nullptr;
  const ir::Node *anchor_ = nullptr, *norm_ = nullptr, *reduction_ = nullptr;
  ir::Types anchor_inputs_;
  std::vector<int> parts_;  // by operand; 0: without a reader
  ir::EncodingRef encoding_;
  std::vector<std::vector<ir::SymbolRef>> axes_;  // by result of the anchor
  std::vector<bool> reduced_;                     // by axis
  std::vector<std::optional<Place>> places_;      // for each value of the body
};

}  // namespace forge::codegen
