// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/memory/buffer.h"

#include "base/bytes.h"

namespace forge::cuda {
namespace {

// Kernels may touch whole vectors of narrow elements, so a buffer ends on one.
constexpr uint64_t kVectorBytes = 16;

}  // namespace

CudaBuffer::CudaBuffer(ContextRef context, Memory kind, uint64_t bytes)
    : context_(std::move(context)), kind_(kind), size_(bytes) {
  static std::atomic<uint64_t> next{1};
  id_ = next.fetch_add(1, std::memory_order_relaxed);
}

absl::StatusOr<CudaBufferRef> CudaBuffer::Create(const ContextRef& context, Memory kind,
                                                 uint64_t bytes) {
  FORGE_RETURN_IF_ERROR(context->CanRun());
  CudaBufferRef b(new CudaBuffer(context, kind, bytes));
  const DriverApi& api = context->api();
  const Context::Current current(*context);
  const uint64_t most = context->facts().memory_bytes;
  const uint64_t whole = std::max(AlignUp(std::min(bytes, most), kVectorBytes), kAlignment);
  CuResult r = kCuOutOfMemory;
  void* host = nullptr;
  if (kind != Memory::kDevice) {
    if (bytes <= most) r = api.allocate_host(&host, whole, 0);
    if (r == kCuSuccess) {
      b->host_ = OwnedHostMemory(context, host);
      b->address_ = reinterpret_cast<uintptr_t>(host);
    }
  } else {
    if (bytes <= most) r = api.allocate(&b->address_, whole);
    if (r == kCuSuccess) b->device_ = OwnedMemory(context, b->address_);
  }
  if (r == kCuSuccess) return b;
  if (r != kCuOutOfMemory)
    return context->Check(r, kind == Memory::kDevice ? "cuMemAlloc" : "cuMemHostAlloc");
  if (kind != Memory::kDevice)
    return ResourceExhausted("the host has no pinned memory for {} bytes", bytes);
  size_t available = 0, total = 0;
  api.memory_info(&available, &total);
  return ResourceExhausted("no GPU memory for {} bytes; {} bytes of {} are available", bytes,
                           available, total);
}

}  // namespace forge::cuda
