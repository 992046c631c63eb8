// SPDX-License-Identifier: Apache-2.0
// Programs of this device: an anchor's call, then what is left of its region on a tape.
#pragma once
#include "cpu_runtime/tape/tape.h"
#include "cpu_runtime/task.h"
#include "runtime/device/host_device.h"

namespace forge::cpu {

struct Settings {
  int threads = 1;
};

// Floats are computed with as f32, other types as they are.
constexpr DType ComputedAs(DType t) { return HeldAs(t); }

// The anchor of a region, made ready: a library's primitive or a loop. Any number of threads may
// run it at once.
class AnchorCall {
 public:
  virtual ~AnchorCall() = default;
  virtual std::string_view kernel() const = 0;
  virtual uint64_t scratch_bytes() const { return 0; }
  struct Arguments {
    std::span<uint8_t* const> operands;  // by number, elements as ComputedAs() says
    uint8_t* out;
    uint8_t* scratch;
  };
  virtual absl::Status Run(const Arguments& a) const = 0;
};

// What an anchor's factory is given.
struct AnchorSite {
  const Task& task;
  const Settings& settings;
  std::vector<View> operands;  // by number; empty views for absent ones; elements as computed
  View out;                    // where the call leaves its result
};
struct MadeAnchor {
  std::unique_ptr<AnchorCall> call;
  // The value of the body that the call leaves in `out`: the anchor's, or one that follows from it
  // where the call does some element-wise ops too.
  uint32_t value = 0;
};
using AnchorFactory = absl::FunctionRef<absl::StatusOr<MadeAnchor>(const AnchorSite&)>;

// errors: those of the factory and of Tape::Compile
absl::StatusOr<ProgramRef> MakeAnchorProgram(const Task& task, const Settings& settings,
                                             AnchorFactory make);
// A region without an anchor.
absl::StatusOr<ProgramRef> MakeTapeProgram(const Task& task, const Settings& settings);

}  // namespace forge::cpu
