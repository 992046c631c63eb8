// SPDX-License-Identifier: Apache-2.0
// Elements of a region's operands and results in a kernel: schedules move and compute them without
// knowing what fused.
#pragma once
#include "codegen/kernel/kernel_ir.h"
#include "codegen/kernel/literal.h"
#include "codegen/region/region.h"

namespace forge::codegen {

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
  // result of that, for the anchor's elements at `index` and all that are reduced with them. An
  // anchor with several results hands over elements of each, `result` by its own index.
  void Finish(const ir::Dims& index, Val anchor_result, int lanes = 1, int result = 0);
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

}  // namespace forge::codegen
