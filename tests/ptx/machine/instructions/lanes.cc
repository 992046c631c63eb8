// SPDX-License-Identifier: Apache-2.0
// What lanes of a warp tell each other: shfl, vote, match, redux, elect, activemask. Source: PTX
// ISA 9.5, "shfl.sync", "vote.sync", "match.sync", "redux.sync".
#include <algorithm>
#include <bit>

#include "tests/ptx/machine/access.h"

namespace forge::ptx {
namespace {

enum Shuffle : uint8_t { kUp, kDown, kBfly, kIdx };

void RunShfl(Warp& w, const Op& op, uint32_t lanes) {
  const uint32_t* const a = w.In<uint32_t>(op.a);
  const uint32_t* const b = w.In<uint32_t>(op.b);
  const uint32_t* const c = w.In<uint32_t>(op.c);
  const uint32_t* const masks = w.In<uint32_t>(op.mask);
  uint32_t r[kLanes] = {}, in_range = 0;
  ForLanes(lanes, [&](int lane) {
    if (w.failed) return;
    const int bval = static_cast<int>(b[lane] & 31), cval = static_cast<int>(c[lane] & 31);
    const int segment = static_cast<int>(c[lane] >> 8 & 31);
    const int most = (lane & segment) | (cval & ~segment), least = lane & segment;
    int j = 0;
    bool p = false;
    switch (op.flags) {
      case kUp:
        j = lane - bval, p = j >= most;
        break;
      case kDown:
        j = lane + bval, p = j <= most;
        break;
      case kBfly:
        j = lane ^ bval, p = j <= most;
        break;
      default:
        j = least | (bval & ~segment), p = j <= most;
        break;
    }
    if (!p) j = lane;
    if ((masks[lane] & lanes & (uint32_t{1} << j)) == 0)
      return w.Fail(lane, fmt::format("reads lane {}, which does not take part (mask {:#010x})", j,
                                      masks[lane]));
    r[lane] = a[j];
    in_range |= uint32_t{p} << lane;
  });
  if (w.failed) return;
  w.Out(op.d, r, lanes);
  if (op.e >= 0) w.OutPredicate(op.e, in_range, lanes);
}

// Lanes that run together may belong to several masks; each mask is served by itself.
template <class F>
void ForMasks(const Warp& w, const Op& op, uint32_t lanes, F f) {
  const uint32_t* const masks = w.In<uint32_t>(op.mask);
  while (lanes != 0) {
    const uint32_t mask = masks[std::countr_zero(lanes)];
    uint32_t same = 0;
    ForLanes(lanes, [&](int i) { same |= uint32_t{masks[i] == mask} << i; });
    f(same);
    lanes &= ~same;
  }
}

enum Vote : uint8_t { kAll, kAny, kUni, kBallot };

void RunVote(Warp& w, const Op& op, uint32_t lanes) {
  const uint32_t p = op.offset != 0 ? ~w.predicates[op.a] : w.predicates[op.a];
  ForMasks(w, op, lanes, [&](uint32_t same) {
    const uint32_t yes = p & same;
    if (op.flags == kBallot) {
      uint32_t r[kLanes];
      std::fill(r, r + kLanes, yes);
      return w.Out(op.d, r, same);
    }
    const bool holds = op.flags == kAll   ? yes == same
                       : op.flags == kAny ? yes != 0
                                          : yes == same || yes == 0;
    w.OutPredicate(op.d, holds ? kAllLanes : 0, same);
  });
}

template <class T, bool kAllSame>
void RunMatch(Warp& w, const Op& op, uint32_t lanes) {
  const T* const a = w.In<T>(op.a);
  ForMasks(w, op, lanes, [&](uint32_t same) {
    uint32_t r[kLanes] = {};
    bool all = true;
    ForLanes(same, [&](int i) {
      ForLanes(same, [&](int k) { r[i] |= uint32_t{a[i] == a[k]} << k; });
      all &= r[i] == same;
    });
    if (kAllSame)
      for (uint32_t& v : r) v = all ? same : 0;
    w.Out(op.d, r, same);
    if (op.e >= 0) w.OutPredicate(op.e, all ? kAllLanes : 0, same);
  });
}

enum Redux : uint8_t { kReduxAdd, kReduxMin, kReduxMax, kReduxAnd, kReduxOr, kReduxXor };

template <class T>
T Reduce(uint8_t how, T a, T b) {
  switch (how) {
    case kReduxAdd:
      return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
    case kReduxMin:
      return std::min(a, b);
    case kReduxMax:
      return std::max(a, b);
    case kReduxAnd:
      return a & b;
    case kReduxOr:
      return a | b;
    default:
      return a ^ b;
  }
}

template <class T>
void RunRedux(Warp& w, const Op& op, uint32_t lanes) {
  const T* const a = w.In<T>(op.a);
  ForMasks(w, op, lanes, [&](uint32_t same) {
    const int first = std::countr_zero(same);
    T sum = a[first];
    ForLanes(same & (same - 1), [&](int i) { sum = Reduce(op.flags, sum, a[i]); });
    T r[kLanes];
    std::fill(r, r + kLanes, sum);
    w.Out(op.d, r, same);
  });
}

void RunElect(Warp& w, const Op& op, uint32_t lanes) {
  ForMasks(w, op, lanes, [&](uint32_t same) {
    uint32_t r[kLanes];
    std::fill(r, r + kLanes, static_cast<uint32_t>(std::countr_zero(same)));
    w.Out(op.d, r, same);
    w.OutPredicate(op.e, same & (0 - same), same);
  });
}

void RunActiveMask(Warp& w, const Op& op, uint32_t lanes) {
  uint32_t r[kLanes];
  std::fill(r, r + kLanes, lanes);
  w.Out(op.d, r, lanes);
}

void DecodeShfl(Decoder& d) {
  const int how = d.TakeOneOf({"up", "down", "bfly", "idx"});
  d.Take("b32");
  if (how < 0 || !d.Want(5)) return d.Fail("this shuffle is not supported");
  Op op;
  op.run = RunShfl;
  op.control = Control::kWarpSync;
  op.kind = Kind::kSync;
  op.flags = static_cast<uint8_t>(how);
  op.d = d.Destination(0, 4);
  op.e = d.operand(0).second >= 0 ? d.Predicate(d.operand(0).second) : -1;
  op.a = d.Source(1, 4);
  op.b = d.Source(2, 4);
  op.c = d.Source(3, 4);
  op.mask = d.Source(4, 4);
  d.Emit(op);
}

void DecodeVote(Decoder& d) {
  const int how = d.TakeOneOf({"all", "any", "uni", "ballot"});
  d.TakeType();
  if (how < 0 || !d.Want(3)) return d.Fail("this vote is not supported");
  Op op;
  op.run = RunVote;
  op.control = Control::kWarpSync;
  op.kind = Kind::kSync;
  op.flags = static_cast<uint8_t>(how);
  op.a = d.PredicateSource(d.operand(1));
  op.offset = d.operand(1).negated ? 1 : 0;
  op.d = how == kBallot ? d.Destination(0, 4) : d.PredicateDestination(d.operand(0));
  op.mask = d.Source(2, 4);
  d.Emit(op);
}

void DecodeMatch(Decoder& d) {
  const int how = d.TakeOneOf({"any", "all"});
  const int bytes = Bytes(d.TakeType());
  if (how < 0 || (bytes != 4 && bytes != 8) || !d.Want(3))
    return d.Fail("this match is not supported");
  Op op;
  if (how == 0)
    op.run = bytes == 4 ? RunMatch<uint32_t, false> : RunMatch<uint64_t, false>;
  else
    op.run = bytes == 4 ? RunMatch<uint32_t, true> : RunMatch<uint64_t, true>;
  op.control = Control::kWarpSync;
  op.kind = Kind::kSync;
  op.d = d.Destination(0, 4);
  op.e = d.operand(0).second >= 0 ? d.Predicate(d.operand(0).second) : -1;
  op.a = d.Source(1, bytes);
  op.mask = d.Source(2, 4);
  d.Emit(op);
}

void DecodeRedux(Decoder& d) {
  const int how = d.TakeOneOf({"add", "min", "max", "and", "or", "xor"});
  const Type t = d.TakeType();
  if (how < 0 || (t != Type::kU32 && t != Type::kS32 && t != Type::kB32) || !d.Want(3))
    return d.Fail("this reduction is not supported");
  Op op;
  op.run = t == Type::kS32 ? RunRedux<int32_t> : RunRedux<uint32_t>;
  op.control = Control::kWarpSync;
  op.kind = Kind::kSync;
  op.flags = static_cast<uint8_t>(how);
  op.d = d.Destination(0, 4);
  op.a = d.Source(1, 4);
  op.mask = d.Source(2, 4);
  d.Emit(op);
}

}  // namespace

void DecodeLanes(Decoder& d) {
  const std::string_view name = d.in().opcode;
  if (name == "activemask") {
    d.TakeType();
    Op op;
    op.run = RunActiveMask;
    op.d = d.Destination(0, 4);
    d.Emit(op);
    return;
  }
  if (!d.Take("sync")) return d.Fail("only the forms with .sync are supported");
  if (name == "shfl") return DecodeShfl(d);
  if (name == "vote") return DecodeVote(d);
  if (name == "match") return DecodeMatch(d);
  if (name == "redux") return DecodeRedux(d);
  Op op;
  op.run = RunElect;
  op.control = Control::kWarpSync;
  if (!d.Want(2) || d.operand(0).second < 0)
    return d.Fail("elect gives a register and a predicate");
  op.d = d.Destination(0, 4);
  op.e = d.Predicate(d.operand(0).second);
  op.mask = d.Source(1, 4);
  d.Emit(op);
}

}  // namespace forge::ptx
