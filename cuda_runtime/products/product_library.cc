// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/products/product_library.h"

namespace forge::cuda {

absl::StatusOr<ProductLibraryRef> ProductLibrary::Create(ContextRef context, CublasLtRef api) {
  const std::shared_ptr<ProductLibrary> library(
      new ProductLibrary(std::move(context), std::move(api)));
  const Context::Current current(*library->context_);
  FORGE_RETURN_IF_ERROR(
      library->api().Check(library->api().create(&library->handle_), "cublasLtCreate"));
  return library;
}

ProductLibrary::~ProductLibrary() {
  if (handle_ == nullptr || !context_->Health().ok()) return;
  const Context::Current current(*context_);
  api_->destroy(handle_);
}

}  // namespace forge::cuda
