// SPDX-License-Identifier: Apache-2.0
// cp.async: the bytes are read at once, and land when the thread waits for them. Source: PTX
// ISA 9.5, "Data Movement and Conversion Instructions: Asynchronous copy".
#include <algorithm>

#include "tests/ptx/machine/access.h"

namespace forge::ptx {
namespace {

void RunCopyAsync(Warp& w, const Op& op, uint32_t lanes) {
  const auto bytes = static_cast<uint32_t>(op.count);
  uint64_t to[kLanes], from[kLanes];
  Addresses(w, op, to);
  const uint64_t* const base = w.In<uint64_t>(op.b);
  for (int i = 0; i < kLanes; ++i) from[i] = base[i] + static_cast<int64_t>(op.target);
  if (!CheckAligned(w, to, lanes, bytes) || !CheckAligned(w, from, lanes, bytes)) return;
  const uint32_t* const size = op.c != INT32_MAX ? w.In<uint32_t>(op.c) : nullptr;
  uint32_t reading = 0;
  ForLanes(lanes, [&](int i) {
    if (w.failed) return;
    const uint32_t n = size == nullptr ? bytes : size[i];
    if (n > bytes) return w.Fail(i, fmt::format("copies {} of {} bytes", n, bytes));
    PendingCopy copy{.lane = i, .group = w.copy_group[i], .at = 0, .bytes = bytes, .data = {}};
    if (SharedBytes(w, i, to[i], bytes) == nullptr) return;
    copy.at = static_cast<uint32_t>(to[i]);
    if (n > 0) {
      const uint8_t* const source = GlobalBytes(w, i, from[i], n, false);
      if (source == nullptr) return;
      std::memcpy(copy.data, source, n);
      reading |= uint32_t{1} << i;
    }
    if (w.block->shadow.Async(w, i, copy.at, bytes, false)) w.copies.push_back(copy);
  });
  if (w.failed) return;
  if (reading != 0) CountGlobal(w, from, reading, bytes);
  CountShared(w, to, lanes, bytes);
}

void RunCommit(Warp& w, const Op&, uint32_t lanes) {
  ForLanes(lanes, [&](int i) { ++w.copy_group[i]; });
}

// Lands all copies but those of the last `op.offset` groups; -1: also those of no group yet.
void RunWait(Warp& w, const Op& op, uint32_t lanes) {
  const auto lands = [&](const PendingCopy& c) {
    if ((lanes >> c.lane & 1) == 0) return false;
    return op.offset < 0 || int64_t{c.group} + op.offset < int64_t{w.copy_group[c.lane]};
  };
  for (const PendingCopy& c : w.copies) {
    if (!lands(c)) continue;
    std::memcpy(w.block->shared.data() + c.at, c.data, c.bytes);
    w.block->shadow.Async(w, c.lane, c.at, c.bytes, true);
  }
  std::erase_if(w.copies, lands);
}

void DecodeCopy(Decoder& d) {
  const int cache = d.TakeOneOf({"ca", "cg"});
  const bool spaces = d.TakeOneOf({"shared", "shared::cta"}) >= 0 && d.Take("global");
  TakeCacheHints(d);
  if (d.Take("L2::cache_hint") || !spaces || d.operands() < 3 || d.operands() > 4)
    return d.Fail("this form of cp.async is not supported");
  const Operand& size = d.operand(2);
  if (size.kind != Operand::Kind::kInteger ||
      (size.bits != 4 && size.bits != 8 && size.bits != 16) || (cache == 1 && size.bits != 16))
    return d.Fail("a copy has 4, 8 or 16 bytes, 16 with .cg");
  Op op, source;
  op.run = RunCopyAsync;
  op.kind = Kind::kGlobal;
  op.count = static_cast<int32_t>(size.bits);
  d.Address(d.operand(0), Space::kShared, op);
  d.Address(d.operand(1), Space::kGlobal, source);
  if ((source.flags & kAddress32) != 0 || source.offset != static_cast<int32_t>(source.offset))
    return d.Fail("this address is not supported");
  op.b = source.a;
  op.target = static_cast<int32_t>(source.offset);
  op.c = d.operands() == 4 ? d.Source(3, 4) : INT32_MAX;
  d.NoteSharedAccess(4);
  d.Emit(op);
}

}  // namespace

void DecodeAsync(Decoder& d) {
  if (!d.Take("async")) return d.Fail("this form of cp is not supported");
  Op op;
  op.kind = Kind::kSync;
  if (d.Take("commit_group")) {
    op.run = RunCommit;
  } else if (d.Take("wait_all")) {
    op.run = RunWait;
    op.offset = -1;
  } else if (d.Take("wait_group")) {
    if (d.operand(0).kind != Operand::Kind::kInteger) return d.Fail("expected a number of groups");
    op.run = RunWait;
    op.offset = static_cast<int64_t>(std::min<uint64_t>(d.operand(0).bits, 1 << 20));
  } else {
    return DecodeCopy(d);
  }
  d.Emit(op);
}

}  // namespace forge::ptx
