// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/staging.h"

#include <algorithm>
#include <cstring>

namespace forge {
namespace {

// Two staging buffers that take turns; the second only where there is more than one piece.
class Staging {
 public:
  Staging(Device& device, Memory kind, uint64_t bytes)
      : device_(device),
        kind_(kind),
        bytes_(bytes),
        piece_(std::min({kStagingBytes, device.largest_buffer(), bytes})) {}

  uint64_t pieces() const { return bytes_ == 0 ? 0 : (bytes_ + piece_ - 1) / piece_; }
  uint64_t begin(uint64_t piece) const { return piece * piece_; }
  uint64_t size(uint64_t piece) const { return std::min(piece_, bytes_ - begin(piece)); }

  struct Half {
    BufferRef buffer;
    std::span<uint8_t> mapped;
    Point copied;  // the copy that uses it
  };
  // The half for a piece, which no copy uses any more.
  absl::StatusOr<Half*> Take(uint64_t piece) {
    Half& half = halves_[piece % 2];
    FORGE_RETURN_IF_ERROR(device_.Wait(half.copied, -1));
    if (half.buffer) return &half;
    FORGE_ASSIGN_OR_RETURN(half.buffer, device_.Allocate(kind_, piece_));
    FORGE_ASSIGN_OR_RETURN(half.mapped, device_.Map(*half.buffer));
    return &half;
  }

 private:
  Device& device_;
  Memory kind_;
  uint64_t bytes_, piece_;
  Half halves_[2];
};

}  // namespace

absl::Status WriteBuffer(Device& device, const BufferRef& to, uint64_t at,
                         std::span<const uint8_t> bytes) {
  if (device.host_memory() || to->memory() != Memory::kDevice) {
    FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> mapped, device.Map(*to));
    std::copy(bytes.begin(), bytes.end(), mapped.begin() + at);
    return absl::OkStatus();
  }
  Staging staging(device, Memory::kUpload, bytes.size());
  Point last;
  for (uint64_t i = 0; i < staging.pieces(); ++i) {
    FORGE_ASSIGN_OR_RETURN(Staging::Half * half, staging.Take(i));
    std::memcpy(half->mapped.data(), bytes.data() + staging.begin(i), staging.size(i));
    FORGE_ASSIGN_OR_RETURN(
        half->copied,
        device.Copy({half->buffer, 0, to, at + staging.begin(i), staging.size(i)}, {}));
    last = half->copied;
  }
  return device.Wait(last, -1);
}

absl::Status ReadBuffer(Device& device, const BufferRef& from, uint64_t at,
                        std::span<uint8_t> bytes) {
  if (from->memory() == Memory::kReadback) {
    FORGE_ASSIGN_OR_RETURN(const std::span<uint8_t> mapped, device.Map(*from));
    std::copy_n(mapped.begin() + at, bytes.size(), bytes.begin());
    return absl::OkStatus();
  }
  Staging staging(device, Memory::kReadback, bytes.size());
  const uint64_t pieces = staging.pieces();
  Staging::Half* halves[2] = {};
  // The device is a piece ahead.
  for (uint64_t i = 0; i < pieces + 1; ++i) {
    if (i < pieces) {
      FORGE_ASSIGN_OR_RETURN(Staging::Half * half, staging.Take(i));
      FORGE_ASSIGN_OR_RETURN(
          half->copied,
          device.Copy({from, at + staging.begin(i), half->buffer, 0, staging.size(i)}, {}));
      halves[i % 2] = half;
    }
    if (i == 0) continue;
    const Staging::Half& half = *halves[(i - 1) % 2];
    FORGE_RETURN_IF_ERROR(device.Wait(half.copied, -1));
    std::memcpy(bytes.data() + staging.begin(i - 1), half.mapped.data(), staging.size(i - 1));
  }
  return absl::OkStatus();
}

}  // namespace forge
