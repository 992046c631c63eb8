// SPDX-License-Identifier: Apache-2.0
// A matrix product of cuBLASLt, with the algorithm that the library chose for it.
#pragma once
#include "cuda_runtime/products/product_form.h"
#include "cuda_runtime/products/product_library.h"

namespace forge::cuda {

// May be launched from any thread.
class Product {
 public:
  // The addresses of a launch. They are multiples of 16, of 256 for `workspace`.
  struct Operands {
    CuAddress a = 0, b = 0, bias = 0, c = 0, workspace = 0;
  };

  // The context is current.
  //   errors: Unimplemented (the library has no algorithm), those of the library
  static absl::StatusOr<std::shared_ptr<const Product>> Make(ProductLibraryRef library,
                                                             const ProductForm& form);
  ~Product();
  Product(const Product&) = delete;

  const ProductForm& form() const { return form_; }
  uint64_t workspace_bytes() const { return algorithm_.workspace_bytes; }
  // Hands the product to a stream. The context is current.
  absl::Status Launch(CuStream stream, const Operands& operands) const;

 private:
  Product(ProductLibraryRef library, const ProductForm& form)
      : library_(std::move(library)), form_(form) {}
  const CublasLt& api() const { return library_->api(); }
  absl::Status Describe();
  absl::Status Choose();
  absl::StatusOr<LtLayout> Layout(int64_t rows, int64_t columns, int64_t stride) const;

  const ProductLibraryRef library_;
  const ProductForm form_;
  LtProduct product_ = nullptr;
  LtLayout a_ = nullptr, b_ = nullptr, c_ = nullptr;
  LtHeuristic algorithm_{};
  mutable std::mutex mutex_;  // of the bias that product_ names
};
using ProductRef = std::shared_ptr<const Product>;

}  // namespace forge::cuda
