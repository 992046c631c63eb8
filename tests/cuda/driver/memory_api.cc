// SPDX-License-Identifier: Apache-2.0
// cuMem*.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/cuda/driver/entry.h"

namespace {

using forge::emulated::Device;
using forge::emulated::GraphNode;
using forge::emulated::Pool;
using forge::emulated::Schedule;
using forge::emulated::ValidStream;

CUresult AllocateInto(CUdeviceptr* address, size_t bytes) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const absl::StatusOr<uint64_t> base = Device::Get().memory().Allocate(bytes);
  if (!base.ok()) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = *base;
  return CUDA_SUCCESS;
}

// Where a range of addresses lies: device memory, pinned, or pageable host memory.
struct Place {
  uint8_t* host = nullptr;
  std::shared_ptr<uint8_t> keep;
  bool device = false, pinned = false;
};

bool Locate(CUdeviceptr address, size_t bytes, Place& place) {
  forge::ptx::Allocation a = Device::Get().memory().Find(address, bytes);
  if (a.host != nullptr) {
    place.pinned = Device::Get().IsPinned(reinterpret_cast<void*>(address), bytes);
    place.device = !place.pinned;
    place.host = a.host.get() + (address - a.base);
    place.keep = std::move(a.host);
    return true;
  }
  // An address of the device's range that no allocation holds.
  if (address >> 48 == 0 && address >> 40 == 3) return false;
  place.host = reinterpret_cast<uint8_t*>(address);
  return place.host != nullptr;
}

CUresult CopyLater(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (!ValidStream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == 0) return CUDA_SUCCESS;
  Place target, source;
  if (!Locate(to, bytes, target) || !Locate(from, bytes, source)) return CUDA_ERROR_INVALID_VALUE;
  GraphNode node;
  node.type = GraphNode::Type::kCopy;
  const bool pageable_source = !source.device && !source.pinned,
             pageable_target = !target.device && !target.pinned;
  if (pageable_source && !Schedule::Get().Capturing(stream)) {
    // What is not pinned is staged before the call returns.
    auto staged = std::make_shared<std::vector<uint8_t>>(source.host, source.host + bytes);
    node.run = [=] {
      std::memcpy(target.host, staged->data(), bytes);
      return CUDA_SUCCESS;
    };
  } else {
    node.run = [=] {
      std::memmove(target.host, source.host, bytes);
      return CUDA_SUCCESS;
    };
  }
  const CUresult added = Schedule::Get().Add(stream, std::move(node));
  if (added != CUDA_SUCCESS || !pageable_target || Schedule::Get().Capturing(stream)) return added;
  return Schedule::Get().Synchronise(stream);
}

CUresult CopyNow(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  const CUresult result = CopyLater(to, from, bytes, nullptr);
  return result != CUDA_SUCCESS ? result : Schedule::Get().Synchronise(nullptr);
}

