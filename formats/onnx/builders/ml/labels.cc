// SPDX-License-Identifier: Apache-2.0
// Labels that stand for others: on the device where both are numbers, on the host where strings are
// among them.
#include <array>
#include <numeric>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/host/strings.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::formats {
namespace {

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

// Strings for integers, or the other way round, by the type of the operand.
ir::Values Mapped(OnnxNode& n, const std::vector<int64_t>& ints,
                  const std::vector<std::string>& strings) {
  const std::string text = n.String("default_string", "_Unused");
  const int64_t whole = n.Int64("default_int64", -1);
  if (strings.empty() || strings.size() != ints.size())
    n.Fail("{} strings for {} integers", strings.size(), ints.size());
  if (!n.status().ok()) return {};
  const ir::Value numbers = IntsConstant(n, ints), words = StringsConstant(n, strings);
  const bool to_numbers = n.type(0).dtype() == DType::kString;
  const ir::HostValue otherwise = to_numbers ? ir::HostValue::Scalar(DType::kI64, whole)
                                             : *ir::HostValue::Strings({}, std::array{text});
  return n.fn().Add(ir::MapLabels{},
                    std::array{n.in(0), to_numbers ? words : numbers, to_numbers ? numbers : words,
                               n.MakeConstant(otherwise)});
}

ir::Values BuildCategoryMapper(OnnxNode& n) {
  return Mapped(n, n.Ints("cats_int64s"), n.Strings("cats_strings"));
}

// In version 1 the integers are the places in the list.
ir::Values BuildLabelEncoder1(OnnxNode& n) {
  const std::vector<std::string> classes = n.Strings("classes_strings");
  std::vector<int64_t> places(classes.size());
  std::iota(places.begin(), places.end(), 0);
  return Mapped(n, places, classes);
}

constexpr OnnxOp kLabelOps[] = {
    {kMl, "CategoryMapper", 1, 1, 1, BuildCategoryMapper},
    {kMl, "LabelEncoder", 1, 1, 1, BuildLabelEncoder1},
    {kMl, "LabelEncoder", 2, 1, 1, BuildLabelEncoder},
};

}  // namespace

std::span<const OnnxOp> LabelOps() { return kLabelOps; }

}  // namespace forge::formats
