// SPDX-License-Identifier: Apache-2.0
// Cache of the SPIR-V of kernels on disk: a kernel that was verified and printed in an earlier run
// is loaded.
#pragma once
#include "absl/container/flat_hash_map.h"
#include "vk_runtime/api/context.h"
#include "vk_runtime/pipelines/cache_file.h"

namespace forge::vk {

// The cache file. May be used from any thread.
class SpirvFile {
 public:
  // Loads the file that this driver and generator wrote. An absent, foreign or damaged file reads
  // as empty and is replaced by the next write.
  //   use_file: false: nothing is read or written
  SpirvFile(const Context& context, bool use_file);
  // Returns the SPIR-V words of a kernel.
  //   hash: of codegen::Hash and of what else the caller distinguishes
  std::optional<std::vector<uint32_t>> Find(uint64_t hash);
  // Adds words that were printed because Find returned none.
  void Put(uint64_t hash, std::span<const uint32_t> words);
  // Writes the file if words were added, merged with what other processes have written meanwhile.
  // When the file would become too large, kernels that this process did not request are dropped.
  //   errors: as WriteCacheFile
  absl::Status Save();
  int64_t printed() const { return printed_; }  // number of calls of Put

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
