// SPDX-License-Identifier: Apache-2.0
// Runs kernels given as PTX on the host and checks every access, barrier and race.
#pragma once
#include "tests/ptx/machine/block.h"

namespace forge::ptx {

// Parsed, decoded and, as far as it has variables, allocated in `memory`.
class LoadedModule {
 public:
  // errors: InvalidArgument (no PTX), Unimplemented with the line (an opcode or form that the
  // machine lacks)
  static absl::StatusOr<std::unique_ptr<LoadedModule>> Load(std::string text, Memory& memory);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;
  // The kernel of that name, decoded at the first call.  errors: NotFound, Unimplemented
  absl::StatusOr<const Program*> Kernel(std::string_view name);
  // The address and size of a .global or .const variable.  errors: NotFound
  absl::StatusOr<std::pair<uint64_t, uint64_t>> Global(std::string_view name) const;
  const Module& module() const { return module_; }

 private:
  LoadedModule(Module module, Memory& memory) : module_(std::move(module)), memory_(memory) {}
  absl::Status AllocateVariables();
  Module module_;
  Memory& memory_;
  std::mutex mutex_;
  std::map<std::string_view, std::pair<uint64_t, uint64_t>> globals_;
  std::map<std::string_view, std::unique_ptr<Program>> programs_;
};

// Runs the grid on `host_threads` threads. `statistics` may be null.
//   errors: Aborted with the finding: kernel, block, thread, line of PTX; InvalidArgument (the
//   launch)
absl::Status RunLaunch(const Launch& launch, int host_threads, Statistics* statistics);

}  // namespace forge::ptx
