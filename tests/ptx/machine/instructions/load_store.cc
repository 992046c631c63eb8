// SPDX-License-Identifier: Apache-2.0
// ld and st. Source: PTX ISA 9.5, "ld", "ld.global.nc", "st".
#include "tests/ptx/machine/access.h"

namespace forge::ptx {
namespace {

// Op::flags beside kAddress32.
constexpr uint8_t kSigned = 2;

// Moves `n` elements of T between memory and registers of R, sign-extended on request.
template <class T, class R>
void ToRegisters(Warp& w, const Op& op, int lane, const uint8_t* from) {
  for (int k = 0; k < op.count; ++k) {
    T v{};
    std::memcpy(&v, from + k * sizeof(T), sizeof(T));
    R& to = w.Register<R>(w.program->lists[op.list + k])[lane];
    to = static_cast<R>(v);
    if constexpr (sizeof(R) > sizeof(T) && sizeof(R) <= 8) {
      if ((op.flags & kSigned) != 0) to = static_cast<R>(static_cast<std::make_signed_t<T>>(v));
    }
  }
}

template <class T, class R>
void FromRegisters(const Warp& w, const Op& op, int lane, uint8_t* to) {
  for (int k = 0; k < op.count; ++k) {
    const T v = static_cast<T>(w.In<R>(w.program->lists[op.list + k])[lane]);
    std::memcpy(to + k * sizeof(T), &v, sizeof(T));
  }
}

template <class T, class R>
void LoadGlobal(Warp& w, const Op& op, uint32_t lanes) {
  uint64_t at[kLanes];
  Addresses(w, op, at);
  const auto bytes = static_cast<uint32_t>(sizeof(T) * op.count);
  if (!CheckAligned(w, at, lanes, bytes)) return;
  CountGlobal(w, at, lanes, bytes);
  uint64_t delta = 0;
  if (GlobalDelta(w, at, lanes, bytes, delta)) {
    ForLanes(lanes, [&](int i) {
      ToRegisters<T, R>(w, op, i, reinterpret_cast<const uint8_t*>(at[i] + delta));
    });
    return;
  }
  ForLanes(lanes, [&](int i) {
    const uint8_t* const from = w.failed ? nullptr : GlobalBytes(w, i, at[i], bytes, false);
    if (from != nullptr) ToRegisters<T, R>(w, op, i, from);
  });
}

template <class T, class R>
void StoreGlobal(Warp& w, const Op& op, uint32_t lanes) {
  uint64_t at[kLanes];
  Addresses(w, op, at);
  const auto bytes = static_cast<uint32_t>(sizeof(T) * op.count);
  if (!CheckAligned(w, at, lanes, bytes)) return;
  CountGlobal(w, at, lanes, bytes);
  ForLanes(lanes, [&](int i) {
    uint8_t* const to = w.failed ? nullptr : GlobalBytes(w, i, at[i], bytes, true);
    if (to != nullptr) FromRegisters<T, R>(w, op, i, to);
  });
}

template <class T, class R>
void LoadShared(Warp& w, const Op& op, uint32_t lanes) {
  uint64_t at[kLanes];
  Addresses(w, op, at);
  const auto bytes = static_cast<uint32_t>(sizeof(T) * op.count);
  if (!CheckAligned(w, at, lanes, bytes)) return;
  CountShared(w, at, lanes, bytes);
  ForLanes(lanes, [&](int i) {
    if (!w.failed) SharedBytes(w, i, at[i], bytes);
  });
  if (w.failed || !w.block->shadow.NoteReads(w, at, lanes, bytes)) return;
  const uint8_t* const shared = w.block->shared.data();
  ForLanes(lanes, [&](int i) { ToRegisters<T, R>(w, op, i, shared + at[i]); });
}

template <class T, class R>
void StoreShared(Warp& w, const Op& op, uint32_t lanes) {
  uint64_t at[kLanes];
  Addresses(w, op, at);
  const auto bytes = static_cast<uint32_t>(sizeof(T) * op.count);
  if (!CheckAligned(w, at, lanes, bytes)) return;
  CountShared(w, at, lanes, bytes);
  ForLanes(lanes, [&](int i) {
    if (w.failed) return;
    uint8_t* const to = SharedBytes(w, i, at[i], bytes);
    if (to == nullptr) return;
    uint8_t value[64];
    FromRegisters<T, R>(w, op, i, value);
    if (!w.block->shadow.Note(w, i, at[i], bytes, SharedShadow::Access::kWrite, value)) return;
    std::memcpy(to, value, bytes);
  });
}

// Local memory, parameters, and generic addresses, lane by lane.
template <class T, class R, bool kStore>
void AccessGeneric(Warp& w, const Op& op, uint32_t lanes) {
  uint64_t at[kLanes];
  Addresses(w, op, at);
  const auto bytes = static_cast<uint32_t>(sizeof(T) * op.count);
  const auto window = static_cast<uint64_t>(op.e) << 48;
  if (!CheckAligned(w, at, lanes, bytes)) return;
  uint32_t global = 0, shared = 0;
  ForLanes(lanes, [&](int i) {
    if (w.failed) return;
    Space space{};
    at[i] += window;
    uint8_t* const p = GenericBytes(w, i, at[i], bytes, kStore, space);
    if (p == nullptr) return;
    uint8_t value[64];
    if (kStore) FromRegisters<T, R>(w, op, i, value);
    const auto access = kStore ? SharedShadow::Access::kWrite : SharedShadow::Access::kRead;
    if (space == Space::kShared &&
        !w.block->shadow.Note(w, i, at[i], bytes, access, kStore ? value : nullptr))
      return;
    if (kStore)
      std::memcpy(p, value, bytes);
    else
      ToRegisters<T, R>(w, op, i, p);
    if (space == Space::kGlobal) global |= uint32_t{1} << i;
    if (space == Space::kShared) shared |= uint32_t{1} << i;
  });
  if (global != 0) CountGlobal(w, at, global, bytes);
  if (shared != 0) CountShared(w, at, shared, bytes);
}

template <class T, class R>
Handler AccessOf(Space space, bool store) {
  switch (space) {
    case Space::kGlobal:
    case Space::kConst:
      return store ? StoreGlobal<T, R> : LoadGlobal<T, R>;
    case Space::kShared:
      return store ? StoreShared<T, R> : LoadShared<T, R>;
    default:
      return store ? AccessGeneric<T, R, true> : AccessGeneric<T, R, false>;
  }
}

struct Wide128 {
  uint64_t low, high;
};

template <class T>
Handler AccessFor(int register_bytes, Space space, bool store) {
  switch (register_bytes) {
    case 2:
      return AccessOf<T, uint16_t>(space, store);
    case 4:
      return AccessOf<T, uint32_t>(space, store);
    case 8:
      return AccessOf<T, uint64_t>(space, store);
    default:
      return nullptr;
  }
}

Handler AccessFor(int bytes, int register_bytes, Space space, bool store) {
  if (register_bytes < bytes) return nullptr;
  switch (bytes) {
    case 1:
      return AccessFor<uint8_t>(register_bytes, space, store);
    case 2:
      return AccessFor<uint16_t>(register_bytes, space, store);
    case 4:
      return AccessFor<uint32_t>(register_bytes, space, store);
    case 8:
      return AccessFor<uint64_t>(register_bytes, space, store);
    case 16:
      return AccessOf<Wide128, Wide128>(space, store);
    default:
      return nullptr;
  }
}

// Registers may be wider than the elements; all of an instruction have one size.
int ListAny(Decoder& d, const Operand& o, int bytes, bool store, Op& op) {
  std::vector<int32_t> places;
  int width = 0;
  const auto add = [&](const Operand& part) {
    int actual = width != 0 ? width : std::max(bytes, 2);
    places.push_back(store ? d.AnySource(part, bytes, actual) : d.AnyDestination(part, actual));
    if (width != 0 && actual != width) d.Fail("registers of several sizes");
    width = actual;
  };
  if (o.kind == Operand::Kind::kVector)
    for (const Operand& part : o.parts) add(part);
  else
    add(o);
  op.list = static_cast<int32_t>(d.program().lists.size());
  op.count = static_cast<int32_t>(places.size());
  d.program().lists.insert(d.program().lists.end(), places.begin(), places.end());
  return width;
}

}  // namespace

void DecodeAccess(Decoder& d) {
  const std::string_view name = d.in().opcode;
  if (name.starts_with("prefetch")) {
    while (!d.TakeNext().empty()) {
    }
    return;
  }
  const bool store = name == "st";
  Space space = TakeStateSpace(d);
  TakeCacheHints(d);
  if (space == Space::kGeneric) space = TakeStateSpace(d);
  const int vector = d.TakeOneOf({"v2", "v4", "v8"});
  const Type t = d.TakeType();
  const int bytes = Bytes(t), count = vector < 0 ? 1 : 2 << vector;
  if (bytes == 0 || !d.Want(2)) return d.Fail("this access is not supported");
  Op op;
  space = d.Address(d.operand(store ? 0 : 1), space, op);
  const int width = ListAny(d, d.operand(store ? 1 : 0), bytes, store, op);
  if (op.count != count || bytes * count > 32) return d.Fail("a vector of {} registers", op.count);
  if (IsSigned(t)) op.flags |= kSigned;
  op.run = AccessFor(bytes, width, space, store);
  if (op.run == nullptr) return d.Fail("this access is not supported");
  if (space == Space::kLocal) op.e = static_cast<int32_t>(kLocalWindow >> 48);
  if (space == Space::kParam) op.e = static_cast<int32_t>(kParamWindow >> 48);
  const bool may_share = space == Space::kShared || space == Space::kGeneric;
  if (may_share) d.NoteSharedAccess(static_cast<uint32_t>(bytes));
  op.kind = space == Space::kShared   ? Kind::kShared
            : space == Space::kGlobal ? Kind::kGlobal
                                      : Kind::kLocal;
  d.Emit(op);
}

}  // namespace forge::ptx
