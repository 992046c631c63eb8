// SPDX-License-Identifier: Apache-2.0
// The operators of classical machine learning on numbers.
#include <cmath>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/host/strings.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"

namespace forge::formats {
namespace {

template <class T>
ir::Value ListConstant(OnnxNode& n, DType dtype, const std::vector<T>& list, ir::Dims shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(list.size())};
  if (!Has(kRealTypes, dtype)) {
    n.Fail("a list of {} is not supported", Name(dtype));
    dtype = DType::kF32;
  }
  absl::StatusOr<ir::HostValue> value = ir::HostValue::Zeros(dtype, ir::Constants(shape));
  if (!value.ok() || value->elements() != static_cast<int64_t>(list.size())) {
    n.Fail("{} numbers where [{}] are needed", list.size(), ir::ToText(shape));
    return n.MakeConstant(ir::HostValue::Scalar(dtype, 0.0));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if constexpr (std::is_integral_v<T>)
      value->SetI64(static_cast<int64_t>(i), list[i]);
    else
      value->Set(static_cast<int64_t>(i), list[i]);
  }
  return n.MakeConstant(*value);
}

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
  if (!offset.empty()) x = x - ListConstant(n, DType::kF32, offset);
  if (!scale.empty()) x = x * ListConstant(n, DType::kF32, scale);
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
    if (!HasRank(n, i, 1, 2)) return {};
    const ir::Value x = Converted(n, n.in(i), DType::kF32);
    parts.push_back(x.type().rank() == 1 ? ReshapedTo(n, x, {1, x.type().shape()[0]}) : x);
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
  const ir::Value by = is_float ? ListConstant(n, t, floats) : ListConstant(n, t, ints);
  ir::Value is_missing;
  if (is_float && std::isnan(replaced))
    is_missing = n.fn()(ir::IsNan{}, {x});
  else
    is_missing = n.fn()(ir::Equal{}, {x, is_float ? ListConstant(n, t, std::vector{replaced})
                                                  : ListConstant(n, t, std::vector{replaced_int})});
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
  const ir::Value is_it = n.fn()(ir::Equal{}, {x, ListConstant(n, DType::kI64, categories)});
  return {ir::convert(is_it, DType::kF32)};
}

// The first key that equals x decides; without one it is the default. NaN equals NaN.
ir::Values Encoded(OnnxNode& n, ir::Value keys, ir::Value values, int64_t count) {
  ir::Dims shape = n.type(0).shape();
  shape.push_back(1);
  const ir::Value x = ReshapedTo(n, n.in(0), shape);
  ir::Value same = n.fn()(ir::Equal{}, {x, keys});
  if (Has(kFloatTypes, keys.type().dtype())) {
    const ir::Value nan =
        n.fn()(ir::And{}, {n.fn()(ir::IsNan{}, {x}), n.fn()(ir::IsNan{}, {keys})});
    same = n.fn()(ir::Or{}, {same, nan});
  }
  const ir::Value place = ir::select(same, Places(n, count, 0, 1), static_cast<double>(count));
  const ir::Reduce first{.kind = ir::ReduceKind::kMin, .axes = {-1}, .keep_dims = false};
  return {n.fn()(ir::Gather{.axis = 0}, {values, n.fn()(first, {place})})};
}

// A list that an attribute of LabelEncoder states, in one of four forms.
std::optional<ir::HostValue> LabelList(OnnxNode& n, const std::string& what) {
  const auto as = [&](const std::string& kind) { return what + kind; };
  if (n.Has(as("_tensor"))) return n.Tensor(as("_tensor"));
  const std::vector<std::string> strings = n.Strings(as("_strings"));
  const std::vector<int64_t> ints = n.Ints(as("_int64s"));
  const std::vector<double> floats = n.Floats(as("_floats"));
  if (!strings.empty()) {
    const auto count = static_cast<int64_t>(strings.size());
    return *ir::HostValue::Strings(std::array{count}, strings);
  }
  if (ints.empty() && floats.empty()) return std::nullopt;
  const std::array shape = {static_cast<int64_t>(ints.size() + floats.size())};
  ir::HostValue list = *ir::HostValue::Zeros(ints.empty() ? DType::kF32 : DType::kI64, shape);
  for (size_t i = 0; i < ints.size(); ++i) list.SetI64(static_cast<int64_t>(i), ints[i]);
  for (size_t i = 0; i < floats.size(); ++i) list.Set(static_cast<int64_t>(i), floats[i]);
  return list;
}

