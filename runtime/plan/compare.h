// SPDX-License-Identifier: Apache-2.0
// Comparison of results, by the bounds of docs/semantics.md.
#pragma once
#include "ir/type/precision.h"
#include "runtime/device/named_tensor.h"
#include "runtime/plan/executable.h"

namespace forge {

// The difference of one output `x` from the expected `r`.
struct OutputDifference {
  std::string output;
  double rel_error = 0;  // ||x - r|| / ||r||
  double nmse = 0;       // rel_error squared
  double max_abs = 0;
  double bound = 0;  // on rel_error
  bool same_classes =
      // Equal argmax along the last axis, where that axis of a float output has at least two
      // elements.
      true;
  bool same_specials = true;  // NaN and infinity at the same indices
  bool within = true;
};

// The differences of all outputs.
struct Comparison {
  std::vector<OutputDifference> outputs;
  bool within() const;
  const OutputDifference* worst() const;  // null when there are no outputs
};

// The bound on rel_error for a whole model computed in this type, compared with the reference.
double ModelBound(DType t);
// What results are compared with. Two devices that each lie within a bound of the reference lie
// within twice that bound of each other.
enum class Against : uint8_t { kReference, kDevice };
// Returns the precision that a device computes in when results of `precision` are compared: the
// reference stays exact, so that the comparison shows what the precision costs.
ir::Precision PrecisionBeside(const ir::Precision& precision, const Device& device);
// Compares results with expected values.
//   precision: of the results; a bound is never below that of its coarsest type, and where that is
//   larger than the output's own, classes that are within it of each other count as equal
//   errors: Internal (names or types differ)
absl::StatusOr<Comparison> Compare(const std::vector<NamedTensor>& results,
                                   const std::vector<NamedTensor>& expected,
                                   Against against = Against::kReference,
                                   const ir::Precision& precision = {});

// Returns whether the results of a step agree with what the reference computes from the operands of
// that step.
//   errors: those of the reference
absl::StatusOr<bool> StepAgrees(const StepView& step);

}  // namespace forge
