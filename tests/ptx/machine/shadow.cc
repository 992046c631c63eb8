// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/shadow.h"

#include <algorithm>

#include "tests/ptx/machine/block.h"

namespace forge::ptx {
namespace {

bool LaneOrdered(const Warp& w, int lane, int by, uint32_t time) {
  return by == lane || time < w.lane_floor || time < w.lane_sync[lane][by];
}

std::string ThreadName(const Warp& w, int warp, int lane) {
  return fmt::format("thread {} (warp {}, lane {})", warp * kLanes + lane, warp, lane) +
         (warp == w.index ? " of the same warp" : "");
}

}  // namespace

void SharedShadow::Reset(uint64_t bytes, uint32_t granule, const Ranges& ranges, bool races) {
  shift_ = __builtin_ctz(granule);
  races_ = races;
  const size_t count = (bytes + granule - 1) >> shift_;
  if (fresh_.size() != count) {
    fresh_.assign(count, {});
    for (const auto& [begin, end] : ranges)
      for (uint64_t i = begin >> shift_; i < count && (i << shift_) < end; ++i)
        fresh_[i].outside = false;
  }
  cells_ = fresh_;
}

bool SharedShadow::CheckWriter(Warp& w, int lane, const Cell& cell, uint64_t at, Access access) {
  if (access == Access::kAtomic && cell.atomic) return true;
  const bool ordered = cell.write_warp == w.index
                           ? LaneOrdered(w, lane, cell.write_lane, cell.write_time)
                           : cell.write_time < w.warp_sync[cell.write_warp];
  if (ordered) return true;
  w.Fail(lane,
         fmt::format("race: {} byte {} of shared memory that {} wrote, with no barrier between",
                     access == Access::kRead ? "reads" : "writes", at,
                     ThreadName(w, cell.write_warp, cell.write_lane)));
  return false;
}

bool SharedShadow::CheckReaders(Warp& w, int lane, const Cell& cell, uint64_t at) {
  for (const Reader& r : cell.readers) {
    if (r.lanes == 0) continue;
    int by = -1;
    if (r.warp != w.index) {
      if (r.time >= w.warp_sync[r.warp]) by = __builtin_ctz(r.lanes);
    } else if (r.time >= w.lane_floor) {
      ForLanes(r.lanes, [&](int i) {
        if (!LaneOrdered(w, lane, i, r.time)) by = i;
      });
    }
    if (by < 0) continue;
    w.Fail(lane, fmt::format(
                     "race: writes byte {} of shared memory that {} read, with no barrier between",
                     at, ThreadName(w, r.warp, by)));
    return false;
  }
  return true;
}

void SharedShadow::NoteReader(const Warp& w, int lane, Cell& cell) {
  const uint32_t bit = uint32_t{1} << lane;
  for (Reader& r : cell.readers) {
    if (r.lanes == 0 || r.warp != w.index) continue;
    if (r.time < w.lane_floor) r.lanes = 0;
    // A later time of the slot is right for earlier readers too: it asks for a later barrier, which
    // those need as well when they are not ordered before this lane.
    r.time = w.now, r.lanes |= bit;
    return;
  }
  Reader* slot = &cell.readers[0];
  if (slot->lanes != 0) slot = &cell.readers[1];
  if (slot->lanes != 0) {
    // Replaces a reader that is ordered before this one, or the second.
    const Reader& first = cell.readers[0];
    if (first.time < w.warp_sync[first.warp]) slot = &cell.readers[0];
  }
  *slot = {w.now, bit, static_cast<uint8_t>(w.index)};
}

bool SharedShadow::CheckCell(Warp& w, int lane, const Cell& cell, uint64_t at, Access access) {
  if (cell.outside) {
    w.Fail(lane, fmt::format("accesses byte {} of shared memory, which no variable holds", at));
    return false;
  }
  if (cell.pending) {
    w.Fail(lane, fmt::format(
                     "uses byte {} of shared memory before the cp.async to it was waited for", at));
    return false;
  }
  if (access != Access::kWrite && !cell.written) {
    w.Fail(lane, fmt::format("reads byte {} of shared memory, which nobody wrote", at));
    return false;
  }
  return true;
}

// The common case: written before the last barrier, and read by this warp alone since then.
inline bool SharedShadow::ReadsPlainly(const Warp& w, int lane, Cell& cell) const {
  if (!cell.written || cell.pending || cell.outside) return false;
  if (!races_) return true;
  const uint32_t ordered = cell.write_warp == w.index ? w.lane_floor : w.warp_sync[cell.write_warp];
  if (cell.write_time >= ordered) return false;
  Reader& first = cell.readers[0];
  if (first.lanes != 0 && (first.warp != w.index || first.time != w.now)) return false;
  first = {w.now, first.lanes | uint32_t{1} << lane, static_cast<uint8_t>(w.index)};
  return true;
}

bool SharedShadow::NoteReads(Warp& w, const uint64_t* at, uint32_t lanes, uint32_t bytes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = __builtin_ctz(lanes);
    const uint64_t last = (at[lane] + bytes - 1) >> shift_;
    uint64_t i = at[lane] >> shift_;
    while (i <= last && ReadsPlainly(w, lane, cells_[i])) ++i;
    if (i <= last && !Note(w, lane, at[lane], bytes, Access::kRead, nullptr)) return false;
  }
  return true;
}

