// SPDX-License-Identifier: Apache-2.0
// The results of autotuning on a device.
#pragma once
#include <filesystem>
#include <map>
#include <mutex>

#include "codegen/schedules/tuning.h"

namespace forge::codegen {

// Choices by TuningKey, stored in a file. May be used from any thread.
class TunedChoices {
 public:
  // Loads a file whose first line is `title`; an absent, foreign or damaged file reads as empty.
  // path: empty: choices are kept in memory only
  TunedChoices(std::filesystem::path path, std::string title);
  std::optional<std::string> Find(uint64_t key) const;
  bool empty() const;
  // Returns the choice for a region; nullopt: the default. Choices that no longer exist are
  // ignored.
  std::optional<Choice> Preferred(const Region& region) const;
  // Adds a choice and replaces the file atomically, merged with what other processes have written
  // meanwhile. errors: Internal with path and reason; the choice is kept in memory
  absl::Status Put(uint64_t key, const std::string& choice);

 private:
  void Load();
  std::filesystem::path path_;  // empty: no file
  std::string title_;           // its first line
  std::map<uint64_t, std::string> choices_;
  mutable std::mutex mutex_;  // of choices_
};

}  // namespace forge::codegen
