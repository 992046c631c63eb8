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
  // Adds what was put since the last call to the file. A file that would become too large, or that
  // is damaged, is written anew, preferring kernels that this process has requested.
  //   errors: as WriteCacheFile and AppendToFile
  absl::Status Save();
  int64_t printed() const { return printed_; }  // number of calls of Put

 private:
  struct Entry {
    std::vector<uint32_t> words;
    bool used = false;
  };
  void Load();                  // reads what the file has beyond read_; under mutex_
  absl::Status Rewrite();       // under mutex_ and the folder's lock
  std::filesystem::path path_;  // empty: no file
  std::string title_;           // its first line
  uint64_t device_;             // a hash of the features and limits that kernels are made for
  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, Entry> entries_;  // under mutex_, as all below
  std::vector<uint64_t> unsaved_;                 // of entries_
  uint64_t generation_ = 0;                       // of the file that was read
  size_t read_ = 0;                               // bytes of it, all of them sound
  bool whole_ = false;                            // it had no others
  std::atomic<int64_t> printed_{0};
};

}  // namespace forge::vk
