// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/layout.h"

#include <algorithm>
#include <numeric>

namespace forge::cpu {

int64_t Product(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t View::elements() const { return Product(shape); }

int64_t View::limit() const {
  int64_t last = 0;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] == 0) return 0;
    last += (shape[a] - 1) * strides[a];
  }
  return last + 1;
}

View DenseView(DType dtype, std::vector<int64_t> shape) {
  View v{dtype, std::move(shape), {}};
  v.strides.resize(v.shape.size());
  int64_t step = 1;
  for (size_t a = v.shape.size(); a-- > 0;) {
    v.strides[a] = step;
    step *= v.shape[a];
  }
  return v;
}

bool IsDense(const View& v) { return v.strides == DenseView(v.dtype, v.shape).strides; }

absl::StatusOr<View> ViewOf(const ir::Type& t) {
  if (!t.is_tensor()) return Unimplemented("{} is not a tensor", t.ToText());
  if (!t.is_constant()) return Unimplemented("{} has unbound dimensions", t.ToText());
  // Products of extents fit, since the bytes of the dense form do.
  FORGE_RETURN_IF_ERROR(t.With(ir::EncodingRef()).bytes().status());
  View v = DenseView(t.dtype(), ir::Constants(t.shape()));
  if (!t.encoding()) return v;
  const auto* permuted = dynamic_cast<const ir::PermutedEncoding*>(t.encoding().get());
  if (permuted == nullptr)
    return Unimplemented("the elements of {} have no strides", t.encoding()->name());
  FORGE_ASSIGN_OR_RETURN(v.strides, permuted->Strides(v.shape));
  return v;
}

std::vector<size_t> MemoryOrder(const View& v) {
  std::vector<size_t> order(v.shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return v.strides[a] > v.strides[b]; });
  return order;
}

bool IsPacked(const View& v) {
  int64_t step = 1;
  const std::vector<size_t> order = MemoryOrder(v);
  for (size_t i = order.size(); i-- > 0;) {
    const size_t a = order[i];
    if (v.shape[a] == 1) continue;
    if (v.strides[a] != step) return false;
    step *= v.shape[a];
  }
  return true;
}

int64_t ElementsBefore(const View& v, std::span<const int64_t> result, int64_t matrix) {
  const size_t lacks = result.size() - v.shape.size();
  int64_t at = 0;
  for (size_t a = result.size() - 2; a-- > 0; matrix /= result[a])
    if (a >= lacks && v.shape[a - lacks] != 1) at += matrix % result[a] * v.strides[a - lacks];
  return at;
}

const ir::EncodingRef& ChannelsLast(size_t rank) {
  static const ir::EncodingRef kEncodings[] = {*ir::PermutedEncoding::Make({0, 2, 1}),
                                               *ir::PermutedEncoding::Make({0, 2, 3, 1}),
                                               *ir::PermutedEncoding::Make({0, 2, 3, 4, 1})};
  FORGE_CHECK(HasChannels(rank));
  return kEncodings[rank - 3];
}

}  // namespace forge::cpu
