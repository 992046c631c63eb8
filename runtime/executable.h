// SPDX-License-Identifier: Apache-2.0
// A bound function made ready on a device: programs compiled, memory planned, steps recorded.
#pragma once
#include <functional>
#include <map>
#include <mutex>

#include "ir/host_value.h"
#include "runtime/autotune.h"
#include "runtime/memory_plan.h"
#include "runtime/statistics.h"

namespace forge {

// Where a variable lies on the device.
struct VariablePlace {
  BufferRef buffer;
  uint64_t offset = 0, bytes = 0;
  Bytes source = {};  // what a key that names stored bytes by their address keeps in its place
};

using VariablePlaceRef = std::shared_ptr<const VariablePlace>;
// The places of the variables that a function or a Session has, which they keep alive.
using VariablePlaces = std::map<const ir::Variable*, VariablePlaceRef>;

// Variables on one device. A variable is known by a key, the same for all that hold the same bytes,
// so that whoever computes or stores the same thing shares it; what nobody holds any more is freed.
// Any thread.
class VariableStore {
 public:
  explicit VariableStore(DeviceRef device) : device_(std::move(device)) {}
  struct Keyed {
    const ir::Variable* variable;
    std::string key;
  };
  // Gives variables room and their initial bytes or zeros. Constants stay in the model's own
  // memory where the device can read it. Known ones keep the place they have.  Returns those that
  // were not known, which the caller computes if anybody does.
  //   errors: ResourceExhausted, DataLoss (storage smaller than its type)
  absl::StatusOr<std::vector<const ir::Variable*>> Add(std::span<const Keyed> variables,
                                                       VariablePlaces& places);
  uint64_t bytes() const;  // of all that are held

 private:
  VariablePlaceRef Find(const std::string& key) const;  // under mutex_
  VariablePlaceRef Import(const ir::Variable& v);
  absl::Status Fill(const VariablePlace& place, std::span<const uint8_t> bytes);
  absl::Status PlaceAt(const Keyed& k, VariablePlace at, VariablePlaces& places);
  absl::Status Place(std::span<const Keyed* const> variables, VariablePlaces& places);
  DeviceRef device_;
  mutable std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const VariablePlace>> places_;
};

// Programs of one model on one device by op, attributes and types, shared by plans and Sessions.
class ProgramCache {
 public:
  explicit ProgramCache(DeviceRef device) : device_(std::move(device)) {}
  struct Request {
    const ir::Node* node;
    ir::Types in, out;
    std::string name;
  };
  struct Counts {
    int made = 0, reused = 0;
  };
  struct Options {
    std::string choice = {};                // as CompileRequest::choice, of every request
    bool once = false;                      // as CompileRequest::once
    AutotuneLimits autotune{.seconds = 0};  // of a search before anything is compiled
    std::function<void(std::string_view what, size_t done, size_t total)> progress = {};
  };
  // errors: the first program that fails, with its node's name; Unimplemented from the device
  // passes through; those of Autotune
  absl::StatusOr<std::vector<ProgramRef>> Get(std::span<const Request> requests, Counts& counts,
                                              const Options& options);

 private:
  DeviceRef device_;
  std::mutex mutex_;
  std::map<std::string, ProgramRef> programs_;
};

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
    // Called once the programs are compiled: waits until `variables` are there. Empty: they are.
    //   errors: passed on
    std::function<absl::Status()> wait_for_variables = {};
  };
  // errors: Unimplemented (no program for a node), ResourceExhausted
  static absl::StatusOr<std::unique_ptr<Executable>> Build(const Inputs& inputs,
                                                           const Options& options);

  // Copies operands in, runs, and leaves results in `results` (in the function's order).
  //   arguments: of exactly the function's types, in its order
  //   errors: what a step failed with, with the step's label; Aborted when cancelled
  absl::Status Run(std::span<const ir::HostValue* const> arguments,
                   std::vector<ir::HostValue>& results, const std::atomic<bool>* cancel);
  absl::Status RunForVariables();  // of an executable built with results_into
  // Calls the observer after each step.
  using Observer = std::function<absl::Status(const StepView&)>;
  absl::Status RunStepwise(std::span<const ir::HostValue* const> arguments,
                           std::vector<ir::HostValue>& results, const Observer& observer);

  // Barriers are those of what ran last.
  PlanStatistics statistics() const;
  std::span<const StepInfo> steps() const { return infos_; }
  std::span<const ProgramRef> programs() const { return programs_; }
  absl::StatusOr<std::vector<StepTime>> Timestamps() const;
  const ir::Function& function() const { return *function_; }

 private:
  friend class ExecutableBuilder;
  struct Place {  // where a value lies: a slot, bytes
    uint32_t slot = Operand::kNoSlot;
    uint64_t offset = 0, bytes = 0;
  };
  absl::Status CopyIn(std::span<const ir::HostValue* const> arguments);
  absl::Status CopyOut(std::vector<ir::HostValue>& results);
  absl::StatusOr<ir::HostValue> Read(uint32_t value);
  absl::Status SubmitAndWait(const SegmentRef& segment, const std::atomic<bool>* cancel);

  DeviceRef device_;
  const ir::Function* function_ = nullptr;
  std::vector<BufferRef> slots_;
  std::vector<Place> places_;                // by value id
  std::vector<Place> upload_, readback_;     // by argument, by result
  std::vector<SegmentRef> segments_;         // one, or one for each step
  std::vector<const ir::Node*> step_nodes_;  // null for copies
  std::vector<StepInfo> infos_;
  std::vector<ProgramRef> programs_;
  PlanStatistics statistics_;
};

}  // namespace forge
