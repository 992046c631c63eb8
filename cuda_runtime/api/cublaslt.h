// SPDX-License-Identifier: Apache-2.0
// cuBLASLt, NVIDIA's library of matrix products, opened by name at run time.
// Source: cuBLAS documentation, version 13, "Using the cuBLASLt API".
#pragma once
#include <memory>

#include "base/platform.h"
#include "base/status.h"
#include "cuda_runtime/api/driver_api.h"

namespace forge::cuda {

using LtStatus = int;
using LtHandle = struct LtHandleObject*;
using LtProduct = struct LtProductObject*;        // cublasLtMatmulDesc_t
using LtLayout = struct LtLayoutObject*;          // cublasLtMatrixLayout_t
using LtPreference = struct LtPreferenceObject*;  // cublasLtMatmulPreference_t

struct LtAlgorithm {
  uint64_t words[8];
};
struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspace_bytes;
  LtStatus state;
  float waves;
  int reserved[4];
};

// Values of cublasComputeType_t and cudaDataType.
inline constexpr int kLtComputeF32 = 68, kLtComputeF64 = 70, kLtComputeTf32 = 77;
inline constexpr int kLtF32 = 0, kLtF64 = 1, kLtF16 = 2, kLtBf16 = 14;
// Attributes of products, layouts and preferences.
inline constexpr int kLtTransposeA = 3, kLtTransposeB = 4, kLtEpilogue = 7, kLtBiasPointer = 8;
inline constexpr int kLtBatchCount = 5, kLtBatchStride = 6;
inline constexpr int kLtMostWorkspaceBytes = 1;
// Values of cublasOperation_t and, as a sum, cublasLtEpilogue_t.
inline constexpr int kLtTranspose = 1;
inline constexpr int kLtRelu = 2, kLtBias = 4;

// Member, symbol, parameters; all return LtStatus.
// clang-format off
#define FORGE_CUBLASLT_API(X)                                                                      \
  X(create, "cublasLtCreate", (LtHandle* handle))                                                  \
  X(destroy, "cublasLtDestroy", (LtHandle handle))                                                 \
  X(create_product, "cublasLtMatmulDescCreate", (LtProduct* product, int compute, int scale))      \
  X(destroy_product, "cublasLtMatmulDescDestroy", (LtProduct product))                             \
  X(set_product, "cublasLtMatmulDescSetAttribute",                                                 \
    (LtProduct product, int attribute, const void* value, size_t bytes))                           \
  X(create_layout, "cublasLtMatrixLayoutCreate",                                                   \
    (LtLayout* layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                \
  X(destroy_layout, "cublasLtMatrixLayoutDestroy", (LtLayout layout))                              \
  X(set_layout, "cublasLtMatrixLayoutSetAttribute",                                                \
    (LtLayout layout, int attribute, const void* value, size_t bytes))                             \
  X(create_preference, "cublasLtMatmulPreferenceCreate", (LtPreference* preference))               \
  X(destroy_preference, "cublasLtMatmulPreferenceDestroy", (LtPreference preference))              \
  X(set_preference, "cublasLtMatmulPreferenceSetAttribute",                                        \
    (LtPreference preference, int attribute, const void* value, size_t bytes))                     \
  X(choose, "cublasLtMatmulAlgoGetHeuristic",                                                      \
    (LtHandle handle, LtProduct product, LtLayout a, LtLayout b, LtLayout c, LtLayout d,           \
     LtPreference preference, int wanted, LtHeuristic* results, int* found))                       \
  X(multiply, "cublasLtMatmul",                                                                    \
    (LtHandle handle, LtProduct product, const void* alpha, CuAddress a, LtLayout a_layout,        \
     CuAddress b, LtLayout b_layout, const void* beta, CuAddress c, LtLayout c_layout, CuAddress d, \
     LtLayout d_layout, const LtAlgorithm* algorithm, CuAddress workspace,                         \
     size_t workspace_bytes, CuStream stream))
// clang-format on

// The functions of the library. May be called from any thread.
class CublasLt {
 public:
  // Opens the library where Nvrtc::Load looks for its own.
  //   errors: Unavailable
  static absl::StatusOr<std::shared_ptr<const CublasLt>> Load();
  CublasLt(const CublasLt&) = delete;

  // OK, or Unavailable with the names of the call and the error; ResourceExhausted without memory.
  absl::Status Check(LtStatus status, std::string_view call) const;

#define X(member, symbol, parameters) LtStatus(*member) parameters = nullptr;
  FORGE_CUBLASLT_API(X)
#undef X

 private:
  CublasLt() = default;
  const char* (*status_name_)(LtStatus status) = nullptr;
  std::shared_ptr<SharedLibrary> library_;
};
using CublasLtRef = std::shared_ptr<const CublasLt>;

}  // namespace forge::cuda
