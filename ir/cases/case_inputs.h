// SPDX-License-Identifier: Apache-2.0
// Cases made concrete: one element type for each class word, and numbers for operands.
//
// An operand reads TYPE[DIMS] [in LOW..HIGH] [edges]: "float[2,3]", "i64[5] in 0..6". Equal class
// words of a case stand for the same element type. `any` means bool and every number of 8 bits or
// more. Numbers are drawn from LOW..HIGH, -4..4 unless told. `edges` puts zeros of both signs,
// ones, limits, infinities and NaN of the element type first; denormals are left out, since devices
// may take them for zero.
#pragma once
#include <optional>

#include "ir/op/op.h"
#include "ir/type/host_value.h"

namespace forge::ir {

struct CaseOperand {
  Type type;  // bound; absent: the operand is not given
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

// One case for each element type that its class words allow.
//   errors: InvalidArgument with the operand's text
absl::StatusOr<std::vector<ConcreteCase>> Concretize(const Case& c);
// All cases of an op.
absl::StatusOr<std::vector<ConcreteCase>> ConcreteCases(const OpDef& def);

// The same numbers on every machine for a case and a seed; null where the operand is absent.
//   errors: ResourceExhausted
struct CaseInputs {
  std::vector<std::optional<HostValue>> values;
  std::vector<const HostValue*> pointers() const;
};
absl::StatusOr<CaseInputs> MakeInputs(const ConcreteCase& c, uint64_t seed = 0);

}  // namespace forge::ir
