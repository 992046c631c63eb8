// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/api/nvtx.h"

#include "cuda_runtime/api/libraries.h"

namespace forge::cuda {
namespace {

// The second was part of CUDA up to version 12.
constexpr const char* kNvtxNames[] = {"libnvtx3interop.so.1", "libnvToolsExt.so.1"};

}  // namespace

absl::StatusOr<NvtxRef> Nvtx::Load() {
  const std::shared_ptr<Nvtx> n(new Nvtx);
  FORGE_ASSIGN_OR_RETURN(n->library_, OpenCudaLibrary("NVTX", kNvtxNames, "nvidia-nvtx"));
  FORGE_RETURN_IF_ERROR(ResolveSymbol(*n->library_, "NVTX", "nvtxRangePushA", n->push_));
  FORGE_RETURN_IF_ERROR(ResolveSymbol(*n->library_, "NVTX", "nvtxRangePop", n->pop_));
  return n;
}

}  // namespace forge::cuda
