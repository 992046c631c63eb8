// SPDX-License-Identifier: Apache-2.0
// The user interface: a Model read from a file, and a Session that runs it on a device.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/platform.h"
#include "ir/graph/module.h"
#include "ir/type/host_value.h"
#include "ir/type/precision.h"
#include "runtime/device/named_tensor.h"
#include "runtime/plan/autotune.h"
#include "runtime/plan/statistics.h"

namespace forge::ir {
struct FusionGap;
}
namespace forge {

class ModelOnDevice;
class Executable;
class StagedFunction;
struct StepView;

// An immutable model. Sessions of one model on one device share weights and kernels.
class Model {
 public:
  // Reads model.bin, or converts a model of another format in memory.
  //   progress: called with the number of nodes converted; may be empty
  //   errors: NotFound, DataLoss with the place in the file
  static absl::StatusOr<std::shared_ptr<const Model>> Load(
      const std::filesystem::path& path,
      const std::function<void(size_t done, size_t total)>& progress = {});
  // Reads a model from the content of a file. The content must include the weights and stays in
  // use.
  //   where: the name used in messages
  static absl::StatusOr<std::shared_ptr<const Model>> Load(const Bytes& file,
                                                           std::string_view where);
  explicit Model(std::unique_ptr<ir::Module> module);
  // A part of `whole`; its Sessions share weights and kernels with those of `whole`.
  Model(std::unique_ptr<ir::Module> module, const Model& whole);
  ~Model();
  const ir::Module& module() const { return *module_; }
  std::string_view Metadata(std::string_view key) const { return module_->Metadata(key); }

 private:
  friend class Session;
  std::unique_ptr<ir::Module> module_;
  struct Shares;
  struct Shared;
  std::unique_ptr<Shared> shared_;  // state per device, kept while a Session uses it
};

// Options for inspection. Each costs time or memory; none is meant for production.
struct SessionDebug {
  bool timestamps = false;  // records the times for Executable::Timestamps()
  // For RunStepwise(): submits each step separately, reuses no operand in place.
  bool stepwise = false;
  // Bind() compiles every kernel and allocates nothing; Run() fails.
  bool compile_only = false;
  bool fuse = true;  // false: each node of the model is a separate step
  // Called with each function after each pass.
  std::function<void(std::string_view pass, const ir::Function& after)> observe;
};

// How to create a Session.
struct SessionOptions {
  // The functions to run, for example prefill and decode, or a training step and its evaluation.
  // They share one copy of the weights and of the states; one runs at a time.
  std::vector<std::string> functions = {"main"};
  // Outputs of functions[0], which may be inner values; empty: the function's own outputs.
  std::vector<std::string> outputs;
  std::map<std::string, int64_t> dims;  // values of symbols by name; inputs bind the others
  // True: parameters become constants. False: each Session has its own parameters, which its
  // functions may change.
  bool freeze = true;
  ir::Precision precision;  // of what the model computes in f32
  // Limit in bytes of device memory: states, the weights that the bindings of this Session use, and
  // the arena and staging of each binding. A binding that needs more is refused before anything is
  // allocated for it.
  uint64_t memory_limit = UINT64_MAX;
  // The most steps of a loop whose end depends on data; a run with more fails.
  uint64_t max_iterations = 1'000'000;
  // Limits of a search for faster kernels at each binding; its results are cached for later runs.
  AutotuneLimits autotune{.seconds = 0};
  // Called from any thread during long work with its name, the number of finished units and their
  // total.
  std::function<void(std::string_view what, size_t done, size_t total)> progress;
  SessionDebug debug;
};

class Session;

// A part of a function whose types depend on values of a run.
struct SessionPart {
  const Session* session = nullptr;  // null: the host computes it
  std::string then;                  // what the host does after it: "reads 2 values"
};

// Dense row-major elements in memory of the caller.
struct TensorRef {
  DType dtype;
  std::span<const int64_t> shape;
  std::span<const uint8_t> bytes;
};

// Runs functions of a model on a device. Where the types of a function depend on values of a run, a
// run is divided into parts: the host reads what decides the next part, which is planned then and
// kept for the newest shapes and values. Bind and the run functions may be called from any thread;
// they wait for each other, in no particular order. Different Sessions run concurrently. Callbacks
// (of options, and observers) must not call them. After a fork, every call in the child process
// returns Aborted. States start with the values in the model and belong to the Session.
class Session {
 public:
  // Creates a Session.
  //   errors: Unimplemented (lists all ops that cannot run on the device), InvalidArgument (unknown
  //   function, output or dimension; a function that changes a frozen parameter)
  static absl::StatusOr<std::unique_ptr<Session>> Create(std::shared_ptr<const Model> model,
                                                         DeviceRef device,
                                                         SessionOptions options = {});
  ~Session();

  // An input or output of a function.
  struct Port {
    std::string name;
    ir::Type type;  // has symbols where the model is dynamic
  };
  // In all functions below, `function` is an index into SessionOptions::functions; out of range
  // fails a FORGE_CHECK.
  size_t functions() const { return ports_.size(); }
  const std::vector<Port>& inputs(size_t function = 0) const { return PortsOf(function).inputs; }
  const std::vector<Port>& outputs(size_t function = 0) const { return PortsOf(function).outputs; }
  Device& device() const { return *device_; }

