// SPDX-License-Identifier: Apache-2.0
// atom and red. On global memory they are atomic on the host, too, where blocks run on several
// threads. Source: PTX ISA 9.5, "atom", "red".
#include <algorithm>
#include <atomic>
#include <mutex>

#include "tests/ptx/machine/access.h"
#include "tests/ptx/machine/instructions/narrow.h"

namespace forge::ptx {
namespace {

enum Atomic : uint8_t {
  kAtomAdd,
  kAtomMin,
  kAtomMax,
  kAtomAnd,
  kAtomOr,
  kAtomXor,
  kAtomExch,
  kAtomCas,
  kAtomInc,
  kAtomDec
};

template <class T>
struct AtomPlain {
  using Stored = T;
  static T Do(int how, T old, T b, T c) {
    using U = std::make_unsigned_t<T>;
    const U o = static_cast<U>(old), x = static_cast<U>(b);
    switch (how) {
      case kAtomAdd:
        return static_cast<T>(o + x);
      case kAtomMin:
        return std::min(old, b);
      case kAtomMax:
        return std::max(old, b);
      case kAtomAnd:
        return old & b;
      case kAtomOr:
        return old | b;
      case kAtomXor:
        return old ^ b;
      case kAtomExch:
        return b;
      case kAtomCas:
        return old == b ? c : old;
      case kAtomInc:
        return static_cast<T>(o >= x ? 0 : o + 1);
      default:
        return static_cast<T>(o == 0 || o > x ? x : o - 1);
    }
  }
};
struct AtomF32 {
  using Stored = uint32_t;
  static uint32_t Do(int, uint32_t old, uint32_t b, uint32_t) {
    return std::bit_cast<uint32_t>(Canonical(std::bit_cast<float>(old) + std::bit_cast<float>(b)));
  }
};
struct AtomF64 {
  using Stored = uint64_t;
  static uint64_t Do(int, uint64_t old, uint64_t b, uint64_t) {
    return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
  }
};
template <class N>
struct AtomNarrow {
  using Stored = uint16_t;
  static uint16_t Do(int, uint16_t old, uint16_t b, uint16_t) {
    return N::Encode(N::Decode(old) + N::Decode(b));
  }
};
template <class N>
struct AtomPair {
  using Stored = uint32_t;
  static uint32_t Do(int, uint32_t old, uint32_t b, uint32_t) {
    const auto half = [&](int shift) {
      const float sum = N::Decode(static_cast<uint16_t>(old >> shift)) +
                        N::Decode(static_cast<uint16_t>(b >> shift));
      return uint32_t{N::Encode(sum)} << shift;
    };
    return half(0) | half(16);
  }
};

// Elements of a vector (red.v2, v4) are atomic one by one; op.count holds how many, op.offset the
// address.
template <class F>
void RunAtomic(Warp& w, const Op& op, uint32_t lanes) {
  using T = typename F::Stored;
  uint64_t at[kLanes];
  Addresses(w, op, at);
  const auto bytes = static_cast<uint32_t>(sizeof(T) * op.count);
  if (!CheckAligned(w, at, lanes, bytes)) return;
  ++w.block->statistics.atomics;
  const auto space_of_op = static_cast<Space>(op.target);
  ForLanes(lanes, [&](int i) {
    if (w.failed) return;
    Space space = space_of_op;
    uint8_t* p = nullptr;
    if (space == Space::kShared)
      p = SharedBytes(w, i, at[i], bytes);
    else if (space == Space::kGlobal)
      p = GlobalBytes(w, i, at[i], bytes, true);
    else
      p = GenericBytes(w, i, at[i], bytes, true, space);
    if (p == nullptr) return;
    if (space == Space::kShared &&
        !w.block->shadow.Note(w, i, at[i], bytes, SharedShadow::Access::kAtomic, nullptr))
      return;
    for (int k = 0; k < op.count; ++k) {
      const int32_t* const list = w.program->lists.data() + op.list;
      const T b = w.In<T>(list[op.count + k])[i], c = op.c != INT32_MAX ? w.In<T>(op.c)[i] : T{};
      std::atomic_ref<T> memory(*reinterpret_cast<T*>(p + k * sizeof(T)));
      T old = memory.load();
      while (!memory.compare_exchange_weak(old, F::Do(op.e, old, b, c))) {
      }
      if (list[k] >= 0) w.Register<T>(list[k])[i] = old;
    }
  });
}

Handler AtomicOf(Type t, int how) {
  const bool add = how == kAtomAdd;
  switch (t) {
    case Type::kB16:
      return how == kAtomCas || how == kAtomExch ? RunAtomic<AtomPlain<uint16_t>> : nullptr;
    case Type::kB32:
    case Type::kU32:
      return RunAtomic<AtomPlain<uint32_t>>;
    case Type::kS32:
      return RunAtomic<AtomPlain<int32_t>>;
    case Type::kB64:
    case Type::kU64:
      return RunAtomic<AtomPlain<uint64_t>>;
    case Type::kS64:
      return RunAtomic<AtomPlain<int64_t>>;
    case Type::kF32:
      return add ? RunAtomic<AtomF32> : nullptr;
    case Type::kF64:
      return add ? RunAtomic<AtomF64> : nullptr;
    case Type::kF16:
      return add ? RunAtomic<AtomNarrow<F16>> : nullptr;
    case Type::kBf16:
      return add ? RunAtomic<AtomNarrow<Bf16>> : nullptr;
    case Type::kF16x2:
      return add ? RunAtomic<AtomPair<F16>> : nullptr;
    case Type::kBf16x2:
      return add ? RunAtomic<AtomPair<Bf16>> : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

void DecodeAtomic(Decoder& d) {
  const bool red = d.in().opcode == "red";
  if (d.Take("async")) return d.Fail("red.async is not supported");
  const Space space = TakeStateSpace(d);
  TakeCacheHints(d);
  const int how =
      d.TakeOneOf({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"});
  d.Take("noftz");
  const int vector = d.TakeOneOf({"v2", "v4", "v8"});
  const Type t = d.TakeType();
  Op op;
  op.run = how < 0 ? nullptr : AtomicOf(t, how);
  const size_t sources = how == kAtomCas ? 2 : 1, first = red ? 0 : 1;
  if (op.run == nullptr || !d.Want(first + 1 + sources))
    return d.Fail("this form is not supported");
  op.kind = Kind::kAtomic;
  op.e = how;
  op.count = vector < 0 ? 1 : 2 << vector;
  op.target = static_cast<int32_t>(d.Address(d.operand(first), space, op));
  const int bytes = Bytes(t);
  if (red) {
    op.list = static_cast<int32_t>(d.program().lists.size());
    d.program().lists.insert(d.program().lists.end(), op.count, -1);
  } else {
    op.list = d.List(d.operand(0), bytes, true);
  }
  d.List(d.operand(first + 1), bytes, false);
  if (static_cast<int>(d.program().lists.size()) != op.list + 2 * op.count)
    return d.Fail("a vector of another size");
  op.c = how == kAtomCas ? d.Source(first + 2, bytes) : INT32_MAX;
  d.NoteSharedAccess(static_cast<uint32_t>(bytes));
  d.Emit(op);
}

}  // namespace forge::ptx
