// SPDX-License-Identifier: Apache-2.0
// What Forge keeps of a row of the element-wise table when its type is forgotten.
#pragma once
#include <complex>
#include <optional>

#include "ir/op/op.h"

namespace forge::ir {

// The element type of the result: the last operand's, that of its parts where it is complex, bool,
// or the attribute of kind DType.
enum class ResultType : uint8_t { kSame, kReal, kBool, kAttribute };

struct ScalarInfo {
  std::string_view name, formula, source;
  std::string_view inputs = "x: float";  // a signature without shapes, see OpInfo
  ResultType result = ResultType::kSame;
  double low = -4, high = 4;  // cases draw operands from here, edge values are added
  // Bound against the reference in f32 and f64, in units of the last place of the result or of
  // `scale`, whichever is larger: cancellation makes no result more exact than its terms. Results
  // narrower than f32 are allowed one unit.
  double ulps = 0, scale = 0;

  // Operands, 1 to 3.
  constexpr int arity() const {
    int n = 1;
    for (char c : inputs) n += c == ';';
    return n;
  }
};

struct ScalarDef {
  ScalarInfo info;
  int index = 0;  // of the row in ir/ops/elementwise/row_list.inc, and in tables made from it
  // The reference on one element. Integers (bool as 0 or 1) come sign- or zero-extended and wrap
  // when stored; null where the op takes no floats or floats only.
  double (*f64)(const void* self, const double* x) = nullptr;
  int64_t (*i64)(const void* self, const int64_t* x) = nullptr;
  uint64_t (*u64)(const void* self, const uint64_t* x) = nullptr;
  // The same on complex numbers; a real result is one without an imaginary part.
  std::complex<double> (*c128)(const void* self, const std::complex<double>* x) = nullptr;
  // Sets one gradient for each operand, of the result's shape; absent where none flows.
  void (*gradient)(const void* self, const Value* x, Value y, Value dy, Value* dx) = nullptr;
  // Null unless the op is arithmetic of shapes; nullopt where these dims cannot be proven.
  std::optional<Dim> (*on_dims)(const void* self, const Dim* x) = nullptr;
  // Refuses what the signature cannot say; may be null.
  absl::Status (*check)(const void* self, TypeSpan in) = nullptr;
};

}  // namespace forge::ir
