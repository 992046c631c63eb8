// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <new>

#include "base/status.h"

namespace forge {

std::shared_ptr<uint8_t> AllocateBytes(uint64_t size) {
  constexpr std::align_val_t kAlignment{kLineBytes};
  auto* memory = static_cast<uint8_t*>(::operator new(size, kAlignment, std::nothrow));
  if (memory == nullptr) return nullptr;
  return {memory, [](uint8_t* p) { ::operator delete(p, kAlignment); }};
}

Bytes::Bytes(std::vector<uint8_t> own) {
  auto kept = std::make_shared<const std::vector<uint8_t>>(std::move(own));
  view_ = *kept;
  owner_ = std::move(kept);
}

Bytes Bytes::Part(uint64_t offset, uint64_t size) const {
  FORGE_CHECK(offset <= view_.size() && size <= view_.size() - offset);
  return Bytes(view_.subspan(offset, size), owner_);
}

}  // namespace forge
