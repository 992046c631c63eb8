// SPDX-License-Identifier: Apache-2.0
// f32 and f64 arithmetic rounded to nearest even. Source: PTX ISA 9.5, "Floating-Point
// Instructions".
#include <cmath>
#include <limits>

#include "tests/ptx/machine/instructions/lanewise.h"
#include "tests/ptx/machine/instructions/narrow.h"

namespace forge::ptx {
namespace {

struct FAdd {
  template <class T>
  static T Do(T a, T b) {
    return a + b;
  }
};
struct FSub {
  template <class T>
  static T Do(T a, T b) {
    return a - b;
  }
};
struct FMul {
  template <class T>
  static T Do(T a, T b) {
    return a * b;
  }
};
struct FDiv {
  template <class T>
  static T Do(T a, T b) {
    return a / b;
  }
};
struct FFma {
  template <class T>
  static T Do(T a, T b, T c) {
    return std::fma(a, b, c);
  }
};
template <bool kMax, bool kNan>
struct FMinMax {
  template <class T>
  static T Do(T a, T b) {
    if (std::isnan(a) || std::isnan(b)) {
      if (kNan || (std::isnan(a) && std::isnan(b))) return std::numeric_limits<T>::quiet_NaN();
      return std::isnan(a) ? b : a;
    }
    if (a == b) return std::signbit(a) == kMax ? b : a;  // -0 lies below +0
    return (a < b) == kMax ? b : a;
  }
};
template <bool kMax>
struct FMinMaxMagnitude {  // .xorsign.abs
  template <class T>
  static T Do(T a, T b) {
    const T r = FMinMax<kMax, false>::Do(std::fabs(a), std::fabs(b));
    return std::isnan(r) ? r : std::signbit(a) != std::signbit(b) ? -r : r;
  }
};
struct FAbs {
  template <class T>
  static T Do(T a) {
    return std::fabs(a);
  }
};
struct FNeg {
  template <class T>
  static T Do(T a) {
    return -a;
  }
};
struct CopySign {  // The sign of a, the rest of b.
  template <class T>
  static T Do(T a, T b) {
    return std::copysign(b, a);
  }
};

float Saturate01(float v) { return v > 0 ? (v < 1 ? v : 1.0f) : 0.0f; }  // NaN gives 0

// f32 with what its modifiers ask for. abs, neg and copysign keep NaNs.
template <class F, bool kFtz, bool kSat, bool kKeepNan = false>
struct Single {
  template <class... A>
  static float Do(A... a) {
    float r = kFtz ? Flush(F::Do(Flush(a)...)) : F::Do(a...);
    if (kSat) r = Saturate01(r);
    return kKeepNan ? r : Canonical(r);
  }
};

template <class F, bool kFtz, bool kSat, bool kKeepNan>
Handler SingleOf(int operands) {
  using S = Single<F, kFtz, kSat, kKeepNan>;
  if constexpr (requires { F::Do(0.0f); })
    return operands == 1 ? Unary<float, float, S> : nullptr;
  else if constexpr (requires { F::Do(0.0f, 0.0f); })
    return operands == 2 ? Binary<float, float, float, S> : nullptr;
  else
    return operands == 3 ? Ternary<float, float, float, float, S> : nullptr;
}

template <class F>
Handler DoubleOf() {
  if constexpr (requires { F::Do(0.0); })
    return Unary<double, double, F>;
  else if constexpr (requires { F::Do(0.0, 0.0); })
    return Binary<double, double, double, F>;
  else
    return Ternary<double, double, double, double, F>;
}

// add, sub, mul, fma of two f32 in a 64-bit register (from sm_100 on).
template <class F, bool kFtz>
void PairHandler(Warp& w, const Op& op, uint32_t lanes) {
  const float* const a = w.In<float>(op.a);
  const float* const b = w.In<float>(op.b);
  const float* const c = w.In<float>(op.c);
  alignas(8) float r[2 * kLanes];
  for (int i = 0; i < 2 * kLanes; ++i) {
    if constexpr (requires { F::Do(0.0f, 0.0f); })
      r[i] = Single<F, kFtz, false>::Do(a[i], b[i]);
    else
      r[i] = Single<F, kFtz, false>::Do(a[i], b[i], c[i]);
  }
  w.Out(op.d, reinterpret_cast<const uint64_t*>(r), lanes);
}

template <class F, bool kKeepNan = false>
void EmitFloat(Decoder& d, int operands) {
  const bool ftz = d.Take("ftz"), sat = d.Take("sat");
  const Type t = d.TakeType();
  Handler run = nullptr;
  int bytes = Bytes(t);
  if (t == Type::kF32) {
    run = ftz ? (sat ? SingleOf<F, true, true, kKeepNan>(operands)
                     : SingleOf<F, true, false, kKeepNan>(operands))
              : (sat ? SingleOf<F, false, true, kKeepNan>(operands)
                     : SingleOf<F, false, false, kKeepNan>(operands));
  } else if (t == Type::kF64 && !ftz && !sat) {
    run = DoubleOf<F>();
  } else if constexpr (!requires { F::Do(0.0f); }) {
    if (t == Type::kF32x2 && !sat) run = ftz ? PairHandler<F, true> : PairHandler<F, false>;
  }
  if (operands == 1) EmitLanewise(d, run, bytes, {bytes}, Kind::kFloat);
  if (operands == 2) EmitLanewise(d, run, bytes, {bytes, bytes}, Kind::kFloat);
  if (operands == 3) EmitLanewise(d, run, bytes, {bytes, bytes, bytes}, Kind::kFloat);
}

void DecodeMinMax(Decoder& d, bool max) {
  const bool nan = d.Take("NaN"), xorsign = d.Take("xorsign");
  if (xorsign) {
    d.Take("abs");
    return max ? EmitFloat<FMinMaxMagnitude<true>>(d, 2) : EmitFloat<FMinMaxMagnitude<false>>(d, 2);
  }
  if (max)
    return nan ? EmitFloat<FMinMax<true, true>>(d, 2) : EmitFloat<FMinMax<true, false>>(d, 2);
  return nan ? EmitFloat<FMinMax<false, true>>(d, 2) : EmitFloat<FMinMax<false, false>>(d, 2);
}

}  // namespace

void DecodeFloat(Decoder& d) {
  const std::string_view name = d.in().opcode;
  d.Take("rn");
  if (name == "add") return EmitFloat<FAdd>(d, 2);
  if (name == "sub") return EmitFloat<FSub>(d, 2);
  if (name == "mul") return EmitFloat<FMul>(d, 2);
  if (name == "fma" || name == "mad") return EmitFloat<FFma>(d, 3);
  if (name == "abs") return EmitFloat<FAbs, true>(d, 1);
  if (name == "neg") return EmitFloat<FNeg, true>(d, 1);
  if (name == "copysign") return EmitFloat<CopySign, true>(d, 2);
  if (name == "min" || name == "max") return DecodeMinMax(d, name == "max");
  if (name == "div") {
    // Approximate and full-range quotients are within 2 ulp of this one.
    d.TakeOneOf({"approx", "full"});
    return EmitFloat<FDiv>(d, 2);
  }
  d.Fail("this form is not supported");
}

}  // namespace forge::ptx