bool SharedShadow::Note(Warp& w, int lane, uint64_t at, uint32_t bytes, Access access,
                        const uint8_t* value) {
  const uint64_t last = (at + bytes - 1) >> shift_;
  if (access != Access::kRead) NoteUnfenced(w, lane, at, bytes);
  for (uint64_t i = at >> shift_; i <= last; ++i) {
    Cell& cell = cells_[i];
    // Compilers merge loads, and may load what fills the vector and nobody uses. Its value is NaN.
    if (access == Access::kRead && i > at >> shift_ && !cell.written && !cell.outside &&
        !cell.pending)
      continue;
    const uint64_t start = std::max(i << shift_, at);
    if (cell.outside || cell.pending || (access != Access::kWrite && !cell.written)) {
      if (!CheckCell(w, lane, cell, start, access)) return false;
    }
    if (!races_) {
      cell.written = true;
      continue;
    }
    const uint64_t end = std::min((i + 1) << shift_, at + bytes);
    const bool same = value != nullptr && std::memcmp(w.block->shared.data() + start,
                                                      value + (start - at), end - start) == 0;
    if (cell.written && !same && !CheckWriter(w, lane, cell, start, access)) return false;
    if (access == Access::kRead) {
      NoteReader(w, lane, cell);
      continue;
    }
    if (!same && !CheckReaders(w, lane, cell, start)) return false;
    cell.written = true;
    cell.atomic = access == Access::kAtomic;
    cell.write_time = w.now;
    cell.write_warp = static_cast<uint8_t>(w.index);
    cell.write_lane = static_cast<uint8_t>(lane);
  }
  return true;
}

void SharedShadow::NoteUnfenced(Warp& w, int lane, uint64_t at, uint32_t bytes) {
  if (!w.program->reads_by_proxy) return;
  for (uint64_t i = at >> shift_; i <= (at + bytes - 1) >> shift_; ++i) cells_[i].unfenced = true;
  w.unfenced.push_back({lane, at, bytes});
}

void SharedShadow::FenceProxy(Warp& w, uint32_t lanes) {
  const auto fenced = [&](const Warp::Unfenced& u) { return (lanes >> u.lane & 1) != 0; };
  for (const Warp::Unfenced& u : w.unfenced)
    for (uint64_t i = u.at >> shift_; fenced(u) && i <= (u.at + u.bytes - 1) >> shift_; ++i)
      cells_[i].unfenced = false;
  std::erase_if(w.unfenced, fenced);
}

bool SharedShadow::NoteProxyRead(Warp& w, uint64_t at, uint32_t bytes) {
  for (uint64_t i = at >> shift_; i <= (at + bytes - 1) >> shift_; ++i) {
    if (!cells_[i].unfenced) continue;
    w.Fail(0, fmt::format("matrix units read byte {} of shared memory, which its writer has not "
                          "fenced for them",
                          i << shift_));
    return false;
  }
  return Note(w, 0, at, bytes, Access::kRead, nullptr);
}

bool SharedShadow::Async(Warp& w, int lane, uint64_t at, uint32_t bytes, bool landed) {
  const uint64_t last = (at + bytes - 1) >> shift_;
  if (landed) NoteUnfenced(w, lane, at, bytes);
  for (uint64_t i = at >> shift_; i <= last; ++i) {
    Cell& cell = cells_[i];
    if (landed) {
      cell.pending = false;
      cell.written = true;
      cell.atomic = false;
      cell.write_time = w.now;
      continue;
    }
    const uint64_t start = std::max(i << shift_, at);
    if (!CheckCell(w, lane, cell, start, Access::kWrite)) return false;
    if (races_ && cell.written && !CheckWriter(w, lane, cell, start, Access::kWrite)) return false;
    if (races_ && !CheckReaders(w, lane, cell, start)) return false;
    cell.pending = true;
    cell.write_time = w.now;
    cell.write_warp = static_cast<uint8_t>(w.index);
    cell.write_lane = static_cast<uint8_t>(lane);
  }
  return true;
}

}  // namespace forge::ptx
