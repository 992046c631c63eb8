// SPDX-License-Identifier: Apache-2.0
// All calls of the operating system.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace forge {

// Maps a file read-only. The mapping lives as long as the result or any Part of it.
//   errors: NotFound, DataLoss (a folder, a pipe, unreadable), with path and reason
absl::StatusOr<Bytes> MapFile(const std::filesystem::path& path);

// Writes a file atomically: readers see the old or the new content, even if the process or the
// machine stops meanwhile. (A temporary file in the same folder, flush, rename.)
//   errors: Internal with path and reason; nothing is left behind
absl::Status WriteFile(const std::filesystem::path& path, std::span<const uint8_t> content);

struct FileContent {
  std::filesystem::path path;
  std::vector<std::span<const uint8_t>> parts;  // written one after another
  bool flushed = true;  // false: faster, but a crash of the machine may leave any content
};
using WriteProgress = std::function<void(uint64_t done, uint64_t total)>;  // bytes
// Writes files that belong together. They are renamed, in order, after all are written; signals
// that would end the program are blocked during the renames.
//   progress: called every few MiB, with the bytes of all files; may be null
absl::Status WriteFiles(std::span<const FileContent> files, const WriteProgress& progress = {});

// Adds to the end of a regular file that exists, in as few writes as the system takes.
//   errors: Internal with path and reason; a part of the content may have been added
absl::Status AppendToFile(const std::filesystem::path& path, std::span<const uint8_t> content);

// Makes SIGINT, SIGTERM and SIGHUP remove the unfinished files of WriteFiles before they end the
// program. Ignored signals stay ignored. For programs, not libraries.
void RemoveUnfinishedFilesOnSignal();

// Locks a folder, created when absent, against other FolderLocks of all processes. Does nothing
// when the path is empty or the folder cannot be locked.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

// Sets an environment variable, unless it is set, until destruction. Other threads must not use the
// environment meanwhile.
class DefaultEnvironment {
 public:
  DefaultEnvironment(const char* name, const char* value);
  ~DefaultEnvironment();
  DefaultEnvironment(const DefaultEnvironment&) = delete;

 private:
  const char* name_ = nullptr;  // null: the variable was set
};

// A shared library, closed with the last reference.
class SharedLibrary {
 public:
  // errors: NotFound with the message of the loader
  static absl::StatusOr<std::shared_ptr<SharedLibrary>> Open(const std::string& path);
  ~SharedLibrary();
  void* Symbol(const char* name) const;  // null when absent

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

// The folder of the library or program that contains `address` (not of the running program).
std::filesystem::path FolderOf(const void* address);
// $XDG_CACHE_HOME/forge or ~/.cache/forge; not created. Empty when neither variable is set.
std::filesystem::path CacheFolder();
std::optional<std::string> Environment(const char* name);
// The number of forks between the process that first called this and the current one. A fork copies
// no threads, so objects that need one do not work in the child process.
uint32_t ForkCount();
int CpuCount();               // processors this process may use, at least 1
int64_t NowNanoseconds();     // monotonic
int64_t PeakResidentBytes();  // VmHWM; 0 where unknown
uint64_t FreeMemoryBytes();   // unused memory of the machine; 0 where unknown
bool IsTerminal(int descriptor);

// Runs f() on a new thread, or in get() when no thread can be started. get() rethrows exceptions of
// f().
template <class F>
auto InBackground(F f) -> std::future<decltype(f())> {
  try {
    return std::async(std::launch::async, f);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, f);
  }
}

}  // namespace forge
