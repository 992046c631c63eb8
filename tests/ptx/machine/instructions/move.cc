// SPDX-License-Identifier: Apache-2.0
// mov, cvta, isspacep. Source: PTX ISA 9.5, "Data Movement and Conversion Instructions".
#include "tests/ptx/machine/block.h"
#include "tests/ptx/machine/instructions/lanewise.h"

namespace forge::ptx {
namespace {

template <class T>
void Copy(Warp& w, const Op& op, uint32_t lanes) {
  T r[kLanes];
  std::memcpy(r, w.In<T>(op.a), sizeof(r));
  w.Out(op.d, r, lanes);
}

struct Two {
  uint64_t low, high;
};

Handler CopyOf(int bytes) {
  switch (bytes) {
    case 2:
      return Copy<uint16_t>;
    case 4:
      return Copy<uint32_t>;
    case 8:
      return Copy<uint64_t>;
    case 16:
      return Copy<Two>;
    default:
      return nullptr;
  }
}

// Joins registers of T into one of W, or divides one.
template <class W, class T>
void Pack(Warp& w, const Op& op, uint32_t lanes) {
  constexpr int n = sizeof(W) / sizeof(T);
  alignas(W) T r[kLanes * n];
  for (int k = 0; k < n; ++k) {
    const T* const part = w.In<T>(w.program->lists[op.list + k]);
    for (int i = 0; i < kLanes; ++i) r[i * n + k] = part[i];
  }
  w.Out(op.d, reinterpret_cast<const W*>(r), lanes);
}

template <class W, class T>
void Unpack(Warp& w, const Op& op, uint32_t lanes) {
  constexpr int n = sizeof(W) / sizeof(T);
  T whole[kLanes * n];
  std::memcpy(whole, w.In<T>(op.a), sizeof(whole));
  for (int k = 0; k < n; ++k) {
    T r[kLanes];
    for (int i = 0; i < kLanes; ++i) r[i] = whole[i * n + k];
    w.Out(w.program->lists[op.list + k], r, lanes);
  }
}

Handler PackOf(int whole, int part, bool join) {
  if (whole == 4 && part == 2) return join ? Pack<uint32_t, uint16_t> : Unpack<uint32_t, uint16_t>;
  if (whole == 8 && part == 2) return join ? Pack<uint64_t, uint16_t> : Unpack<uint64_t, uint16_t>;
  if (whole == 8 && part == 4) return join ? Pack<uint64_t, uint32_t> : Unpack<uint64_t, uint32_t>;
  if (whole == 16 && part == 8) return join ? Pack<Two, uint64_t> : Unpack<Two, uint64_t>;
  if (whole == 16 && part == 4) return join ? Pack<Two, uint32_t> : Unpack<Two, uint32_t>;
  return nullptr;
}

void DecodePack(Decoder& d, int whole) {
  const bool join = d.operand(1).kind == Operand::Kind::kVector;
  const Operand& parts = d.operand(join ? 1 : 0);
  if (parts.parts.empty()) return d.Fail("an empty vector");
  const int part = whole / static_cast<int>(parts.parts.size());
  Op op;
  op.run =
      part * static_cast<int>(parts.parts.size()) == whole ? PackOf(whole, part, join) : nullptr;
  if (op.run == nullptr) return d.Fail("this vector is not supported");
  op.list = d.List(parts, part, !join);
  if (join)
    op.d = d.Destination(0, whole);
  else
    op.a = d.Source(1, whole);
  d.Emit(op);
}

void RunMovePredicate(Warp& w, const Op& op, uint32_t lanes) {
  w.OutPredicate(op.d, op.flags != 0 ? ~w.predicates[op.a] : w.predicates[op.a], lanes);
}

template <class T>
void ReadClock(Warp& w, const Op& op, uint32_t lanes) {
  T r[kLanes];
  for (T& v : r) v = static_cast<T>(w.block->statistics.instructions * 4);
  w.Out(op.d, r, lanes);
}

bool DecodeClock(Decoder& d, int bytes) {
  const std::string_view name = d.operand(1).symbol;
  if (name == "%clock" || name == "%clock_hi")
    d.Emit(ReadClock<uint32_t>).d = d.Destination(0, 4);
  else if (name == "%clock64" || name == "%globaltimer")
    d.Emit(ReadClock<uint64_t>).d = d.Destination(0, 8);
  else
    return false;
  (void)bytes;
  return true;
}

uint64_t Window(Space space) {
  if (space == Space::kShared) return kSharedWindow;
  if (space == Space::kLocal) return kLocalWindow;
  return space == Space::kParam ? kParamWindow : 0;
}

void RunAddWindow(Warp& w, const Op& op, uint32_t lanes) {
  const uint64_t* const a = w.In<uint64_t>(op.a);
  uint64_t r[kLanes];
  for (int i = 0; i < kLanes; ++i) r[i] = a[i] + static_cast<uint64_t>(op.offset);
  w.Out(op.d, r, lanes);
}

void RunIsSpace(Warp& w, const Op& op, uint32_t lanes) {
  const uint64_t* const a = w.In<uint64_t>(op.a);
  uint32_t r = 0;
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t window = a[i] & kWindowMask;
    const bool global = window != kSharedWindow && window != kLocalWindow && window != kParamWindow;
    const bool is = op.offset == 0 ? global : window == static_cast<uint64_t>(op.offset);
    r |= uint32_t{is} << i;
  }
  w.OutPredicate(op.d, r, lanes);
}

Space TakeSpace(Decoder& d) {
  const int space =
      d.TakeOneOf({"global", "const", "shared", "shared::cta", "local", "param", "param::entry"});
  if (space < 0) d.Fail("this state space is not supported");
  if (space == 2 || space == 3) return Space::kShared;
  if (space == 4) return Space::kLocal;
  return space >= 5 ? Space::kParam : Space::kGlobal;
}

void DecodeCvta(Decoder& d) {
  const bool to = d.Take("to");
  const Space space = TakeSpace(d);
  const int bytes = Bytes(d.TakeType());
  Op op;
  op.run = RunAddWindow;
  op.offset = static_cast<int64_t>(to ? 0 - Window(space) : Window(space));
  if (bytes != 8 || !d.Want(2)) return d.Fail("only 64-bit addresses are supported");
  op.a = d.Source(1, 8);
  op.d = d.Destination(0, 8);
  d.Emit(op);
}

}  // namespace

