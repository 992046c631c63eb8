// SPDX-License-Identifier: Apache-2.0
// mma.sync: D = A B + C with fragments over a warp. Source: PTX ISA 9.5, "Matrix Fragments for
// mma".
//
// One rule gives all layouts: with g = lane / 4, t = lane % 4 and P elements in a register of A or
// B, element e of register r of A is row g + 8 (r % 2), column P t + e + 4 P (r / 2) (for 8 rows:
// register r holds columns 4 P r on); of B it is row P t + e + 4 P r, column g. Element i of C and
// D is row g + 8 (i / 2), column 2 t + i % 2.
#include <algorithm>
#include <limits>

#include "tests/ptx/machine/instructions/float8.h"
#include "tests/ptx/machine/instructions/lanewise.h"
#include "tests/ptx/machine/instructions/narrow.h"

namespace forge::ptx {
namespace {

constexpr int kColumns = 8, kMostRows = 16, kMostDepth = 32;

template <class N>
struct NarrowElement {
  using Stored = uint16_t;
  static float Decode(uint16_t v) { return N::Decode(v); }
};
struct Tf32Element {
  using Stored = uint32_t;
  static float Decode(uint32_t v) { return std::bit_cast<float>(v & 0xffffe000u); }
};
template <bool kE4m3>
struct Float8Element {
  using Stored = uint8_t;
  static float Decode(uint8_t v) { return kE4m3 ? DecodeE4m3(v) : DecodeE5m2(v); }
};
template <class T>
struct IntegerElement {
  using Stored = std::make_unsigned_t<T>;
  static int32_t Decode(Stored v) { return static_cast<T>(v); }
};
struct DoubleElement {
  using Stored = uint64_t;
  static double Decode(uint64_t v) { return std::bit_cast<double>(v); }
};

// Op: list holds the registers of D, A, B, C; count the rows, e the depth, flags as below.
constexpr uint8_t kHalfC = 1, kHalfD = 2, kSaturate = 4;

template <class E, class T>
void LoadA(const Warp& w, const int32_t* registers, int rows, int depth,
           T (&a)[kMostRows][kMostDepth]) {
  using S = typename E::Stored;
  constexpr int p = sizeof(S) == 8 ? 1 : 4 / static_cast<int>(sizeof(S));
  const int down = rows / 8, n = down * depth / (4 * p);
  for (int r = 0; r < n; ++r) {
    const S* const v = w.In<S>(registers[r]);
    for (int i = 0; i < kLanes; ++i)
      for (int e = 0; e < p; ++e)
        a[i / 4 + 8 * (r % down)][i % 4 * p + e + 4 * p * (r / down)] = E::Decode(v[i * p + e]);
  }
}

template <class E, class T>
void LoadB(const Warp& w, const int32_t* registers, int depth, T (&b)[kMostDepth][kColumns]) {
  using S = typename E::Stored;
  constexpr int p = sizeof(S) == 8 ? 1 : 4 / static_cast<int>(sizeof(S));
  for (int r = 0; r < depth / (4 * p); ++r) {
    const S* const v = w.In<S>(registers[r]);
    for (int i = 0; i < kLanes; ++i)
      for (int e = 0; e < p; ++e) b[i % 4 * p + e + 4 * p * r][i / 4] = E::Decode(v[i * p + e]);
  }
}

template <class T>
void LoadC(const Warp& w, const Op& op, const int32_t* registers, T (&c)[kMostRows][kColumns]) {
  for (int k = 0; k < op.count / 8 * 2; ++k) {
    for (int i = 0; i < kLanes; ++i) {
      T& to = c[i / 4 + 8 * (k / 2)][i % 4 * 2 + k % 2];
      if (std::is_same_v<T, float> && (op.flags & kHalfC) != 0)
        to = static_cast<T>(F16::Decode(w.In<uint16_t>(registers[k / 2])[2 * i + k % 2]));
      else
        to = w.In<T>(registers[k])[i];
    }
  }
}

template <class T>
void StoreD(Warp& w, const Op& op, const int32_t* registers, const T (&c)[kMostRows][kColumns]) {
  for (int k = 0; k < op.count / 8 * 2; ++k) {
    for (int i = 0; i < kLanes; ++i) {
      const T v = c[i / 4 + 8 * (k / 2)][i % 4 * 2 + k % 2];
      if (std::is_same_v<T, float> && (op.flags & kHalfD) != 0)
        w.Register<uint16_t>(registers[k / 2])[2 * i + k % 2] = F16::Encode(static_cast<float>(v));
      else
        w.Register<T>(registers[k])[i] = v;
    }
  }
}

template <class T>
void Multiply(int rows, int depth, const T (&a)[kMostRows][kMostDepth],
              const T (&b)[kMostDepth][kColumns], T (&c)[kMostRows][kColumns]) {
  using Sum = std::conditional_t<std::is_same_v<T, int32_t>, uint32_t, T>;  // which wraps
  for (int m = 0; m < rows; ++m) {
    Sum sum[kColumns];
    for (int n = 0; n < kColumns; ++n) sum[n] = static_cast<Sum>(c[m][n]);
    for (int k = 0; k < depth; ++k)
      for (int n = 0; n < kColumns; ++n)
        sum[n] += static_cast<Sum>(a[m][k]) * static_cast<Sum>(b[k][n]);
    for (int n = 0; n < kColumns; ++n) c[m][n] = static_cast<T>(sum[n]);
  }
}

void MultiplySaturated(int rows, int depth, const int32_t (&a)[kMostRows][kMostDepth],
                       const int32_t (&b)[kMostDepth][kColumns],
                       int32_t (&c)[kMostRows][kColumns]) {
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < kColumns; ++n) {
      int64_t sum = c[m][n];
      for (int k = 0; k < depth; ++k) sum += int64_t{a[m][k]} * b[k][n];
      c[m][n] = static_cast<int32_t>(std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                                                         std::numeric_limits<int32_t>::max()));
    }
  }
}

