// SPDX-License-Identifier: Apache-2.0
// What builders of ai.onnx.ml share: lists, features, and what becomes of scores.
#pragma once
#include "formats/onnx/node.h"

namespace forge::formats {

// The list of an attribute as a constant of this shape, or as a vector.
ir::Value NumbersConstant(OnnxNode& n, DType dtype, const std::vector<double>& list,
                          ir::Dims shape = {});
ir::Value NumbersConstant(OnnxNode& n, DType dtype, const std::vector<int64_t>& list,
                          ir::Dims shape = {});
// The elements of an attribute that is a tensor; none where it is absent.
std::vector<double> NumbersOfTensor(OnnxNode& n, std::string_view name);
// The numbers of `name`, or of the tensor `name`_as_tensor.
std::vector<double> NumbersOrTensor(OnnxNode& n, const std::string& name);

// Operand `i` in f32, [rows, features]: one axis is one row. Absent where it has another rank.
ir::Value FeaturesOf(OnnxNode& n, size_t i);

// Attribute post_transform, which is read once, and `y` [rows, scores] as it says.
std::string PostTransform(OnnxNode& n);
ir::Value PostTransformed(OnnxNode& n, const std::string& how, ir::Value y);

// The names of a classifier's classes: attributes classlabels_strings and `ints`.
struct ClassLabels {
  std::vector<std::string> strings;
  std::vector<int64_t> ints;
  int64_t count() const { return static_cast<int64_t>(strings.size() + ints.size()); }
};
ClassLabels LabelsOf(OnnxNode& n, std::string_view ints);

// The label of the greatest score of each row of `scores` [rows, classes], and the scores after
// post_transform.
ir::Values Classified(OnnxNode& n, const ClassLabels& labels, ir::Value scores);
// The same of two classes, from one score [rows, 1]: that of the second class, which the row is of
// where the score is above the threshold.
struct InTwo {
  double threshold, sum;  // sum: of the scores of both classes, but those of LOGISTIC
};
ir::Values ClassifiedInTwo(OnnxNode& n, const ClassLabels& labels, ir::Value score, InTwo by);

}  // namespace forge::formats
