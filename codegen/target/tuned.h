// SPDX-License-Identifier: Apache-2.0
// What searches on a device found to be faster than the defaults.
#pragma once
#include <filesystem>
#include <map>
#include <mutex>

#include "codegen/schedules/tuning.h"

namespace forge::codegen {

// Choices by TuningKey, kept in a file. Any thread.
class TunedChoices {
 public:
  // What a file that begins with the line `title` says; an absent, foreign or damaged one says
  // nothing.
  //   path: empty: nothing is read, and kept no longer than this object
  TunedChoices(std::filesystem::path path, std::string title);
  std::optional<std::string> Find(uint64_t key) const;
  bool empty() const;
  // The choice for a region; nullopt: the default, for all that is known. What an older Forge
  // preferred may be no choice any more.
  std::optional<Choice> Preferred(const Region& region) const;
  // Replaces the file whole, with what other processes have put there meanwhile.
  //   errors: Internal with path and reason; the choice is found all the same
  absl::Status Put(uint64_t key, const std::string& choice);

 private:
  void Load();
  std::filesystem::path path_;  // empty: no file
  std::string title_;           // its first line
  std::map<uint64_t, std::string> choices_;
  mutable std::mutex mutex_;  // of choices_
};

}  // namespace forge::codegen
