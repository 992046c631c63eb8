// SPDX-License-Identifier: Apache-2.0
// Arithmetic that rounds to zero, down or up, by the host's own rounding modes.
#include <cfenv>
#include <limits>

#include "tests/ptx/machine/instructions/lanewise.h"
#include "tests/ptx/machine/instructions/narrow.h"

namespace forge::ptx {
namespace {

// Op::flags of a directed operation.
constexpr uint8_t kDirectedFtz = 1, kDirectedSat = 2;
enum class Operation : uint8_t { kAdd, kSub, kMul, kFma, kDiv, kSqrt, kRcp };

template <class T>
T Compute(Operation o, T a, T b, T c) {
  switch (o) {
    case Operation::kAdd:
      return a + b;
    case Operation::kSub:
      return a - b;
    case Operation::kMul:
      return a * b;
    case Operation::kFma:
      return std::fma(a, b, c);
    case Operation::kDiv:
      return a / b;
    case Operation::kSqrt:
      return std::sqrt(a);
    case Operation::kRcp:
      return T{1} / a;
  }
  return a;
}

template <class T>
void RunDirected(Warp& w, const Op& op, uint32_t lanes) {
  const T* const a = w.In<T>(op.a);
  const T* const b = w.In<T>(op.b);
  const T* const c = w.In<T>(op.c);
  static constexpr int kModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  // Volatile: neither the operands nor the result may be computed under another mode.
  volatile T in[3][kLanes], out[kLanes] = {};
  for (int i = 0; i < kLanes; ++i) {
    in[0][i] = a[i];
    in[1][i] = b[i];
    in[2][i] = c[i];
  }
  std::fesetround(kModes[op.e]);
  for (int i = 0; i < kLanes; ++i)
    if ((lanes >> i & 1) != 0)
      out[i] = Compute<T>(static_cast<Operation>(op.count), in[0][i], in[1][i], in[2][i]);
  std::fesetround(FE_TONEAREST);
  T r[kLanes];
  for (int i = 0; i < kLanes; ++i) r[i] = out[i];
  if constexpr (sizeof(T) == 4) {
    for (T& v : r) {
      if ((op.flags & kDirectedFtz) != 0) v = Flush(v);
      if ((op.flags & kDirectedSat) != 0) v = v > 0 ? (v < 1 ? v : 1.0f) : 0.0f;
      v = Canonical(v);
    }
  }
  w.Out(op.d, r, lanes);
}

int OperationOf(std::string_view name) {
  static constexpr std::string_view kNames[] = {"add", "sub", "mul", "fma", "div", "sqrt", "rcp"};
  if (name == "mad") name = "fma";
  for (int i = 0; i < 7; ++i)
    if (kNames[i] == name) return i;
  return -1;
}

}  // namespace

void DecodeDirected(Decoder& d) {
  const int operation = OperationOf(d.in().opcode);
  Op op;
  op.e = d.TakeOneOf({"rn", "rz", "rm", "rp"});
  if (d.Take("ftz")) op.flags |= kDirectedFtz;
  if (d.Take("sat")) op.flags |= kDirectedSat;
  const Type t = d.TakeType();
  const size_t sources = operation == 3 ? 3 : operation < 5 ? 2 : 1;
  if (operation < 0 || op.e < 0 || (t != Type::kF32 && (t != Type::kF64 || op.flags != 0)) ||
      !d.Want(1 + sources))
    return d.Fail("this form is not supported");
  op.run = t == Type::kF32 ? RunDirected<float> : RunDirected<double>;
  op.kind = Kind::kFloat;
  op.count = operation;
  op.d = d.Destination(0, Bytes(t));
  op.a = op.b = op.c = d.Source(1, Bytes(t));
  if (sources > 1) op.b = d.Source(2, Bytes(t));
  if (sources > 2) op.c = d.Source(3, Bytes(t));
  d.Emit(op);
}

}  // namespace forge::ptx
