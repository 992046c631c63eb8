// SPDX-License-Identifier: Apache-2.0
// Concrete cases: element types in place of class words, and values for operands.
//
// The syntax of an operand is TYPE[DIMS] [in LOW..HIGH] [edges]: "float[2,3]", "i64[5] in 0..6".
// Equal class words in a case mean the same element type; `any` means bool and all numbers of 8
// bits or more. Values are drawn from LOW..HIGH, by default -4..4. With `edges` the first values
// are zeros of both signs, ones, limits, infinities and NaN; denormals are left out, because
// devices may flush them.
#pragma once
#include <optional>

#include "ir/op/op.h"
#include "ir/type/host_value.h"

namespace forge::ir {

struct CaseOperand {
  Type type;  // with numbers as dimensions; absent: the operand is not given
  double low = -4, high = 4;
  bool edges = false;
};

struct ConcreteCase {
  AnyOp op;
  std::vector<CaseOperand> in;
  std::string refuse;
  bool bench;
  Types types() const;
  std::string ToText() const;  // "conv{groups = 4}(f32[1, 4, 6, 6], f32[4, 1, 3, 3])"
};

// Returns one case for each element type that the class words allow. errors: InvalidArgument with
// the text of the operand
absl::StatusOr<std::vector<ConcreteCase>> Concretize(const Case& c);
// Returns all cases of an op.
absl::StatusOr<std::vector<ConcreteCase>> ConcreteCases(const OpDef& def);

// Operand values. They depend only on the case and the seed; null where an operand is absent.
//   errors: ResourceExhausted
struct CaseInputs {
  std::vector<std::optional<HostValue>> values;
  std::vector<const HostValue*> pointers() const;
};
absl::StatusOr<CaseInputs> MakeInputs(const ConcreteCase& c, uint64_t seed = 0);

}  // namespace forge::ir
