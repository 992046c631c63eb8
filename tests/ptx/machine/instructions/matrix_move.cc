// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix, movmatrix: 8x8 matrices of 16 bits between shared memory and fragments.
// Source: PTX ISA 9.5, "ldmatrix", "stmatrix", "movmatrix".
#include "tests/ptx/machine/access.h"

namespace forge::ptx {
namespace {

constexpr uint8_t kTransposed = 2;  // Op::flags beside kAddress32

bool WholeWarp(Warp& w, uint32_t lanes) {
  if (lanes == kAllLanes) return true;
  w.Fail(__builtin_ctz(lanes), fmt::format("needs all 32 lanes, has {:#010x}", lanes));
  return false;
}

// Row r of matrix m: 16 bytes at the address of lane 8 m + r. The rows of one matrix are one pass.
bool Rows(Warp& w, const Op& op, uint64_t (&at)[kLanes], SharedShadow::Access access) {
  Addresses(w, op, at);
  const uint32_t used = op.count == 4 ? kAllLanes : (uint32_t{1} << (8 * op.count)) - 1;
  if (!CheckAligned(w, at, used, 16)) return false;
  CountShared(w, at, used, 16);
  for (int i = 0; i < 8 * op.count; ++i) {
    if (SharedBytes(w, i, at[i], 16) == nullptr) return false;
    if (access == SharedShadow::Access::kRead &&
        !w.block->shadow.Note(w, i, at[i], 16, access, nullptr))
      return false;
  }
  return true;
}

void RunLoadMatrix(Warp& w, const Op& op, uint32_t lanes) {
  uint64_t at[kLanes];
  if (!WholeWarp(w, lanes) || !Rows(w, op, at, SharedShadow::Access::kRead)) return;
  for (int m = 0; m < op.count; ++m) {
    uint16_t rows[8][8];
    for (int r = 0; r < 8; ++r) std::memcpy(rows[r], w.block->shared.data() + at[8 * m + r], 16);
    uint32_t out[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const int r = i / 4, c = i % 4 * 2;
      const bool t = (op.flags & kTransposed) != 0;
      const uint32_t low = t ? rows[c][r] : rows[r][c], high = t ? rows[c + 1][r] : rows[r][c + 1];
      out[i] = low | high << 16;
    }
    w.Out(w.program->lists[op.list + m], out, lanes);
  }
}

void RunStoreMatrix(Warp& w, const Op& op, uint32_t lanes) {
  uint64_t at[kLanes];
  if (!WholeWarp(w, lanes) || !Rows(w, op, at, SharedShadow::Access::kWrite)) return;
  for (int m = 0; m < op.count; ++m) {
    const uint32_t* const in = w.In<uint32_t>(w.program->lists[op.list + m]);
    uint16_t rows[8][8];
    for (int i = 0; i < kLanes; ++i) {
      const int r = i / 4, c = i % 4 * 2;
      const bool t = (op.flags & kTransposed) != 0;
      (t ? rows[c][r] : rows[r][c]) = static_cast<uint16_t>(in[i]);
      (t ? rows[c + 1][r] : rows[r][c + 1]) = static_cast<uint16_t>(in[i] >> 16);
    }
    for (int r = 0; r < 8; ++r) {
      const int lane = 8 * m + r;
      const auto* const value = reinterpret_cast<const uint8_t*>(rows[r]);
      if (!w.block->shadow.Note(w, lane, at[lane], 16, SharedShadow::Access::kWrite, value)) return;
      std::memcpy(w.block->shared.data() + at[lane], value, 16);
    }
  }
}

void RunMoveMatrix(Warp& w, const Op& op, uint32_t lanes) {
  if (!WholeWarp(w, lanes)) return;
  const uint32_t* const in = w.In<uint32_t>(op.a);
  uint16_t rows[8][8];
  for (int i = 0; i < kLanes; ++i) {
    rows[i / 4][i % 4 * 2] = static_cast<uint16_t>(in[i]);
    rows[i / 4][i % 4 * 2 + 1] = static_cast<uint16_t>(in[i] >> 16);
  }
  uint32_t out[kLanes];
  for (int i = 0; i < kLanes; ++i)
    out[i] = rows[i % 4 * 2][i / 4] | static_cast<uint32_t>(rows[i % 4 * 2 + 1][i / 4]) << 16;
  w.Out(op.d, out, lanes);
}

}  // namespace

void DecodeMatrixMove(Decoder& d) {
  const std::string_view name = d.in().opcode;
  Op op;
  op.kind = Kind::kShared;
  op.control = Control::kWarpSync;
  op.mask = d.Constant(kAllLanes, 4);
  d.Take("sync");
  d.Take("aligned");
  if (!d.Take("m8n8")) return d.Fail("only 8x8 matrices are supported");
  const int log = d.TakeOneOf({"x1", "x2", "x4"});
  if (d.Take("trans")) op.flags |= kTransposed;
  const bool shared = d.TakeOneOf({"shared", "shared::cta"}) >= 0;
  if (!d.Take("b16") || !d.Want(2)) return d.Fail("this form is not supported");
  if (name == "movmatrix") {
    op.run = RunMoveMatrix;
    op.d = d.Destination(0, 4);
    op.a = d.Source(1, 4);
    d.Emit(op);
    return;
  }
  const bool store = name == "stmatrix";
  if (log < 0 || !shared) return d.Fail("this form is not supported");
  op.run = store ? RunStoreMatrix : RunLoadMatrix;
  op.count = 1 << log;
  const Operand& list = d.operand(store ? 1 : 0);
  if (static_cast<int>(list.parts.size()) != op.count)
    return d.Fail("expected {} registers", op.count);
  op.list = d.List(list, 4, !store);
  d.Address(d.operand(store ? 0 : 1), Space::kShared, op);
  d.Emit(op);
}

}  // namespace forge::ptx
