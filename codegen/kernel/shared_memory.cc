// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernel/shared_memory.h"

#include "base/bytes.h"

namespace forge::codegen {

int64_t SharedBytes(std::span<const SharedArray> arrays) {
  uint64_t sum = 0;
  for (const SharedArray& a : arrays) {
    const int64_t element = std::max<int64_t>(BitWidth(a.elem.elem) / 8, 1) * a.elem.lanes;
    sum += AlignUp(static_cast<uint64_t>(element * a.extent), a.alignment());
  }
  return static_cast<int64_t>(sum);
}

int64_t SharedBytes(const Kernel& k) {
  std::vector<SharedArray> arrays;
  for (const View& v : k.views)
    if (v.space == Space::kShared) arrays.push_back({v.elem, v.extent, v.swizzled});
  return SharedBytes(arrays);
}

}  // namespace forge::codegen
