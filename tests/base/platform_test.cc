// SPDX-License-Identifier: Apache-2.0
#include "base/platform.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace forge {
namespace {

std::span<const uint8_t> View(std::string_view s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), s.size()};
}

std::string Read(const std::filesystem::path& path) {
  const auto b = MapFile(path);
  if (!b.ok()) return std::string(Message(b.status()));
  return {reinterpret_cast<const char*>(b->data()), b->size()};
}

size_t Entries(const std::filesystem::path& folder) {
  size_t n = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(folder)) ++n;
  return n;
}

TEST(MapFileTest, RefusesAPipeAtOnce) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(MapFile(folder / "pipe"), Fails(absl::StatusCode::kDataLoss, "no regular file"));
}

// A stack of 1 GiB does not fit what is left of the address space.
TEST(InBackgroundTest, RunsInTheCallerWhereNoThreadStarts) {
  const auto run = [] {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size_t{1} << 30);
    pthread_setattr_default_np(&attributes);
    const rlimit limit{size_t{1} << 30, size_t{1} << 30};
    setrlimit(RLIMIT_AS, &limit);
    const auto caller = std::this_thread::get_id();
    auto there = InBackground([] { return std::this_thread::get_id(); });
    _exit(there.get() == caller ? 0 : 1);
  };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs the address space";
#endif
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  EXPECT_NE(InBackground([] { return std::this_thread::get_id(); }).get(),
            std::this_thread::get_id());
}

TEST(MapFileTest, MapsWhatWasWritten) {
  const TempFolder folder;
  ASSERT_THAT(WriteFile(folder / "a", View("hello")), Succeeds());
  Bytes part;
  {
    const auto b = MapFile(folder / "a");
    ASSERT_THAT(b, Succeeds());
    part = b->Part(1, 4);
  }
  EXPECT_EQ(std::string(part.span().begin(), part.span().end()), "ello");
  ASSERT_THAT(WriteFile(folder / "empty", View("")), Succeeds());
  EXPECT_EQ(Read(folder / "empty"), "");
}

TEST(MapFileTest, SaysWhatIsWrong) {
  const TempFolder folder;
  EXPECT_THAT(MapFile(folder / "none"), Fails(absl::StatusCode::kNotFound, "no such file"));
  EXPECT_THAT(MapFile(folder.path()), Fails(absl::StatusCode::kDataLoss, "is a folder"));
  EXPECT_THAT(MapFile("/dev/null"), Fails(absl::StatusCode::kDataLoss, "no regular file"));
  folder.Write("file", "x");
  EXPECT_THAT(MapFile(folder / "file/inside"), Fails(absl::StatusCode::kNotFound, "no such file"));
}

TEST(WriteFileTest, ReplacesWhole) {
  const TempFolder folder;
  ASSERT_THAT(WriteFile(folder / "a", View("a long old content")), Succeeds());
  ASSERT_THAT(WriteFile(folder / "a", View("new")), Succeeds());
  EXPECT_EQ(Read(folder / "a"), "new");
  EXPECT_EQ(Entries(folder.path()), 1u) << "no temporary file left";
}

TEST(WriteFileTest, LeavesNothingBehindWhenItFails) {
  const TempFolder folder;
  EXPECT_THAT(WriteFile(folder / "none/a", View("x")),
              Fails(absl::StatusCode::kInternal, "cannot write"));
  ASSERT_TRUE(std::filesystem::create_directory(folder / "d"));
  EXPECT_THAT(WriteFile(folder / "d", View("x")),
              Fails(absl::StatusCode::kInternal, "is a folder"));
  EXPECT_EQ(Entries(folder.path()), 1u);
}

TEST(WriteFileTest, WritesToDevicesWithoutReplacingThem) {
  ASSERT_THAT(WriteFile("/dev/null", View("x")), Succeeds());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(WriteFileTest, TakesLongNames) {
  const TempFolder folder;
  const std::string name(250, 'n');
  ASSERT_THAT(WriteFile(folder / name, View("x")), Succeeds());
  EXPECT_EQ(Read(folder / name), "x");
}

// A child rewrites the file without pause and is killed: whatever the moment, a reader finds one of
// its versions, whole.
TEST(WriteFileTest, IsWholeAfterAKill) {
  const TempFolder folder;
  const std::filesystem::path path = folder / "a";
  ASSERT_THAT(WriteFile(path, View(std::string(100000, 'a'))), Succeeds());
  for (int round = 0; round < 10; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1))
        if (!WriteFile(path, View(std::string(100000, c))).ok()) ::_exit(1);
    }
    ::usleep(2000 + 3000 * static_cast<useconds_t>(round));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const std::string content = Read(path);
    ASSERT_EQ(content.size(), 100000u);
    ASSERT_EQ(content, std::string(100000, content[0]));
  }
}

