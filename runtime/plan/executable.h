// SPDX-License-Identifier: Apache-2.0
// A bound function on a device: programs compiled, memory planned, steps recorded.
#pragma once
#include <functional>

#include "ir/type/host_value.h"
#include "runtime/plan/memory_plan.h"
#include "runtime/plan/program_cache.h"
#include "runtime/plan/statistics.h"
#include "runtime/plan/variable_store.h"

namespace forge {

// Description of one step, for --explain.
struct StepInfo {
  std::string label, op, kernel, types;
  int dispatches = 0;          // 0: an alias or a copy
  double seconds = 0;          // estimated
  int number = -1;             // among the steps that compute; equal on every device; -1: a copy
  uint64_t bytes_written = 0;  // of the results; of an update only what it changes
};

// A step of a stepwise run, as an observer receives it. The values are copies, not views.
struct StepView {
  const ir::Node* node;                // null for copies, which are not reported
  std::vector<ir::HostValue> in, out;  // dense; absent operands are empty
  const StepInfo& info;
};

// A function that is compiled for one device and one binding.
class Executable {
 public:
  struct Options {
    bool timestamps = false;
    // Makes each step a segment, so that values can be read between steps.
    bool stepwise = false;
    // Compiles and describes programs; allocates and records nothing.
    bool compile_only = false;
    // Limit in bytes of the arena and the staging buffers; a larger plan is refused.
    uint64_t memory_limit = UINT64_MAX;
    ProgramCache::Options compile = {};
  };
  struct Inputs {
    DeviceRef device;
    const ir::Function& function;  // bound; must outlive the executable
    std::span<const VariablePlaces* const> variables;
    ProgramCache& programs;
    // When not empty, results are written to these places, one for each, instead of to the host.
    std::span<const VariablePlace> results_into;
    // The symbols that remain in types of `function`; empty where Device::keeps_step_values() is
    // false.
    std::span<const ir::SymbolRef> step_symbols = {};
    // Called after the programs are compiled; waits until `variables` are placed. May be empty.
    //   errors: passed on
    std::function<absl::Status()> wait_for_variables = {};
  };
  // Compiles the programs, plans memory and records the steps.
  //   errors: Unimplemented (no program for a node), ResourceExhausted; Aborted when
  //   Options::compile.cancel is set meanwhile
  static absl::StatusOr<std::unique_ptr<Executable>> Build(const Inputs& inputs,
                                                           const Options& options);

  // Memory of arguments and results, dense, of exactly the function's types at these step values
  // and in its order. Results overlap nothing.
  struct Memories {
    std::span<const std::span<const uint8_t>> arguments;
    std::span<const std::span<uint8_t>> results;
    std::span<const int64_t> step_values = {};  // in the order of Inputs::step_symbols
  };
  // Runs the function. Computes in the given memory where the device can (Device::Lend); copies
  // elsewhere.
  //   errors: the error of a step, with its label; Aborted when cancelled
  absl::Status Run(const Memories& memories, const std::atomic<bool>* cancel);
  // Runs the function and returns the results as new values.  errors: as above
  absl::StatusOr<std::vector<ir::HostValue>> Run(std::span<const ir::HostValue* const> arguments,
                                                 std::span<const int64_t> step_values,
                                                 const std::atomic<bool>* cancel);
  // Runs on what the device holds, and leaves the results there: those of an executable that was
  // built with results_into, or once more with the arguments of the last Run, where that copied
  // them to the device.
  //   errors: as Run
  absl::Status RunInPlace(const std::atomic<bool>* cancel);
  // Calls the observer after each step; of an executable without step symbols.
  //   errors: as Run, and the observer's
  using Observer = std::function<absl::Status(const StepView&)>;
  absl::StatusOr<std::vector<ir::HostValue>> RunStepwise(
      std::span<const ir::HostValue* const> arguments, const Observer& observer,
      const std::atomic<bool>* cancel);

  // Statistics of the plan; `barriers` are those of the last run.
  PlanStatistics statistics() const;
  std::span<const StepInfo> steps() const { return infos_; }
  std::span<const ir::Node* const> step_nodes() const { return step_nodes_; }  // null for copies
  std::span<const ProgramRef> programs() const { return programs_; }
  // Times of the steps of the last run.
  //   errors: as Device::Timestamps
  absl::StatusOr<std::vector<StepTime>> Timestamps() const;
  const ir::Function& function() const { return *function_; }

 private:
  friend class ExecutableBuilder;
  struct Place {  // the place of a value: a slot and a byte range
    uint32_t slot = Operand::kNoSlot;
    uint64_t offset = 0, bytes = 0;
  };
  class Loan;
  absl::StatusOr<std::vector<ir::HostValue>> NewResults(const ir::Bindings& step_values) const;
  absl::Status CopyIn(size_t argument, std::span<const uint8_t> bytes);
  absl::Status CopyOut(size_t result, std::span<uint8_t> bytes);
  absl::StatusOr<ir::HostValue> Read(uint32_t value);
  absl::Status RunSegment(const SegmentRef& segment, std::span<const int64_t> step_values,
                          const std::atomic<bool>* cancel);

  DeviceRef device_;
  const ir::Function* function_ = nullptr;
  std::vector<BufferRef> slots_;
  std::vector<Place> places_;             // by value id
  std::vector<Place> upload_, readback_;  // by argument, by result
  std::vector<SegmentRef> segments_;      // one, or one for each step
  std::vector<ir::SymbolRef> step_symbols_;
  std::vector<const ir::Node*> step_nodes_;  // null for copies
  std::vector<StepInfo> infos_;
  std::vector<ProgramRef> programs_;
  PlanStatistics statistics_;
};

}  // namespace forge
