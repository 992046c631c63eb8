// SPDX-License-Identifier: Apache-2.0
// Element-wise and movement ops of a region as one pass over blocks that stay in the first cache.
//
// Elements are pulled: an index of the result is carried back through index maps to the operands,
// and each pair of a value and an index becomes one register. Where an index is affine a load walks
// strides, or is the operand's memory itself; else it is computed element by element. Conditions of
// maps (the seams of a concat, the border of a pad) cut the result into boxes in which they hold or
// do not; axes of a box are split where indices divide them (a reshape, a nearest resize).
#pragma once
#include "cpu_runtime/layout.h"
#include "cpu_runtime/tape/instructions.h"
#include "ir/graph/module.h"

namespace forge::cpu {

// A value of the region that lies in an operand of the program.
struct Placed {
  uint32_t value = 0;
  View view;
  uint32_t operand = 0;  // a source may share the operand of a result with the same view
};

struct TapeSpec {
  const ir::Function& body;         // bound: every dimension is a number
  std::span<const Placed> sources;  // read, not computed
  std::span<const Placed> results;  // computed
};

// The instructions for one box of a result's indices.
struct BoxProgram {
  absl::InlinedVector<int64_t, 6> extents;  // outermost first
  int64_t elements = 0;
  std::vector<Instruction> setup;  // constants, once for each thread
  std::vector<Instruction> body;   // for each block
  // Where registers lie: an offset in a thread's scratch, or one of these.
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
  // What is the same along the innermost axis, which has `row_length` elements: run before the
  // body, with an element for each row that the block meets. Its scratch follows this one's.
  std::unique_ptr<BoxProgram> rows;
  int64_t row_length = 1;
};

class Tape {
 public:
  // errors: Unimplemented for element types and sizes beyond it, with the op's name
  static absl::StatusOr<Tape> Compile(const TapeSpec& spec);

  // Of all threads together.
  uint64_t scratch_bytes(int threads) const { return scratch_ * static_cast<uint64_t>(threads); }
  // operands: by number, as the spec placed them
  void Run(std::span<uint8_t* const> operands, uint8_t* scratch, int threads) const;
  // Elements times instructions: what the decision to use threads rests on.
  double work() const;
  // Loads whose addresses are computed element by element, slow as that is.
  int gathers() const;

 private:
  std::vector<BoxProgram> boxes_;
  std::vector<ir::AnyOp> ops_;  // keep attributes alive
  uint64_t scratch_ = 0;        // of one thread
};

// Would Compile take the region whatever the bindings? Asked before dimensions are numbers.
Verdict TapeTakes(const ir::Function& body, const ir::Node& node);

}  // namespace forge::cpu