std::vector<FileContent> Two(const std::filesystem::path& a, const std::filesystem::path& b,
                             std::string_view content) {
  return {{a, {View(content)}}, {b, {View(content)}}};
}

// The last character of each of two files that are written together again and again by a child,
// which is interrupted.
std::pair<char, char> WriteTwoUntilInterrupted(const TempFolder& folder, int round) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);  // a shell's background jobs ignore it
    RemoveUnfinishedFilesOnSignal();
    for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) {
      const std::string content(1000, c);
      if (!WriteFiles(Two(folder / "a", folder / "b", content)).ok()) ::_exit(1);
    }
  }
  ::usleep(3000 + 700 * static_cast<useconds_t>(round));
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  return {Read(folder / "a").back(), Read(folder / "b").back()};
}

TEST(SignalTest, WipesAnUnfinishedLineOfATerminal) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) GTEST_SKIP() << "no pseudo-terminal can be had: " << std::strerror(errno);
  if (child == 0) {
    RemoveUnfinishedFilesOnSignal();
    std::fputs("converting [####      ] 3/8", stderr);
    ::raise(SIGTERM);
    ::_exit(1);
  }
  std::string shown;
  char part[256];
  for (ssize_t n;
       (n = ::read(terminal, part, sizeof(part))) > 0;)  // fails when the child has ended
    shown.append(part, static_cast<size_t>(n));
  ::close(terminal);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_EQ(shown, "converting [####      ] 3/8\r\033[K");
}

TEST(WriteFilesTest, BelongTogetherAfterAnInterrupt) {
  const TempFolder folder;
  ASSERT_THAT(WriteFiles(Two(folder / "a", folder / "b", "a")), Succeeds());
  for (int round = 0; round < 60; ++round) {
    const auto [a, b] = WriteTwoUntilInterrupted(folder, round);
    ASSERT_EQ(a, b) << "round " << round;
    ASSERT_EQ(Entries(folder.path()), 2u) << "no temporary file left";
  }
}

TEST(WriteFilesTest, WritesNoneWhereOneCannotBe) {
  const TempFolder folder;
  EXPECT_THAT(WriteFiles(Two(folder / "a", folder / "none/b", "x")),
              Fails(absl::StatusCode::kInternal, "none/b"));
  EXPECT_EQ(Entries(folder.path()), 0u);
}

TEST(SharedLibraryTest, OpensAndFinds) {
  auto library = SharedLibrary::Open("libm.so.6");
  ASSERT_THAT(library, Succeeds());
  EXPECT_NE((*library)->Symbol("cos"), nullptr);
  EXPECT_EQ((*library)->Symbol("forge_no_such_symbol"), nullptr);
  EXPECT_THAT(SharedLibrary::Open("libforge_none.so"),
              Fails(absl::StatusCode::kNotFound, "libforge_none.so"));
}

TEST(PlatformTest, FindsTheFolderOfCode) {
  const auto here = FolderOf(reinterpret_cast<const void*>(&Entries));
  EXPECT_TRUE(here.is_absolute());
  EXPECT_TRUE(std::filesystem::is_directory(here));
  const auto libc = FolderOf(reinterpret_cast<const void*>(&::getpid));
  EXPECT_FALSE(libc.empty());
}

TEST(PlatformTest, LocksAFolder) {
  const TempFolder parent;
  const std::filesystem::path folder = parent / "new";
  std::atomic<int> counted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const FolderLock alone(folder);
        const int before = counted.load();
        std::this_thread::yield();
        counted = before + 1;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(counted, 200);
  const FolderLock none("/proc/no/such/folder"), nameless("");
}

TEST(PlatformTest, CacheFolderFollowsXdg) {
  const auto before = Environment("XDG_CACHE_HOME"), home = Environment("HOME");
  ::setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(CacheFolder(), "/somewhere/forge");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", "/home/x", 1);
  EXPECT_EQ(CacheFolder(), "/home/x/.cache/forge");
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_TRUE(CacheFolder().empty());
  if (before) ::setenv("XDG_CACHE_HOME", before->c_str(), 1);
  if (home) ::setenv("HOME", home->c_str(), 1);
}

TEST(PlatformTest, TellsOfTheProcess) {
  EXPECT_GE(CpuCount(), 1);
  EXPECT_GT(PeakResidentBytes(), 1 << 20);
  EXPECT_GT(FreeMemoryBytes(), 0u);
  const int64_t before = NowNanoseconds();
  ::usleep(1000);
  EXPECT_GE(NowNanoseconds() - before, 1000000);
  EXPECT_FALSE(IsTerminal(-1));
}

}  // namespace
}  // namespace forge
