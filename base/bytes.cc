// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include "base/status.h"

namespace forge {

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
