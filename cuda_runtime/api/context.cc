// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/api/context.h"

#include <algorithm>

namespace forge::cuda {
namespace {

// Results that leave a context unusable. Source: CUDA Driver API, CUresult:
// illegal address, launch timeout, hardware stack error, illegal instruction, misaligned address,
// invalid address space, invalid program counter, launch failed, uncorrectable ECC error, NVLink
// error, context destroyed.
constexpr CuResult kFatal[] = {700, 702, 714, 715, 716, 717, 718, 719, 214, 220, 709};

}  // namespace

absl::StatusOr<ContextRef> Context::Create(std::shared_ptr<const DriverApi> api,
                                           const DeviceFacts& facts) {
  ContextRef c(new Context(std::move(api), facts));
  if (c->api_ != nullptr)
    FORGE_RETURN_IF_ERROR(c->api_->Check(c->api_->retain_context(&c->context_, facts.device),
                                         "cuDevicePrimaryCtxRetain"));
  return c;
}

Context::~Context() {
  if (context_ != nullptr && forks_ == ForkCount()) api_->release_context(facts_.device);
}

absl::Status Context::Health() const {
  if (forks_ != ForkCount())
    return Aborted("the CUDA device was opened before this process was forked");
  if (!lost_.load(std::memory_order_acquire)) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  return Aborted("the CUDA device is lost: {}", why_);
}

absl::Status Context::CanRun() const {
  FORGE_RETURN_IF_ERROR(Health());
  if (api_ == nullptr)
    return Unimplemented("{} only compiles: FORGE_CUDA_COMPILE_FOR named it", facts_.name);
  return absl::OkStatus();
}

void Context::Lose(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (why_.empty()) why_ = why;
  lost_.store(true, std::memory_order_release);
}

absl::Status Context::Check(CuResult r, std::string_view call) {
  absl::Status s = api_->Check(r, call);
  if (std::find(std::begin(kFatal), std::end(kFatal), r) == std::end(kFatal)) return s;
  Lose(std::string(Message(s)));
  return Health();
}

}  // namespace forge::cuda
