// SPDX-License-Identifier: Apache-2.0
// A schedule turns a fused region into kernels. It never sees what is fused: it asks for elements
// of the anchor's operands and hands elements of its result over, and the region does the rest.
#pragma once
#include "codegen/kernel_ir.h"
#include "ir/module.h"

namespace forge::codegen {

// One node to compile in a device's eyes: an op by itself or a fused body with its anchor; bound
// types.
class Region {
 public:
  // `body` and `caps` must outlive the region. A body has at most one node that is neither
  // element-wise nor movement, the anchor; a layer norm may come before it, and a reduction may
  // follow. What follows the anchor keeps its elements one to one: element-wise ops, reshapes and
  // permutations; results may be parts of them, such as slices.
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
  const ir::Type& anchor_output() const;  // without an anchor: the first result
  int operand_count() const;              // arguments, then results
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

  // Where an element of the anchor's result ends up, as an index of `value`, over axes(), and which
  // elements do (`when`); null when `value` does not depend on the anchor.
  using Place = ir::IndexMap::Piece;
  const Place* PlaceOf(uint32_t value) const;
  std::span<const ir::SymbolRef> axes() const { return axes_; }  // of anchor_output()
  // Are the elements of an anchor's operand that `index` reaches with lane = 0 .. lanes - 1 loaded
  // at once?
  bool Contiguous(int anchor_operand, const ir::Dims& index, const ir::SymbolRef& lane,
                  int lanes) const;
  // Without an anchor: does an operand, of which elements differ along `other` too, have as many
  // neighbours along `axis` of the result side by side?
  bool LiesAlong(size_t axis, size_t other, int lanes) const;

 private:
  Region() = default;
  absl::Status FindAnchor();
  absl::Status CheckOperands();
  absl::Status PlaceResults();
  absl::Status PlaceElementWise(const ir::Node& node);
  absl::Status PlaceMovement(const ir::Node& node);
  absl::Status PlaceReduction();
  bool PrecedesReduction(uint32_t value) const;
  bool FollowsAnchor(const ir::Node& node) const;

  const ir::Function* body_ = nullptr;
  const Caps* caps_ = nullptr;
  const ir::Node *anchor_ = nullptr, *norm_ = nullptr, *reduction_ = nullptr;
  ir::Types anchor_inputs_;
  std::vector<int> parts_;  // by operand; 0: nobody reads it
  ir::EncodingRef encoding_;
  std::vector<ir::SymbolRef> axes_;
  std::vector<bool> reduced_;                 // by axis
  std::vector<std::optional<Place>> places_;  // for each value of the body
};

struct Launch {
  Kernel kernel;
  // Kernel operand -> region operand, once for each of its parts, then scratch.
  std::vector<int> operands;
};

// Emits, at a place in a kernel, the element of a value of the region: a load where it is an
// argument of the region, its map's load where it is movement, its expression where it is
// element-wise; each value once for each call. An index has one Dim for each axis, over coordinates
// made here; it must lie inside. Computation happens in f32 for narrow floats and in i32 or u32 for
// narrow integers.
class Elements {
 public:
  // `launch.operands` grows as operands are touched.
  Elements(Builder& b, const Region& r, Launch& launch);
  // `v`, an i32 known to lie in [0, max] and to be a multiple of `divisor`.
  ir::Dim Coordinate(Val v, int64_t max, int64_t divisor = 1);
  // Stands for 0 .. lanes - 1 in the lanes of a vector of 2 or 4.
  ir::Dim Lane(int lanes);
  // The element of an operand of the anchor; `lanes` of them where the index has Lane(lanes),
  // loaded at once where they are proven to be neighbours and aligned.
  Val At(int anchor_operand, const ir::Dims& index, int lanes = 1);
  // Runs the epilogue on elements of the anchor's result and stores every result of the region:
  // once for each element, since a result may lie in the place of an operand of the epilogue.
  // Without an anchor `anchor_result` is not looked at. Where the region has a reduction, it is the
  // result of that, for the anchor's elements at `index` and all that are reduced with them.
  void Finish(const ir::Dims& index, Val anchor_result, int lanes = 1);
  // What the region's reduction reads, of elements of the anchor's result.
  Val Reduced(const ir::Dims& index, Val anchor_result, int lanes = 1);

  // From now on one element of a vector is taken out of the vector, where it is known to be
  // aligned: the loads of its neighbours are the same.
  void ShareVectors();

  // Whether `range` holds wherever its coordinates are. Where it does not, a test is made, and kept
  // in `tests` once.
  bool Certain(const ir::IndexMap::Range& range);
  const std::vector<ir::IndexMap::Range>& tests() const;

  // An index expression over coordinates, i32.
  Val Value(const ir::Dim& index);
  // An operand as an array of elements that a kernel computes in, whatever it holds. `operand`
  // counts as in Launch::operands.
  Val LoadFrom(int operand, Type elem, const ir::Dim& index);
  void StoreTo(int operand, const ir::Dim& index, Val value);
  // The same of scratch `i`.
  Val LoadScratch(int i, Type elem, const ir::Dim& index);
  void StoreScratch(int i, const ir::Dim& index, Val value);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// What a kernel computes `t` in: f32 for narrow floats, i32 or u32 for narrow integers.
DType ComputeType(DType t);

struct Program {
  std::string kernel;  // schedule and parameters: "matmul_shuffle_8x4"
  std::vector<Launch> launches = {};
  std::vector<int64_t> scratch_bytes =
      {};  // from Region::scratch_begin() on, each aligned to 256 by the device
};

// An argument of a region in an encoding of the generator's own.
struct Prepared {
  int argument = 0;
  ir::EncodingRef encoding;
};

// Tile numbers are a Record: `parameters` names each and lists what to search.
struct Schedule {
  std::string_view name;
  Fields parameters;
  bool (*takes)(const Region& r);                            // is this its kind of anchor?
  std::shared_ptr<void> (*defaults)(const Region& r);        // from shapes and properties only
  Verdict (*fits)(const Region& r, const void* parameters);  // limits, before anything is made
  Program (*emit)(const Region& r, const void* parameters);
  // What `emit` would make of an operand at every run, and takes as it is where it has been made.
  std::optional<Prepared> (*prepares)(const Region& r, const void* parameters) = nullptr;
  bool takes_encodings = false;  // is asked about regions that are not dense
  // Whether Region::reduction() costs less beside the anchor than by itself, where these would be
  // the numbers for the anchor alone. Null: is asked about no region with one.
  Verdict (*reduces)(const Region& r, const void* alone) = nullptr;
};
std::span<const Schedule* const> AllSchedules();  // best first for each anchor

// The program of the first schedule that fits with its defaults.  errors: Unimplemented, listing
// why each refused
absl::StatusOr<Program> Generate(const Region& r);
// Whether Generate would succeed, with the schedule's name, without emitting.
Verdict CanGenerate(const Region& r);

}  // namespace forge::codegen
