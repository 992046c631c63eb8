// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/window.h"

#include <algorithm>

namespace forge::ir {
namespace {

constexpr int64_t kLimit = int64_t{1} << 31;

absl::Status CheckList(const char* name, std::span<const int64_t> list, size_t size,
                       int64_t least) {
  if (!list.empty() && list.size() != size)
    return InvalidArgument("{} has {} numbers, not {}", name, list.size(), size);
  for (int64_t v : list)
    if (v < least || v > kLimit) return InvalidArgument("{} of {}", name, v);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Window> WindowOf(const WindowLists& lists, size_t axes) {
  if (axes < 1 || axes > kMostSpatialAxes)
    return InvalidArgument("{} spatial axes, not 1 to {}", axes, kMostSpatialAxes);
  FORGE_RETURN_IF_ERROR(CheckList("strides", lists.strides, axes, 1));
  FORGE_RETURN_IF_ERROR(CheckList("dilations", lists.dilations, axes, 1));
  FORGE_RETURN_IF_ERROR(CheckList("padding", lists.padding, 2 * axes, -kLimit));
  Window w(axes);
  for (size_t a = 0; a < axes; ++a) {
    if (!lists.strides.empty()) w[a].stride = lists.strides[a];
    if (!lists.dilations.empty()) w[a].dilation = lists.dilations[a];
    if (lists.padding.empty()) continue;
    w[a].before = lists.padding[a];
    w[a].after = lists.padding[axes + a];
  }
  return w;
}

std::vector<int64_t> ForEachAxis(std::vector<int64_t> list, size_t axes, int64_t fallback) {
  if (list.empty()) list.assign(axes, fallback);
  return list;
}

absl::StatusOr<Dim> WindowCount(const WindowAxis& w, const Dim& extent, const Dim& kernel,
                                bool ceil) {
  const Dim reach = (kernel - 1) * w.dilation + 1;
  const Dim room = extent + w.before + w.after - reach;
  if (kernel.max() < 1) return InvalidArgument("a kernel of {}", kernel.ToText());
  if (room.max() < 0)
    return InvalidArgument("a kernel that reaches {} does not fit into {} with padding {} and {}",
                           reach.ToText(), extent.ToText(), w.before, w.after);
  if (!ceil) return FloorDiv(room, w.stride) + 1;
  const Dim begins = CeilDiv(extent + w.before, w.stride);
  return Min(CeilDiv(room, w.stride) + 1, begins);
}

Span InsideOf(const WindowAxis& w, int64_t k, int64_t extent, int64_t count) {
  const int64_t first = w.PlaceOf(0, k);
  const int64_t begin = first >= 0 ? 0 : (-first + w.stride - 1) / w.stride;
  const int64_t end = first >= extent ? 0 : (extent - first + w.stride - 1) / w.stride;
  return {std::min(begin, count), std::clamp(end, std::min(begin, count), count)};
}

}  // namespace forge::ir
