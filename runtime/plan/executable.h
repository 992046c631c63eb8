// SPDX-License-Identifier: Apache-2.0
// A bound function made ready on a device: programs compiled, memory planned, steps recorded.
#pragma once
#include <functional>

#include "ir/type/host_value.h"
#include "runtime/plan/memory_plan.h"
#include "runtime/plan/program_cache.h"
#include "runtime/plan/statistics.h"
#include "runtime/plan/variable_store.h"

namespace forge {

// What --explain says of one step.
struct StepInfo {
  std::string label, op, kernel, types;
  int dispatches = 0;  // 0: an alias or a copy
  double seconds = 0;  // estimated
  int number = -1;     // among those that compute, the same on every device; -1: a copy
};

// What an observer sees after a step of a stepwise run; copies are copied values, not views.
struct StepView {
  const ir::Node* node;                // null for copies, which are not shown
  std::vector<ir::HostValue> in, out;  // dense; absent operands are empty
  const StepInfo& info;
};

class Executable {
 public:
  struct Options {
    bool timestamps = false;
    // Each step is a segment of its own, so that values can be looked at between steps.
    bool stepwise = false;
    // Makes programs and says what they are; places nothing and records nothing.
    bool compile_only = false;
    // Of the arena and what is staged; more is refused.
    uint64_t memory_limit = UINT64_MAX;
    ProgramCache::Options compile = {};
  };
  struct Inputs {
    DeviceRef device;
    const ir::Function& function;  // bound; must outlive the executable
    std::span<const VariablePlaces* const> variables;
    ProgramCache& programs;
    // Not empty: results go there instead of to the host, one place each.
    std::span<const VariablePlace> results_into;
    // Those that types of `function` are open in; none where its device keeps none.
    std::span<const ir::SymbolRef> step_symbols = {};
    // Called once the programs are compiled: waits until `variables` are there. May be empty.
    //   errors: passed on
    std::function<absl::Status()> wait_for_variables = {};
  };
  // errors: Unimplemented (no program for a node), ResourceExhausted; Aborted when
  // Options::compile.cancel is set meanwhile
  static absl::StatusOr<std::unique_ptr<Executable>> Build(const Inputs& inputs,
                                                           const Options& options);

  // Memory of arguments and results, dense, of exactly the function's types at these step values
  // and in its order. Results overlap nothing.
  struct Memories {
    std::span<const std::span<const uint8_t>> arguments;
    std::span<const std::span<uint8_t>> results;
    std::span<const int64_t> step_values = {};  // in the order of Inputs::step_symbols
  };
  // Computes in that memory where the device can (Device::Lend), and copies elsewhere.
  //   errors: what a step failed with, with the step's label; Aborted when cancelled
  absl::Status Run(const Memories& memories, const std::atomic<bool>* cancel);
  // The same, into new values.
  absl::StatusOr<std::vector<ir::HostValue>> Run(std::span<const ir::HostValue* const> arguments,
                                                 std::span<const int64_t> step_values,
                                                 const std::atomic<bool>* cancel);
  // Of an executable built with results_into.  errors: as Run
  absl::Status RunForVariables(const std::atomic<bool>* cancel);
  // Calls the observer after each step; of an executable without step symbols.
  //   errors: as Run, and the observer's
  using Observer = std::function<absl::Status(const StepView&)>;
  absl::StatusOr<std::vector<ir::HostValue>> RunStepwise(
      std::span<const ir::HostValue* const> arguments, const Observer& observer,
      const std::atomic<bool>* cancel);

  // Barriers are those of what ran last.
  PlanStatistics statistics() const;
  std::span<const StepInfo> steps() const { return infos_; }
  std::span<const ir::Node* const> step_nodes() const { return step_nodes_; }  // null for copies
  std::span<const ProgramRef> programs() const { return programs_; }
  absl::StatusOr<std::vector<StepTime>> Timestamps() const;
  const ir::Function& function() const { return *function_; }

 private:
  friend class ExecutableBuilder;
  struct Place {  // where a value lies: a slot, bytes
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
