// SPDX-License-Identifier: Apache-2.0
// Elements to sort as unsigned keys with their index: ascending keys are the order of the sort, and
// the index decides between equal ones, so that any sort of items is stable.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace forge::cpu {

// The unsigned integer of the width of T.
template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// Zeros of either sign have one key, and NaN the last one, or the first if `descending`.
template <class T>
BitsOf<T> KeyOf(T x, bool descending) {
  using U = BitsOf<T>;
  constexpr int kTop = 8 * sizeof(U) - 1;
  U key;
  if constexpr (std::is_floating_point_v<T>) {
    const U bits = std::bit_cast<U>(x + T{0});  // -0 + 0 is 0
    const U flips = static_cast<U>(-(bits >> kTop)) | U{1} << kTop;
    key = std::isnan(x) ? static_cast<U>(~U{0}) : static_cast<U>(bits ^ flips);
  } else if constexpr (std::is_signed_v<T>) {
    key = static_cast<U>(static_cast<U>(x) ^ (U{1} << kTop));
  } else {
    key = x;
  }
  return descending ? static_cast<U>(~key) : key;
}

// Keys of up to 32 bits share a word with the index.
struct NarrowItem {
  uint64_t word;
  NarrowItem() = default;
  NarrowItem(uint32_t key, uint32_t index) : word(uint64_t{key} << 32 | index) {}
  uint64_t key() const { return word >> 32; }
  uint32_t index() const { return static_cast<uint32_t>(word); }
  friend bool operator<(NarrowItem a, NarrowItem b) { return a.word < b.word; }
};
struct WideItem {
  uint64_t bits, place;
  WideItem() = default;
  WideItem(uint64_t key, uint32_t index) : bits(key), place(index) {}
  uint64_t key() const { return bits; }
  uint32_t index() const { return static_cast<uint32_t>(place); }
  friend bool operator<(const WideItem& a, const WideItem& b) {
    return a.bits < b.bits || (a.bits == b.bits && a.place < b.place);
  }
};
template <class T>
using ItemOf = std::conditional_t<sizeof(T) == 8, WideItem, NarrowItem>;

}  // namespace forge::cpu
