// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/tensor.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/platform.h"
#include "formats/untrusted/byte_reader.h"

namespace forge::formats {
namespace {

struct OnnxType {
  std::string_view name;
  int32_t code;
  DType dtype;
};
constexpr OnnxType kTypes[] = {
    {"FLOAT", 1, DType::kF32},
    {"UINT8", 2, DType::kU8},
    {"INT8", 3, DType::kI8},
    {"UINT16", 4, DType::kU16},
    {"INT16", 5, DType::kI16},
    {"INT32", 6, DType::kI32},
    {"INT64", 7, DType::kI64},
    {"STRING", 8, DType::kString},
    {"BOOL", 9, DType::kBool},
    {"FLOAT16", 10, DType::kF16},
    {"DOUBLE", 11, DType::kF64},
    {"UINT32", 12, DType::kU32},
    {"UINT64", 13, DType::kU64},
    {"COMPLEX64", 14, DType::kC64},
    {"COMPLEX128", 15, DType::kC128},
    {"BFLOAT16", 16, DType::kBF16},
    {"FLOAT8E4M3FN", 17, DType::kF8E4M3},
    {"FLOAT8E4M3FNUZ", 18, DType::kF8E4M3Fnuz},
    {"FLOAT8E5M2", 19, DType::kF8E5M2},
    {"FLOAT8E5M2FNUZ", 20, DType::kF8E5M2Fnuz},
    {"UINT4", 21, DType::kU4},
    {"INT4", 22, DType::kI4},
    {"FLOAT4E2M1", 23, DType::kF4E2M1},
    {"UINT2", 25, DType::kU2},
    {"INT2", 26, DType::kI2},
};

struct Layout {
  DType dtype;
  std::vector<int64_t> shape;
  uint64_t bytes;
};

absl::StatusOr<Layout> LayoutOf(const onnx::TensorProto& tensor) {
  FORGE_ASSIGN_OR_RETURN(const DType dtype, OnnxDType(tensor.data_type()));
  if (tensor.has_segment()) return DataLoss("tensors in segments are not supported");
  Layout out{dtype, {tensor.dims().begin(), tensor.dims().end()}, 0};
  uint64_t elements = 1;
  for (const int64_t extent : out.shape) {
    if (extent < 0) return DataLoss("dimension {} is negative", extent);
    if (__builtin_mul_overflow(elements, static_cast<uint64_t>(extent), &elements))
      return DataLoss("the product of its dimensions exceeds 64 bits");
  }
  const std::optional<uint64_t> bytes =
      dtype == DType::kString ? std::optional<uint64_t>(0) : BytesOf(dtype, elements);
  if (!bytes || elements > INT64_MAX) return DataLoss("its size in bytes exceeds 64 bits");
  out.bytes = *bytes;
  return out;
}

absl::Status WrongSize(std::string_view field, uint64_t have, const Layout& want) {
  return DataLoss("{} has {} bytes, but {} of shape [{}] needs {}", field, have, Name(want.dtype),
                  fmt::join(want.shape, ", "), want.bytes);
}

// Anything but 0 is true, and is stored as 1.
Bytes Booleans(Bytes in) {
  const std::span<const uint8_t> all = in.span();
  if (std::ranges::none_of(all, [](uint8_t b) { return b > 1; })) return in;
  std::vector<uint8_t> out(all.size());
  std::ranges::transform(all, out.begin(), [](uint8_t b) { return b != 0; });
  return Bytes(std::move(out));
}

// ---- external data ----------------------------------------------------------------------------

struct ExternalPlace {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

absl::StatusOr<uint64_t> ParseCount(std::string_view key, const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return DataLoss("external data: {} '{}' is not a number of bytes", key, text);
  return value;
}

absl::StatusOr<ExternalPlace> PlaceOf(const onnx::TensorProto& tensor) {
  ExternalPlace out;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") {
      out.location = entry.value();
    } else if (entry.key() == "offset") {
      FORGE_ASSIGN_OR_RETURN(out.offset, ParseCount("offset", entry.value()));
    } else if (entry.key() == "length") {
      FORGE_ASSIGN_OR_RETURN(out.length, ParseCount("length", entry.value()));
    }
  }
  return out;
}

absl::StatusOr<Bytes> ExternalBytes(const onnx::TensorProto& tensor, const Layout& layout,
                                    ExternalFiles& files) {
  FORGE_ASSIGN_OR_RETURN(const ExternalPlace place, PlaceOf(tensor));
  if (place.length.value_or(layout.bytes) != layout.bytes)
    return WrongSize("external data", *place.length, layout);
  FORGE_ASSIGN_OR_RETURN(const Bytes file, files.Find(place.location));
  if (!Inside(place.offset, layout.bytes, file.size()))
    return DataLoss("external data '{}' has {} bytes, too few for {} at {}", place.location,
                    file.size(), layout.bytes, place.offset);
  const Bytes part = file.Part(place.offset, layout.bytes);
  const auto element = static_cast<uint64_t>(std::max(BitWidth(layout.dtype) / 8, 1));
  if (place.offset % element == 0) return part;
  // Elements that lie across their natural boundaries are moved to memory of our own.
  return Bytes(std::vector<uint8_t>(part.span().begin(), part.span().end()));
}

// ---- typed fields -----------------------------------------------------------------------------

template <class T>
absl::StatusOr<Bytes> Copied(std::string_view name, const google::protobuf::RepeatedField<T>& field,
                             const Layout& layout) {
  const uint64_t size = static_cast<uint64_t>(field.size()) * sizeof(T);
  if (size != layout.bytes) return WrongSize(name, size, layout);
  std::vector<uint8_t> out(size);
  if (size != 0) std::memcpy(out.data(), field.data(), size);
  return Bytes(std::move(out));
}

// Integers and the bits of narrow floats, each stored wider than it is. Two's complement and the
// plain bits are both taken; elements of less than a byte come packed.
template <class T>
absl::StatusOr<Bytes> Narrowed(std::string_view name,
                               const google::protobuf::RepeatedField<T>& field,
                               const Layout& layout) {
  const int width = std::max(BitWidth(layout.dtype) / 8, 1);
  const uint64_t size = static_cast<uint64_t>(field.size()) * static_cast<uint64_t>(width);
  if (size != layout.bytes) return WrongSize(name, size, layout);
  std::vector<uint8_t> out(size);
  for (int i = 0; i < field.size(); ++i) {
    const T value = field[i];
    const T above = width == sizeof(T) ? 0 : static_cast<T>(value >> (8 * width));
    const bool sign_extended =
        static_cast<T>(value >> (8 * width - 1)) == static_cast<T>(-1) && std::is_signed_v<T>;
    if (above != 0 && !sign_extended)
      return DataLoss("{}: element {} is {}, outside the range of {}", name, i, value,
                      Name(layout.dtype));
    std::memcpy(&out[static_cast<size_t>(i) * static_cast<size_t>(width)], &value,
                static_cast<size_t>(width));
  }
  return Bytes(std::move(out));
}

absl::StatusOr<Bytes> TypedBytes(const onnx::TensorProto& t, const Layout& layout) {
  switch (layout.dtype) {
    case DType::kF32:
    case DType::kC64:
      return Copied("float_data", t.float_data(), layout);
    case DType::kF64:
    case DType::kC128:
      return Copied("double_data", t.double_data(), layout);
    case DType::kI64:
      return Copied("int64_data", t.int64_data(), layout);
    case DType::kU64:
      return Copied("uint64_data", t.uint64_data(), layout);
    case DType::kU32:
      return Narrowed("uint64_data", t.uint64_data(), layout);
    default:
      return Narrowed("int32_data", t.int32_data(), layout);
  }
}

bool HasTypedData(const onnx::TensorProto& t) {
  return t.float_data_size() + t.double_data_size() + t.int32_data_size() + t.int64_data_size() +
             t.uint64_data_size() + t.string_data_size() !=
         0;
}

absl::StatusOr<Bytes> RawBytes(onnx::TensorProto& tensor, const Layout& layout) {
  if (HasTypedData(tensor)) return DataLoss("has both raw and typed data");
  if (tensor.raw_data().size() != layout.bytes)
    return WrongSize("raw_data", tensor.raw_data().size(), layout);
  const std::shared_ptr<const std::string> own(tensor.release_raw_data());
  return Bytes({reinterpret_cast<const uint8_t*>(own->data()), own->size()}, own);
}

absl::StatusOr<Bytes> DataOf(onnx::TensorProto& tensor, const Layout& layout,
                             ExternalFiles& files) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    if (tensor.has_raw_data() || HasTypedData(tensor))
      return DataLoss("has both external and inline data");
    return ExternalBytes(tensor, layout, files);
  }
  return tensor.has_raw_data() ? RawBytes(tensor, layout) : TypedBytes(tensor, layout);
}

