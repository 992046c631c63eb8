// SPDX-License-Identifier: Apache-2.0
// What a device compiled of a model's nodes.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "runtime/device/device.h"
#include "runtime/plan/autotune.h"

namespace forge {

// Programs of one model on one device by op, attributes and types, shared by plans and Sessions.
// Those that no plan holds stay for bindings to come, the newest kMostIdle of them. Any thread: the
// same program is compiled once, different ones at once.
class ProgramCache {
 public:
  static constexpr size_t kMostIdle = 1024;
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
    const std::atomic<bool>* cancel = nullptr;
  };
  // errors: the first program that fails, with its node's name; Unimplemented from the device
  // passes through; those of Autotune; Aborted when cancelled
  absl::StatusOr<std::vector<ProgramRef>> Get(std::span<const Request> requests, Counts& counts,
                                              const Options& options);
  size_t size() const;  // programs, idle and in use

 private:
  struct Entry {
    ProgramRef program;
    uint64_t used = 0;  // when, in calls of Get
  };
  struct Wanted;
  // Hands out programs that are there, into `out` by place; requests that no thread compiles become
  // the caller's.  Returns false where the rest is being compiled by others.
  bool Claim(std::span<const std::string> keys, std::vector<ProgramRef>& out, Wanted& wanted);
  absl::Status Compile(const Wanted& wanted, std::span<const Request> requests,
                       const Options& options);
  absl::Status Search(std::span<const CompileRequest> requests, const Options& options);
  void Trim();  // under mutex_

  DeviceRef device_;
  mutable std::mutex mutex_;
  std::mutex searching_;  // a search times kernels, so that two would disturb each other
  std::condition_variable compiled_;
  std::map<std::string, Entry> programs_;
  std::set<std::string> compiling_;
  uint64_t calls_ = 0;
};

}  // namespace forge
