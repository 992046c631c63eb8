// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/platform.h"

namespace forge {
namespace {

constexpr size_t kMostOutput = size_t{1} << 20;
constexpr int64_t kMillisecond = 1'000'000;  // nanoseconds

struct Pipe {
  int ends[2] = {-1, -1};
  ~Pipe() {
    for (const int e : ends)
      if (e >= 0) ::close(e);
  }
  void CloseWriting() {
    ::close(ends[1]);
    ends[1] = -1;
  }
};

// `ld.so --library-path P` of a process that was started so, whose executable is the loader; empty
// for others.
std::vector<std::string> LoaderOfThisProcess() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || !self.filename().string().starts_with("ld-")) return {};
  std::ifstream in("/proc/self/cmdline");
  std::vector<std::string> loader;
  for (std::string word; std::getline(in, word, '\0');) {
    const bool has_value =
        loader.size() > 1 && loader.back().starts_with("--") && loader.back() != "--inhibit-cache";
    if (!loader.empty() && !has_value && !word.starts_with("--")) break;
    loader.push_back(std::move(word));
  }
  if (!loader.empty()) loader.front() = self.string();
  return loader;
}

// Its process number.
absl::StatusOr<pid_t> Start(const std::filesystem::path& program,
                            std::span<const std::string> arguments, int output) {
  std::vector<std::string> words = LoaderOfThisProcess();
  words.push_back(program.string());
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int error = ::posix_spawn(&child, argv[0], &files, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (error != 0)
    return Unavailable("{} cannot be started: {}", program.string(), std::strerror(error));
  return child;
}

// Until every writer has closed its end, or until the deadline, which each output moves.
std::string ReadUntil(int descriptor, int64_t patience, int64_t& deadline) {
  std::string output;
  char block[4096];
  for (;;) {
    const int64_t left = deadline - NowNanoseconds();
    if (left <= 0) break;
    pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
    const int n =
        ::poll(&ready, 1, static_cast<int>(std::min<int64_t>(left / kMillisecond + 1, 1000)));
    if (n == 0 || (n < 0 && errno == EINTR)) continue;
    const ssize_t got = n < 0 ? -1 : ::read(descriptor, block, sizeof(block));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    deadline = NowNanoseconds() + patience;
    output.append(block, std::min(static_cast<size_t>(got), kMostOutput - output.size()));
  }
  return output;
}

// Waits for its end, or ends it at the deadline; the fault, or nothing.
std::string FaultOf(pid_t child, int64_t deadline, bool& killed) {
  int status = 0;
  for (;;) {
    const pid_t ended = ::waitpid(child, &status, killed ? 0 : WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    // Who ignores SIGCHLD never learns how a child ended.
    if (ended < 0) return {};
    if (ended == child) break;
    if (NowNanoseconds() >= deadline) {
      ::kill(child, SIGKILL);
      killed = true;
      continue;
    }
    ::usleep(1000);
  }
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace

absl::StatusOr<Ended> RunToEnd(const std::filesystem::path& program,
                               std::span<const std::string> arguments, int64_t nanoseconds) {
  int64_t deadline = NowNanoseconds() + nanoseconds;
  Pipe pipe;
  if (::pipe2(pipe.ends, O_CLOEXEC) != 0)
    return Unavailable("{} cannot be started: {}", program.string(), std::strerror(errno));
  FORGE_ASSIGN_OR_RETURN(const pid_t child, Start(program, arguments, pipe.ends[1]));
  pipe.CloseWriting();
  Ended ended;
  ended.output = ReadUntil(pipe.ends[0], nanoseconds, deadline);
  ended.fault = FaultOf(child, deadline, ended.silent);
  if (ended.silent) ended.fault = fmt::format("silent for {} s", nanoseconds / 1'000'000'000);
  return ended;
}

}  // namespace forge
