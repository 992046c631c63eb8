// SPDX-License-Identifier: Apache-2.0
// What is known of each cell of a block's shared memory: who wrote it, who read it, and when;
// races, reads of what nobody wrote, and uses of what cp.async has not delivered follow from it.
//
// Time is a counter of each warp, which goes up when the warp synchronises. An access at time t of
// a lane is ordered before what another thread does once that thread has synchronised with it later
// than t.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace forge::ptx {

struct Warp;

class SharedShadow {
 public:
  enum class Access { kRead, kWrite, kAtomic };
  // Of each variable: first byte, and the byte behind it. What lies between variables is a red
  // zone.
  using Ranges = std::vector<std::pair<uint64_t, uint64_t>>;
  void Reset(uint64_t bytes, uint32_t granule, const Ranges& ranges, bool races);
  // Checks and notes an access of `lane` to [at, at + bytes). `value`: the bytes written, or null;
  // equal values may be written by several threads. A finding fails the warp; returns false then.
  bool Note(Warp& w, int lane, uint64_t at, uint32_t bytes, Access access, const uint8_t* value);
  // The same for a load of each of the lanes, of `bytes` at its offset.
  bool NoteReads(Warp& w, const uint64_t* at, uint32_t lanes, uint32_t bytes);
  // Matrix units read the bytes, as the warp: writers must have fenced them.
  bool NoteProxyRead(Warp& w, uint64_t at, uint32_t bytes);
  // The lanes make what they wrote visible to matrix units.
  void FenceProxy(Warp& w, uint32_t lanes);
  // A cp.async to the bytes begins or, where `landed`, has ended.
  bool Async(Warp& w, int lane, uint64_t at, uint32_t bytes, bool landed);

 private:
  struct Reader {
    uint32_t time = 0, lanes = 0;
    uint8_t warp = 0;
  };
  struct Cell {
    uint32_t write_time = 0;
    uint8_t write_warp = 0, write_lane = 0;
    bool written = false, atomic = false, pending = false, outside = true;
    bool unfenced = false;  // see NoteProxyRead
    std::array<Reader, 2> readers;
  };
  bool CheckCell(Warp& w, int lane, const Cell& cell, uint64_t at, Access access);
  bool CheckWriter(Warp& w, int lane, const Cell& cell, uint64_t at, Access access);
  bool CheckReaders(Warp& w, int lane, const Cell& cell, uint64_t at);
  void NoteUnfenced(Warp& w, int lane, uint64_t at, uint32_t bytes);
  void NoteReader(const Warp& w, int lane, Cell& cell);
  bool ReadsPlainly(const Warp& w, int lane, Cell& cell) const;
  uint32_t shift_ = 2;
  bool races_ = true;
  std::vector<Cell> fresh_, cells_;
};

}  // namespace forge::ptx
