// SPDX-License-Identifier: Apache-2.0
// A device buffer: memory of the GPU, or pinned memory of the host that the GPU copies from and to.
#pragma once
#include "cuda_runtime/api/context.h"
#include "runtime/device/device.h"

namespace forge::cuda {

class CudaBuffer final : public Buffer {
 public:
  // errors: ResourceExhausted with the bytes requested and available
  static absl::StatusOr<std::shared_ptr<CudaBuffer>> Create(const ContextRef& context, Memory kind,
                                                            uint64_t bytes);
  uint64_t size() const override { return size_; }
  Memory memory() const override { return kind_; }
  // As kernels and copies see it: host memory has one address for both.
  CuAddress address() const { return address_; }
  // Null for device memory.
  uint8_t* mapped() const { return static_cast<uint8_t*>(host_.get()); }
  uint64_t id() const { return id_; }  // unique within the process
  const Context* context() const { return context_.get(); }

 private:
  CudaBuffer(ContextRef context, Memory kind, uint64_t bytes);
  ContextRef context_;
  Memory kind_;
  uint64_t size_, id_;
  CuAddress address_ = 0;
  OwnedMemory device_;
  OwnedHostMemory host_;
};
using CudaBufferRef = std::shared_ptr<CudaBuffer>;

}  // namespace forge::cuda
