// SPDX-License-Identifier: Apache-2.0
// The rows of the element-wise table on numbers.
#include "tests/ir/test_rows.h"

#include "ir/ops/elementwise/row_parts.h"

namespace forge::ir {
namespace rows {
#include "ir/ops/elementwise/all_rows.inc"
}  // namespace rows

namespace {

template <class T>
constexpr DType kDTypeOf = DType::kI64;
template <>
constexpr DType kDTypeOf<bool> = DType::kBool;
template <>
constexpr DType kDTypeOf<float> = DType::kF32;
template <>
constexpr DType kDTypeOf<double> = DType::kF64;
template <>
constexpr DType kDTypeOf<int32_t> = DType::kI32;
template <>
constexpr DType kDTypeOf<uint32_t> = DType::kU32;

template <class Op, class T, bool kFused>
void Set(TestFunction<TestScalar<T, kFused>>& function) {
  using S = TestScalar<T, kFused>;
  constexpr const ScalarInfo& kInfo = rows::Row<Op>::kInfo;
  function = nullptr;
  if constexpr (Takes(kInfo, kDTypeOf<T>) && !Converts(kInfo))
    function = [](const void* self, const S* x) -> S {
      return S::Raw(static_cast<T>(rows::ApplyRowTo(rows::RowAt<Op>(self), x).v));
    };
}

template <class Op>
TestRow MakeTestRow() {
  TestRow row;
  std::apply([](auto&... function) { (Set<Op>(function), ...); }, row.functions);
  return row;
}

}  // namespace

#define FORGE_ROW(T, ...) \
  TestRow TestRowOf(const T*) { return MakeTestRow<T>(); }
#include "ir/ops/elementwise/row_list.inc"

}  // namespace forge::ir
