// SPDX-License-Identifier: Apache-2.0
#include "codegen/target/tuned.h"

#include "absl/strings/numbers.h"
#include "base/cache_file.h"
#include "base/platform.h"

namespace forge::codegen {
namespace {

constexpr size_t kKeyDigits = 16;

}  // namespace

TunedChoices::TunedChoices(std::filesystem::path path, std::string title)
    : path_(std::move(path)), title_(std::move(title)) {
  Load();
}

// Lines of a key and a choice; what is read takes precedence over nothing that is known.
void TunedChoices::Load() {
  for (const std::string& line : LinesBehind(title_, ReadCacheFile(path_))) {
    uint64_t key = 0;
    if (line.size() > kKeyDigits + 1 && line[kKeyDigits] == ' ' &&
        absl::SimpleHexAtoi(line.substr(0, kKeyDigits), &key))
      choices_.emplace(key, line.substr(kKeyDigits + 1));
  }
}

std::optional<std::string> TunedChoices::Find(uint64_t key) const {
  const std::lock_guard lock(mutex_);
  const auto at = choices_.find(key);
  if (at == choices_.end()) return std::nullopt;
  return at->second;
}

bool TunedChoices::empty() const {
  const std::lock_guard lock(mutex_);
  return choices_.empty();
}

std::optional<Choice> TunedChoices::Preferred(const Region& region) const {
  if (empty()) return std::nullopt;
  const absl::StatusOr<uint64_t> key = TuningKey(region);
  if (!key.ok()) return std::nullopt;
  const std::optional<std::string> text = Find(*key);
  if (!text) return std::nullopt;
  absl::StatusOr<Choice> choice = ParseChoice(region, *text);
  if (!choice.ok()) return std::nullopt;
  return *std::move(choice);
}

absl::Status TunedChoices::Put(uint64_t key, const std::string& choice) {
  const std::lock_guard lock(mutex_);
  choices_[key] = choice;
  const FolderLock alone(path_.parent_path());
  Load();
  std::string text = title_ + "\n";
  for (const auto& [k, c] : choices_)
    fmt::format_to(std::back_inserter(text), "{:016x} {}\n", k, c);
  return WriteCacheFile(path_, text);
}

}  // namespace forge::codegen
