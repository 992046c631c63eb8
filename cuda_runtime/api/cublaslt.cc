// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/api/cublaslt.h"

#include "cuda_runtime/api/libraries.h"

namespace forge::cuda {
namespace {

constexpr LtStatus kNoMemory = 3;  // CUBLAS_STATUS_ALLOC_FAILED
constexpr const char* kLibraryNames[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                         "libcublasLt.so"};

}  // namespace

absl::StatusOr<CublasLtRef> CublasLt::Load() {
  const std::shared_ptr<CublasLt> lt(new CublasLt);
  FORGE_ASSIGN_OR_RETURN(lt->library_, OpenCudaLibrary("cuBLASLt", kLibraryNames, "nvidia-cublas"));
#define X(member, symbol, parameters) \
  FORGE_RETURN_IF_ERROR(ResolveSymbol(*lt->library_, "cuBLASLt", symbol, lt->member));
  FORGE_CUBLASLT_API(X)
#undef X
  FORGE_RETURN_IF_ERROR(
      ResolveSymbol(*lt->library_, "cuBLASLt", "cublasLtGetStatusName", lt->status_name_));
  return lt;
}

absl::Status CublasLt::Check(LtStatus status, std::string_view call) const {
  if (status == 0) return absl::OkStatus();
  const char* name = status_name_(status);
  if (name == nullptr) name = "an unknown error";
  if (status == kNoMemory)
    return ResourceExhausted("the GPU has no memory left: {} returned {}", call, name);
  return Unavailable("cuBLASLt failed: {} returned {}", call, name);
}

}  // namespace forge::cuda