absl::StatusOr<ir::HostValue> StringsOf(const onnx::TensorProto& tensor, const Layout& layout) {
  if (tensor.has_raw_data() || tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return DataLoss("strings are neither raw nor external data");
  const std::vector<std::string> all(tensor.string_data().begin(), tensor.string_data().end());
  absl::StatusOr<ir::HostValue> value = ir::HostValue::Strings(layout.shape, all);
  if (!value.ok()) return DataLoss("string_data: {}", Message(value.status()));
  return value;
}

}  // namespace

absl::StatusOr<Bytes> ExternalFiles::Find(const std::string& location) {
  if (const auto found = mapped_.find(location); found != mapped_.end()) return found->second;
  if (folder_.empty())
    return DataLoss("external data '{}': the model was not read from a folder", location);
  const auto outside = [&] {
    return DataLoss("external data '{}' is outside the model's folder", location);
  };
  const std::filesystem::path relative = std::filesystem::path(location).lexically_normal();
  if (relative.empty() || relative.is_absolute() || *relative.begin() == "..") return outside();
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(folder_, error);
  if (error) return DataLoss("external data '{}': {}", location, error.message());
  const std::filesystem::path path = std::filesystem::canonical(folder / relative, error);
  if (error) return DataLoss("external data '{}': {}", location, error.message());
  // Links are resolved by now: what they lead to must lie inside too.
  const auto [rest, ignored] = std::ranges::mismatch(folder, path);
  if (rest != folder.end()) return outside();
  absl::StatusOr<Bytes> file = MapFile(path);
  if (!file.ok()) return DataLoss("external data '{}': {}", location, Message(file.status()));
  return mapped_[location] = *std::move(file);
}

absl::StatusOr<DType> OnnxDType(int32_t data_type) {
  const auto* found = std::ranges::find(kTypes, data_type, &OnnxType::code);
  if (found == std::end(kTypes)) return DataLoss("unknown element type {}", data_type);
  return found->dtype;
}

absl::StatusOr<DType> OnnxDType(std::string_view name) {
  const auto* found = std::ranges::find(kTypes, name, &OnnxType::name);
  if (found == std::end(kTypes)) return DataLoss("unknown element type '{}'", name);
  return found->dtype;
}

absl::StatusOr<ir::HostValue> TakeOnnxTensor(onnx::TensorProto& tensor, ExternalFiles& files) {
  FORGE_ASSIGN_OR_RETURN(const Layout layout, LayoutOf(tensor));
  if (layout.dtype == DType::kString) return StringsOf(tensor, layout);
  FORGE_ASSIGN_OR_RETURN(Bytes bytes, DataOf(tensor, layout, files));
  if (layout.dtype == DType::kBool) bytes = Booleans(std::move(bytes));
  return ir::HostValue::Of(layout.dtype, layout.shape, std::move(bytes));
}

}  // namespace forge::formats
