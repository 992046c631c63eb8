// SPDX-License-Identifier: Apache-2.0
// Elements of a region's operands and results in a kernel. Schedules use them without knowing which
// ops are fused.
#pragma once
#include "codegen/kernel/kernel_ir.h"
#include "codegen/kernel/literal.h"
#include "codegen/region/region.h"

namespace forge::codegen {

struct Launch {
  Kernel kernel;
  // For each operand of the kernel the operand of the region, once for each of its parts; scratch
  // comes last.
  std::vector<int> operands;
};

// Emits the elements of the region's values: a load for an argument, the load that its index map
// gives for a movement op, the expression of an element-wise op. A call emits each value once. An
// index has one Dim for each axis, over coordinates made here, and must be within bounds. Narrow
// floats are computed in f32, narrow integers in i32 or u32.
class Elements {
 public:
  // `launch.operands` grows as operands are touched.
  Elements(Builder& b, const Region& r, Launch& launch);
  // A coordinate for `v`, an i32 in [0, max] that is a multiple of `divisor`.
  ir::Dim Coordinate(Val v, int64_t max, int64_t divisor = 1);
  // The number of the lane, 0 .. lanes - 1, in a vector of 2 or 4.
  ir::Dim Lane(int lanes);
  // Returns the element of an operand of the anchor, or `lanes` of them if the index contains
  // Lane(lanes): one vector load if they are provably adjacent and aligned.
  Val At(int anchor_operand, const ir::Dims& index, int lanes = 1);
  // Where `count` neighbours of an operand of the anchor lie, from `index` on, in a view whose
  // elements are as in storage: bf16 is u16. The operand has a Region::SourceOf there, aligned.
  struct Place {
    uint16_t view = 0;
    Val index;
    int elements = 0;  // of the view
  };
  Place PlaceOf(int anchor_operand, const ir::Dims& index, int count);
  // Computes the epilogue of elements of the anchor's result and stores the results of the region.
  // Must be called once for each element: a result may be stored in place of an operand of the
  // epilogue. `anchor_result` is ignored without an anchor; with a reduction it is the reduced
  // value, of the anchor's elements at `index` and all that are reduced with them. For an anchor
  // with several results there is a call for each: `index` is one of result `result`.
  void Finish(const ir::Dims& index, Val anchor_result, int lanes = 1, int result = 0);
  // Returns the elements that the region's reduction reads, from elements of the anchor's result.
  Val Reduced(const ir::Dims& index, Val anchor_result, int lanes = 1);

  // From now on a load of one element becomes a load of the aligned vector around it, if there is
  // one, so that neighbours share the load.
  void ShareVectors();

  // Whether `range` holds for all values of its coordinates. If not, a test is emitted, and `tests`
  // lists the range once.
  bool Certain(const ir::IndexMap::Range& range);
  const std::vector<ir::IndexMap::Range>& tests() const;

  // Emits an index expression over coordinates, as i32.
  Val Value(const ir::Dim& index);
  // Access to an operand as a plain array of a type that kernels compute in, whatever the type of
  // the tensor. `operand` is numbered as in Launch::operands.
  Val LoadFrom(int operand, Type elem, const ir::Dim& index);
  void StoreTo(int operand, const ir::Dim& index, Val value);
  // The same of scratch `i`.
  Val LoadScratch(int i, Type elem, const ir::Dim& index);
  void StoreScratch(int i, const ir::Dim& index, Val value);
  // An atomic operation on an i32 or u32 of scratch `i`; returns what was there before.
  Val AtomicScratch(int i, AtomicKind kind, const ir::Dim& index, Val value);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace forge::codegen
