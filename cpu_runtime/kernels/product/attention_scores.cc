// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/product/attention_scores.h"

#include <algorithm>

namespace forge::cpu {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

}  // namespace

Matrices MatricesOf(const View& v, uint32_t operand) {
  const size_t n = v.shape.size();
  const auto stride = [&](size_t from_end) {
    return n < from_end || v.shape[n - from_end] == 1 ? 0 : v.strides[n - from_end];
  };
  return {operand, v, stride(2), stride(1)};
}

Matrices FactorOf(const View& v, uint32_t operand) {
  Matrices m = MatricesOf(v, operand);
  const size_t n = v.shape.size();
  if (v.shape[n - 1] == 1) m.column = 1;
  if (v.shape[n - 2] == 1) m.row = std::max<int64_t>(v.shape[n - 1] * m.column, 1);
  return m;
}

const uint8_t* AttentionShape::MaskAt(const AnchorCall::Arguments& a, int64_t matrix) const {
  if (!mask) return nullptr;
  return a.operands[mask->operand] +
         OffsetOf(*mask, matrix) * (bool_mask ? 1 : int64_t{sizeof(float)});
}

AttentionShape::Range AttentionShape::KeysOf(int64_t row, int64_t end) const {
  return {first ? std::max<int64_t>(row + *first, 0) : 0,
          last ? std::min(end + *last, keys) : keys};
}

TileProduct AttentionShape::Scores(int64_t tile_rows, int64_t tile_keys, size_t& scratchpad) const {
  dnnl::post_ops scaled;
  if (softcap != 0) {
    scaled.append_eltwise(dnnl::algorithm::eltwise_linear, scale / softcap, 0);
    scaled.append_eltwise(dnnl::algorithm::eltwise_tanh, 0, 0);
    scaled.append_eltwise(dnnl::algorithm::eltwise_linear, softcap, 0);
  } else if (scale != 1) {
    scaled.append_eltwise(dnnl::algorithm::eltwise_linear, scale, 0);
  }
  return {{tile_rows, head, q.row, q.column},
          {head, tile_keys, k.column, k.row},
          {tile_rows, tile_keys, kKeys},
          scaled,
          scratchpad};
}

void AttentionShape::Mask(const uint8_t* mask_at, int64_t row, int64_t key, int64_t tile_keys,
                          float* x) const {
  if (mask) {
    const int64_t step = mask->column, from = row * mask->row + key * step;
    const auto apply = [&](auto stride) {
      const uint8_t* sees = mask_at + from;
      const float* more = reinterpret_cast<const float*>(mask_at) + from;
      if (bool_mask)
        for (int64_t i = 0; i < tile_keys; ++i) x[i] = sees[i * stride] != 0 ? x[i] : kNone;
      else
        for (int64_t i = 0; i < tile_keys; ++i) x[i] += more[i * stride];
    };
    if (step == 1)
      apply(std::integral_constant<int64_t, 1>());  // in vectors
    else
      apply(step);
  }
  if (first) std::fill_n(x, std::clamp<int64_t>(row + *first - key, 0, tile_keys), kNone);
  if (last) {
    const int64_t end = std::clamp<int64_t>(row + *last + 1 - key, 0, tile_keys);
    std::fill_n(x + end, tile_keys - end, kNone);
  }
}

AttentionShape AttentionShapeOf(const AnchorSite& site, const ir::Attention& op, size_t mask_at,
                                std::vector<int64_t> outer) {
  const ir::Node& node = *site.task.anchor();
  const auto operand = [&](size_t i) { return uint32_t{*site.task.OperandOf(node.in[i])}; };
  const auto view = [&](size_t i) -> const View& { return site.operands[operand(i)]; };
  const View &q = view(0), &k = view(1), &v = view(2);
  AttentionShape s{.outer = std::move(outer),
                   .rows = q.shape[q.shape.size() - 2],
                   .keys = k.shape[k.shape.size() - 2],
                   .head = q.shape.back(),
                   .width = v.shape.back(),
                   .q = FactorOf(q, operand(0)),
                   .k = FactorOf(k, operand(1)),
                   .v = FactorOf(v, operand(2)),
                   .softcap = static_cast<float>(op.softcap)};
  for (size_t a = 0; a + 2 < s.outer.size(); ++a) s.matrices *= s.outer[a];
  s.scale = static_cast<float>(op.ScaleFor(s.head));
  if (node.in.size() > mask_at && node.in[mask_at] != ir::kAbsent) {
    s.mask = MatricesOf(view(mask_at), operand(mask_at));
    s.bool_mask = view(mask_at).dtype == DType::kBool;
  }
  const ir::Attention::Band band = op.BandOf(s.rows, s.keys);
  if (band.first) s.first = band.first->constant();
  if (band.last) s.last = band.last->constant();
  return s;
}

}  // namespace forge::cpu
