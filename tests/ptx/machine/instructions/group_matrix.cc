// SPDX-License-Identifier: Apache-2.0
// wgmma: D = A B + D of four warps, with A and B in shared memory behind descriptors. Source: PTX
// ISA 9.5, "Asynchronous Warpgroup Level Matrix Instructions".
//
// The sums of a warp are known at once: compilers move registers that an instruction is still
// writing, and leave it to the assembler to rename them. What the bytes of A and B are is looked at
// again when the product is waited for, and must be the same.
#include "base/narrow_float.h"
#include "tests/ptx/machine/access.h"
#include "tests/ptx/machine/instructions/narrow.h"

namespace forge::ptx {
namespace {

constexpr int kRowsOfWarp = 16, kDepthOfStep = 16,
              kPieceBytes = 16;                             // of a warp; of an instruction; bytes
constexpr uint8_t kBfloat = 1, kAcrossA = 2, kAcrossB = 4;  // lines run along m, along n

// A matrix descriptor with the swizzle of 128 bytes.
struct Tile {
  uint64_t start = 0, leading = 0, stride = 0;  // bytes
  bool across = false;                          // lines run along m or n instead of k
  // The first byte of the piece that holds element k of row or column `at`.
  uint64_t Piece(uint64_t at, uint64_t k) const {
    const uint64_t plain =
        across ? start + at / 64 * leading + at % 64 * 2 + k % 8 * 128 + k / 8 * stride
               : start + at / 8 * stride + at % 8 * 128 + k * 2;
    return plain ^ (plain >> 7 & 7) << 4;
  }
};

bool TileOf(Warp& w, int32_t at, bool across, Tile& tile) {
  const uint64_t* const values = w.In<uint64_t>(at);
  const uint64_t bits = values[0];
  for (int i = 1; i < kLanes; ++i)
    if (values[i] != bits) return w.Fail(i, "a matrix descriptor differs from lane 0's"), false;
  const auto bytes = [&](int shift) { return (bits >> shift & 0x3fff) << 4; };
  if (bits >> 62 != 1) return w.Fail(0, "only swizzles of 128 bytes are supported"), false;
  if ((bits >> 49 & 7) != 0) return w.Fail(0, "a base offset is not supported"), false;
  const Launch& launch = w.block->launch;
  if (launch.dynamic_shared > 0 && w.program->shared_bytes > 0)
    return w.Fail(0, "static and dynamic shared memory beside each other are not supported"), false;
  tile = {bytes(0), bytes(16), bytes(32), across};
  return true;
}

// Reads `length` rows or columns from `first` on into out[length][kDepthOfStep]; `check` notes the
// reads.
bool ReadTile(Warp& w, const Tile& tile, uint64_t first, int length, bool check, uint16_t* out) {
  for (int i = 0; i < length; ++i)
    for (int k = 0; k < kDepthOfStep; ++k) {
      uint64_t at = tile.Piece(first + static_cast<uint64_t>(i), static_cast<uint64_t>(k));
      const uint8_t* const place = SharedBytes(w, 0, at, 2);
      if (place == nullptr) return false;
      const bool begins = at % kPieceBytes == 0;
      if (check && begins && !w.block->shadow.NoteProxyRead(w, at, kPieceBytes)) return false;
      std::memcpy(out + i * kDepthOfStep + k, place, 2);
    }
  return true;
}

uint64_t Digest(const std::vector<uint16_t>& values) {
  uint64_t h = 14695981039346656037u;
  for (const uint16_t v : values) h = (h ^ v) * 1099511628211u;
  return h;
}

bool ReadOperands(Warp& w, const PendingProduct& p, bool check, std::vector<uint16_t>& a,
                  std::vector<uint16_t>& b) {
  const Op& op = *p.op;
  Tile tiles[2];
  for (int n = 0; n < 2; ++n)
    tiles[n] = {p.tiles[n][0], p.tiles[n][1], p.tiles[n][2],
                (op.flags & (n == 0 ? kAcrossA : kAcrossB)) != 0};
  a.resize(kRowsOfWarp * kDepthOfStep);
  b.resize(static_cast<size_t>(op.e) * kDepthOfStep);
  return ReadTile(w, tiles[0], uint64_t{static_cast<uint32_t>(w.index % 4)} * kRowsOfWarp,
                  kRowsOfWarp, check, a.data()) &&
         ReadTile(w, tiles[1], 0, op.e, check, b.data());
}

void RunProduct(Warp& w, const Op& op, uint32_t lanes) {
  if (lanes != kAllLanes)
    return w.Fail(__builtin_ctz(lanes), fmt::format("needs all 32 lanes, has {:#010x}", lanes));
  if (!w.products_fenced) return w.Fail(0, "no wgmma.fence orders the registers before it");
  Tile a, b;
  if (!TileOf(w, op.a, (op.flags & kAcrossA) != 0, a) ||
      !TileOf(w, op.b, (op.flags & kAcrossB) != 0, b))
    return;
  PendingProduct p{.op = &op,
                   .group = w.product_group,
                   .tiles = {{a.start, a.leading, a.stride}, {b.start, b.leading, b.stride}}};
  std::vector<uint16_t> x, y;
  if (!ReadOperands(w, p, true, x, y)) return;
  p.digests[0] = Digest(x), p.digests[1] = Digest(y);
  w.products.push_back(p);
  const auto decode = [&](uint16_t v) {
    return (op.flags & kBfloat) != 0 ? Bf16::Decode(v) : F16::Decode(v);
  };
  std::vector<float> fa(x.size()), fb(y.size());
  std::transform(x.begin(), x.end(), fa.begin(), decode);
  std::transform(y.begin(), y.end(), fb.begin(), decode);
  const bool adds = (w.predicates[op.c] & 1) != 0;
  const int32_t* const sums = w.program->lists.data() + op.list;
  for (int r = 0; r < op.count; ++r)
    for (int i = 0; i < kLanes; ++i) {
      const int row = i / 4 + r / 2 % 2 * 8, column = r / 4 * 8 + i % 4 * 2 + r % 2;
      float& d = w.Register<float>(sums[r])[i];
      float sum = adds ? d : 0;
      for (int k = 0; k < kDepthOfStep; ++k)
        sum += fa[row * kDepthOfStep + k] * fb[column * kDepthOfStep + k];
      d = sum;
    }
}

void RunProductFence(Warp& w, const Op&, uint32_t) { w.products_fenced = true; }

void RunCommitProducts(Warp& w, const Op&, uint32_t) { ++w.product_group; }

// Ends all products but those of the last `op.offset` groups.
void RunWaitProducts(Warp& w, const Op& op, uint32_t) {
  w.products_fenced = false;
  const auto ends = [&](const PendingProduct& p) {
    return int64_t{p.group} + op.offset < int64_t{w.product_group};
  };
  for (const PendingProduct& p : w.products) {
    if (!ends(p)) continue;
    std::vector<uint16_t> a, b;
    if (!ReadOperands(w, p, false, a, b)) return;
    if (Digest(a) != p.digests[0] || Digest(b) != p.digests[1])
      return w.Fail(0, fmt::format("the memory of '{}' changed before it was waited for",
                                   w.program->Line(p.op->line)));
  }
  std::erase_if(w.products, ends);
}

void DecodeProduct(Decoder& d) {
  d.Take("sync");
  d.Take("aligned");
  const std::string shape(d.TakeNext());
  constexpr std::string_view kBegin = "m64n", kEnd = "k16";
  int columns = 0;
  if (shape.starts_with(kBegin) && shape.ends_with(kEnd))
    columns = std::atoi(shape.c_str() + kBegin.size());
  const Type type_d = d.TakeType(), a = d.TakeType(), b = d.TakeType();
  if (columns < 8 || columns > 256 || columns % 8 != 0 || type_d != Type::kF32 || a != b ||
      (a != Type::kF16 && a != Type::kBf16) || !d.Want(8))
    return d.Fail("this shape or these types are not supported");
  const auto flag = [&](size_t i) {
    const Operand& o = d.operand(i);
    if (o.kind != Operand::Kind::kInteger || o.bits > 1) d.Fail("operand {} is not 0 or 1", i);
    return o.bits == 1;
  };
  if (!flag(4) || !flag(5)) return d.Fail("negated operands are not supported");
  Op op;
  op.run = RunProduct;
  op.kind = Kind::kMatrix;
  op.control = Control::kWarpSync;
  op.mask = d.Constant(kAllLanes, 4);
  op.count = columns / 2;
  op.e = columns;
  op.flags = static_cast<uint8_t>((a == Type::kBf16 ? kBfloat : 0) | (flag(6) ? kAcrossA : 0) |
                                  (flag(7) ? kAcrossB : 0));
  if (static_cast<int>(d.operand(0).parts.size()) != op.count)
    return d.Fail("expected {} registers", op.count);
  op.list = d.List(d.operand(0), 4, true);
  op.a = d.Source(1, 8);
  op.b = d.Source(2, 8);
  op.c = d.PredicateSource(d.operand(3));
  d.program().reads_by_proxy = true;
  d.Emit(op);
}

}  // namespace

void DecodeGroupMatrix(Decoder& d) {
  if (d.Take("mma_async")) return DecodeProduct(d);
  Op op;
  op.kind = Kind::kSync;
  if (d.Take("fence")) {
    op.run = RunProductFence;
  } else if (d.Take("commit_group")) {
    op.run = RunCommitProducts;
  } else if (d.Take("wait_group")) {
    if (d.operand(0).kind != Operand::Kind::kInteger) return d.Fail("expected a number of groups");
    op.run = RunWaitProducts;
    op.offset = static_cast<int64_t>(d.operand(0).bits);
  } else {
    return d.Fail("this form of wgmma is not supported");
  }
  d.Take("sync");
  d.Take("aligned");
  d.Emit(op);
}

}  // namespace forge::ptx
