// SPDX-License-Identifier: Apache-2.0
// What users hold: a model read from a file, and a Session that runs it on a device.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/host_value.h"
#include "ir/module.h"
#include "runtime/autotune.h"
#include "runtime/statistics.h"

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
  //   progress: told of nodes converted; empty: nobody is
  //   errors: NotFound, DataLoss with the place in the file
  static absl::StatusOr<std::shared_ptr<const Model>> Load(
      const std::filesystem::path& path,
      const std::function<void(size_t done, size_t total)>& progress = {});
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

struct NamedTensor {
  std::string name;
  ir::HostValue value;
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
  // Bytes on the device for weights, the arena and staging; a binding that needs more is refused.
  uint64_t memory_limit = UINT64_MAX;
  bool timestamps = false;  // for Profile()
  // Of a search for faster kernels at each binding; what is found is kept for later runs.
  AutotuneLimits autotune{.seconds = 0};
  // Allocates and runs nothing: Bind() compiles every kernel, and Run() refuses.
  bool compile_only = false;
  bool stepwise = false;  // for RunStepwise()
  // Long work speaks up: what it is, how much of it is done.
  std::function<void(std::string_view what, size_t done, size_t total)> progress;
  std::function<void(std::string_view pass, const ir::Function& after)> observe;
};

// Runs functions of a model. One call at a time; other Sessions may run at once. States begin as
// the model has them and belong to the Session.
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
  size_t functions() const { return faces_.size(); }
  const std::vector<Port>& inputs(size_t function = 0) const { return Face(function).inputs; }
  const std::vector<Port>& outputs(size_t function = 0) const { return Face(function).outputs; }
  Device& device() const { return *device_; }

  // Compiles and plans for these extents ahead of the first Run.  errors: as Run
  absl::Status Bind(const std::map<std::string, int64_t>& dims, size_t function = 0);
  // Inputs in any order; outputs in the model's.
  //   errors: InvalidArgument (unknown or missing input, dtype or shape, with what was expected),
  //   Aborted (cancelled, device lost), or what a step failed with
  absl::StatusOr<std::vector<NamedTensor>> Run(std::span<const NamedTensor> inputs,
                                               size_t function = 0);
  void Cancel() { cancel_ = true; }  // from any thread: ends the Run in progress between steps

  SessionStatistics statistics() const;
  // Why steps were not fused.
  std::span<const ir::FusionGap> gaps() const;
  // The plan of the newest binding; null before the first.
  Executable* executable() const { return current_; }

  // Runs step by step and shows each to `observer`; needs SessionOptions::stepwise.
  absl::StatusOr<std::vector<NamedTensor>> RunStepwise(
      std::span<const NamedTensor> inputs,
      const std::function<absl::Status(const StepView&)>& observer, size_t function = 0);

 private:
  struct Plan;
  struct States;
  // What a function looks like from outside.
  struct FunctionFace {
    std::vector<Port> inputs, outputs;
  };
  Session() = default;
  const FunctionFace& Face(size_t function) const {
    FORGE_CHECK(function < faces_.size());
    return faces_[function];
  }
  absl::StatusOr<std::vector<const ir::HostValue*>> Match(std::span<const NamedTensor> inputs,
                                                          size_t function) const;
  absl::StatusOr<ir::Bindings> BindingsFor(std::span<const ir::HostValue* const> arguments,
                                           size_t function) const;
  absl::Status AddStates();
  absl::Status Prepare(const ir::Bindings& bindings, size_t function);
  absl::StatusOr<std::unique_ptr<Plan>> MakePlan(const ir::Bindings& bindings, size_t function);
  std::vector<NamedTensor> Name(std::vector<ir::HostValue> results, size_t function) const;

  std::shared_ptr<const Model> model_;
  DeviceRef device_;
  SessionOptions options_;
  std::shared_ptr<ModelOnDevice> shared_;
  std::vector<FunctionFace> faces_;
  std::unique_ptr<States> states_;            // shared by all functions and bindings
  ir::Bindings fixed_;                        // from SessionOptions::dims
  std::vector<std::unique_ptr<Plan>> plans_;  // newest last, bounded
  Executable* current_ = nullptr;
  double lower_ms_ = 0, compile_ms_ = 0;
  std::atomic<bool> cancel_ = false;
};

}  // namespace forge