// What labels without a key become.
ir::HostValue DefaultLabel(OnnxNode& n, DType t) {
  const std::string text = n.String("default_string", "_Unused");
  const double number = n.Float("default_float", -0.0);
  const int64_t whole = n.Int64("default_int64", -1);
  if (n.Has("default_tensor"))
    if (std::optional<ir::HostValue> given = n.Tensor("default_tensor")) return *std::move(given);
  if (t == DType::kString) return *ir::HostValue::Strings({}, std::array{text});
  return Has(kFloatTypes, t) ? ir::HostValue::Scalar(t, number) : ir::HostValue::Scalar(t, whole);
}

// On the device where labels are numbers, on the host where strings are among them.
ir::Values BuildLabelEncoder(OnnxNode& n) {
  const std::optional<ir::HostValue> keys = LabelList(n, "keys"), values = LabelList(n, "values");
  if (!keys || !values || keys->elements() == 0 || keys->elements() != values->elements())
    n.Fail("{} keys, {} values", keys ? keys->elements() : 0, values ? values->elements() : 0);
  if (!n.status().ok()) return {};
  const ir::HostValue otherwise = DefaultLabel(n, values->dtype());
  if (otherwise.elements() != 1 || otherwise.dtype() != values->dtype())
    n.Fail("the default is {} for values of {}", otherwise.type().ToText(), Name(values->dtype()));
  if (!n.status().ok()) return {};
  const bool text = keys->dtype() == DType::kString || values->dtype() == DType::kString;
  if (text)
    return n.fn().Add(ir::MapLabels{},
                      std::array{n.in(0), n.MakeConstant(*keys), n.MakeConstant(*values),
                                 n.MakeConstant(otherwise)});
  if (!HasRank(n, 0, 0, 63)) return {};
  for (const DType t : {n.type(0).dtype(), values->dtype()})
    if (!Has(kRealTypes, t)) n.Fail("labels of {} are not supported", Name(t));
  if (!n.status().ok()) return {};
  const int64_t count = keys->elements();
  ir::HostValue all = *ir::HostValue::Zeros(values->dtype(), std::array{count + 1});
  for (int64_t i = 0; i < count; ++i) all.SetNumber(i, values->number(i));
  all.SetNumber(count, otherwise.number(0));
  ir::HostValue typed = *ir::HostValue::Zeros(n.type(0).dtype(), std::array{count});
  for (int64_t i = 0; i < count; ++i) typed.SetNumber(i, keys->number(i));
  return Encoded(n, n.MakeConstant(typed), n.MakeConstant(all), count);
}

// What a model makes of its scores in the end.
ir::Value PostTransformed(OnnxNode& n, ir::Value y) {
  const std::string how = n.String("post_transform", "NONE");
  if (how == "NONE") return y;
  if (how == "LOGISTIC") return n.fn()(ir::Sigmoid{}, {y});
  if (how == "SOFTMAX") return n.fn()(ir::Softmax{.axis = -1}, {y});
  n.Fail("post_transform '{}' is not supported", how);
  return y;
}

ir::Values BuildLinearRegressor(OnnxNode& n) {
  const int64_t targets = n.Int("targets", 1);
  const std::vector<double> coefficients = n.Floats("coefficients"), add = n.Floats("intercepts");
  const auto size = static_cast<int64_t>(coefficients.size());
  if (targets < 1 || size == 0 || size % targets != 0)
    n.Fail("{} coefficients for {} targets", size, targets);
  if (!n.status().ok() || !HasRank(n, 0, 1, 2)) return {};
  ir::Value x = Converted(n, n.in(0), DType::kF32);
  if (x.type().rank() == 1) x = ReshapedTo(n, x, {1, x.type().shape()[0]});
  const ir::Value w = ListConstant(n, DType::kF32, coefficients, {targets, size / targets});
  ir::Value y = n.fn()(ir::MatMul{.transpose_b = true}, {x, w});
  if (!add.empty()) y = y + ListConstant(n, DType::kF32, add);
  return {PostTransformed(n, y)};
}

constexpr std::string_view kMl = "ai.onnx.ml";
constexpr OnnxOp kMlOps[] = {
    {kMl, "ArrayFeatureExtractor", 1, 2, 2, BuildArrayFeatureExtractor},
    {kMl, "Binarizer", 1, 1, 1, BuildBinarizer},
    {kMl, "FeatureVectorizer", 1, 1, kAnyNumber, BuildFeatureVectorizer},
    {kMl, "Imputer", 1, 1, 1, BuildImputer},
    {kMl, "LabelEncoder", 2, 1, 1, BuildLabelEncoder},
    {kMl, "LinearRegressor", 1, 1, 1, BuildLinearRegressor},
    {kMl, "Normalizer", 1, 1, 1, BuildNormalizer},
    {kMl, "OneHotEncoder", 1, 1, 1, BuildOneHotEncoder},
    {kMl, "Scaler", 1, 1, 1, BuildScaler},
};

}  // namespace

std::span<const OnnxOp> MlOps() { return kMlOps; }

}  // namespace forge::formats
