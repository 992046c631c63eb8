// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/access.h"

#include <algorithm>
#include <bit>

namespace forge::ptx {

void Addresses(const Warp& w, const Op& op, uint64_t (&out)[kLanes]) {
  if ((op.flags & kAddress32) != 0) {
    const uint32_t* const a = w.In<uint32_t>(op.a);
    for (int i = 0; i < kLanes; ++i) out[i] = a[i] + static_cast<uint32_t>(op.offset);
  } else {
    const uint64_t* const a = w.In<uint64_t>(op.a);
    for (int i = 0; i < kLanes; ++i) out[i] = a[i] + static_cast<uint64_t>(op.offset);
  }
}

bool CheckAligned(Warp& w, const uint64_t (&at)[kLanes], uint32_t lanes, uint32_t bytes) {
  uint64_t all = 0;
  for (int i = 0; i < kLanes; ++i) all |= (lanes >> i & 1) != 0 ? at[i] : 0;
  if ((all & (bytes - 1)) == 0) return true;
  ForLanes(lanes, [&](int i) {
    if ((at[i] & (bytes - 1)) != 0)
      w.Fail(i, fmt::format("the address {:#x} is no multiple of {}", at[i], bytes));
  });
  return false;
}

uint8_t* GlobalBytes(Warp& w, int lane, uint64_t address, uint32_t bytes, bool write) {
  Block& block = *w.block;
  if (block.recent == nullptr || !block.recent->Contains(address, bytes)) {
    const Allocation* const found = FindIn(*block.table, address, bytes);
    if (found == nullptr) {
      w.Fail(lane,
             fmt::format("{} {} bytes at {:#x}, out of bounds: {}", write ? "writes" : "reads",
                         bytes, address, block.launch.memory->Describe(address)));
      return nullptr;
    }
    block.recent = found;
  }
  if (write && block.recent->constant) {
    w.Fail(lane, fmt::format("writes {} bytes of constant memory at {:#x}", bytes, address));
    return nullptr;
  }
  return block.recent->host.get() + (address - block.recent->base);
}

uint8_t* SharedBytes(Warp& w, int lane, uint64_t& at, uint32_t bytes) {
  Block& block = *w.block;
  uint64_t offset = at;
  if (offset >= kDynamicShared)
    offset = offset - kDynamicShared + block.launch.program->shared_bytes;
  if (offset > block.shared.size() || bytes > block.shared.size() - offset) {
    w.Fail(lane, fmt::format(
                     "accesses {} bytes at {:#x} of shared memory, out of bounds: it has {}", bytes,
                     at, block.launch.program->shared_declared + block.launch.dynamic_shared));
    return nullptr;
  }
  at = offset;
  return block.shared.data() + offset;
}

bool GlobalDelta(Warp& w, const uint64_t (&at)[kLanes], uint32_t lanes, uint32_t bytes,
                 uint64_t& delta) {
  uint64_t least = ~uint64_t{0}, most = 0;
  for (int i = 0; i < kLanes; ++i) {
    least = (lanes >> i & 1) != 0 ? std::min(least, at[i]) : least;
    most = (lanes >> i & 1) != 0 ? std::max(most, at[i]) : most;
  }
  Block& block = *w.block;
  const uint64_t span = most - least + bytes;
  if (block.recent == nullptr || !block.recent->Contains(least, span)) {
    const Allocation* const found = FindIn(*block.table, least, span);
    if (found == nullptr) return false;
    block.recent = found;
  }
  delta = reinterpret_cast<uint64_t>(block.recent->host.get()) - block.recent->base;
  return true;
}

uint8_t* GenericBytes(Warp& w, int lane, uint64_t& at, uint32_t bytes, bool write, Space& space) {
  const uint64_t window = at & kWindowMask;
  space = Space::kGlobal;
  if (window == kSharedWindow) {
    space = Space::kShared;
    at -= window;
    return SharedBytes(w, lane, at, bytes);
  }
  if (window != kLocalWindow && window != kParamWindow)
    return GlobalBytes(w, lane, at, bytes, write);
  space = window == kLocalWindow ? Space::kLocal : Space::kParam;
  at -= window;
  const uint64_t room = space == Space::kLocal ? w.program->local_bytes : w.program->param_bytes;
  if (at > room || bytes > room - at || (write && space == Space::kParam)) {
    w.Fail(lane, fmt::format("accesses {} bytes at {:#x} of {} memory, out of bounds: it has {}",
                             bytes, at, space == Space::kLocal ? "local" : "parameter", room));
    return nullptr;
  }
  if (space == Space::kLocal) return w.local.data() + lane * w.program->local_bytes + at;
  return const_cast<uint8_t*>(w.block->launch.params.data()) + at;
}

void CountGlobal(Warp& w, const uint64_t (&at)[kLanes], uint32_t lanes, uint32_t bytes) {
  Statistics& s = w.block->statistics;
  ++s.global_requests;
  s.global_bytes += uint64_t{bytes} * std::popcount(lanes);
  uint64_t least = ~uint64_t{0}, most = 0;
  for (int i = 0; i < kLanes; ++i) {
    if ((lanes >> i & 1) == 0) continue;
    least = std::min(least, at[i]);
    most = std::max(most, at[i] + bytes - 1);
  }
  const uint64_t first = least / 32;
  if (most / 32 - first < 64) {
    uint64_t touched = 0;
    for (int i = 0; i < kLanes; ++i) {
      if ((lanes >> i & 1) == 0) continue;
      for (uint64_t k = at[i] / 32; k <= (at[i] + bytes - 1) / 32; ++k)
        touched |= uint64_t{1} << (k - first);
    }
    s.global_sectors += std::popcount(touched);
    return;
  }
  uint64_t sectors[2 * kLanes];
  int n = 0;
  ForLanes(lanes, [&](int i) {
    sectors[n++] = at[i] / 32;
    if ((at[i] + bytes - 1) / 32 != at[i] / 32) sectors[n++] = (at[i] + bytes - 1) / 32;
  });
  std::sort(sectors, sectors + n);
  s.global_sectors += std::unique(sectors, sectors + n) - sectors;
}

namespace {

// The words that lanes ask of each bank: the first in an array, the rare others in a list.
struct Banks {
  void Ask(uint64_t word) {
    const auto bank = static_cast<int>(word & 31);
    if ((used >> bank & 1) == 0) {
      used |= uint32_t{1} << bank;
      first[bank] = word;
    } else if (first[bank] != word && std::find(more, more + others, word) == more + others) {
      more[others++] = word;
      most = std::max(most, ++waits[bank]);
    }
  }
  uint64_t first[32] = {}, more[kLanes * 8] = {};
  uint32_t used = 0;
  int others = 0, waits[32] = {}, most = 0;
};

}  // namespace

// Lanes are served 128 bytes at a time: all of them for 4 bytes each, halves for 8, quarters for
// 16. A pass serves one word of each of 32 banks, to any number of lanes.
void CountShared(Warp& w, const uint64_t (&at)[kLanes], uint32_t lanes, uint32_t bytes) {
  Statistics& s = w.block->statistics;
  ++s.shared_requests;
  const int words = bytes <= 4 ? 1 : static_cast<int>(bytes / 4), together = kLanes / words;
  for (int start = 0; start < kLanes; start += together) {
    const uint32_t part = together == kLanes ? kAllLanes : ((uint32_t{1} << together) - 1) << start;
    Banks banks;
    ForLanes(lanes & part, [&](int i) {
      for (int k = 0; k < words; ++k) banks.Ask(at[i] / 4 + k);
    });
    s.shared_wavefronts += banks.used != 0 ? 1 + banks.most : 0;
    s.bank_conflicts += banks.most;
  }
}

Space TakeStateSpace(Decoder& d) {
  switch (d.TakeOneOf({"global", "const", "shared", "shared::cta", "local", "param", "param::entry",
                       "param::func"})) {
    case 0:
      return Space::kGlobal;
    case 1:
      return Space::kConst;
    case 2:
    case 3:
      return Space::kShared;
    case 4:
      return Space::kLocal;
    case 5:
    case 6:
    case 7:
      return Space::kParam;
    default:
      return Space::kGeneric;
  }
}

void TakeCacheHints(Decoder& d) {
  while (d.TakeOneOf({"weak",
                      "volatile",
                      "relaxed",
                      "acquire",
                      "release",
                      "acq_rel",
                      "sc",
                      "cta",
                      "gpu",
                      "sys",
                      "cluster",
                      "ca",
                      "cg",
                      "cs",
                      "cv",
                      "lu",
                      "wb",
                      "wt",
                      "nc",
                      "L1::evict_normal",
                      "L1::evict_unchanged",
                      "L1::evict_first",
                      "L1::evict_last",
                      "L1::no_allocate",
                      "L2::64B",
                      "L2::128B",
                      "L2::256B",
                      "L2::evict_first",
                      "L2::evict_last",
                      "L2::evict_normal",
                      "mmio",
                      "unified"}) >= 0) {
  }
}

}  // namespace forge::ptx
