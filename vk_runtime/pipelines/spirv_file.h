// SPDX-License-Identifier: Apache-2.0
// The SPIR-V of kernels, kept between runs: what was verified and printed once is not again.
#pragma once
#include "absl/container/flat_hash_map.h"
#include "vk_runtime/api/context.h"
#include "vk_runtime/pipelines/cache_file.h"

namespace forge::vk {

// Any thread.
class SpirvFile {
 public:
  // Reads what this very driver and generator have left. An absent, foreign or damaged file is an
  // empty one: it is written anew.
  //   use_file: else nothing is read, and nothing kept
  SpirvFile(const Context& context, bool use_file);
  // The words of kernel `hash` (of codegen::Hash, and of what else its caller tells kernels by).
  std::optional<std::vector<uint32_t>> Find(uint64_t hash);
  // Keeps words that were printed because Find had none.
  void Put(uint64_t hash, std::span<const uint32_t> words);
  // Writes the file if something was put, with what other processes have put there meanwhile. Those
  // that this process has not asked for are left out where the file would become too large.
  //   errors: as WriteCacheFile
  absl::Status Save();
  int64_t printed() const { return printed_; }  // calls of Put

 private:
  struct Entry {
    std::vector<uint32_t> words;
    bool used = false;
  };
  void Load();                  // under mutex_
  std::filesystem::path path_;  // empty: no file
  std::string title_;           // its first line
  uint64_t device_;             // a hash of the features and limits that kernels are made for
  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, Entry> entries_;  // under mutex_
  bool dirty_ = false;                            // under mutex_
  std::atomic<int64_t> printed_{0};
};

}  // namespace forge::vk