void DecodeMove(Decoder& d) {
  if (d.in().opcode == "cvta") return DecodeCvta(d);
  if (!d.Want(2)) return;
  if (d.in().opcode == "isspacep") {
    Op op;
    op.run = RunIsSpace;
    op.offset = static_cast<int64_t>(Window(TakeSpace(d)));
    op.a = d.Source(1, 8);
    op.d = d.PredicateDestination(d.operand(0));
    d.Emit(op);
    return;
  }
  const Type t = d.TakeType();
  const int bytes = Bytes(t);
  if (d.operand(0).kind == Operand::Kind::kVector || d.operand(1).kind == Operand::Kind::kVector)
    return DecodePack(d, bytes);
  Op op;
  if (t == Type::kPred) {
    op.run = RunMovePredicate;
    op.a = d.PredicateSource(d.operand(1));
    op.flags = d.operand(1).negated ? 1 : 0;
    op.d = d.PredicateDestination(d.operand(0));
    d.Emit(op);
    return;
  }
  if (d.operand(1).kind == Operand::Kind::kSpecial && DecodeClock(d, bytes)) return;
  op.run = CopyOf(bytes);
  if (op.run == nullptr) return d.Fail("this type is not supported");
  op.a = d.Source(1, bytes);
  op.d = d.Destination(0, bytes);
  d.Emit(op);
}

}  // namespace forge::ptx
