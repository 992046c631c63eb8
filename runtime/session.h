// SPDX-License-Identifier: Apache-2.0
// What users hold: a model read from a file, and a Session that runs it on a device.
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
#include "runtime/device/named_tensor.h"
#include "runtime/plan/autotune.h"
#include "runtime/plan/statistics.h"

namespace forge::ir {
struct FusionGap;
}
namespace forge {

class ModelOnDevice;
class Executable;
struct StepView;

// An immutable model. Sessions of one model on one device share weights and kernels.
class Model {
 public:
  // Reads model.bin, or converts a model of another format in memory.
  //   progress: told of nodes converted; may be null
  //   errors: NotFound, DataLoss with the place in the file
  static absl::StatusOr<std::shared_ptr<const Model>> Load(
      const std::filesystem::path& path,
      const std::function<void(size_t done, size_t total)>& progress = {});
  // The same for the content of a file, which must hold its weights and stays in use.
  //   where: names it in messages
  static absl::StatusOr<std::shared_ptr<const Model>> Load(const Bytes& file,
                                                           std::string_view where);
  explicit Model(std::unique_ptr<ir::Module> module);
  ~Model();
  const ir::Module& module() const { return *module_; }
  std::string_view Metadata(std::string_view key) const { return module_->Metadata(key); }

 private:
  friend class Session;
  std::unique_ptr<ir::Module> module_;
  struct Shared;
  std::unique_ptr<Shared> shared_;  // what devices have made of it, while any Session holds it
};

// To look into plans, at a price; none of it is for serving.
struct SessionDebug {
  bool timestamps = false;  // for Executable::Timestamps()
  bool stepwise = false;    // for RunStepwise(): each step is submitted alone, nothing is in place
  // Allocates and runs nothing: Bind() compiles every kernel, and Run() refuses.
  bool compile_only = false;
  bool fuse = true;  // false: each node of the model is a step by itself
  // Told of each function after each pass.
  std::function<void(std::string_view pass, const ir::Function& after)> observe;
};

struct SessionOptions {
  // Prefill and decode, a training step and its evaluation: one copy of the weights, one of the
  // states, one run at a time.
  std::vector<std::string> functions = {"main"};
  // Of functions[0]; empty: the function's own; inner values by name too.
  std::vector<std::string> outputs;
  std::map<std::string, int64_t> dims;  // symbols by name; the rest are bound by inputs
  // Parameters become constants. False: each Session has its own, as functions may change them.
  bool freeze = true;
  // Bytes on the device: states, the weights of the Session's bindings (other Sessions' that it
  // does not use are not counted), and arena and staging of each binding. A binding that needs more
  // is refused before anything is allocated for it.
  uint64_t memory_limit = UINT64_MAX;
  // Of a search for faster kernels at each binding; what is found is kept for later runs.
  AutotuneLimits autotune{.seconds = 0};
  // Told what long work is, and how much of it is done, from any thread.
  std::function<void(std::string_view what, size_t done, size_t total)> progress;
  SessionDebug debug;
};

// Dense row-major elements in a caller's memory.
struct TensorRef {
  DType dtype;
  std::span<const int64_t> shape;
  std::span<const uint8_t> bytes;
};

// Runs functions of a model. Any thread: calls of Bind and of the runs wait for each other, in no
// particular order; other Sessions run at once. Callbacks (of options, and observers) must not call
// them. In a fork of the process that made it every call returns Aborted. States begin as the model
// has them and belong to the Session.
class Session {
 public:
  //   errors: Unimplemented (an op cannot run there, all listed), InvalidArgument (unknown
  //   function, output, dim; a function that changes what is frozen)
  static absl::StatusOr<std::unique_ptr<Session>> Create(std::shared_ptr<const Model> model,
                                                         DeviceRef device,
                                                         SessionOptions options = {});
  ~Session();

  struct Port {
    std::string name;
    ir::Type type;  // symbols where the model is dynamic
  };
  // `function` is a place in SessionOptions::functions here and below; FORGE_CHECKed.
  size_t functions() const { return ports_.size(); }
  const std::vector<Port>& inputs(size_t function = 0) const { return PortsOf(function).inputs; }
  const std::vector<Port>& outputs(size_t function = 0) const { return PortsOf(function).outputs; }
  Device& device() const { return *device_; }

  // Gives a step value that no input's shape tells, such as the length of a KV cache, for runs that
  // begin later. On devices that keep step values open (Device::keeps_step_values) another value
  // compiles and records nothing; elsewhere each is a binding.
  //   errors: InvalidArgument (unknown, not a step value, outside of its bounds)
  absl::Status SetStepValue(std::string_view name, int64_t value);
  // Compiles and plans for these extents ahead of the first Run.  errors: as Run;
  // ResourceExhausted beyond SessionOptions::memory_limit
  absl::Status Bind(const std::map<std::string, int64_t>& dims, size_t function = 0);
  // The types of the outputs at the extents that `function` was bound to last.
  //   errors: InvalidArgument (it was not bound yet)
  absl::StatusOr<ir::Types> BoundOutputs(size_t function = 0) const;
  // Runs on the caller's memory: no copy where the device computes in the host's memory and the
  // memory is aligned to 16 bytes, and no allocation by the runtime once these shapes are bound.
  //   inputs: in the order of inputs(function)
  //   outputs: of exactly the bytes that BoundOutputs() tells at these extents, in its order; they
  //   overlap neither each other nor inputs
  //   errors: as below
  absl::Status Run(std::span<const TensorRef> inputs, std::span<const std::span<uint8_t>> outputs,
                   size_t function = 0);
  // Inputs in any order; outputs in the model's.
  //   errors: InvalidArgument (unknown or missing input, dtype or shape, with what was expected),
  //   Aborted (cancelled, device lost), or what a step failed with
  absl::StatusOr<std::vector<NamedTensor>> Run(std::span<const NamedTensor> inputs,
                                               size_t function = 0);
  // From any thread: ends the call in progress, which returns Aborted: a binding between kernels, a
  // run between steps. Calls that begin later are not affected.
  void Cancel() { cancel_ = true; }

  // This and what follows: not while a call is in progress on another thread.
  SessionStatistics statistics() const;
  // Why steps were not fused.
  std::span<const ir::FusionGap> gaps() const;
  // The plan of the newest binding; null before the first.
  const Executable* executable() const;

  // Runs step by step and shows each to `observer`; needs SessionDebug::stepwise.
  absl::StatusOr<std::vector<NamedTensor>> RunStepwise(
      std::span<const NamedTensor> inputs,
      const std::function<absl::Status(const StepView&)>& observer, size_t function = 0);

 private:
  struct Plan;
  struct States;
  class Turn;
  // What a function looks like from outside.
  struct FunctionPorts {
    std::vector<Port> inputs, outputs;
  };
  Session() = default;
  const FunctionPorts& PortsOf(size_t function) const {
    FORGE_CHECK(function < ports_.size());
    return ports_[function];
  }
  absl::StatusOr<std::vector<const ir::HostValue*>> Match(std::span<const NamedTensor> inputs,
                                                          size_t function) const;
  absl::StatusOr<ir::Bindings> BindingsFor(std::span<const TensorRef> inputs,
                                           size_t function) const;
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
  const uint32_t forks_ = ForkCount();   // of the process that made it
  std::mutex turn_;                      // held by the call in progress
  std::atomic<std::thread::id> caller_;  // of the call in progress
  std::atomic<bool> cancel_ = false;
};

}  // namespace forge
