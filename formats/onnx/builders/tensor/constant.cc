// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "formats/onnx/builders/families.h"

namespace forge::formats {
namespace {

template <class T>
void Define(OnnxNode& n, DType dtype, std::span<const int64_t> shape, const std::vector<T>& list) {
  std::vector<uint8_t> bytes(list.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), list.data(), bytes.size());
  absl::StatusOr<ir::HostValue> value = ir::HostValue::Of(dtype, shape, Bytes(std::move(bytes)));
  if (value.ok()) return n.Define(*std::move(value));
  n.Fail("{}", Message(value.status()));
}

void DefineList(OnnxNode& n, const std::vector<double>& list) {
  const std::vector<float> narrow(list.begin(), list.end());
  Define(n, DType::kF32, std::array{static_cast<int64_t>(list.size())}, narrow);
}

// Exactly one attribute holds the value.
ir::Values BuildConstant(OnnxNode& n) {
  if (n.Has("value")) {
    if (std::optional<ir::HostValue> value = n.Tensor("value")) n.Define(*std::move(value));
  } else if (n.Has("value_float")) {
    const auto value = static_cast<float>(n.Float("value_float", 0));
    Define(n, DType::kF32, {}, std::vector{value});
  } else if (n.Has("value_floats")) {
    DefineList(n, n.Floats("value_floats"));
  } else if (n.Has("value_int")) {
    Define(n, DType::kI64, {}, std::vector{n.Int64("value_int", 0)});
  } else if (n.Has("value_ints")) {
    const std::vector<int64_t> list = n.Ints("value_ints");
    Define(n, DType::kI64, std::array{static_cast<int64_t>(list.size())}, list);
  } else if (n.Has("sparse_value")) {
    n.Fail("sparse constants are not supported");
  } else if (n.Has("value_string")) {
    n.Define(*ir::HostValue::Strings({}, std::array{n.String("value_string", "")}));
  } else if (n.Has("value_strings")) {
    const std::vector<std::string> list = n.Strings("value_strings");
    n.Define(*ir::HostValue::Strings(std::array{static_cast<int64_t>(list.size())}, list));
  } else {
    n.Fail("no value is given");
  }
  return {};
}

constexpr OnnxOp kConstantOps[] = {
    {"", "Constant", 1, 0, 0, BuildConstant},
};

}  // namespace

std::span<const OnnxOp> ConstantOps() { return kConstantOps; }

}  // namespace forge::formats
