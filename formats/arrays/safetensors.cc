// SPDX-License-Identifier: Apache-2.0
#include "formats/arrays/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/platform.h"
#include "formats/untrusted/byte_reader.h"

namespace forge {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxTensorsHeader = 100'000'000,
                   kMaxTensorAxes = 64;  // the format's own limit of the header
// Of values, from the header's object on: an extent in a shape of a tensor. Messages show values,
// and writing one recurses.
constexpr int kMaxNesting = 3;

struct NameOfType {
  DType dtype;
  std::string_view name;
};
constexpr std::array<NameOfType, 15> kNames = {{{DType::kBool, "BOOL"},
                                                {DType::kU8, "U8"},
                                                {DType::kI8, "I8"},
                                                {DType::kU16, "U16"},
                                                {DType::kI16, "I16"},
                                                {DType::kU32, "U32"},
                                                {DType::kI32, "I32"},
                                                {DType::kU64, "U64"},
                                                {DType::kI64, "I64"},
                                                {DType::kF8E5M2, "F8_E5M2"},
                                                {DType::kF8E4M3, "F8_E4M3"},
                                                {DType::kBF16, "BF16"},
                                                {DType::kF16, "F16"},
                                                {DType::kF32, "F32"},
                                                {DType::kF64, "F64"}}};

struct Entry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

std::optional<uint64_t> Unsigned(const Json& j) {
  if (!j.is_number_unsigned()) return std::nullopt;
  return j.get<uint64_t>();
}

absl::StatusOr<Entry> ParseEntry(const std::string& name, const Json& j, uint64_t total) {
  Entry e{.name = name};
  if (!j.is_object() || !j.contains("dtype") || !j.contains("shape") || !j.contains("data_offsets"))
    return DataLoss("it needs dtype, shape and data_offsets");
  const Json &dtype = j["dtype"], &shape = j["shape"], &offsets = j["data_offsets"];
  const std::string text = dtype.is_string() ? dtype.get<std::string>() : dtype.dump();
  const auto* known = std::ranges::find(kNames, text, &NameOfType::name);
  if (known == kNames.end()) return DataLoss("its dtype {} is not supported", text);
  e.dtype = known->dtype;
  if (!shape.is_array() || shape.size() > kMaxTensorAxes)
    return DataLoss("its shape is not a list");
  uint64_t bytes = static_cast<uint64_t>(BitWidth(e.dtype)) / 8;
  for (const Json& d : shape) {
    const std::optional<uint64_t> extent = Unsigned(d);
    if (!extent || *extent > INT64_MAX || __builtin_mul_overflow(bytes, *extent, &bytes))
      return DataLoss("its shape {} is not one", shape.dump());
    e.shape.push_back(static_cast<int64_t>(*extent));
  }
  const std::optional<uint64_t> none;
  const bool pair = offsets.is_array() && offsets.size() == 2;
  const auto begin = pair ? Unsigned(offsets[0]) : none, end = pair ? Unsigned(offsets[1]) : none;
  if (!begin || !end || *begin > *end || *end > total || *end - *begin != bytes)
    return DataLoss("its shape needs {} bytes, data_offsets are {} in {} bytes", bytes,
                    offsets.dump(), total);
  e.begin = *begin;
  e.end = *end;
  return e;
}

absl::StatusOr<std::vector<Entry>> ParseHeader(const Json& header, uint64_t total,
                                               std::map<std::string, std::string>& metadata) {
  std::vector<Entry> out;
  for (const auto& [name, j] : header.items()) {
    if (name == "__metadata__") {
      if (!j.is_object()) return DataLoss("__metadata__ is not an object");
      for (const auto& [key, value] : j.items()) {
        if (!value.is_string()) return DataLoss("__metadata__ '{}' is not a string", key);
        metadata[key] = value.get<std::string>();
      }
      continue;
    }
    absl::StatusOr<Entry> e = ParseEntry(name, j, total);
    if (!e.ok()) return DataLoss("tensor '{}': {}", name, Message(e.status()));
    out.push_back(*std::move(e));
  }
  std::ranges::sort(out, {}, [](const Entry& e) { return std::pair(e.begin, e.end); });
  uint64_t at = 0;
  for (const Entry& e : out) {
    if (e.begin != at)
      return DataLoss("tensor '{}' begins at byte {}, not at {}", e.name, e.begin, at);
    at = e.end;
  }
  if (at != total) return DataLoss("{} bytes belong to no tensor", total - at);
  return out;
}

}  // namespace

absl::Status WriteSafetensors(const std::filesystem::path& path, const Safetensors& content) {
  Json header = Json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  std::vector<std::span<const uint8_t>> parts(2);
  uint64_t at = 0;
  for (const auto& [name, value] : content.tensors) {
    const auto* type = std::ranges::find(kNames, value.dtype(), &NameOfType::dtype);
    if (type == kNames.end())
      return InvalidArgument("'{}': safetensors has no dtype {}", name, Name(value.dtype()));
    if (header.contains(name)) return InvalidArgument("two tensors are called '{}'", name);
    const std::vector<int64_t> shape(value.shape().begin(), value.shape().end());
    const uint64_t end = at + value.bytes().size();
    header[name] = {{"dtype", type->name}, {"shape", shape}, {"data_offsets", {at, end}}};
    parts.push_back(value.bytes());
    at = end;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize(AlignUp(text.size(), 8), ' ');
  const uint64_t size = text.size();
  parts[0] = {reinterpret_cast<const uint8_t*>(&size), sizeof(size)};
  parts[1] = AsBytes(text);
  const FileContent file{path, std::move(parts)};
  return WriteFiles({&file, 1});
}

absl::StatusOr<Safetensors> ParseSafetensors(const Bytes& file, std::string_view where) {
  const std::optional<uint64_t> size = ReadAt<uint64_t>(file.span(), 0);
  if (!size || *size > kMaxTensorsHeader || !Inside(sizeof(uint64_t), *size, file.size()))
    return DataLoss("{}: not a safetensors file, or truncated: its header does not fit", where);
  const Bytes text = file.Part(sizeof(uint64_t), *size);
  bool nested = false;
  const auto within = [&](int depth, Json::parse_event_t, Json&) {
    nested = nested || depth > kMaxNesting;
    return !nested;
  };
  const Json header = Json::parse(text.span().begin(), text.span().end(), within, false);
  if (nested) return DataLoss("{}: the header nests values deeper than the format does", where);
  if (!header.is_object()) return DataLoss("{}: the header is not a JSON object", where);
  const uint64_t begin = sizeof(uint64_t) + *size;
  const Bytes data = file.Part(begin, file.size() - begin);
  Safetensors out;
  auto entries = ParseHeader(header, data.size(), out.metadata);
  if (!entries.ok()) return DataLoss("{}: {}", where, Message(entries.status()));
  for (const Entry& e : *entries) {
    auto value = ir::HostValue::Of(e.dtype, e.shape, data.Part(e.begin, e.end - e.begin));
    if (!value.ok()) return DataLoss("{}: tensor '{}': {}", where, e.name, Message(value.status()));
    out.tensors.emplace_back(e.name, *std::move(value));
  }
  return out;
}

absl::StatusOr<Safetensors> ReadSafetensors(const std::filesystem::path& path) {
  FORGE_ASSIGN_OR_RETURN(const Bytes file, MapFile(path));
  return ParseSafetensors(file, path.string());
}

}  // namespace forge
