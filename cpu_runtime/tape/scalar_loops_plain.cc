// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/tape/plain_scalar.h"
#include "cpu_runtime/tape/scalar_loops.h"

namespace forge::cpu {
namespace {

template <class T>
constexpr bool Takes(DType domain) {
  if (Has(kFloatTypes, domain)) return TakesFloats<T>();
  return domain == DType::kBool ? TakesBools<T>() : TakesInts<T>();
}

template <class Op, class T, int kOperand>
auto Load(const void* const* in, size_t i) {
  if constexpr (IsTruth<Op>(kOperand) || std::is_same_v<T, bool>)
    return Plain<bool>(static_cast<const uint8_t*>(in[kOperand])[i] != 0);
  else
    return Plain<T>(static_cast<const T*>(in[kOperand])[i]);
}

template <class Op, class T>
auto Apply(const Op& op, const void* const* in, size_t i) {
  if constexpr (Op::kInfo.arity() == 1)
    return op.scalar(Load<Op, T, 0>(in, i));
  else if constexpr (Op::kInfo.arity() == 2)
    return op.scalar(Load<Op, T, 0>(in, i), Load<Op, T, 1>(in, i));
  else
    return op.scalar(Load<Op, T, 0>(in, i), Load<Op, T, 1>(in, i), Load<Op, T, 2>(in, i));
}

template <class Op, class T>
void Loop(const void* self, const void* const* in, void* out, size_t n) {
  Op op{};
  if constexpr (!std::is_empty_v<Op>) op = *static_cast<const Op*>(self);
  for (size_t i = 0; i < n; ++i) {
    const auto y = Apply<Op, T>(op, in, i);
    if constexpr (std::is_same_v<decltype(y), const Plain<bool>>)
      static_cast<uint8_t*>(out)[i] = y.v;
    else
      static_cast<T*>(out)[i] = y.v;
  }
}

template <class T, DType kDomain>
struct Loops {
  using Function = ScalarLoop;
  template <class Op>
  static constexpr Function Make() {
    if constexpr (IsCast<Op>() || !Takes<Op>(kDomain))
      return nullptr;
    else
      return &Loop<Op, T>;
  }
};

template <class T, DType kDomain>
ScalarLoop Find(int index) {
  static constexpr auto kTable = ir::MakeScalarTable<Loops<T, kDomain>>(ir::ScalarEntries{});
  return kTable[static_cast<size_t>(index)];
}

}  // namespace

ScalarLoop PlainLoop(int index, DType domain) {
  switch (domain) {
    case DType::kBool:
      return Find<bool, DType::kBool>(index);
    case DType::kU8:
      return Find<uint8_t, DType::kU8>(index);
    case DType::kU16:
      return Find<uint16_t, DType::kU16>(index);
    case DType::kU32:
      return Find<uint32_t, DType::kU32>(index);
    case DType::kU64:
      return Find<uint64_t, DType::kU64>(index);
    case DType::kI8:
      return Find<int8_t, DType::kI8>(index);
    case DType::kI16:
      return Find<int16_t, DType::kI16>(index);
    case DType::kI32:
      return Find<int32_t, DType::kI32>(index);
    case DType::kI64:
      return Find<int64_t, DType::kI64>(index);
    case DType::kF64:
      return Find<double, DType::kF64>(index);
    default:
      return nullptr;
  }
}

ScalarLoop FindScalarLoop(const ir::ScalarDef& def, DType domain) {
  return domain == DType::kF32 ? VectorLoopF32(def.index) : PlainLoop(def.index, domain);
}

}  // namespace forge::cpu
