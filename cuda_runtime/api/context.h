// SPDX-License-Identifier: Apache-2.0
// The primary context of a CUDA device, and whether the device still works.
#pragma once
#include <atomic>
#include <mutex>

#include "cuda_runtime/api/facts.h"

namespace forge::cuda {

class Context {
 public:
  // Retains the primary context, which other libraries of the process may use, too.
  //   api: null where the device only compiles
  static absl::StatusOr<std::shared_ptr<Context>> Create(std::shared_ptr<const DriverApi> api,
                                                         const DeviceFacts& facts);
  ~Context();
  Context(const Context&) = delete;

  const DeviceFacts& facts() const { return facts_; }
  const codegen::Caps& caps() const { return caps_; }
  const codegen::Rates& rates() const { return rates_; }  // that most kernels at least reach
  const DriverApi& api() const { return *api_; }

  // OK, or Aborted with the reason why the device is lost.
  absl::Status Health() const;
  // Health, or Unimplemented where the device only compiles.
  absl::Status CanRun() const;
  // Converts a result. Errors that leave the context unusable lose the device.
  //   errors: Aborted (device lost), and those of DriverApi::Check
  absl::Status Check(CuResult r, std::string_view call);
  void Lose(const std::string& why);

  // Makes the context current in this thread, and what was current before again at its end.
  class Current {
   public:
    explicit Current(const Context& c) : api_(c.api_.get()) {
      if (api_ != nullptr) api_->push_context(c.context_);
    }
    ~Current() {
      CuContext popped = nullptr;
      if (api_ != nullptr) api_->pop_context(&popped);
    }
    Current(const Current&) = delete;

   private:
    const DriverApi* api_;
  };

 private:
  Context(std::shared_ptr<const DriverApi> api, const DeviceFacts& facts)
      : api_(std::move(api)),
        facts_(facts),
        caps_(CapsOf(facts)),
        rates_(RatesOf(facts).OfKernels()),
        forks_(ForkCount()) {}

  std::shared_ptr<const DriverApi> api_;
  const DeviceFacts facts_;
  const codegen::Caps caps_;
  const codegen::Rates rates_;
  const uint32_t forks_;
  CuContext context_ = nullptr;
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::string why_;  // under mutex_
};
using ContextRef = std::shared_ptr<Context>;

// Owns an object of the driver.
template <class Handle, auto kDestroy>
class Owned {
 public:
  Owned() = default;
  Owned(ContextRef context, Handle handle) : context_(std::move(context)), handle_(handle) {}
  Owned(Owned&& o) noexcept { *this = std::move(o); }
  Owned& operator=(Owned&& o) noexcept {
    std::swap(context_, o.context_);
    std::swap(handle_, o.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ == Handle{} || !context_->Health().ok()) return;
    const Context::Current current(*context_);
    (context_->api().*kDestroy)(handle_);
  }
  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != Handle{}; }

 private:
  ContextRef context_;
  Handle handle_{};
};
using OwnedStream = Owned<CuStream, &DriverApi::destroy_stream>;
using OwnedEvent = Owned<CuEvent, &DriverApi::destroy_event>;
using OwnedModule = Owned<CuModule, &DriverApi::unload_module>;
using OwnedGraph = Owned<CuGraph, &DriverApi::destroy_graph>;
using OwnedGraphExec = Owned<CuGraphExec, &DriverApi::destroy_graph_exec>;
using OwnedMemory = Owned<CuAddress, &DriverApi::free>;
using OwnedHostMemory = Owned<void*, &DriverApi::free_host>;

}  // namespace forge::cuda
