// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace forge::ptx {
namespace {

constexpr uint64_t kAlign = 512;              // what cuMemAlloc promises is 256
constexpr uint64_t kGap = uint64_t{1} << 20;  // between allocations

}  // namespace

const Allocation* FindIn(const AllocationTable& table, uint64_t address, uint64_t bytes) {
  auto after = std::upper_bound(table.begin(), table.end(), address,
                                [](uint64_t x, const Allocation& a) { return x < a.base; });
  if (after == table.begin()) return nullptr;
  const Allocation& a = *--after;
  return a.Contains(address, bytes) ? &a : nullptr;
}

absl::Status Memory::Insert(Allocation a) {
  auto table = std::make_shared<AllocationTable>(*table_);
  const auto at = std::upper_bound(table->begin(), table->end(), a.base,
                                   [](uint64_t x, const Allocation& b) { return x < b.base; });
  if ((at != table->end() && a.base + a.bytes > at->base) ||
      (at != table->begin() && std::prev(at)->base + std::prev(at)->bytes > a.base))
    return InvalidArgument("memory at {:#x} is mapped already", a.base);
  table->insert(at, std::move(a));
  table_ = std::move(table);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Memory::Allocate(uint64_t bytes, bool constant) {
  std::lock_guard lock(mutex_);
  if (bytes > capacity_ - used_)
    return ResourceExhausted("{} bytes do not fit the {} that are left", bytes, capacity_ - used_);
  const uint64_t room = (std::max<uint64_t>(bytes, 1) + kAlign - 1) / kAlign * kAlign;
  auto* host = static_cast<uint8_t*>(std::aligned_alloc(kAlign, room));
  if (host == nullptr) return ResourceExhausted("the host has no {} bytes", bytes);
  std::memset(host, 0xff, room);
  const uint64_t base = next_;
  FORGE_RETURN_IF_ERROR(Insert({base, bytes, std::shared_ptr<uint8_t>(host, std::free), constant}));
  used_ += bytes;
  next_ += room + kGap;
  return base;
}

absl::Status Memory::Map(void* host, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto* const p = static_cast<uint8_t*>(host);
  return Insert(
      {reinterpret_cast<uint64_t>(host), bytes, std::shared_ptr<uint8_t>(p, [](uint8_t*) {})});
}

absl::Status Memory::Free(uint64_t base) {
  std::lock_guard lock(mutex_);
  auto table = std::make_shared<AllocationTable>(*table_);
  const auto found = std::find_if(table->begin(), table->end(),
                                  [&](const Allocation& a) { return a.base == base; });
  if (found == table->end()) return NotFound("no allocation begins at {:#x}", base);
  if (found->base != reinterpret_cast<uint64_t>(found->host.get())) used_ -= found->bytes;
  table->erase(found);
  table_ = std::move(table);
  return absl::OkStatus();
}

Allocation Memory::Find(uint64_t address, uint64_t bytes) const {
  const auto table = Table();
  const Allocation* const a = FindIn(*table, address, bytes);
  return a == nullptr ? Allocation{} : *a;
}

std::shared_ptr<const AllocationTable> Memory::Table() const {
  std::lock_guard lock(mutex_);
  return table_;
}

uint64_t Memory::used() const {
  std::lock_guard lock(mutex_);
  return used_;
}

std::string Memory::Describe(uint64_t address) const {
  const auto table = Table();
  const Allocation* nearest = nullptr;
  uint64_t distance = ~uint64_t{0};
  bool behind = false;
  for (const Allocation& a : *table) {
    if (a.Contains(address, 0) && address < a.base + a.bytes)
      return fmt::format("{} bytes into the allocation of {} bytes", address - a.base, a.bytes);
    const uint64_t end = a.base + a.bytes;
    const uint64_t d = address >= end ? address - end : a.base - address;
    if (d < distance) distance = d, nearest = &a, behind = address >= end;
  }
  if (nearest == nullptr) return "nothing is allocated";
  return fmt::format("{} bytes {} the allocation of {} bytes at {:#x}", distance,
                     behind ? "behind" : "before", nearest->bytes, nearest->base);
}

}  // namespace forge::ptx
