// SPDX-License-Identifier: Apache-2.0
// How far two devices' answers lie apart, by the bounds of docs/semantics.md.
#pragma once
#include "runtime/device/named_tensor.h"
#include "runtime/plan/executable.h"

namespace forge {

struct OutputDifference {
  std::string output;
  double rel_error = 0;  // ||x - r|| / ||r||
  double nmse = 0;       // its square
  double max_abs = 0;
  bool same_classes =
      true;  // argmax along the last axis, where that has at least two elements of a float output
  bool same_specials = true;  // NaN and infinity at the same places
  bool within = true;
};

struct Comparison {
  std::vector<OutputDifference> outputs;
  bool within() const;
  const OutputDifference* worst() const;  // null when there are no outputs
};

// The bound on rel_error for a whole model computed in this type, against the reference.
double ModelBound(DType t);
// What results are compared with. Two devices that each lie within a bound of the reference lie
// within the sum of the two bounds of each other.
enum class Against : uint8_t { kReference, kDevice };
// errors: Internal when names or types differ
absl::StatusOr<Comparison> Compare(const std::vector<NamedTensor>& results,
                                   const std::vector<NamedTensor>& expected,
                                   Against against = Against::kReference);

// Whether a step's results are what the reference makes of the step's own operands.  errors: those
// of the reference
absl::StatusOr<bool> StepAgrees(const StepView& step);

}  // namespace forge
