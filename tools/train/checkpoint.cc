// SPDX-License-Identifier: Apache-2.0
#include "tools/train/checkpoint.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "formats/arrays/safetensors.h"

namespace forge::tools {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "forge-train 1";

// Over names, types and bytes of the variables, and over the position.
std::string Checksum(const Safetensors& file, const std::string& position) {
  uint64_t h = HashText(position);
  for (const auto& [name, value] : file.tensors) {
    h = HashText(value.type().ToText(), HashText(name, h));
    const std::span<const uint8_t> bytes = value.bytes();
    size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, 8);
      h = HashMix(h, word);
    }
    for (; at < bytes.size(); ++at) h = HashMix(h, bytes[at]);
  }
  return fmt::format("{:016x}", h);
}

absl::StatusOr<Position> ParsePosition(const std::string& text) {
  const Json j = Json::parse(text, nullptr, false);
  Position at;
  const auto whole = [&](const char* key, int64_t& to) {
    if (!j.contains(key) || !j[key].is_number_unsigned() ||
        j[key].get<uint64_t>() > uint64_t{INT64_MAX})
      return false;
    to = j[key].get<int64_t>();
    return true;
  };
  if (!j.is_object() || !whole("step", at.step) || !whole("epoch", at.epoch) ||
      !whole("sample", at.sample) || !j.contains("loss") || !j["loss"].is_number() ||
      !j.contains("correct") || !j["correct"].is_number())
    return DataLoss("its position is damaged");
  at.loss = j["loss"].get<double>();
  at.correct = j["correct"].get<double>();
  return at;
}

}  // namespace

absl::Status WriteCheckpoint(const std::filesystem::path& folder, const Checkpoint& c) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Internal("{}: cannot create the folder: {}", folder.string(), error.message());
  const Json position = {{"step", c.at.step},
                         {"epoch", c.at.epoch},
                         {"sample", c.at.sample},
                         {"loss", c.at.loss},
                         {"correct", c.at.correct}};
  Safetensors file;
  for (const NamedTensor& v : c.variables) file.tensors.emplace_back(v.name, v.value);
  file.metadata = {{"format", kFormat},
                   {"position", position.dump()},
                   {"options", Json(c.options).dump()},
                   {"checksum", Checksum(file, position.dump())}};
  return WriteSafetensors(folder / "checkpoint.safetensors", file);
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::filesystem::path& path,
                                          const std::map<std::string, std::string>& options) {
  std::error_code ignored;
  const std::filesystem::path file =
      std::filesystem::is_directory(path, ignored) ? path / "checkpoint.safetensors" : path;
  FORGE_ASSIGN_OR_RETURN(Safetensors content, ReadSafetensors(file));
  auto& metadata = content.metadata;
  if (metadata["format"] != kFormat)
    return DataLoss("{}: not a checkpoint of forge-train", file.string());
  const Json saved = Json::parse(metadata["options"], nullptr, false);
  absl::StatusOr<Position> at = ParsePosition(metadata["position"]);
  // The variables are read in the order of their bytes, which is that of writing.
  if (!at.ok() || !saved.is_object() ||
      metadata["checksum"] != Checksum(content, metadata["position"]))
    return DataLoss("{}: the checkpoint is damaged", file.string());
  for (const auto& [key, value] : options) {
    const std::string was =
        saved.contains(key) && saved[key].is_string() ? saved[key].get<std::string>() : "";
    if (was != value)
      return InvalidArgument("{} belongs to a training with {} '{}', not '{}'", file.string(), key,
                             was, value);
  }
  Checkpoint out{.at = *at, .options = options};
  for (auto& [name, value] : content.tensors) out.variables.push_back({name, std::move(value)});
  return out;
}

}  // namespace forge::tools
