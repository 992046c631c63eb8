// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/input.h"

#include <charconv>

#include "formats/onnx/tensor.h"

namespace forge::formats {
namespace {

using Dimension = onnx::TensorShapeProto::Dimension;

bool IsName(const std::string& text) { return !text.empty() && text != "?"; }

// "x.0", or with more behind it when the model has given that name to something else.
ir::Dim Anonymous(const std::string& input, int axis, ir::Module& module) {
  std::string name = fmt::format("{}.{}", input, axis);
  while (module.FindSymbol(name) != nullptr) name += "_";
  return ir::Dim(module.SymbolNamed(name));
}

absl::StatusOr<ir::Dim> DimOf(const Dimension& d, const std::string& input, int axis,
                              ir::Module& module) {
  if (d.has_dim_param() && IsName(d.dim_param())) return ir::Dim(module.SymbolNamed(d.dim_param()));
  if (!d.has_dim_value() || d.dim_value() == -1) return Anonymous(input, axis, module);
  if (d.dim_value() < 0)
    return DataLoss("input '{}': dimension {} is {}, which is negative", input, axis,
                    d.dim_value());
  return ir::Dim(d.dim_value());
}

// The shape an option gives: numbers, or names of symbols.
absl::StatusOr<ir::Dims> GivenShape(const std::string& input, std::span<const std::string> words,
                                    ir::Module& module) {
  ir::Dims out;
  for (const std::string& word : words) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc() && end == word.data() + word.size()) {
      if (value < 0) return InvalidArgument("input '{}': dimension {} is negative", input, value);
      out.emplace_back(value);
    } else if (error == std::errc::invalid_argument && !word.empty()) {
      out.emplace_back(module.SymbolNamed(word));
    } else {
      return InvalidArgument("input '{}': '{}' is not a dimension", input, word);
    }
  }
  return out;
}

// A shape given from outside must agree with the numbers of the file.
absl::Status CheckGiven(const std::string& input, const ir::Dims& given,
                        const onnx::TensorShapeProto& stated) {
  if (static_cast<int>(given.size()) != stated.dim_size())
    return InvalidArgument("input '{}' has {} dimensions, not {}", input, stated.dim_size(),
                           given.size());
  for (int i = 0; i < stated.dim_size(); ++i) {
    const ir::Dim& d = given[static_cast<size_t>(i)];
    const bool fixed = stated.dim(i).has_dim_value() && stated.dim(i).dim_value() >= 0;
    if (fixed && d.is_constant() && d.constant() != stated.dim(i).dim_value())
      return InvalidArgument("input '{}': dimension {} is {}, not {}", input, i,
                             stated.dim(i).dim_value(), d.constant());
  }
  return absl::OkStatus();
}

absl::Status CheckSize(const std::string& input, DType dtype, const ir::Dims& shape) {
  uint64_t elements = 1;
  bool overflow = false;
  for (const ir::Dim& d : shape)
    if (d.is_constant() && d.constant() != 0)
      overflow |= __builtin_mul_overflow(elements, static_cast<uint64_t>(d.constant()), &elements);
  const std::optional<uint64_t> bytes =
      BytesOf(dtype == DType::kString ? DType::kU64 : dtype, elements);
  if (!overflow && bytes && *bytes <= INT64_MAX) return absl::OkStatus();
  return DataLoss("input '{}': the size of {} exceeds 64 bits", input, ir::ToText(shape));
}

// A sequence of tensors, or an optional tensor or sequence. The shapes of items may differ.
absl::StatusOr<ir::Type> TypeOfCollection(const std::string& name, const onnx::TypeProto& type) {
  if (type.has_tensor_type()) {
    const absl::StatusOr<DType> dtype = OnnxDType(type.tensor_type().elem_type());
    if (!dtype.ok()) return Annotate(dtype.status(), fmt::format("input '{}'", name));
    return ir::Type::Unranked(*dtype);
  }
  if (type.has_sequence_type() && type.sequence_type().elem_type().has_tensor_type()) {
    FORGE_ASSIGN_OR_RETURN(ir::Type item, TypeOfCollection(name, type.sequence_type().elem_type()));
    return ir::Type::Sequence(std::move(item));
  }
  if (type.has_optional_type() && !type.optional_type().elem_type().has_optional_type()) {
    FORGE_ASSIGN_OR_RETURN(ir::Type held, TypeOfCollection(name, type.optional_type().elem_type()));
    return ir::Type::Optional(std::move(held));
  }
  return DataLoss("input '{}' is neither a tensor, nor a sequence of tensors, nor an optional one",
                  name);
}

}  // namespace

absl::StatusOr<ir::Type> TypeOfInput(const onnx::ValueInfoProto& input, const OnnxOptions& options,
                                     ir::Module& module) {
  const std::string& name = input.name();
  if (!input.type().has_tensor_type()) return TypeOfCollection(name, input.type());
  const onnx::TypeProto::Tensor& tensor = input.type().tensor_type();
  const absl::StatusOr<DType> dtype = OnnxDType(tensor.elem_type());
  if (!dtype.ok()) return Annotate(dtype.status(), fmt::format("input '{}'", name));
  ir::Dims shape;
  if (const auto given = options.shapes.find(name); given != options.shapes.end()) {
    FORGE_ASSIGN_OR_RETURN(shape, GivenShape(name, given->second, module));
    if (tensor.has_shape()) FORGE_RETURN_IF_ERROR(CheckGiven(name, shape, tensor.shape()));
  } else {
    if (!tensor.has_shape())
      return DataLoss("input '{}' has no shape in the file; give it one with --shape {}=...", name,
                      name);
    for (int i = 0; i < tensor.shape().dim_size(); ++i) {
      FORGE_ASSIGN_OR_RETURN(ir::Dim d, DimOf(tensor.shape().dim(i), name, i, module));
      shape.push_back(std::move(d));
    }
  }
  FORGE_RETURN_IF_ERROR(CheckSize(name, *dtype, shape));
  return ir::Type::Tensor(*dtype, std::move(shape));
}

void NameSymbols(const onnx::GraphProto& graph, ir::Module& module) {
  for (const onnx::ValueInfoProto& input : graph.input())
    for (const Dimension& d : input.type().tensor_type().shape().dim())
      if (IsName(d.dim_param())) module.SymbolNamed(d.dim_param());
}

}  // namespace forge::formats
