// SPDX-License-Identifier: Apache-2.0
#include "cuda_runtime/products/product.h"

namespace forge::cuda {
namespace {

constexpr uint64_t kMostWorkspaceBytes = uint64_t{32} << 20;  // what the library asks for on Hopper

int TypeOf(DType t) {
  switch (t) {
    case DType::kF16:
      return kLtF16;
    case DType::kBF16:
      return kLtBf16;
    case DType::kF64:
      return kLtF64;
    default:
      return kLtF32;
  }
}

}  // namespace

absl::StatusOr<ProductRef> Product::Make(ProductLibraryRef library, const ProductForm& form) {
  const std::shared_ptr<Product> p(new Product(std::move(library), form));
  FORGE_RETURN_IF_ERROR(p->Describe());
  FORGE_RETURN_IF_ERROR(p->Choose());
  return p;
}

Product::~Product() {
  for (const LtLayout layout : {a_, b_, c_})
    if (layout != nullptr) api().destroy_layout(layout);
  if (product_ != nullptr) api().destroy_product(product_);
}

// Of a matrix that is stored by rows, which the library takes for its transpose by columns.
absl::StatusOr<LtLayout> Product::Layout(int64_t rows, int64_t columns, int64_t stride) const {
  LtLayout layout = nullptr;
  FORGE_RETURN_IF_ERROR(
      api().Check(api().create_layout(&layout, TypeOf(form_.dtype), static_cast<uint64_t>(columns),
                                      static_cast<uint64_t>(rows), columns),
                  "cublasLtMatrixLayoutCreate"));
  const auto batch = static_cast<int32_t>(form_.batch);
  LtStatus status = api().set_layout(layout, kLtBatchCount, &batch, sizeof(batch));
  if (status == 0) status = api().set_layout(layout, kLtBatchStride, &stride, sizeof(stride));
  if (status == 0) return layout;
  api().destroy_layout(layout);
  return api().Check(status, "cublasLtMatrixLayoutSetAttribute");
}

// C^T = B^T A^T: so the library's first matrix is B.
absl::Status Product::Describe() {
  const ProductForm& f = form_;
  const bool wide = f.dtype == DType::kF64;
  const int compute = wide                                 ? kLtComputeF64
                      : f.rounds && f.dtype == DType::kF32 ? kLtComputeTf32
                                                           : kLtComputeF32;
  FORGE_RETURN_IF_ERROR(
      api().Check(api().create_product(&product_, compute, wide ? kLtF64 : kLtF32),
                  "cublasLtMatmulDescCreate"));
  const auto set = [&](int attribute, int32_t value) {
    return api().Check(api().set_product(product_, attribute, &value, sizeof(value)),
                       "cublasLtMatmulDescSetAttribute");
  };
  if (f.transpose_b) FORGE_RETURN_IF_ERROR(set(kLtTransposeA, kLtTranspose));
  if (f.transpose_a) FORGE_RETURN_IF_ERROR(set(kLtTransposeB, kLtTranspose));
  const int epilogue = (f.bias ? kLtBias : 0) | (f.relu ? kLtRelu : 0);
  if (epilogue != 0) FORGE_RETURN_IF_ERROR(set(kLtEpilogue, epilogue));
  FORGE_ASSIGN_OR_RETURN(
      a_, f.transpose_a ? Layout(f.k, f.m, f.a_stride) : Layout(f.m, f.k, f.a_stride));
  FORGE_ASSIGN_OR_RETURN(
      b_, f.transpose_b ? Layout(f.n, f.k, f.b_stride) : Layout(f.k, f.n, f.b_stride));
  FORGE_ASSIGN_OR_RETURN(c_, Layout(f.m, f.n, f.m * f.n));
  return absl::OkStatus();
}

absl::Status Product::Choose() {
  LtPreference preference = nullptr;
  FORGE_RETURN_IF_ERROR(
      api().Check(api().create_preference(&preference), "cublasLtMatmulPreferenceCreate"));
  LtStatus status = api().set_preference(preference, kLtMostWorkspaceBytes, &kMostWorkspaceBytes,
                                         sizeof(kMostWorkspaceBytes));
  int found = 0;
  if (status == 0)
    status = api().choose(library_->handle(), product_, b_, a_, c_, c_, preference, 1, &algorithm_,
                          &found);
  api().destroy_preference(preference);
  if (status == 0 && found == 1 && algorithm_.state == 0) return absl::OkStatus();
  return Unimplemented("cuBLASLt has no algorithm for {} x {} x {}", form_.m, form_.n, form_.k);
}

absl::Status Product::Launch(CuStream stream, const Operands& o) const {
  const std::lock_guard lock(mutex_);
  if (form_.bias)
    FORGE_RETURN_IF_ERROR(
        api().Check(api().set_product(product_, kLtBiasPointer, &o.bias, sizeof(o.bias)),
                    "cublasLtMatmulDescSetAttribute"));
  // As wide as what products are scaled in.
  const double wide[] = {1, 0};
  const float narrow[] = {1, 0};
  const bool is_wide = form_.dtype == DType::kF64;
  const void *one = is_wide ? static_cast<const void*>(&wide[0]) : &narrow[0],
             *zero = is_wide ? static_cast<const void*>(&wide[1]) : &narrow[1];
  return api().Check(
      api().multiply(library_->handle(), product_, one, o.b, b_, o.a, a_, zero, o.c, c_, o.c, c_,
                     &algorithm_.algorithm, o.workspace, workspace_bytes(), stream),
      "cublasLtMatmul");
}

}  // namespace forge::cuda
