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
  // `body` must outlive the region. A body has at most one node that is neither element-wise nor
  // movement, the anchor.  errors: Unimplemented, saying what no schedule takes
  static absl::StatusOr<Region> Of(const ir::Function& body, const Caps& caps);
  const ir::Function& body() const { return *body_; }
  const Caps& caps() const { return *caps_; }
  const ir::Node* anchor() const { return anchor_; }  // null: element-wise and movement only
  ir::Types anchor_inputs() const;
  const ir::Type& anchor_output() const;  // without an anchor: the first result
  int operand_count() const;              // arguments, then results

 private:
  Region() = default;
  const ir::Function* body_ = nullptr;
  const Caps* caps_ = nullptr;
  const ir::Node* anchor_ = nullptr;
};

// Emits, at a place in a kernel, the element of a value of the region: a load where it is an
// argument of the region, its map's load where it is movement, its expression where it is
// element-wise. Memoised within a block. Indices are one i32 for each axis; `lanes` neighbours
// along the last axis come as a vector, loaded at once where alignment is proven. Computation
// happens in f32 for narrow floats.
class Elements {
 public:
  Elements(Builder& b, const Region& r);
  Val At(int anchor_operand, std::span<const Val> index, int lanes = 1);
  // May `lanes` neighbours along `axis` of this operand be had for about the price of one?
  bool Contiguous(int anchor_operand, int axis, int lanes) const;
  // Runs the epilogue on elements of the anchor's result and stores every result of the region.
  void Finish(std::span<const Val> index, Val anchor_result, int lanes = 1);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

struct Launch {
  Kernel kernel;
  std::vector<int> operands;  // kernel operand -> region operand; scratch i is operand_count() + i
};
struct Program {
  std::string kernel;  // schedule and parameters: "matmul_shuffle_8x4"
  std::vector<Launch> launches;
  std::vector<int64_t> scratch_bytes;  // each aligned to 256 by the device
};

// Tile numbers are a Record: kFields names each and lists what to search.
struct Schedule {
  std::string_view name;
  Fields parameters;
  std::shared_ptr<void> (*defaults)(const Region& r);        // from shapes and properties only
  Verdict (*fits)(const Region& r, const void* parameters);  // limits, before anything is made
  absl::StatusOr<Program> (*emit)(const Region& r, const void* parameters);
};
std::span<const Schedule* const> AllSchedules();  // best first for each anchor

// The program of the first schedule that fits with its defaults.  errors: Unimplemented, listing
// why each refused
absl::StatusOr<Program> Generate(const Region& r);
// Whether Generate would succeed, with the schedule's name, without emitting.
Verdict CanGenerate(const Region& r);

}  // namespace forge::codegen
