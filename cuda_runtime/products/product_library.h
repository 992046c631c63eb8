// SPDX-License-Identifier: Apache-2.0
// cuBLASLt in the context of a device.
#pragma once
#include "cuda_runtime/api/context.h"
#include "cuda_runtime/api/cublaslt.h"

namespace forge::cuda {

class ProductLibrary {
 public:
  // errors: those of the library
  static absl::StatusOr<std::shared_ptr<const ProductLibrary>> Create(ContextRef context,
                                                                      CublasLtRef api);
  ~ProductLibrary();
  ProductLibrary(const ProductLibrary&) = delete;

  const CublasLt& api() const { return *api_; }
  LtHandle handle() const { return handle_; }

 private:
  ProductLibrary(ContextRef context, CublasLtRef api)
      : context_(std::move(context)), api_(std::move(api)) {}

  const ContextRef context_;
  const CublasLtRef api_;
  LtHandle handle_ = nullptr;
};
using ProductLibraryRef = std::shared_ptr<const ProductLibrary>;

}  // namespace forge::cuda
