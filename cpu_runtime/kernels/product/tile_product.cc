// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/product/tile_product.h"

namespace forge::cpu {
namespace {

dnnl::memory::desc DescOf(const TileProduct::Matrix& m) {
  return {{m.rows, m.columns}, dnnl::memory::data_type::f32, {m.row, m.column}};
}

}  // namespace

TileProduct::TileProduct(const Matrix& a, const Matrix& b, const Matrix& y,
                         const dnnl::post_ops& after, size_t& scratchpad) {
  if (a.rows == 0 || a.columns == 0 || b.columns == 0) return;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(after);
  const dnnl::matmul::primitive_desc pd(Engine(), DescOf(a), DescOf(b), DescOf(y), attributes);
  scratchpad = std::max(scratchpad, pd.scratchpad_desc().get_size());
  call_ = std::make_unique<PrimitiveCall>(
      dnnl::matmul(pd),
      std::vector<PrimitiveCall::Argument>{{DNNL_ARG_SRC, DescOf(a)},
                                           {DNNL_ARG_WEIGHTS, DescOf(b)},
                                           {DNNL_ARG_DST, DescOf(y)},
                                           {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
}

absl::Status TileProduct::Run(float* a, float* b, float* y, void* scratchpad) const {
  if (!call_) return absl::OkStatus();
  void* arguments[] = {a, b, y, scratchpad};
  return call_->Run(arguments);
}

}  // namespace forge::cpu
