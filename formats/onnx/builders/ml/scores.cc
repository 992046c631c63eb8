// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/builders/ml/scores.h"

#include "formats/onnx/builders/steps.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/reduction/arg_reduce.h"
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

// A softmax in which zeros stay.
ir::Value SoftmaxZero(ir::Value y) {
  constexpr double kZero = 1e-7;  // onnxruntime's
  const ir::Value top = ir::ReduceAxes(ir::ReduceKind::kMax, y, {-1});
  const ir::Value share = ir::select(ir::abs(y) > kZero, ir::exp(y - top), 0.0);
  return share / ir::ReduceAxes(ir::ReduceKind::kSum, share, {-1});
}

// The labels at `places` [rows].
ir::Value LabelsAt(OnnxNode& n, const ClassLabels& labels, ir::Value places) {
  const ir::Value all =
      labels.strings.empty() ? IntsConstant(n, labels.ints) : StringsConstant(n, labels.strings);
  return n.fn()(ir::Gather{.axis = 0}, {all, places});
}

}  // namespace

ir::Value NumbersConstant(OnnxNode& n, DType dtype, const std::vector<double>& list,
                          ir::Dims shape) {
  return ListConstant(n, dtype, list, std::move(shape));
}
ir::Value NumbersConstant(OnnxNode& n, DType dtype, const std::vector<int64_t>& list,
                          ir::Dims shape) {
  return ListConstant(n, dtype, list, std::move(shape));
}

std::vector<double> NumbersOfTensor(OnnxNode& n, std::string_view name) {
  std::vector<double> out;
  if (const std::optional<ir::HostValue> v = n.Tensor(name))
    for (int64_t i = 0; i < v->elements(); ++i) out.push_back(v->f64(i));
  return out;
}

std::vector<double> NumbersOrTensor(OnnxNode& n, const std::string& name) {
  std::vector<double> out = n.Floats(name);
  if (!n.Has(name + "_as_tensor")) return out;
  if (!out.empty()) n.Fail("{} is given twice", name);
  return NumbersOfTensor(n, name + "_as_tensor");
}

ir::Value FeaturesOf(OnnxNode& n, size_t i) {
  if (!HasRank(n, i, 1, 2)) return {};
  const ir::Value x = Converted(n, n.in(i), DType::kF32);
  return x.type().rank() == 1 ? ReshapedTo(n, x, {1, x.type().shape()[0]}) : x;
}

std::string PostTransform(OnnxNode& n) { return n.String("post_transform", "NONE"); }

ir::Value PostTransformed(OnnxNode& n, const std::string& how, ir::Value y) {
  if (how == "NONE") return y;
  if (how == "LOGISTIC") return n.fn()(ir::Sigmoid{}, {y});
  if (how == "SOFTMAX") return n.fn()(ir::Softmax{.axis = -1}, {y});
  if (how == "SOFTMAX_ZERO") return SoftmaxZero(y);
  n.Fail("post_transform '{}' is not supported", how);
  return y;
}

ClassLabels LabelsOf(OnnxNode& n, std::string_view ints) {
  ClassLabels labels{n.Strings("classlabels_strings"), n.Ints(ints)};
  if (labels.strings.empty() == labels.ints.empty())
    n.Fail("{} labels that are strings, {} that are integers", labels.strings.size(),
           labels.ints.size());
  return labels;
}

ir::Values Classified(OnnxNode& n, const ClassLabels& labels, ir::Value scores) {
  const ir::Value place = n.fn()(ir::ArgReduce{.axis = 1, .keep_dims = false}, {scores});
  return {LabelsAt(n, labels, place), PostTransformed(n, PostTransform(n), scores)};
}

ir::Values ClassifiedInTwo(OnnxNode& n, const ClassLabels& labels, ir::Value score, InTwo by) {
  const ir::Value flat = ReshapedTo(n, score, {score.type().shape()[0]});
  const ir::Value place = ir::convert(flat > by.threshold, DType::kI64);
  const bool logistic = PostTransform(n) == "LOGISTIC";
  const ir::Value second = logistic ? n.fn()(ir::Sigmoid{}, {score}) : score;
  const ir::Value first = (logistic ? 1.0 : by.sum) - second;
  return {LabelsAt(n, labels, place), Joined(n, {first, second}, 1)};
}

}  // namespace forge::formats