  // Gives a step value that no input's shape tells, such as the length of a KV cache, for runs that
  // begin later. On devices that keep step values open (Device::keeps_step_values) another value
  // compiles and records nothing; elsewhere each is a binding.
  //   errors: InvalidArgument (unknown, not a step value, outside of its bounds)
  absl::Status SetStepValue(std::string_view name, int64_t value);
  // Compiles and plans for these extents ahead of the first Run. A function that runs in parts is
  // planned by its runs alone.  errors: as Run; ResourceExhausted beyond
  // SessionOptions::memory_limit
  absl::Status Bind(const std::map<std::string, int64_t>& dims, size_t function = 0);
  // The same for the extents of these inputs, whose elements are not read.
  absl::Status BindFor(std::span<const TensorRef> inputs, size_t function = 0);
  // Returns the types of the outputs at the last binding of `function`.
  //   errors: InvalidArgument (not bound yet, or it runs in parts)
  absl::StatusOr<ir::Types> BoundOutputs(size_t function = 0) const;
  // Runs on memory of the caller. There is no copy where the device computes in host memory and the
  // memory is aligned to 16 bytes, and the runtime allocates nothing once these shapes are bound.
  //   inputs: in the order of inputs(function)
  //   outputs: each of exactly the bytes that BoundOutputs() gives at these extents, in its order;
  //   they overlap neither each other nor inputs
  //   errors: as the next function
  absl::Status Run(std::span<const TensorRef> inputs, std::span<const std::span<uint8_t>> outputs,
                   size_t function = 0);
  // Runs and returns the outputs in the order of the model. Inputs may be in any order.
  //   errors: InvalidArgument (unknown or missing input, wrong dtype or shape, with what was
  //   expected), Aborted (cancelled, device lost), or the error of a step
  absl::StatusOr<std::vector<NamedTensor>> Run(std::span<const NamedTensor> inputs,
                                               size_t function = 0);
  // Ends the call in progress, which returns Aborted: a binding between kernels, a run between
  // steps. May be called from any thread. Later calls are not affected.
  void Cancel() { cancelled_ = true; }

  // Statistics of the newest binding. This function and those below must not be called while
  // another thread binds or runs.
  SessionStatistics statistics() const;
  // True when functions run in parts.
  bool runs_in_parts() const { return !staged_.empty(); }
  // The parts of the newest run of `function`; empty where it runs whole, or has not run.
  std::vector<SessionPart> parts(size_t function = 0) const;
  // The reasons why steps were not fused.
  std::span<const ir::FusionGap> gaps() const;
  // The plan of the newest binding; null before the first.
  const Executable* executable() const;

  // Runs step by step and passes each step to `observer`.
  //   errors: as Run, those of the observer; InvalidArgument (SessionDebug::stepwise is not set);
  //   Unimplemented (the function runs in parts)
  absl::StatusOr<std::vector<NamedTensor>> RunStepwise(
      std::span<const NamedTensor> inputs,
      const std::function<absl::Status(const StepView&)>& observer, size_t function = 0);

 private:
  friend class StagedFunction;  // whose Sessions are parts of one
  struct Plan;
  struct States;
  class Turn;
  static absl::StatusOr<std::unique_ptr<Session>> CreatePart(std::shared_ptr<const Model> model,
                                                             const Session& whole,
                                                             const std::string& function);
  // The inputs and outputs of a function.
  struct FunctionPorts {
    std::vector<Port> inputs, outputs;
  };
  Session() = default;
  void AddPorts(const ir::Function& f, size_t inputs, size_t outputs);
  const FunctionPorts& PortsOf(size_t function) const {
    FORGE_CHECK(function < ports_.size());
    return ports_[function];
  }
  absl::StatusOr<std::vector<const ir::HostValue*>> Match(std::span<const NamedTensor> inputs,
                                                          size_t function) const;
  absl::StatusOr<ir::Bindings> BindingsFor(std::span<const TensorRef> inputs,
                                           size_t function) const;
  absl::StatusOr<bool> CreateStages();
  absl::Status RunParts(std::span<const TensorRef> inputs,
                        std::span<const std::span<uint8_t>> outputs, size_t function);
  absl::Status AddStates();
  uint64_t WeightBytes(const Plan* also = nullptr) const;
  absl::Status CheckLimit(const Plan& plan) const;
  absl::Status Prepare(const ir::Bindings& bindings, size_t function);
  absl::Status PrepareFor(std::span<const TensorRef> inputs, size_t function);
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const ir::Bindings& bindings, size_t function);
  absl::StatusOr<std::unique_ptr<Plan>> MakePlanFor(const ir::Bindings& bindings,
                                                    const ir::Bindings& step_values,
                                                    size_t function);
  std::vector<NamedTensor> Name(std::vector<ir::HostValue> results, size_t function) const;

  std::shared_ptr<const Model> model_;
  DeviceRef device_;
  SessionOptions options_;
  std::shared_ptr<ModelOnDevice> shared_;
  std::vector<FunctionPorts> ports_;
  std::unique_ptr<States> states_;            // shared by all functions and bindings
  ir::Bindings fixed_;                        // from SessionOptions::dims and SetStepValue
  bool step_values_set_ = false;              // shapes of inputs do not tell a binding
  std::vector<std::unique_ptr<Plan>> plans_;  // last used last, bounded
  double lower_ms_ = 0, compile_ms_ = 0;
  uint64_t state_bytes_ = 0;
  std::map<std::string, ir::HostValue> held_;  // variables by name, where it runs in parts
  std::vector<std::unique_ptr<StagedFunction>> staged_;  // by function; null where types are known
  const uint32_t forks_ = ForkCount();                   // of the process that made it
  std::mutex turn_;                                      // held by the call in progress
  std::atomic<std::thread::id> caller_;                  // of the call in progress
  std::atomic<bool> cancelled_ = false;
  const std::atomic<bool>* cancel_ = &cancelled_;  // of the whole, in a part
};

}  // namespace forge
