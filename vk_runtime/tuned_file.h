// SPDX-License-Identifier: Apache-2.0
// The file that keeps which ways of compiling were found to be fastest on a device.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "vk_runtime/queries.h"

namespace forge::vk {

// Choices (see codegen/tuning.h) by codegen::TuningKey. Any thread.
class TunedFile {
 public:
  // What this very driver's file says; an absent, foreign or damaged one says nothing.
  //   use_file: else nothing is read, and kept no longer than this object
  static TunedFile Read(const Queries& q, bool use_file);
  std::optional<std::string> Find(uint64_t key) const;
  // Replaces the file whole, with what other processes have put there meanwhile.
  //   errors: Internal with path and reason; the choice is found all the same
  absl::Status Put(uint64_t key, const std::string& choice);

 private:
  void Load();
  std::filesystem::path path_;  // empty: no file
  std::string title_;           // its first line
  std::map<uint64_t, std::string> choices_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // of choices_
};

}  // namespace forge::vk