template <class A, class B, class T>
void RunMma(Warp& w, const Op& op, uint32_t lanes) {
  if (lanes != kAllLanes)
    return w.Fail(__builtin_ctz(lanes), fmt::format("needs all 32 lanes, has {:#010x}", lanes));
  const int32_t* const list = w.program->lists.data() + op.list;
  T a[kMostRows][kMostDepth], b[kMostDepth][kColumns], c[kMostRows][kColumns];
  LoadA<A>(w, list + op.a, op.count, op.e, a);
  LoadB<B>(w, list + op.b, op.e, b);
  LoadC(w, op, list + op.c, c);
  if constexpr (std::is_same_v<T, int32_t>) {
    if ((op.flags & kSaturate) != 0)
      MultiplySaturated(op.count, op.e, a, b, c);
    else
      Multiply(op.count, op.e, a, b, c);
  } else {
    Multiply(op.count, op.e, a, b, c);
  }
  StoreD(w, op, list, c);
}

struct Shape {
  int rows = 0, depth = 0;
};

Shape TakeShape(Decoder& d) {
  switch (d.TakeOneOf({"m16n8k4", "m16n8k8", "m16n8k16", "m16n8k32", "m8n8k4", "m8n8k16"})) {
    case 0:
      return {16, 4};
    case 1:
      return {16, 8};
    case 2:
      return {16, 16};
    case 3:
      return {16, 32};
    case 4:
      return {8, 4};
    case 5:
      return {8, 16};
    default:
      return {};
  }
}

Handler IntegerMma(Type a, Type b) {
  using S = IntegerElement<int8_t>;
  using U = IntegerElement<uint8_t>;
  if (a == Type::kS8) return b == Type::kS8 ? RunMma<S, S, int32_t> : RunMma<S, U, int32_t>;
  return b == Type::kS8 ? RunMma<U, S, int32_t> : RunMma<U, U, int32_t>;
}

Handler Float8Mma(Type a, Type b) {
  using X = Float8Element<true>;
  using Y = Float8Element<false>;
  if (a == Type::kE4m3) return b == Type::kE4m3 ? RunMma<X, X, float> : RunMma<X, Y, float>;
  return b == Type::kE4m3 ? RunMma<Y, X, float> : RunMma<Y, Y, float>;
}

