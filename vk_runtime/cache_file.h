// SPDX-License-Identifier: Apache-2.0
// The files that keep between runs what one driver told of one device: its compiled kernels, which
// ways of compiling are fastest, and its self-test (self_test.h).
#pragma once
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "codegen/tuning.h"
#include "vk_runtime/queries.h"

namespace forge::vk {

// CacheFolder()/vk-DEVICE-DRIVER-MODEL`extension`; empty when there is no cache folder.
std::filesystem::path CacheFile(const Queries& q, std::string_view extension);
// How the first line of a file of `what` begins; that of another driver begins otherwise.
std::string CacheTitle(const Queries& q, std::string_view what);
// Nothing where there is no file, or none that can be read.
std::string ReadCacheFile(const std::filesystem::path& path);
// The lines of a text behind its first, which is `title`; none where it is another. A last line
// without its end is left out.
std::vector<std::string> LinesBehind(std::string_view title, const std::string& text);
// Replaces the file whole; nothing where `path` is empty.  errors: Internal with path and reason
absl::Status WriteCacheFile(const std::filesystem::path& path, std::string_view content);

// What the driver gave, and which kernels are in it.
struct PipelineFile {
  std::set<uint64_t> kernels;  // hashes of their SPIR-V
  std::vector<uint8_t> blob;   // of vkGetPipelineCacheData
};
// The content of a file written by this very driver. An absent, foreign, damaged or truncated file
// is an empty one: it is written anew.
PipelineFile ReadPipelineFile(const std::filesystem::path& path, const Queries& q);
// errors: as WriteCacheFile
absl::Status WritePipelineFile(const std::filesystem::path& path, const Queries& q,
                               const PipelineFile& file);

// Choices (see codegen/tuning.h) by codegen::TuningKey. Any thread.
class TunedFile {
 public:
  // What this very driver's file says; an absent, foreign or damaged one says nothing.
  //   use_file: else nothing is read, and kept no longer than this object
  TunedFile(const Queries& q, bool use_file);
  std::optional<std::string> Find(uint64_t key) const;
  bool empty() const;
  // The choice for a region whose default makes `by_default`; nullopt: that one, for all that is
  // known. What an older Forge preferred may be no choice any more.
  std::optional<codegen::Choice> Preferred(const codegen::Region& region,
                                           const codegen::Program& by_default) const;
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

}  // namespace forge::vk