template <class T>
CUresult SetLater(CUdeviceptr to, T value, size_t n, CUstream stream) {
  if (!ValidStream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (n == 0) return CUDA_SUCCESS;
  Place target;
  if (to % sizeof(T) != 0 || !Locate(to, n * sizeof(T), target) ||
      (!target.device && !target.pinned))
    return CUDA_ERROR_INVALID_VALUE;
  GraphNode node;
  node.type = GraphNode::Type::kSet;
  node.run = [=] {
    std::fill_n(reinterpret_cast<T*>(target.host), n, value);
    return CUDA_SUCCESS;
  };
  return Schedule::Get().Add(stream, std::move(node));
}

template <class T>
CUresult SetNow(CUdeviceptr to, T value, size_t n) {
  const CUresult result = SetLater(to, value, n, nullptr);
  return result != CUDA_SUCCESS ? result : Schedule::Get().Synchronise(nullptr);
}

CUresult AllocateHost(void** memory, size_t bytes) {
  if (memory == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Device& device = Device::Get();
  void* const p = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (p == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(p, 0xff, bytes);
  if (!device.memory().Map(p, bytes).ok()) {
    std::free(p);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  std::lock_guard lock(device.pinned_mutex);
  device.pinned[static_cast<uint8_t*>(p)] = {bytes, true};
  *memory = p;
  return CUDA_SUCCESS;
}

CUresult ForgetHost(void* memory, bool own) {
  Device& device = Device::Get();
  {
    std::lock_guard lock(device.pinned_mutex);
    const auto found = device.pinned.find(static_cast<uint8_t*>(memory));
    if (found == device.pinned.end() || found->second.own != own)
      return own ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    device.pinned.erase(found);
  }
  device.memory().Free(reinterpret_cast<uint64_t>(memory)).IgnoreError();
  if (own) std::free(memory);
  return CUDA_SUCCESS;
}

}  // namespace

CU_API cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  CU_ENTER_CONTEXT(cuMemAlloc_v2);
  return AllocateInto(address, bytes);
}

CU_API cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                          unsigned) {
  CU_ENTER_CONTEXT(cuMemAllocPitch_v2);
  if (pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + 511) / 512 * 512;
  return AllocateInto(address, *pitch * height);
}

CU_API cuMemFree_v2(CUdeviceptr address) {
  CU_ENTER(cuMemFree_v2);
  if (address == 0) return CUDA_SUCCESS;
  // It waits for what may use the memory.
  const CUresult result = Schedule::Get().Drain();
  if (!Device::Get().memory().Free(address).ok()) return CUDA_ERROR_INVALID_VALUE;
  return result;
}

CU_API cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  CU_ENTER_CONTEXT(cuMemAllocAsync);
  if (!ValidStream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  return AllocateInto(address, bytes);
}

CU_API cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool, CUstream stream) {
  CU_ENTER_CONTEXT(cuMemAllocFromPoolAsync);
  if (!ValidStream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  return AllocateInto(address, bytes);
}

CU_API cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  CU_ENTER_CONTEXT(cuMemFreeAsync);
  if (!ValidStream(stream)) return CUDA_ERROR_INVALID_HANDLE;
  GraphNode node;
  node.run = [address] {
    return Device::Get().memory().Free(address).ok() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  return Schedule::Get().Add(stream, std::move(node));
}

CU_API cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  CU_ENTER(cuDeviceGetDefaultMemPool);
  if (pool == nullptr || !forge::emulated::ValidDevice(device)) return CUDA_ERROR_INVALID_VALUE;
  *pool = &Device::Get().pool;
  return CUDA_SUCCESS;
}

CU_API cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return cuDeviceGetDefaultMemPool(pool, device);
}

CU_API cuMemPoolCreate(CUmemoryPool* pool, const void*) {
  CU_ENTER_CONTEXT(cuMemPoolCreate);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pool = new Pool;
  return CUDA_SUCCESS;
}

CU_API cuMemPoolDestroy(CUmemoryPool pool) {
  CU_ENTER(cuMemPoolDestroy);
  if (pool != &Device::Get().pool) delete pool;
  return CUDA_SUCCESS;
}

CU_API cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value) {
  CU_ENTER(cuMemPoolSetAttribute);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == 4) std::memcpy(&pool->threshold, value, sizeof(pool->threshold));
  return CUDA_SUCCESS;
}

CU_API cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value) {
  CU_ENTER(cuMemPoolGetAttribute);
  if (pool == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t answer = attribute == 4 ? pool->threshold : Device::Get().memory().used();
  std::memcpy(value, &answer, attribute <= 3 ? sizeof(int) : sizeof(answer));
  return CUDA_SUCCESS;
}

CU_API cuMemPoolTrimTo(CUmemoryPool pool, size_t) {
  CU_ENTER(cuMemPoolTrimTo);
  return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CU_API cuMemGetInfo_v2(size_t* available, size_t* total) {
  CU_ENTER_CONTEXT(cuMemGetInfo_v2);
  if (available == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *total = Device::Get().memory().capacity();
  *available = *total - Device::Get().memory().used();
  return CUDA_SUCCESS;
}

CU_API cuMemAllocHost_v2(void** memory, size_t bytes) {
  CU_ENTER_CONTEXT(cuMemAllocHost_v2);
  return AllocateHost(memory, bytes);
}

CU_API cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  CU_ENTER_CONTEXT(cuMemHostAlloc);
  return (flags & ~7u) != 0 ? CUDA_ERROR_INVALID_VALUE : AllocateHost(memory, bytes);
}

CU_API cuMemFreeHost(void* memory) {
  CU_ENTER(cuMemFreeHost);
  const CUresult result = Schedule::Get().Drain();
  const CUresult forgotten = ForgetHost(memory, true);
  return forgotten != CUDA_SUCCESS ? forgotten : result;
}

CU_API cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  CU_ENTER_CONTEXT(cuMemHostRegister_v2);
  Device& device = Device::Get();
  if (memory == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!device.memory().Map(memory, bytes).ok()) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  std::lock_guard lock(device.pinned_mutex);
  device.pinned[static_cast<uint8_t*>(memory)] = {bytes, false};
  return CUDA_SUCCESS;
}

CU_API cuMemHostUnregister(void* memory) {
  CU_ENTER(cuMemHostUnregister);
  Schedule::Get().Drain();
  return ForgetHost(memory, false);
}

CU_API cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned) {
  CU_ENTER_CONTEXT(cuMemHostGetDevicePointer_v2);
  if (address == nullptr || !Device::Get().IsPinned(memory, 1)) return CUDA_ERROR_INVALID_VALUE;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}

