// SPDX-License-Identifier: Apache-2.0
// Operations that each lane does by itself: F::Do on the values of all 32 lanes, which compilers
// vectorise; lanes that do not take part keep their registers.
#pragma once
#include "tests/ptx/machine/decode/decoder.h"
#include "tests/ptx/machine/warp.h"

namespace forge::ptx {

template <class R, class A, class F>
void Unary(Warp& w, const Op& op, uint32_t lanes) {
  const A* const a = w.In<A>(op.a);
  R r[kLanes];
  for (int i = 0; i < kLanes; ++i) r[i] = F::Do(a[i]);
  w.Out(op.d, r, lanes);
}

template <class R, class A, class B, class F>
void Binary(Warp& w, const Op& op, uint32_t lanes) {
  const A* const a = w.In<A>(op.a);
  const B* const b = w.In<B>(op.b);
  R r[kLanes];
  for (int i = 0; i < kLanes; ++i) r[i] = F::Do(a[i], b[i]);
  w.Out(op.d, r, lanes);
}

template <class R, class A, class B, class C, class F>
void Ternary(Warp& w, const Op& op, uint32_t lanes) {
  const A* const a = w.In<A>(op.a);
  const B* const b = w.In<B>(op.b);
  const C* const c = w.In<C>(op.c);
  R r[kLanes];
  for (int i = 0; i < kLanes; ++i) r[i] = F::Do(a[i], b[i], c[i]);
  w.Out(op.d, r, lanes);
}

// Emits an operation on one to three operands of given sizes.
inline void EmitLanewise(Decoder& d, Handler run, int result, std::initializer_list<int> operands,
                         Kind kind = Kind::kOther) {
  if (!d.Want(1 + operands.size())) return;
  Op op;
  op.run = run;
  op.kind = kind;
  if (run == nullptr) return d.Fail("this type is not supported here");
  op.d = d.Destination(0, result);
  int32_t* const places[] = {&op.a, &op.b, &op.c};
  size_t i = 0;
  for (const int bytes : operands) {
    *places[i] = d.Source(i + 1, bytes);
    ++i;
  }
  d.Emit(op);
}

}  // namespace forge::ptx
