// SPDX-License-Identifier: Apache-2.0
// Small kernels and devices that several tests of codegen/ share.
#pragma once
#include <gtest/gtest.h>

#include "codegen/kernel/kernel_ir.h"
#include "codegen/kernel/scalar.h"

namespace forge::codegen {

// Every optional feature.
inline Caps RichCaps() {
  Caps c;
  c.max_workgroup_invocations = c.max_workgroup_x = c.max_workgroup_y = 1024;
  c.subgroup_size = c.min_subgroup_size = c.max_subgroup_size = 8;
  c.subgroup_arithmetic = c.subgroup_shuffle = c.subgroup_ballot = true;
  c.subgroup_reconvergence = true;
  c.f16 = c.f64 = c.i8 = c.i16 = c.i64 = c.storage8 = c.storage16 = c.int_dot = true;
  c.signed_zero_inf_nan = c.large_divisors = true;
  return c;
}

inline View Reads(std::string name, Type elem, int operand) {
  return {.name = std::move(name), .elem = elem, .operand = operand};
}
inline View Writes(std::string name, Type elem, int operand) {
  return {
      .name = std::move(name), .elem = elem, .operand = operand, .reads = false, .writes = true};
}
// The same view of an operand in parts of `extent` elements.
inline View InParts(View v, int parts, uint32_t extent) {
  v.parts = parts;
  v.extent = extent;
  return v;
}
inline View Shared(std::string name, Type elem, uint32_t extent) {
  return {.name = std::move(name),
          .space = Space::kShared,
          .elem = elem,
          .extent = extent,
          .writes = true};
}

// A kernel of `n` invocations at most; the body is given the builder and the invocation's number.
template <class Body>
Kernel MakeKernel(std::string name, Body body) {
  Kernel k{.name = std::move(name)};
  k.grid[0] = 4;
  Builder b(k);
  const Val i = b.Builtin(BuiltinKind::kWorkgroupX) * 64 + b.Builtin(BuiltinKind::kLocalX);
  body(b, i);
  b.Finish();
  return k;
}

// y[i] = f(x[i]) for each i below 200.
template <class F>
Kernel MapKernel(std::string name, Type in, Type out, F f) {
  return MakeKernel(std::move(name), [&](Builder& b, Val i) {
    const uint16_t x = b.AddView(Reads("x", in, 0)), y = b.AddView(Writes("y", out, 1));
    b.If(i < 200, [&] { b.Store(y, i, f(b.Load(x, i))); });
  });
}

// Each invocation leaves the loop at a trip of its own; then subgroups add up what they have.
inline Kernel SumBehindLoop() {
  return MakeKernel("sum_behind_loop", [](Builder& b, Val i) {
    const Val local = b.Builtin(BuiltinKind::kLocalX);
    const Vals counted = b.For({local, b.Int(100), b.Int(9)}, {b.Int(0)},
                               [](Val n, const Vals& v) { return Vals{v[0] + n}; });
    const uint16_t y = b.AddView(Writes("y", kI32, 0));
    b.Store(y, i, b.SubgroupReduce(ReduceKind::kSum, counted[0]));
  });
}

inline const Type kF16{DType::kF16}, kF64{DType::kF64}, kI64{DType::kI64}, kU64{DType::kU64};
inline const Type kU8{DType::kU8}, kI8{DType::kI8}, kU16{DType::kU16};

// Every operation that takes `t`.
inline Kernel Arithmetic(Type t) {
  return MapKernel("arithmetic", t, t, [](Val x) {
    Val y = max(min(x * 2 + 3, x - 1), -x) / (x + 1);
    y = select((x < y) | ~(x == 3.0), y, abs(x));
    if (!Has(kFloatTypes, x.type().elem)) return ((y & x) | ((y << 3.0) ^ ~y)) % (x >> 1.0);
    return fma(sqrt(y), floor(x), round_even(y)) + floor(y) + rsqrt(x);
  });
}

inline Kernel Conversion(Type from, Type to) {
  return MapKernel("convert", from, to, [&](Val x) { return convert(x, to.elem); });
}

// Sums rows of 64 with a tree in shared memory and barriers.
inline Kernel TreeSum() {
  return MakeKernel("tree_sum", [](Builder& b, Val i) {
    const uint16_t x = b.AddView(Reads("x", kF32, 0)), y = b.AddView(Writes("y", kF32, 1));
    const uint16_t tile = b.AddView(Shared("tile", kF32, 64));
    const Val local = b.Builtin(BuiltinKind::kLocalX);
    b.Store(tile, local, b.Load(x, i));
    b.Barrier();
    b.While(
        {b.Int(32)}, [](Vals v) { return v[0] > 0; },
        [&](Vals v) {
          b.If(local < v[0], [&] {
            const Val other = b.Load(tile, local + v[0]);
            b.Store(tile, local, other + b.Load(tile, local));
          });
          b.Barrier();
          return Vals{b.Emit(Code::kShr, kI32, {v[0], b.Int(1)})};
        });
    b.If(local == 0, [&] { b.Store(y, b.Builtin(BuiltinKind::kWorkgroupX), b.Load(tile, local)); });
  });
}

// How many instructions of this kind the kernel has.
inline int Count(const Kernel& k, Code code) {
  int n = 0;
  for (const Block& b : k.blocks)
    for (const Inst& i : b.insts) n += i.code == code;
  return n;
}

}  // namespace forge::codegen
