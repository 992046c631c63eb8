// SPDX-License-Identifier: Apache-2.0
// Movement ops whose indices are operands.
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

// The result of an index out of bounds, after a negative index has wrapped once.
enum class OutOfBounds : uint8_t { kZero, kClamp };

struct Gather {
  int64_t axis = 0;
  OutOfBounds oob = OutOfBounds::kZero;

  static constexpr OpInfo kInfo{
      .name = "gather",
      .formula =
          "y[a.., i.., b..] = x[a.., indices[i..], b..]; negative indices count from the end",
      .inputs = "x: any[*d]; indices: i32|i64[*i]",
      .outputs = "y: =x[*s]",
      .source = "ONNX Gather-13; torch.index_select; numpy.take"};
  static constexpr Field kFields[] = {
      FieldOf<&Gather::axis>("axis",
                             "That the indices select along; negative counts from the end."),
      FieldOf<&Gather::oob>("oob", "Of an index outside: 0, or the nearest element.",
                            "zero|clamp")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const Gather*);

struct GatherElements {
  int64_t axis = 0;
  OutOfBounds oob = OutOfBounds::kZero;

  static constexpr OpInfo kInfo{
      .name = "gather_elements",
      .formula = "y[a.., i, b..] = x[a.., indices[a.., i, b..], b..]; negative indices wrap once",
      .inputs = "x: any[*d]; indices: i32|i64[*i]",
      .outputs = "y: =x[*i]",
      .source = "ONNX GatherElements-13; torch.gather; numpy.take_along_axis"};
  static constexpr Field kFields[] = {
      FieldOf<&GatherElements::axis>("axis", "Along which; negative counts from the end."),
      FieldOf<&GatherElements::oob>("oob", "As of `gather`.", "zero|clamp")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const GatherElements*);

struct GatherNd {
  int64_t batch_dims = 0;
  OutOfBounds oob = OutOfBounds::kZero;

  static constexpr OpInfo kInfo{
      .name = "gather_nd",
      .formula =
          "y[n.., i.., b..] = x[n.., indices[n.., i.., 0], indices[n.., i.., 1] .., b..]; "
          "negative indices wrap once",
      .inputs = "x: any[*d]; indices: i32|i64[*i]",
      .outputs = "y: =x[*s]",
      .source = "ONNX GatherND-13; tf.gather_nd"};
  static constexpr Field kFields[] = {
      FieldOf<&GatherNd::batch_dims>("batch_dims", "Leading axes that both operands share."),
      FieldOf<&GatherNd::oob>("oob", "As of `gather`.", "zero|clamp")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  IndexMap map(TypeSpan in, const Dims& at) const;
  Values gradient(const GradArgs& g) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const GatherNd*);

}  // namespace forge::ir