CU_API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CU_ENTER_CONTEXT(cuMemcpyAsync);
  return CopyLater(to, from, bytes, stream);
}

CU_API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  CU_ENTER_CONTEXT(cuMemcpyHtoDAsync_v2);
  return CopyLater(to, reinterpret_cast<CUdeviceptr>(from), bytes, stream);
}

CU_API cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CU_ENTER_CONTEXT(cuMemcpyDtoHAsync_v2);
  return CopyLater(reinterpret_cast<CUdeviceptr>(to), from, bytes, stream);
}

CU_API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  CU_ENTER_CONTEXT(cuMemcpyDtoDAsync_v2);
  return CopyLater(to, from, bytes, stream);
}

CU_API cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CU_ENTER_CONTEXT(cuMemcpy);
  return CopyNow(to, from, bytes);
}

CU_API cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  CU_ENTER_CONTEXT(cuMemcpyHtoD_v2);
  return CopyNow(to, reinterpret_cast<CUdeviceptr>(from), bytes);
}

CU_API cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  CU_ENTER_CONTEXT(cuMemcpyDtoH_v2);
  return CopyNow(reinterpret_cast<CUdeviceptr>(to), from, bytes);
}

CU_API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  CU_ENTER_CONTEXT(cuMemcpyDtoD_v2);
  return CopyNow(to, from, bytes);
}

CU_API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
  CU_ENTER_CONTEXT(cuMemsetD8Async);
  return SetLater<uint8_t>(to, value, n, stream);
}
CU_API cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t n, CUstream stream) {
  CU_ENTER_CONTEXT(cuMemsetD16Async);
  return SetLater<uint16_t>(to, value, n, stream);
}
CU_API cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream stream) {
  CU_ENTER_CONTEXT(cuMemsetD32Async);
  return SetLater<uint32_t>(to, value, n, stream);
}
CU_API cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n) {
  CU_ENTER_CONTEXT(cuMemsetD8_v2);
  return SetNow<uint8_t>(to, value, n);
}
CU_API cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t n) {
  CU_ENTER_CONTEXT(cuMemsetD16_v2);
  return SetNow<uint16_t>(to, value, n);
}
CU_API cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n) {
  CU_ENTER_CONTEXT(cuMemsetD32_v2);
  return SetNow<uint32_t>(to, value, n);
}

CU_API cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  CU_ENTER_CONTEXT(cuMemGetAddressRange_v2);
  const forge::ptx::Allocation a = Device::Get().memory().Find(address, 0);
  if (a.host == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = a.base;
  if (bytes != nullptr) *bytes = a.bytes;
  return CUDA_SUCCESS;
}

// Not of CUDA: the host memory behind device memory, for libraries over this driver.
CU_API cuEmulatedHostAddress(CUdeviceptr address, size_t bytes, void** host) {
  CU_ENTER(cuEmulatedHostAddress);
  Place place;
  if (host == nullptr || !Locate(address, bytes, place)) return CUDA_ERROR_INVALID_VALUE;
  *host = place.host;
  return CUDA_SUCCESS;
}
