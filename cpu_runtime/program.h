// SPDX-License-Identifier: Apache-2.0
// Programs of the CPU: the call of an anchor, then a tape for the rest of the region.
#pragma once
#include "cpu_runtime/tape/tape.h"
#include "cpu_runtime/task.h"
#include "runtime/device/host_device.h"

namespace forge::cpu {

// Settings of a device.
struct Settings {
  int threads = 1;
};

// The element type in which a type is computed: f32 for narrower floats, the type itself otherwise.
constexpr DType ComputedAs(DType t) { return HeldAs(t); }
// The view of a tensor whose elements have been converted to ComputedAs().
//   errors: those of ViewOf
absl::StatusOr<View> ComputedViewOf(const ir::Type& t);
// Converts elements of type `t`, which lie without gaps, to ComputedAs(t).
void WidenElements(DType t, const uint8_t* from, int64_t elements, int threads, uint8_t* to);

// The compiled anchor of a region: a oneDNN primitive or a loop. Run may be called from several
// threads at once.
class AnchorCall {
 public:
  virtual ~AnchorCall() = default;
  virtual std::string_view kernel() const = 0;
  virtual uint64_t scratch_bytes() const { return 0; }
  struct Arguments {
    std::span<uint8_t* const> operands;  // by index; elements have the type ComputedAs()
    uint8_t* out;
    std::span<uint8_t* const> more;  // the other results of the anchor
    uint8_t* scratch;
  };
  virtual absl::Status Run(const Arguments& a) const = 0;
};

// The input of a factory of anchor calls.
struct AnchorSite {
  const Task& task;
  const Settings& settings;
  std::vector<View> operands;  // by index; empty for absent operands; element types as computed
  View out;                    // the result of the call
  std::vector<View> more;      // the other results of the anchor
};
// A compiled anchor.
struct MadeAnchor {
  std::unique_ptr<AnchorCall> call;
  // The value of the body that the call stores in `out`: the result of the anchor, or of a
  // following element-wise op that the call computes too.
  uint32_t value = 0;
};
using AnchorFactory = absl::FunctionRef<absl::StatusOr<MadeAnchor>(const AnchorSite&)>;

// Compiles a region with an anchor.
//   errors: those of the factory and of Tape::Compile
absl::StatusOr<ProgramRef> MakeAnchorProgram(const Task& task, const Settings& settings,
                                             AnchorFactory make);
// Compiles a region without an anchor.
//   errors: those of Tape::Compile
absl::StatusOr<ProgramRef> MakeTapeProgram(const Task& task, const Settings& settings);

}  // namespace forge::cpu
