// SPDX-License-Identifier: Apache-2.0
// Drivers of the host's own cores compile a kernel when it is first dispatched, one after the
// other, and keep it in a cache of theirs. Logical devices that dispatch nothing, one on each
// thread, have kernels compiled before they are needed.
#pragma once
#include "vk_runtime/pipelines/pipeline.h"

namespace forge::vk {

// Has the driver compile these kernels on up to `threads` threads. What fails is compiled when it
// is needed, and fails there if it must: tells only how many did.
size_t Rehearse(const ContextRef& context, std::span<const KernelCode> kernels, int threads);

}  // namespace forge::vk
