// SPDX-License-Identifier: Apache-2.0
// Immutable bytes with shared ownership: a mapped file, a part of one, or an owned vector.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace forge {

// The smallest multiple of `to` that is at least n.
constexpr uint64_t AlignUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

inline std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Cache lines are at most so long; vector loads of any width are aligned to it.
inline constexpr uint64_t kLineBytes = 64;

// Returns memory that begins at a cache line and is not initialised; null where there is none.
std::shared_ptr<uint8_t> AllocateBytes(uint64_t size);

class Bytes {
 public:
  Bytes() = default;
  // Takes ownership of `own`.
  explicit Bytes(std::vector<uint8_t> own);
  // A view of memory that `owner` keeps alive.
  Bytes(std::span<const uint8_t> view, std::shared_ptr<const void> owner)
      : view_(view), owner_(std::move(owner)) {}
  std::span<const uint8_t> span() const { return view_; }
  const uint8_t* data() const { return view_.data(); }
  uint64_t size() const { return view_.size(); }
  // Returns a part that shares ownership. Out of range fails a FORGE_CHECK.
  Bytes Part(uint64_t offset, uint64_t size) const;

 private:
  std::span<const uint8_t> view_;
  std::shared_ptr<const void> owner_;
};

}  // namespace forge
