// SPDX-License-Identifier: Apache-2.0
// Reads little-endian numbers from untrusted bytes.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace forge {

// The largest expansion of deflate. Larger declared sizes mean a damaged or hostile file and are
// not allocated.
inline constexpr uint64_t kMaxExpansion = 1032;

static_assert(std::endian::native == std::endian::little, "files are read in place");

// Returns the number at `offset`; nullopt when it does not lie inside `bytes`.
template <class T>
  requires std::is_arithmetic_v<T>
std::optional<T> ReadAt(std::span<const uint8_t> bytes, uint64_t offset) {
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// Returns true when [offset, offset + size) lies inside `total` bytes, also where the sum
// overflows.
constexpr bool Inside(uint64_t offset, uint64_t size, uint64_t total) {
  return offset <= total && size <= total - offset;
}

}  // namespace forge
