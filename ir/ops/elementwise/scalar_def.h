// SPDX-License-Identifier: Apache-2.0
// The type-erased form of a row of the element-wise table.
#pragma once
#include <complex>
#include <optional>

#include "ir/op/op.h"

namespace forge::ir {

// The element type of the result: that of the last operand, that of its parts if it is complex,
// bool, or the attribute of kind DType.
enum class ResultType : uint8_t { kSame, kReal, kBool, kAttribute };

struct ScalarInfo {
  std::string_view name, formula, source;
  std::string_view inputs = "x: float";  // a signature without shapes, see OpInfo
  ResultType result = ResultType::kSame;
  double low = -4, high = 4;  // range of the operands of cases, in addition to edge values
  // The error bound relative to the reference in f32 and f64, in units in the last place of the
  // larger of the result and `scale`; `scale` covers cancellation. Results narrower than f32 may
  // differ by one unit.
  double ulps = 0, scale = 0;

  // The number of operands, 1 to 3.
  constexpr int arity() const {
    int n = 1;
    for (char c : inputs) n += c == ';';
    return n;
  }
};

struct ComplexParts;  // ir/ops/complex/parts.h

struct ScalarDef {
  ScalarInfo info;
  int index = 0;  // of the row in ir/ops/elementwise/row_list.inc and in tables generated from it
  // The reference for one element. Integers (bool as 0 or 1) are sign- or zero-extended, and wrap
  // when stored. Null for types that the op does not take.
  double (*f64)(const void* self, const double* x) = nullptr;
  int64_t (*i64)(const void* self, const int64_t* x) = nullptr;
  uint64_t (*u64)(const void* self, const uint64_t* x) = nullptr;
  // The same for complex numbers; a real result has no imaginary part.
  std::complex<double> (*c128)(const void* self, const std::complex<double>* x) = nullptr;
  // Appends the op over the parts of complex operands and returns its result; null where it takes
  // none.
  Value (*complex)(const void* self, const ComplexParts* x) = nullptr;
  // Sets the gradient of each operand, of the shape of the result; absent where it is zero.
  void (*gradient)(const void* self, const Value* x, Value y, Value dy, Value* dx) = nullptr;
  // The op on dimensions; null unless it is used in shape arithmetic, nullopt where the result is
  // unknown.
  std::optional<Dim> (*on_dims)(const void* self, const Dim* x) = nullptr;
  // Checks what the signature cannot express; may be null.
  absl::Status (*check)(const void* self, TypeSpan in) = nullptr;
};

}  // namespace forge::ir