// Which depths a type has; null where there is no such instruction.
Handler MmaOf(Type a, Type b, Shape s) {
  const bool integer = (a == Type::kS8 || a == Type::kU8) && (b == Type::kS8 || b == Type::kU8);
  const bool narrow8 =
      (a == Type::kE4m3 || a == Type::kE5m2) && (b == Type::kE4m3 || b == Type::kE5m2);
  if (integer)
    return (s.rows == 8) == (s.depth == 16 && s.rows == 8) && s.depth >= 16 ? IntegerMma(a, b)
                                                                            : nullptr;
  if (narrow8) return s.rows == 16 && s.depth >= 16 ? Float8Mma(a, b) : nullptr;
  if (a != b) return nullptr;
  const bool half_depth = s.rows == 16 && (s.depth == 8 || s.depth == 16);
  if (a == Type::kF16)
    return half_depth ? RunMma<NarrowElement<F16>, NarrowElement<F16>, float> : nullptr;
  if (a == Type::kBf16)
    return half_depth ? RunMma<NarrowElement<Bf16>, NarrowElement<Bf16>, float> : nullptr;
  if (a == Type::kTf32)
    return s.rows == 16 && s.depth <= 8 ? RunMma<Tf32Element, Tf32Element, float> : nullptr;
  if (a == Type::kF64)
    return s.depth <= 16 && (s.rows == 16 || s.depth == 4)
               ? RunMma<DoubleElement, DoubleElement, double>
               : nullptr;
  return nullptr;
}

int ElementBytes(Type t) { return t == Type::kTf32 ? 4 : Bytes(t); }

}  // namespace

void DecodeMatrix(Decoder& d) {
  d.Take("sync");
  d.Take("aligned");
  const Shape shape = TakeShape(d);
  if (!d.Take("row") || !d.Take("col")) return d.Fail("A is .row and B .col");
  Op op;
  if (d.Take("satfinite")) op.flags |= kSaturate;
  const Type type_d = d.TakeType(), a = d.TakeType(), b = d.TakeType(), c = d.TakeType();
  op.run = shape.rows == 0 ? nullptr : MmaOf(a, b, shape);
  if (op.run == nullptr || !d.Want(4)) return d.Fail("this shape or these types are not supported");
  const bool integer = type_d == Type::kS32, wide = type_d == Type::kF64;
  if (type_d == Type::kF16) op.flags |= kHalfD;
  if (c == Type::kF16) op.flags |= kHalfC;
  const bool float_sums =
      (type_d == Type::kF32 || type_d == Type::kF16) && (c == Type::kF32 || c == Type::kF16);
  const bool integer_in = a == Type::kS8 || a == Type::kU8;
  if (integer != integer_in || wide != (a == Type::kF64) || (!float_sums && type_d != c))
    return d.Fail("these types are not supported");
  const int reg = wide ? 8 : 4, per = wide ? 1 : 4 / ElementBytes(a), sums = shape.rows / 8 * 2;
  const auto expect = [&](size_t i, int n) {
    if (static_cast<int>(d.operand(i).parts.size()) != n)
      d.Fail("operand {} has not {} registers", i, n);
  };
  const int na = shape.rows / 8 * shape.depth / (4 * per), nb = shape.depth / (4 * per);
  const int nd = type_d == Type::kF16 ? sums / 2 : sums, nc = c == Type::kF16 ? sums / 2 : sums;
  expect(0, nd);
  expect(1, na);
  expect(2, nb);
  expect(3, nc);
  if (d.failed()) return;
  op.control = Control::kWarpSync;
  op.mask = d.Constant(kAllLanes, 4);
  op.kind = Kind::kMatrix;
  op.count = shape.rows;
  op.e = shape.depth;
  op.list = d.List(d.operand(0), reg, true);
  op.a = d.List(d.operand(1), reg, false) - op.list;
  op.b = d.List(d.operand(2), reg, false) - op.list;
  op.c = d.List(d.operand(3), reg, false) - op.list;
  d.Emit(op);
}

}  // namespace forge::ptx
