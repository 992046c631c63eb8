// SPDX-License-Identifier: Apache-2.0
// The programs that a device compiled for the nodes of a model.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "runtime/device/device.h"
#include "runtime/plan/autotune.h"

namespace forge {

// Programs of one model on one device by op, attributes and types, shared by plans and Sessions. Of
// the programs that no plan uses, the newest kMostIdle are kept for later bindings. May be used
// from any thread: equal programs are compiled once, different ones concurrently.
class ProgramCache {
 public:
  static constexpr size_t kMostIdle = 1024;
  explicit ProgramCache(DeviceRef device) : device_(std::move(device)) {}
  // A node to compile.
  struct Request {
    const ir::Node* node;
    ir::Types in, out;
    std::string name;
  };
  // Numbers of programs compiled and found.
  struct Counts {
    int made = 0, reused = 0;
  };
  struct Options {
    std::string choice = {};                // as CompileRequest::choice, for every request
    bool once = false;                      // as CompileRequest::once
    bool fast = false;                      // as CompileRequest::fast
    AutotuneLimits autotune{.seconds = 0};  // limits of a search before compilation
    std::function<void(std::string_view what, size_t done, size_t total)> progress = {};
    const std::atomic<bool>* cancel = nullptr;
  };
  // Returns the program of each request, compiling those that are missing.
  //   errors: of the first program that fails, with the name of its node; Unimplemented from the
  //   device is passed on; those of Autotune; Aborted when cancelled
  absl::StatusOr<std::vector<ProgramRef>> Get(std::span<const Request> requests, Counts& counts,
                                              const Options& options);
  size_t size() const;  // number of programs, idle and in use

 private:
  struct Entry {
    ProgramRef program;
    uint64_t used = 0;  // number of the call of Get that used it last
  };
  struct Wanted;
  // Writes existing programs to `out` by index and claims for the caller the requests that no other
  // thread compiles. Returns false where other threads compile the rest.
  bool Claim(std::span<const std::string> keys, std::vector<ProgramRef>& out, Wanted& wanted);
  absl::Status Compile(const Wanted& wanted, std::span<const Request> requests,
                       const Options& options);
  absl::Status Search(std::span<const CompileRequest> requests, const Options& options);
  void Trim();  // under mutex_

  DeviceRef device_;
  mutable std::mutex mutex_;
  std::mutex searching_;  // serialises searches, because timing is disturbed by other work
  std::condition_variable compiled_;
  std::map<std::string, Entry> programs_;
  std::set<std::string> compiling_;
  uint64_t calls_ = 0;
};

}  // namespace forge
