// SPDX-License-Identifier: Apache-2.0
#include "base/platform.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <system_error>

namespace forge {
namespace {

std::string ErrorText(int error) { return std::generic_category().message(error); }

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  // Closes now, for the error that a delayed write may report.
  int Close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// The files that a signal must remove, where its handler can read them: memory that never moves,
// no locks. A file beyond the table's size is written all the same, and stays when a signal comes.
class UnfinishedFiles {
 public:
  static constexpr int kNone = -1;

  int Add(const std::filesystem::path& path) {
    if (path.native().size() >= sizeof(Entry::path)) return kNone;
    for (size_t i = 0; i < entries_.size(); ++i) {
      State free = State::kFree;
      if (!entries_[i].state.compare_exchange_strong(free, State::kTaken)) continue;
      std::memcpy(entries_[i].path, path.c_str(), path.native().size() + 1);
      entries_[i].state = State::kReady;
      return static_cast<int>(i);
    }
    return kNone;
  }
  void Remove(int entry) {
    if (entry != kNone) entries_[entry].state = State::kFree;
  }
  void Unlink() const {
    for (const Entry& e : entries_)
      if (e.state == State::kReady) ::unlink(e.path);
  }

 private:
  enum class State : uint8_t { kFree, kTaken, kReady };
  static_assert(std::atomic<State>::is_always_lock_free);
  struct Entry {
    std::atomic<State> state = State::kFree;
    char path[PATH_MAX] = {};
  };
  std::array<Entry, 16> entries_;
};

UnfinishedFiles unfinished;

// Renames that belong together and signals that end the program exclude each other.
constexpr int kEnding = -1;
std::atomic<int> renaming = 0;  // threads that do, or kEnding
std::atomic<int> held_signal = 0;
// Known before any signal: the call that tells is not safe in a handler.
bool stderr_is_terminal = false;

extern "C" void RemoveUnfinishedAndEnd(int signal) {
  int none = 0;
  if (!renaming.compare_exchange_strong(none, kEnding) && none != kEnding) {
    held_signal = signal;
    return;
  }
  unfinished.Unlink();
  constexpr std::string_view kWipeLine = "\r\033[K";  // a progress bar may be there
  if (stderr_is_terminal) (void)!::write(STDERR_FILENO, kWipeLine.data(), kWipeLine.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // pending until the handler returns
}

class SignalsHeld {
 public:
  SignalsHeld() {
    int threads = 0;
    while (!renaming.compare_exchange_weak(threads, threads + 1))
      while (threads == kEnding) ::pause();
  }
  SignalsHeld(const SignalsHeld&) = delete;
  ~SignalsHeld() {
    if (renaming.fetch_sub(1) == 1 && held_signal != 0) std::raise(held_signal);
  }
};

// A file that is removed unless it reaches its final name.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path)
      : path_(std::move(path)), entry_(unfinished.Add(path_)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
    unfinished.Remove(entry_);
  }
  const std::filesystem::path& path() const { return path_; }
  int RenameTo(const std::filesystem::path& target) {
    const int result = ::rename(path_.c_str(), target.c_str());
    if (result == 0) path_.clear();
    return result;
  }

 private:
  std::filesystem::path path_;
  int entry_;
};

// Bytes of one call of write(): few enough that progress moves.
constexpr size_t kWriteBytes = 8u << 20;

// Bytes written of all there are to write.
class Progress {
 public:
  Progress(std::span<const FileContent> files, const WriteProgress& tell) : tell_(tell) {
    for (const FileContent& f : files)
      for (std::span<const uint8_t> part : f.parts) total_ += part.size();
  }
  void Add(uint64_t bytes) {
    done_ += bytes;
    if (tell_) tell_(done_, total_);
  }

