// SPDX-License-Identifier: Apache-2.0
// Radix sort of items by their keys, from the lowest byte to the highest.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <utility>
#include <vector>

#include "cpu_runtime/kernels/axis/sort_keys.h"
#include "cpu_runtime/parallel.h"

namespace forge::cpu {

inline constexpr int kDigits = 256;
using Histogram = std::array<uint32_t, kDigits>;

template <class Item>
size_t DigitOf(const Item& item, int byte) {
  return static_cast<size_t>(item.key() >> (8 * byte)) % kDigits;
}

// Turns counts of threads into the places where each begins to write. Returns false if one digit
// has all items.
inline bool CountsToPlaces(std::span<Histogram> counts, size_t n) {
  uint32_t place = 0;
  for (size_t digit = 0; digit < kDigits; ++digit)
    for (Histogram& of_thread : counts) {
      if (of_thread[digit] == n) return false;
      place += std::exchange(of_thread[digit], place);
    }
  return true;
}

// Sorts `n` items by the lowest `bytes` bytes of their keys; n is below 2^32. Returns where they
// are: `items`, or `other`, which has room for as many.
template <class Item>
Item* RadixSort(Item* items, Item* other, size_t n, int bytes) {
  constexpr size_t kShort = 128;
  if (n < kShort) {
    std::sort(items, items + n);
    return items;
  }
  std::array<Histogram, 8> counts{};
  for (size_t i = 0; i < n; ++i)
    for (int byte = 0; byte < bytes; ++byte)
      ++counts[static_cast<size_t>(byte)][DigitOf(items[i], byte)];
  for (int byte = 0; byte < bytes; ++byte) {
    Histogram& places = counts[static_cast<size_t>(byte)];
    if (!CountsToPlaces({&places, 1}, n)) continue;
    for (size_t i = 0; i < n; ++i) other[places[DigitOf(items[i], byte)]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

// Moves items to `other`, ordered by one byte of their keys. Returns where the items of each digit
// begin, and the end; empty, and moves nothing, if one digit has all items.
template <class Item>
std::vector<size_t> SplitByDigit(const Item* items, Item* other, size_t n, int byte, int threads) {
  std::vector<Histogram> counts(static_cast<size_t>(threads));
  const auto begin_of = [&](int64_t part) { return n * static_cast<size_t>(part) / counts.size(); };
  const auto for_parts = [&](auto f) {
    ParallelParts({threads, 1, threads}, [&](int, int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        f(counts[static_cast<size_t>(part)], begin_of(part), begin_of(part + 1));
    });
  };
  for_parts([&](Histogram& count, size_t begin, size_t end) {
    count.fill(0);
    for (size_t i = begin; i < end; ++i) ++count[DigitOf(items[i], byte)];
  });
  size_t first = 0;  // of the items with the first one's digit
  for (const Histogram& count : counts) first += count[DigitOf(items[0], byte)];
  if (first == n) return {};
  CountsToPlaces(counts, n + 1);
  std::vector<size_t> begins(counts[0].begin(), counts[0].end());
  begins.push_back(n);
  for_parts([&](Histogram& place, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) other[place[DigitOf(items[i], byte)]++] = items[i];
  });
  return begins;
}

// RadixSort by several threads: they split the items by the highest byte that differs, and each
// sorts some of the parts, which fit its cache better.
template <class Item>
Item* ParallelRadixSort(Item* items, Item* other, size_t n, int bytes, int threads) {
  std::vector<size_t> begins;
  while (begins.empty() && bytes > 0) begins = SplitByDigit(items, other, n, --bytes, threads);
  if (begins.empty()) return items;
  const auto sort_part = [&](size_t digit, auto sort) {
    Item *from = other + begins[digit], *to = items + begins[digit];
    const size_t count = begins[digit + 1] - begins[digit];
    const Item* sorted = sort(from, to, count);
    if (sorted == from) std::copy_n(from, count, to);
  };
  const auto is_long = [&](size_t digit) {
    return begins[digit + 1] - begins[digit] > n / static_cast<size_t>(threads);
  };
  for (size_t digit = 0; digit < kDigits; ++digit)
    if (is_long(digit))
      sort_part(digit, [&](Item* from, Item* to, size_t count) {
        return ParallelRadixSort(from, to, count, bytes, threads);
      });
  std::atomic<size_t> next = 0;
  ParallelParts({threads, 1, threads}, [&](int, int64_t, int64_t) {
    for (size_t digit = next++; digit < kDigits; digit = next++)
      if (!is_long(digit))
        sort_part(digit, [&](Item* from, Item* to, size_t count) {
          return RadixSort(from, to, count, bytes);
        });
  });
  return items;
}

}  // namespace forge::cpu
