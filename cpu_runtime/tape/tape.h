// SPDX-License-Identifier: Apache-2.0
// The element-wise and movement ops of a region as one pass over blocks that stay in the L1 cache.
//
// The evaluation is demand-driven: an index of the result is mapped through index maps to the
// operands, and each pair of a value and an index becomes one register. A load with an affine index
// uses strides, or is the memory of the operand itself; other addresses are computed for each
// element. Conditions of index maps (the seams of a concat, the border of a pad) divide the result
// into boxes in which they are constant; axes of a box are split where indices divide them (a
// reshape, a nearest resize).
#pragma once
#include "cpu_runtime/layout.h"
#include "cpu_runtime/tape/instructions.h"
#include "ir/graph/module.h"

namespace forge::cpu {

// A value of the region that is stored in an operand of the program.
struct Placed {
  uint32_t value = 0;
  View view;
  uint32_t operand = 0;  // a source may share the operand of a result with the same view
};

// The region to compile.
struct TapeSpec {
  const ir::Function& body;         // bound: every dimension is a number
  std::span<const Placed> sources;  // read, not computed
  std::span<const Placed> results;  // computed
};

// The instructions for one box of indices of a result.
struct BoxProgram {
  absl::InlinedVector<int64_t, 6> extents;  // outermost first
  int64_t elements = 0;
  std::vector<Instruction> setup;  // constants; executed once by each thread
  std::vector<Instruction> body;   // executed for each block
  // The place of each register: an offset in the scratch memory of a thread, or one of these.
  static constexpr uint32_t kDirect = UINT32_MAX;        // set by its load
  static constexpr uint32_t kInResult = UINT32_MAX - 1;  // written in place, see `in_result`
  std::vector<uint32_t> places;
  struct InResult {
    Register reg{};
    Access to;
    size_t bytes = 0;
  };
  std::vector<InResult> in_result;
  uint32_t scratch_bytes = 0;  // of one thread
  // The program for values that are constant along the innermost axis, which has `row_length`
  // elements. It runs before the body, with one element for each row that the block intersects. Its
  // scratch memory follows that of the body.
  std::unique_ptr<BoxProgram> rows;
  int64_t row_length = 1;
};

// A compiled region.
class Tape {
 public:
  // Compiles a region.
  //   errors: Unimplemented (element types and sizes beyond the tape), with the name of the op
  static absl::StatusOr<Tape> Compile(const TapeSpec& spec);

  // Bytes of scratch memory for all threads together.
  uint64_t scratch_bytes(int threads) const { return scratch_ * static_cast<uint64_t>(threads); }
  // Runs the tape.
  //   operands: by index, as placed in the spec
  void Run(std::span<uint8_t* const> operands, uint8_t* scratch, int threads) const;
  // Elements times instructions; decides whether threads are used.
  double work() const;
  // The number of loads whose addresses are computed for each element, which are slow.
  int gathers() const;

 private:
  std::vector<BoxProgram> boxes_;
  std::vector<ir::AnyOp> ops_;  // keep attributes alive
  uint64_t scratch_ = 0;        // of one thread
};

// Returns whether Compile accepts the region for all bindings, or the reason why not.
Verdict TapeTakes(const ir::Function& body, const ir::Node& node);

}  // namespace forge::cpu
