// SPDX-License-Identifier: Apache-2.0
// The expressions of element-wise ops on numbers of every type that devices compute in.
#pragma once
#include <tuple>

#include "ir/ops/elementwise/elementwise.h"
#include "tests/ir/test_scalar.h"

namespace forge::ir {

// Null where the op takes no such numbers.
template <class S>
using TestFunction = S (*)(const void* self, const S* x);

struct TestRow {
  template <class S>
  TestFunction<S> In() const {
    return std::get<TestFunction<S>>(functions);
  }
  template <class... S>
  using Functions = std::tuple<TestFunction<S>...>;
  Functions<TestScalar<float>, TestScalar<float, false>, TestScalar<double>,
            TestScalar<double, false>, TestScalar<bool>, TestScalar<int8_t>, TestScalar<uint8_t>,
            TestScalar<int16_t>, TestScalar<uint16_t>, TestScalar<int32_t>, TestScalar<uint32_t>,
            TestScalar<int64_t>, TestScalar<uint64_t>>
      functions;
};

// In tests/ir/test_rows.cc.
#define FORGE_ROW(T, ...) TestRow TestRowOf(const T*);
#include "ir/ops/elementwise/row_list.inc"

// The row of an element-wise op.
inline TestRow TestRowOf(const OpDef& def) {
  static constexpr TestRow (*kRows[])() = {
#define FORGE_ROW(T, ...) [] { return TestRowOf(static_cast<const T*>(nullptr)); },
#include "ir/ops/elementwise/row_list.inc"
  };
  return kRows[def.scalar->index]();
}

}  // namespace forge::ir