 private:
  const WriteProgress& tell_;
  uint64_t done_ = 0, total_ = 0;
};

absl::Status CannotWrite(const FileContent& file, std::string_view why) {
  return Internal("{}: cannot write: {}", file.path.string(), why);
}

absl::Status WriteAll(int fd, const FileContent& file, Progress& progress) {
  for (std::span<const uint8_t> content : file.parts) {
    while (!content.empty()) {
      const ssize_t n = ::write(fd, content.data(), std::min(content.size(), kWriteBytes));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return CannotWrite(file, ErrorText(errno));
      content = content.subspan(static_cast<size_t>(n));
      progress.Add(static_cast<uint64_t>(n));
    }
  }
  return absl::OkStatus();
}

std::filesystem::path FolderOfFile(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// Makes a rename in `folder` survive a crash of the machine. File systems that cannot do it keep
// the file whole all the same, so a refusal is no error.
void FlushFolder(const std::filesystem::path& folder) {
  const Descriptor d(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (d.ok()) ::fsync(d.get());
}

std::filesystem::path TemporaryName(const std::filesystem::path& folder,
                                    const std::filesystem::path& path) {
  static std::atomic<uint64_t> count{0};
  // The name is cut so that a long file name stays within the system's limit of 255 bytes.
  return folder / fmt::format(".{:.100}.{}.{}.{}.tmp", path.filename().string(), ::getpid(),
                              NowNanoseconds(), count++);
}

// A file that is written under another name until it is whole.
class WholeFile {
 public:
  explicit WholeFile(const FileContent& content)
      : content_(content), file_(TemporaryName(FolderOfFile(content.path), content.path)) {}
  absl::Status Write(Progress& progress) {
    Descriptor d(::open(file_.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!d.ok()) return CannotWrite(content_, ErrorText(errno));
    FORGE_RETURN_IF_ERROR(WriteAll(d.get(), content_, progress));
    if ((content_.flushed && ::fsync(d.get()) != 0) || d.Close() != 0)
      return CannotWrite(content_, ErrorText(errno));
    return absl::OkStatus();
  }
  absl::Status Publish() {
    if (file_.RenameTo(content_.path) != 0) return CannotWrite(content_, ErrorText(errno));
    if (content_.flushed) FlushFolder(FolderOfFile(content_.path));
    return absl::OkStatus();
  }

 private:
  const FileContent& content_;
  TemporaryFile file_;
};

}  // namespace

absl::StatusOr<Bytes> MapFile(const std::filesystem::path& path) {
  const std::string name = path.string();
  // Opening a pipe without a writer would wait.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.ok()) {
    if (errno == ENOENT || errno == ENOTDIR) return NotFound("{}: no such file", name);
    return DataLoss("{}: cannot open: {}", name, ErrorText(errno));
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0)
    return DataLoss("{}: cannot read: {}", name, ErrorText(errno));
  if (!S_ISREG(info.st_mode))
    return DataLoss("{}: {}", name, S_ISDIR(info.st_mode) ? "is a folder" : "is no regular file");
  if (info.st_size == 0) return Bytes();
  const size_t size = static_cast<size_t>(info.st_size);
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (at == MAP_FAILED) return DataLoss("{}: cannot map: {}", name, ErrorText(errno));
  std::shared_ptr<const void> owner(at, [size](void* p) { ::munmap(p, size); });
  return Bytes({static_cast<const uint8_t*>(at), size}, std::move(owner));
}

absl::Status WriteFile(const std::filesystem::path& path, std::span<const uint8_t> content) {
  const FileContent file{path, {content}};
  return WriteFiles({&file, 1});
}

absl::Status WriteFiles(std::span<const FileContent> files, const WriteProgress& tell) {
  Progress progress(files, tell);
  std::deque<WholeFile> written;
  for (const FileContent& f : files) {
    struct stat info{};
    if (::stat(f.path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) {
      FORGE_RETURN_IF_ERROR(written.emplace_back(f).Write(progress));
      continue;
    }
    if (S_ISDIR(info.st_mode)) return CannotWrite(f, "is a folder");
    // A pipe or a device (/dev/null, /dev/stdout) is written to, never replaced.
    const Descriptor d(::open(f.path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!d.ok()) return CannotWrite(f, ErrorText(errno));
    FORGE_RETURN_IF_ERROR(WriteAll(d.get(), f, progress));
  }
  const SignalsHeld until_all_are_renamed;
  for (WholeFile& f : written) FORGE_RETURN_IF_ERROR(f.Publish());
  return absl::OkStatus();
}

absl::Status AppendToFile(const std::filesystem::path& path, std::span<const uint8_t> content) {
  const FileContent file{path, {content}};
  // Opening a pipe without a reader would wait.
  Descriptor d(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!d.ok() || ::fstat(d.get(), &info) != 0) return CannotWrite(file, ErrorText(errno));
  if (!S_ISREG(info.st_mode)) return CannotWrite(file, "is no regular file");
  const WriteProgress tell;
  Progress progress({&file, 1}, tell);
  FORGE_RETURN_IF_ERROR(WriteAll(d.get(), file, progress));
  return d.Close() == 0 ? absl::OkStatus() : CannotWrite(file, ErrorText(errno));
}

void RemoveUnfinishedFilesOnSignal() {
  stderr_is_terminal = ::isatty(STDERR_FILENO) == 1;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before{};
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action{};
    action.sa_handler = RemoveUnfinishedAndEnd;
    ::sigfillset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

FolderLock::FolderLock(const std::filesystem::path& folder) {
  if (folder.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  descriptor_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

DefaultEnvironment::DefaultEnvironment(const char* name, const char* value) {
  if (::getenv(name) == nullptr && ::setenv(name, value, 0) == 0) name_ = name;
}

DefaultEnvironment::~DefaultEnvironment() {
  if (name_ != nullptr) ::unsetenv(name_);
}

absl::StatusOr<std::shared_ptr<SharedLibrary>> SharedLibrary::Open(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return NotFound("{}", why != nullptr ? why : "cannot be opened");
  }
  return std::shared_ptr<SharedLibrary>(new SharedLibrary(handle));
}

SharedLibrary::~SharedLibrary() { ::dlclose(handle_); }

void* SharedLibrary::Symbol(const char* name) const { return ::dlsym(handle_, name); }

std::filesystem::path FolderOf(const void* address) {
  // /proc/self/maps tells the true path even when another loader started the program, where
  // dladdr() repeats the loader's argument.
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    uintptr_t low = 0, high = 0;
    const char* end = line.data() + line.size();
    auto [dash, e1] = std::from_chars(line.data(), end, low, 16);
    if (e1 != std::errc() || dash == end) continue;
    auto [rest, e2] = std::from_chars(dash + 1, end, high, 16);
    if (e2 != std::errc() || wanted < low || wanted >= high) continue;
    const size_t slash = line.find('/');
    if (slash == std::string::npos) break;
    return std::filesystem::path(line.substr(slash)).parent_path();
  }
  Dl_info info;
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return std::filesystem::absolute(info.dli_fname, ignored).parent_path();
}

std::filesystem::path CacheFolder() {
  // The XDG base directory specification: a relative path is to be ignored.
  if (auto xdg = Environment("XDG_CACHE_HOME"); xdg && xdg->starts_with('/'))
    return std::filesystem::path(*xdg) / "forge";
  if (auto home = Environment("HOME"); home && !home->empty())
    return std::filesystem::path(*home) / ".cache" / "forge";
  return {};
}

std::optional<std::string> Environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

uint32_t ForkCount() {
  static std::atomic<uint32_t> forks = 0;
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { ++forks; });
  return registered == 0 ? forks.load() : 0;
}

int CpuCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

int64_t NowNanoseconds() {
  using std::chrono::steady_clock;
  return std::chrono::nanoseconds(steady_clock::now().time_since_epoch()).count();
}

int64_t PeakResidentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("VmHWM:")) continue;
    const size_t digit = line.find_first_of("0123456789");
    int64_t kib = 0;
    if (digit != std::string::npos)
      std::from_chars(line.data() + digit, line.data() + line.size(), kib);
    return kib * 1024;
  }
  return 0;
}

uint64_t FreeMemoryBytes() {
  const long pages = ::sysconf(_SC_AVPHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : 0;
}

bool IsTerminal(int descriptor) { return ::isatty(descriptor) == 1; }

}  // namespace forge
