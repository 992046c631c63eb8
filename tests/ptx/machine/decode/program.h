// SPDX-License-Identifier: Apache-2.0
// A kernel decoded for execution: a flat list of operations whose operands are offsets into the
// register file of a warp, where each register is an array of 32 lanes.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/ptx/machine/text/syntax.h"

namespace forge::ptx {

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffffffff;

struct Op;
struct Warp;
// Executes `op` for the lanes of the mask, which is not 0.
using Handler = void (*)(Warp& warp, const Op& op, uint32_t lanes);

enum class Control : uint8_t {
  kPlain,    // run() and go on
  kBranch,   // to `target`
  kIndexed,  // to targets[target + register a]
  kExit,
  kWarpSync,  // run() once the lanes named by register `mask` are there
  kBarrier,   // of the block; see Barrier in block.h
};

// What statistics count an operation as.
enum class Kind : uint8_t {
  kOther,
  kFloat,
  kMatrix,
  kGlobal,
  kShared,
  kLocal,
  kAtomic,
  kControl,
  kSync
};

struct Op {
  Handler run = nullptr;
  Control control = Control::kPlain;
  Kind kind = Kind::kOther;
  bool guard_negated = false;
  uint8_t flags = 0;   // the family's own
  int32_t guard = -1;  // predicate; -1: none
  // Registers: byte offsets into the register file of the warp, or ~offset into the constants of
  // the program. Of predicates: their indices.
  int32_t d = 0, a = 0, b = 0, c = 0, e = 0;
  int32_t mask = 0;     // of kWarpSync: register of the lanes that must come together
  int32_t target = -1;  // operation
  int32_t list = 0;     // first of more registers in Program::lists
  int32_t count = 0;    // of them
  int64_t offset = 0;   // of an address, or an immediate
  int32_t line = 0;
};

// A special register that is constant while a thread runs: %tid.x has its place in the register
// file.
struct SpecialSlot {
  std::string name;
  int32_t at;
};

struct ConstantPool {
  std::vector<uint8_t> bytes;  // each value 32 times
};

struct Program {
  std::string name;
  std::shared_ptr<const std::string> text;
  std::vector<Op> ops;
  std::vector<int32_t> lists;
  std::vector<int32_t> targets;  // of brx.idx: count, then operations
  ConstantPool constants;
  std::vector<SpecialSlot> specials;
  uint32_t register_bytes = 0;                               // of a warp
  uint32_t predicates = 2;                                   // [0] is true, [1] false in all lanes
  uint64_t local_bytes = 0;                                  // of a thread
  uint64_t shared_bytes = 0;                                 // static, with red zones
  uint64_t shared_declared = 0;                              // static, without
  std::vector<std::pair<uint64_t, uint64_t>> shared_ranges;  // of the variables
  // Dynamic shared memory begins this far behind shared_bytes, at the least multiple of what its
  // declaration asks for: a kernel that needs more alignment than it asks for is found out.
  uint64_t dynamic_skew = 0;
  bool reads_by_proxy = false;  // matrix units read shared memory
  uint32_t shared_granule = 4;  // bytes of the smallest access to shared memory
  uint64_t param_bytes = 0;
  struct Param {
    uint64_t offset, bytes;
  };
  std::vector<Param> params;
  int max_threads = 0;

  // Returns the text of a line, without spaces around it.
  std::string_view Line(int line) const;
};

}  // namespace forge::ptx
