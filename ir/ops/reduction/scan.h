// SPDX-License-Identifier: Apache-2.0
// Prefix sums and their kin.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

enum class ScanKind : uint8_t { kSum, kProd, kMax, kMin, kLogSumExp };

struct Scan {
  ScanKind kind = ScanKind::kSum;
  int64_t axis = -1;
  bool exclusive = false, reverse = false;

  static constexpr OpInfo kInfo{
      .name = "scan",
      .formula =
          "y[i] = kind of all x[j] along axis with j <= i; exclusive: j < i, and the sum of no "
          "element is 0, the product 1; reverse: the axis runs backwards",
      .inputs = "x: number[*d]",
      .outputs = "y: =x",
      .source = "ONNX CumSum-14, CumProd-26; torch.cumsum, cumprod, cummax, cummin, logcumsumexp"};
  static constexpr Field kFields[] = {
      FieldOf<&Scan::kind>("kind",
                           "Max and min take no complex numbers, and propagate NaN; log_sum_exp "
                           "takes floats alone.",
                           "sum|prod|max|min|log_sum_exp"),
      FieldOf<&Scan::axis>("axis", "Negative counts from the end."),
      FieldOf<&Scan::exclusive>("exclusive", "Without x[i]; for sum and prod."),
      FieldOf<&Scan::reverse>("reverse", "From the last element to the first.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  OnComplex on_complex() const {
    return kind == ScanKind::kSum ? OnComplex::kEach : OnComplex::kNone;
  }
  Values decompose_complex(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Scan*);

struct ScanWithIndex {
  ScanKind kind = ScanKind::kMax;
  int64_t axis = -1;
  bool reverse = false;

  static constexpr OpInfo kInfo{
      .name = "scan_with_index",
      .formula =
          "y[i] is the largest or smallest x[j] along axis with j <= i, and index[i] its j; "
          "the last of equal ones, of which NaN is the most extreme",
      .inputs = "x: ordered[*d]",
      .outputs = "y: =x; index: i64[*d]",
      .source = "torch.cummax, cummin"};
  static constexpr Field kFields[] = {
      FieldOf<&ScanWithIndex::kind>("kind", "Max or min.", "sum|prod|max|min|log_sum_exp"),
      FieldOf<&ScanWithIndex::axis>("axis", "Negative counts from the end."),
      FieldOf<&ScanWithIndex::reverse>("reverse", "From the last element to the first.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  static constexpr Primitive decompose{};
  Values gradient(const GradArgs& g) const;
  absl::Status evaluate(Eval& e) const;
  Cost cost(TypeSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const ScanWithIndex*);

}  // namespace forge::ir
