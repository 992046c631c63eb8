// SPDX-License-Identifier: Apache-2.0
// Immutable bytes with shared ownership: a mapped file, a part of it, or memory of our own.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace forge {

// The first multiple of `to` that is no less than n.
constexpr uint64_t AlignUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

class Bytes {
 public:
  Bytes() = default;
  // Takes over `own`.
  explicit Bytes(std::vector<uint8_t> own);
  // Views memory that `owner` keeps alive.
  Bytes(std::span<const uint8_t> view, std::shared_ptr<const void> owner)
      : view_(view), owner_(std::move(owner)) {}
  std::span<const uint8_t> span() const { return view_; }
  const uint8_t* data() const { return view_.data(); }
  uint64_t size() const { return view_.size(); }
  // A part that shares ownership; FORGE_CHECKs that it lies inside.
  Bytes Part(uint64_t offset, uint64_t size) const;

 private:
  std::span<const uint8_t> view_;
  std::shared_ptr<const void> owner_;
};

}  // namespace forge
