// SPDX-License-Identifier: Apache-2.0
// Roots, reciprocals, exponentials and their like. The approximate ones are computed better than
// devices do: PTX bounds only their error. Source: PTX ISA 9.5, "Floating-Point Instructions".
#include "tests/ptx/machine/instructions/lanewise.h"
#include "tests/ptx/machine/instructions/narrow.h"

namespace forge::ptx {
namespace {

struct Sqrt {
  template <class T>
  static T Do(T a) {
    return std::sqrt(a);
  }
};
struct Rcp {
  template <class T>
  static T Do(T a) {
    return T{1} / a;
  }
};
struct Rsqrt {
  static float Do(float a) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a))); }
  static double Do(double a) { return 1.0 / std::sqrt(a); }
};
struct Sin {
  static float Do(float a) { return std::sin(a); }
};
struct Cos {
  static float Do(float a) { return std::cos(a); }
};
struct Lg2 {
  static float Do(float a) { return std::log2(a); }
};
struct Ex2 {
  static float Do(float a) { return std::exp2(a); }
};
struct Tanh {
  static float Do(float a) { return std::tanh(a); }
};

template <class F, bool kFtz>
struct SingleFunction {
  static float Do(float a) { return Canonical(kFtz ? Flush(F::Do(Flush(a))) : F::Do(a)); }
};

// Lane by lane, active ones only: these cost a library call each.
template <class F, bool kFtz>
void SlowUnary(Warp& w, const Op& op, uint32_t lanes) {
  const float* const a = w.In<float>(op.a);
  float r[kLanes] = {};
  ForLanes(lanes, [&](int i) { r[i] = SingleFunction<F, kFtz>::Do(a[i]); });
  w.Out(op.d, r, lanes);
}

template <class F>
Handler FunctionOf(Type t, bool ftz) {
  if (t == Type::kF32) return ftz ? SlowUnary<F, true> : SlowUnary<F, false>;
  if constexpr (requires { F::Do(0.0) == double{}; } &&
                !std::is_same_v<decltype(F::Do(0.0)), float>)
    if (t == Type::kF64) return Unary<double, double, F>;
  return nullptr;
}

// ex2 and tanh of f16 and bf16.
template <class N, class F, bool kPacked>
void NarrowFunction(Warp& w, const Op& op, uint32_t lanes) {
  constexpr int n = kPacked ? 2 : 1;
  const uint16_t* const a = w.In<uint16_t>(op.a);
  alignas(4) uint16_t r[n * kLanes];
  for (int i = 0; i < n * kLanes; ++i) r[i] = N::Encode(F::Do(N::Decode(a[i])));
  if (kPacked)
    w.Out(op.d, reinterpret_cast<const uint32_t*>(r), lanes);
  else
    w.Out(op.d, r, lanes);
}

template <class F>
Handler NarrowOf(Type t) {
  switch (t) {
    case Type::kF16:
      return NarrowFunction<F16, F, false>;
    case Type::kF16x2:
      return NarrowFunction<F16, F, true>;
    case Type::kBf16:
      return NarrowFunction<Bf16, F, false>;
    case Type::kBf16x2:
      return NarrowFunction<Bf16, F, true>;
    default:
      return nullptr;
  }
}

}  // namespace

void DecodeApproximate(Decoder& d) {
  const std::string_view name = d.in().opcode;
  for (const std::string_view m : d.in().modifiers)
    if (m == "rz" || m == "rm" || m == "rp") return DecodeDirected(d);
  d.TakeOneOf({"approx", "rn"});
  const bool ftz = d.Take("ftz");
  const Type t = d.TakeType();
  const int bytes = Bytes(t);
  Handler run = nullptr;
  if (name == "sqrt") run = FunctionOf<Sqrt>(t, ftz);
  if (name == "rcp") run = FunctionOf<Rcp>(t, ftz);
  if (name == "rsqrt") run = FunctionOf<Rsqrt>(t, ftz);
  if (name == "sin") run = FunctionOf<Sin>(t, ftz);
  if (name == "cos") run = FunctionOf<Cos>(t, ftz);
  if (name == "lg2") run = FunctionOf<Lg2>(t, ftz);
  if (name == "ex2") run = t == Type::kF32 ? FunctionOf<Ex2>(t, ftz) : NarrowOf<Ex2>(t);
  if (name == "tanh") run = t == Type::kF32 ? FunctionOf<Tanh>(t, ftz) : NarrowOf<Tanh>(t);
  EmitLanewise(d, run, bytes, {bytes}, Kind::kFloat);
}

}  // namespace forge::ptx
