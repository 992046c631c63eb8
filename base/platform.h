// SPDX-License-Identifier: Apache-2.0
// The only home of operating-system calls.
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

// Maps a file read-only; the mapping lives as long as the result or any Part of it.
//   errors: NotFound, DataLoss (a folder, a pipe, unreadable), with path and reason
absl::StatusOr<Bytes> MapFile(const std::filesystem::path& path);

// Writes a file so that readers see the old content or the new, never a part, whenever the process
// or machine stops: temporary file in the same folder, flush, rename.
//   errors: Internal with path and reason; nothing is left behind
absl::Status WriteFile(const std::filesystem::path& path, std::span<const uint8_t> content);

struct FileContent {
  std::filesystem::path path;
  std::vector<std::span<const uint8_t>> parts;  // written one after another
};
using WriteProgress = std::function<void(uint64_t done, uint64_t total)>;  // bytes
// The same for files that belong together: when all are written they get their names, in order, and
// a signal that would end the program waits meanwhile.
//   progress: told of bytes of all files, every few MiB; may be null
absl::Status WriteFiles(std::span<const FileContent> files, const WriteProgress& progress = {});

// From now on SIGINT, SIGTERM and SIGHUP remove what WriteFiles has begun and not finished, and
// then end the program as they would have; those that are ignored stay so. For programs, not
// libraries.
void RemoveUnfinishedFilesOnSignal();

// A folder, made where there is none, that no other FolderLock holds meanwhile, of this process or
// another. Nothing where it has no name, or cannot be locked.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

// Sets a variable of the environment that is not set, and unsets it in the end. Other threads must
// not use the environment meanwhile.
class DefaultEnvironment {
 public:
  DefaultEnvironment(const char* name, const char* value);
  ~DefaultEnvironment();
  DefaultEnvironment(const DefaultEnvironment&) = delete;

 private:
  const char* name_ = nullptr;  // null: it was set
};

// A shared library opened by name, closed with the last reference.
class SharedLibrary {
 public:
  // errors: NotFound with the loader's own words
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
// How many forks lie between the process that asked first and this one. Threads, and whatever waits
// for one, do not come along.
uint32_t ForkCount();
int CpuCount();               // processors this process may use, at least 1
int64_t NowNanoseconds();     // monotonic
int64_t PeakResidentBytes();  // VmHWM; 0 where unknown
uint64_t FreeMemoryBytes();   // of the machine, not in use for anything; 0 where unknown
bool IsTerminal(int descriptor);

// The result of f(), which runs on a thread of its own; where the system starts none, f() runs in
// the caller of get(). Exceptions of f() leave through get().
template <class F>
auto InBackground(F f) -> std::future<decltype(f())> {
  try {
    return std::async(std::launch::async, f);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, f);
  }
}

}  // namespace forge
