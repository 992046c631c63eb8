// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/tuned_file.h"

#include <charconv>

#include "base/platform.h"
#include "vk_runtime/pipeline_file.h"

namespace forge::vk {
namespace {

constexpr size_t kKeyDigits = 16;

}  // namespace

TunedFile TunedFile::Read(const Queries& q, bool use_file) {
  TunedFile file;
  if (use_file) file.path_ = PipelineFilePath(q);
  if (!file.path_.empty()) file.path_.replace_extension(".tuned");
  constexpr int kVersion = 1;
  file.title_ = fmt::format("forge tuned {} of {} driver {:#x}\n", kVersion,
                            q.properties.deviceName, q.properties.driverVersion);
  file.Load();
  return file;
}

// Lines of a key and a choice; what is read takes precedence over nothing that is known.
void TunedFile::Load() {
  const absl::StatusOr<Bytes> bytes =
      path_.empty() ? absl::StatusOr<Bytes>(NotFound("")) : MapFile(path_);
  if (!bytes.ok()) return;
  std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  if (!text.starts_with(title_)) return;
  text.remove_prefix(title_.size());
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    const std::string_view line = text.substr(0, end);
    uint64_t key = 0;
    const char* digits_end = line.data() + std::min(kKeyDigits, line.size());
    const auto [stop, error] = std::from_chars(line.data(), digits_end, key, 16);
    if (error != std::errc() || stop != digits_end || line.size() <= kKeyDigits + 1 ||
        line[kKeyDigits] != ' ')
      continue;
    choices_.emplace(key, line.substr(kKeyDigits + 1));
  }
}

std::optional<std::string> TunedFile::Find(uint64_t key) const {
  const std::lock_guard lock(*mutex_);
  const auto at = choices_.find(key);
  if (at == choices_.end()) return std::nullopt;
  return at->second;
}

absl::Status TunedFile::Put(uint64_t key, const std::string& choice) {
  const std::lock_guard lock(*mutex_);
  choices_[key] = choice;
  if (path_.empty()) return absl::OkStatus();
  Load();
  std::string text = title_;
  for (const auto& [k, c] : choices_)
    fmt::format_to(std::back_inserter(text), "{:016x} {}\n", k, c);
  std::error_code error;
  std::filesystem::create_directories(path_.parent_path(), error);
  if (error) return Internal("{}: {}", path_.parent_path().string(), error.message());
  return WriteFile(path_, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

}  // namespace forge::vk
