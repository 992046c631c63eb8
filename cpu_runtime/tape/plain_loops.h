// SPDX-License-Identifier: Apache-2.0
// The loops of a row over elements that have no vector code; included by
// cpu_runtime/tape/scalar_loops_family.h alone, after the rows.
#pragma once
#include <algorithm>

#include "cpu_runtime/tape/plain_scalar.h"
#include "cpu_runtime/tape/scalar_loops.h"
#include "ir/ops/elementwise/row_parts.h"

namespace forge::cpu {

template <class Row, class T, int kOperand>
auto LoadPlain(const void* const* in, size_t i) {
  if constexpr (ir::IsTruth(Row::kInfo, kOperand) || std::is_same_v<T, bool>)
    return Plain<bool>(static_cast<const uint8_t*>(in[kOperand])[i] != 0);
  else
    return Plain<T>(static_cast<const T*>(in[kOperand])[i]);
}

template <class T, class Row>
auto ApplyPlain(const Row& row, const void* const* in, size_t i) {
  const auto x = LoadPlain<Row, T, 0>(in, i);
  if constexpr (Row::kInfo.arity() == 1)
    return ApplyRow(row, x);
  else if constexpr (Row::kInfo.arity() == 2)
    return ApplyRow(row, x, LoadPlain<Row, T, 1>(in, i));
  else
    return ApplyRow(row, x, LoadPlain<Row, T, 1>(in, i), LoadPlain<Row, T, 2>(in, i));
}

template <class Op, class T>
void LoopPlain(const void* self, const void* const* in, void* out, size_t n) {
  const auto row = ir::rows::RowAt<Op>(self);
  const void* operands[3];  // copies: bytes that are written may overlap `in` itself
  std::copy_n(in, row.kInfo.arity(), operands);
  for (size_t i = 0; i < n; ++i) {
    const auto y = ApplyPlain<T>(row, operands, i);
    if constexpr (std::is_same_v<decltype(y), const Plain<bool>>)
      static_cast<uint8_t*>(out)[i] = y.v;
    else
      static_cast<T*>(out)[i] = y.v;
  }
}

template <class Op, class T, DType kDomain>
constexpr ScalarLoop PlainLoopIn() {
  constexpr const ir::ScalarInfo& kInfo = ir::rows::Row<Op>::kInfo;
  if constexpr (ir::Converts(kInfo) || !ir::Takes(kInfo, kDomain))
    return nullptr;
  else
    return &LoopPlain<Op, T>;
}

template <class Op>
ScalarLoop PlainLoop(DType domain) {
  switch (domain) {
    case DType::kBool:
      return PlainLoopIn<Op, bool, DType::kBool>();
    case DType::kU8:
      return PlainLoopIn<Op, uint8_t, DType::kU8>();
    case DType::kU16:
      return PlainLoopIn<Op, uint16_t, DType::kU16>();
    case DType::kU32:
      return PlainLoopIn<Op, uint32_t, DType::kU32>();
    case DType::kU64:
      return PlainLoopIn<Op, uint64_t, DType::kU64>();
    case DType::kI8:
      return PlainLoopIn<Op, int8_t, DType::kI8>();
    case DType::kI16:
      return PlainLoopIn<Op, int16_t, DType::kI16>();
    case DType::kI32:
      return PlainLoopIn<Op, int32_t, DType::kI32>();
    case DType::kI64:
      return PlainLoopIn<Op, int64_t, DType::kI64>();
    case DType::kF64:
      return PlainLoopIn<Op, double, DType::kF64>();
    default:
      return nullptr;
  }
}

}  // namespace forge::cpu
