// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/window.h"

#include <algorithm>

namespace forge::ir {
namespace {

constexpr int64_t kLimit = int64_t{1} << 31;

absl::Status CheckList(const char* name, std::span<const int64_t> list, size_t size,
                       int64_t least) {
  if (list.size() != size)
    return InvalidArgument("{} has {} numbers, not {}", name, list.size(), size);
  for (int64_t v : list)
    if (v < least || v > kLimit) return InvalidArgument("{} of {}", name, v);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckWindow(const Window& w) {
  FORGE_RETURN_IF_ERROR(CheckList("strides", w.strides, 2, 1));
  FORGE_RETURN_IF_ERROR(CheckList("dilations", w.dilations, 2, 1));
  return CheckList("padding", w.padding, 4, -kLimit);
}

absl::StatusOr<Dim> WindowCount(const Window& w, int axis, const Dim& extent, const Dim& kernel,
                                bool ceil) {
  const size_t a = static_cast<size_t>(axis);
  const Dim reach = (kernel - 1) * w.dilations[a] + 1;
  const Dim room = extent + w.padding[a] + w.padding[a + 2] - reach;
  if (kernel.max() < 1) return InvalidArgument("a kernel of {}", kernel.ToText());
  if (room.max() < 0)
    return InvalidArgument("a kernel that reaches {} does not fit into {} with padding {} and {}",
                           reach.ToText(), extent.ToText(), w.padding[a], w.padding[a + 2]);
  if (!ceil) return FloorDiv(room, w.strides[a]) + 1;
  const Dim begins = CeilDiv(extent + w.padding[a], w.strides[a]);
  return Min(CeilDiv(room, w.strides[a]) + 1, begins);
}

Span InsideOf(const Window& w, int axis, int64_t k, int64_t extent, int64_t count) {
  const size_t a = static_cast<size_t>(axis);
  const int64_t stride = w.strides[a], first = PlaceOf(w, axis, 0, k);
  const int64_t begin = first >= 0 ? 0 : (-first + stride - 1) / stride;
  const int64_t end = first >= extent ? 0 : (extent - first + stride - 1) / stride;
  return {std::min(begin, count), std::clamp(end, std::min(begin, count), count)};
}

}  // namespace forge::ir
