// SPDX-License-Identifier: Apache-2.0
// CPU drivers such as lavapipe compile a kernel at its first dispatch, one after the other, and
// keep it in a cache. Pipeline warm-up fills that cache before the first run: it dispatches each
// new kernel with an empty grid, on one logical device per thread.
#pragma once
#include "vk_runtime/pipelines/pipeline.h"

namespace forge::vk {

// Makes the driver compile `kernels` on up to `threads` threads; returns how many failed. A kernel
// that failed is compiled again at its first use, which reports the error.
size_t WarmUpPipelines(const ContextRef& context, std::span<const KernelCode> kernels, int threads);

}  // namespace forge::vk
