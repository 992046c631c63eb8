// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: names without versions mean the newest.
#include <dlfcn.h>

#include <string>

#include "tests/cuda/driver/entry.h"

namespace {

void* FindSymbol(const char* name) {
  // This library itself, wherever it was loaded from.
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&FindSymbol), &info) == 0) return nullptr;
  void* const self = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (self == nullptr) return nullptr;
  void* found = dlsym(self, (std::string(name) + "_v2").c_str());
  if (found == nullptr) found = dlsym(self, name);
  dlclose(self);
  return found;
}

}  // namespace

CU_API cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags,
                           int* status) {
  if (const CUresult failed = forge::emulated::Device::Get().Enter("cuGetProcAddress_v2");
      failed != CUDA_SUCCESS)
    return failed;
  (void)version, (void)flags;
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = FindSymbol(name);
  if (status != nullptr) *status = *function == nullptr ? 1 : 0;
  return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CU_API cuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

// NVRTC looks for private functions of the driver, and takes it as given that it may ask for them.
CU_API cuGetExportTable(const void** table, const void* id) {
  if (const CUresult failed = forge::emulated::Device::Get().Enter("cuGetExportTable");
      failed != CUDA_SUCCESS)
    return failed;
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}
