// SPDX-License-Identifier: Apache-2.0
// Drivers of the host's own cores compile a kernel when it is first dispatched, one after the
// other, and keep it in a cache of theirs. Logical devices that dispatch nothing, one on each
// thread, have kernels compiled before they are needed.
#pragma once
#include "vk_runtime/hand_written.h"

namespace forge::vk {

class Rehearsal {
 public:
  explicit Rehearsal(ContextRef context) : context_(std::move(context)) {}
  // Has the driver compile a kernel; its scalars and grid do not matter. Any thread.
  //   errors: as Context::Create, PipelineStore::Get and Device::Wait
  absl::Status Run(HandWritten kernel);

 private:
  using DeviceRef = std::shared_ptr<class VulkanDevice>;
  absl::Status Dispatch(const HandWritten& kernel, DeviceRef& device) const;
  ContextRef context_;
  std::mutex mutex_;
  std::vector<DeviceRef> idle_;  // under mutex_
};

}  // namespace forge::vk
