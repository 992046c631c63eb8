// SPDX-License-Identifier: Apache-2.0
// The operators of classical machine learning on numbers.
#include <cmath>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/ml/scores.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::formats {
namespace {

ir::Values BuildArrayFeatureExtractor(OnnxNode& n) {
  if (!HasRank(n, 0, 1, 64) || !HasRank(n, 1, 0, 64)) return {};
  const ir::Value index = ReshapedTo(n, n.in(1), {n.type(1).elements()});
  const ir::Value y = n.fn()(ir::Gather{.axis = n.type(0).rank() - 1}, {n.in(0), index});
  if (n.type(0).rank() > 1) return {y};
  return {ReshapedTo(n, y, {1, n.type(1).elements()})};
}

ir::Values BuildBinarizer(OnnxNode& n) {
  const double threshold = n.Float("threshold", 0);
  return {ir::convert(n.in(0) > threshold, n.type(0).dtype())};
}

ir::Values BuildScaler(OnnxNode& n) {
  ir::Value x = Converted(n, n.in(0), DType::kF32);
  const std::vector<double> offset = n.Floats("offset"), scale = n.Floats("scale");
  if (!offset.empty()) x = x - NumbersConstant(n, DType::kF32, offset);
  if (!scale.empty()) x = x * NumbersConstant(n, DType::kF32, scale);
  return {x};
}

// Rows of zeros stay.
ir::Values BuildNormalizer(OnnxNode& n) {
  const std::string norm = n.String("norm", "MAX");
  if (!HasRank(n, 0, 1, 64)) return {};
  const ir::Value x = Converted(n, n.in(0), DType::kF32);
  const std::vector<int64_t> last = {x.type().rank() - 1};
  ir::Value size;
  if (norm == "MAX")
    size = ir::ReduceAxes(ir::ReduceKind::kMax, x, last);
  else if (norm == "L1")
    size = ir::ReduceAxes(ir::ReduceKind::kSum, ir::abs(x), last);
  else if (norm == "L2")
    size = ir::sqrt(ir::ReduceAxes(ir::ReduceKind::kSum, x * x, last));
  else
    n.Fail("attribute 'norm' is '{}'", norm);
  if (!size) return {};
  return {x / ir::select(ir::abs(size) > 0.0, size, 1.0)};
}

ir::Values BuildFeatureVectorizer(OnnxNode& n) {
  n.Ignore("inputdimensions");
  ir::Values parts;
  for (size_t i = 0; i < n.inputs(); ++i) {
    parts.push_back(FeaturesOf(n, i));
    if (!parts.back()) return {};
  }
  return {parts.size() == 1 ? parts[0] : Joined(n, parts, 1)};
}

ir::Values BuildImputer(OnnxNode& n) {
  const bool is_float = Has(kFloatTypes, n.type(0).dtype());
  const DType t = n.type(0).dtype();
  const ir::Value x = n.in(0);
  const std::vector<double> floats = n.Floats("imputed_value_floats");
  const std::vector<int64_t> ints = n.Ints("imputed_value_int64s");
  const double replaced = is_float ? n.Float("replaced_value_float", 0) : 0;
  const int64_t replaced_int = n.Int64("replaced_value_int64", 0);
  if ((is_float ? floats.size() : ints.size()) == 0) n.Fail("it has no imputed values");
  if (!n.status().ok()) return {};
  const ir::Value by = is_float ? NumbersConstant(n, t, floats) : NumbersConstant(n, t, ints);
  ir::Value is_missing;
  if (is_float && std::isnan(replaced))
    is_missing = n.fn()(ir::IsNan{}, {x});
  else
    is_missing = n.fn()(ir::Equal{},
                        {x, is_float ? NumbersConstant(n, t, std::vector<double>{replaced})
                                     : NumbersConstant(n, t, std::vector<int64_t>{replaced_int})});
  return {n.fn()(ir::Select{}, {is_missing, by, x})};
}

// One at the place of the category, along a new last axis.
ir::Values BuildOneHotEncoder(OnnxNode& n) {
  const std::vector<int64_t> categories = n.Ints("cats_int64s");
  n.Ignore("zeros");  // whether a value of no category is an error: here it gives zeros
  if (!n.Strings("cats_strings").empty()) n.Fail("categories that are strings are not supported");
  if (categories.empty()) n.Fail("it has no categories");
  if (!n.status().ok() || !HasRank(n, 0, 0, 63)) return {};
  ir::Dims shape = n.type(0).shape();
  shape.push_back(1);
  const ir::Value x = ReshapedTo(n, Converted(n, n.in(0), DType::kI64), shape);
  const ir::Value is_it = n.fn()(ir::Equal{}, {x, NumbersConstant(n, DType::kI64, categories)});
  return {ir::convert(is_it, DType::kF32)};
}

constexpr OnnxOp kMlOps[] = {
    {kMl, "ArrayFeatureExtractor", 1, 2, 2, BuildArrayFeatureExtractor},
    {kMl, "Binarizer", 1, 1, 1, BuildBinarizer},
    {kMl, "FeatureVectorizer", 1, 1, kAnyNumber, BuildFeatureVectorizer},
    {kMl, "Imputer", 1, 1, 1, BuildImputer},
    {kMl, "Normalizer", 1, 1, 1, BuildNormalizer},
    {kMl, "OneHotEncoder", 1, 1, 1, BuildOneHotEncoder},
    {kMl, "Scaler", 1, 1, 1, BuildScaler},
};

}  // namespace

std::span<const OnnxOp> MlOps() { return kMlOps; }

}  // namespace forge::formats
