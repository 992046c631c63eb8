// SPDX-License-Identifier: Apache-2.0
// Ctrl-C at any moment: outputs are absent or whole, caches readable, and nothing else stays
// behind.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "formats/arrays/npy.h"
#include "formats/model_bin/model_bin.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/shell.h"

namespace forge {
namespace {

using namespace testing;  // NOLINT: how programs are run

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::microseconds;

struct Command {
  std::vector<std::string> arguments;  // the program's path first
  std::string cache;                   // XDG_CACHE_HOME
  std::map<std::string, std::string> environment = {};
};

// The child's half: its own process group, as a shell gives a job.
[[noreturn]] void Become(const Command& c) {
  ::setpgid(0, 0);
  ::setenv("XDG_CACHE_HOME", c.cache.c_str(), 1);
  // One exit in a hundred, LeakSanitizer's tracer crashes beside the threads of a library; the
  // other tests look for leaks.
  ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
  for (const auto& [name, value] : c.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::signal(SIGINT, SIG_DFL);  // a shell's background jobs ignore it
  const int null = ::open("/dev/null", O_RDWR);
  for (const int d : {0, 1, 2}) ::dup2(null, d);
  std::vector<char*> arguments;
  for (const std::string& a : c.arguments) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

struct Ending {
  int status = 0;  // as Outcome::status
  Microseconds took{};
};

// Runs a command and interrupts it, and what it started, after some time.
//   after: negative: it is let be
Ending RunFor(const Command& c, Microseconds after) {
  const auto begin = Clock::now();
  const pid_t child = ::fork();
  if (child == 0) Become(c);
  ::setpgid(child, child);
  if (after.count() >= 0) {
    std::this_thread::sleep_for(after);
    ::kill(-child, SIGINT);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          std::chrono::duration_cast<Microseconds>(Clock::now() - begin)};
}

// Interrupts a command at moments spread over the time that it takes, checking after each.
//   prepare, check: before and after each run
void InterruptOften(const Command& command, int times, const std::function<void()>& prepare,
                    const std::function<void(const Ending&)>& check) {
  prepare();
  RunFor(command, Microseconds(-1));  // warms what is warm later on
  prepare();
  const Ending whole = RunFor(command, Microseconds(-1));
  ASSERT_EQ(whole.status, 0);
  check(whole);
  std::mt19937_64 random(1);
  int interrupted = 0;
  // Of the runs that came to their end: one alone may have been slow, and the others over before
  // they are interrupted.
  Microseconds shortest = whole.took;
  for (int i = 0; i < times; ++i) {
    prepare();
    const auto after = Microseconds(random() % (shortest.count() + 1));
    SCOPED_TRACE(fmt::format("interrupted after {} of {} us", after.count(), shortest.count()));
    const Ending e = RunFor(command, after);
    if (e.status == 0)
      shortest = std::min(shortest, e.took);
    else
      ++interrupted;
    check(e);
  }
  EXPECT_GT(interrupted, times / 4);
}

void ExpectDoneOrInterrupted(const Ending& e) {
  EXPECT_TRUE(e.status == 0 || e.status == 128 + SIGINT) << e.status;
}

std::set<std::string> FilesIn(const std::filesystem::path& folder) {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder, ignored))
    if (e.is_regular_file()) names.insert(e.path().filename());
  return names;
}

// A model with some 16 MiB of weights, so that writing it takes a while.
std::string LargeModel() {
  OnnxModel model;
  model.Input("x", {"1", "2048"}).Output("y");
  model.Floats("w", {2048, 2048}, std::vector<float>(2048 * 2048, 0.5f));
  model.Node("MatMul", {"x", "w"}, {"y"});
  return model.File();
}

TEST(SlowInterruptTest, ConvertLeavesAWholeFileOrNone) {
  TempFolder folder;
  Write(folder / "large.onnx", LargeModel());
  const std::filesystem::path out = folder / "out";
  const Command command{{kBin + "forge-convert", folder / "large.onnx", "-o", out / "large.bin"},
                        folder / "cache"};
  const auto prepare = [&] {
    std::filesystem::remove_all(out);
    std::filesystem::create_directories(out);
  };
  InterruptOften(command, 40, prepare, [&](const Ending& e) {
    ExpectDoneOrInterrupted(e);
    const std::set<std::string> files = FilesIn(out);
    if (e.status != 0 && files.empty()) return;
    ASSERT_EQ(files, std::set<std::string>{"large.bin"});
    EXPECT_THAT(ReadModel(out / "large.bin", {.verify_weights = true}), Succeeds());
  });
}

TEST(SlowInterruptTest, ConvertKeepsTheOldFileUntilTheNewIsWhole) {
  TempFolder folder;
  Write(folder / "large.onnx", LargeModel());
  const std::filesystem::path out = folder / "large.bin";
  const Command command{{kBin + "forge-convert", folder / "large.onnx", "-o", out},
                        folder / "cache"};
  const auto prepare = [&] {
    std::filesystem::copy_file(kModel, out, std::filesystem::copy_options::overwrite_existing);
  };
  InterruptOften(command, 20, prepare, [&](const Ending& e) {
    ExpectDoneOrInterrupted(e);
    EXPECT_EQ(FilesIn(folder.path()), (std::set<std::string>{"large.bin", "large.onnx"}));
    EXPECT_THAT(ReadModel(out, {.verify_weights = true}), Succeeds());
  });
}

class SlowInterruptedRunTest : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(SlowDevices, SlowInterruptedRunTest,
                         ::testing::Values("reference", "cpu", "vulkan"));

TEST_P(SlowInterruptedRunTest, LeavesWholeOutputsAndReadableCaches) {
  TempFolder folder;
  const std::filesystem::path out = folder / "out", cache = folder / "cache",
                              traces = folder / "traces";
  std::filesystem::create_directory(traces);
  const Command command{{kBin + "forge-run", "--device", GetParam(), kModel, "--input",
                         "image=" + kPicture, "--output", "probabilities", "--output", "pool2",
                         "--output-dir", out, "--profile", traces / "trace.json"},
                        cache};
  if (RunFor(command, Microseconds(-1)).status == 4)
    GTEST_SKIP() << "there is no " << GetParam() << " device";
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue expected, ReadNpy(out / "pool2.npy"));
  bool cold = false;
  const auto prepare = [&] {
    std::filesystem::remove_all(out);
    cold = !cold;
    if (cold) std::filesystem::remove_all(cache);
  };
  InterruptOften(command, 30, prepare, [&](const Ending& e) {
    ExpectDoneOrInterrupted(e);
    // Drivers have folders of their own in the cache; what they leave there is theirs.
    for (const auto& ours : {out, cache / "forge", traces})
      for (const std::string& name : FilesIn(ours))
        EXPECT_FALSE(name.ends_with(".tmp")) << ours / name;
    for (const std::string& name : FilesIn(out)) EXPECT_THAT(ReadNpy(out / name), Succeeds());
  });
  // Whatever the last interruption left is of use to the next run.
  std::filesystem::remove_all(out);
  ASSERT_EQ(RunFor(command, Microseconds(-1)).status, 0);
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue again, ReadNpy(out / "pool2.npy"));
  EXPECT_TRUE(std::ranges::equal(again.bytes(), expected.bytes()));
}

TEST(InterruptTest, IgnoredSignalsStayIgnored) {
  TempFolder folder;
  const std::string command = "trap '' INT; " + kBin + "forge-run --device reference " + kModel +
                              " --input image=" + kPicture + " --repeat 20 >/dev/null";
  Ending e;
  std::thread run(
      [&] { e = RunFor({{"/bin/sh", "-c", command}, folder / "cache"}, Microseconds(60'000)); });
  run.join();
  EXPECT_EQ(e.status, 0);
}

// A package index of one wheel with one model, and the table that names them.
void MakePackage(const std::filesystem::path& folder) {
  constexpr std::string_view kScript = R"(
import hashlib, os, random, sys, zipfile
folder = sys.argv[1]
content = random.Random(1).randbytes(4 << 20)
info = "forge_test_model-1.0.dist-info/"
with zipfile.ZipFile(f"{folder}/forge_test_model-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
    wheel.writestr("forge_test_model/tiny.onnx", content)
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: forge-test-model\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
sha = hashlib.sha256(content).hexdigest()
with open(f"{folder}/models.tsv", "w") as table:
    table.write("name\tpackage\tpath\tsha256\tlicence\tinputs to try\tgraph\n")
    table.write(f"tiny\tforge-test-model==1.0\tforge_test_model/tiny.onnx\t{sha}\tMIT\tnone\t\n")
with open(f"{folder}/expected", "wb") as file:
    file.write(content)
)";
  Write(folder / "make.py", kScript);
  ASSERT_EQ(std::system(("python3 " + Quoted(folder / "make.py") + " " + Quoted(folder)).c_str()),
            0);
}

TEST(SlowInterruptTest, FetchLeavesWholeModelsOrNone) {
  TempFolder folder;
  MakePackage(folder.path());
  const std::filesystem::path cache = folder / "cache/forge";
  const Command command{
      {kSource + "/tools/fetch-models", "--table", folder / "models.tsv", "--all"},
      folder / "cache",
      {{"PIP_NO_INDEX", "1"}, {"PIP_FIND_LINKS", folder.path()}}};
  if (RunFor(command, Microseconds(-1)).status != 0)
    GTEST_SKIP() << "DID NOT RUN: Python here makes no virtual environments";
  const std::string expected = Slurp(folder / "expected");
  int runs = 0;
  const auto prepare = [&] {
    std::filesystem::remove(cache / "models/tiny.onnx");
    if (++runs % 7 == 0) std::filesystem::remove_all(cache / "venv");
  };
  InterruptOften(command, 8, prepare, [&](const Ending& e) {
    // Python that is interrupted while it starts ends with a status of its own.
    const bool there = std::filesystem::exists(cache / "models/tiny.onnx");
    EXPECT_TRUE(there || e.status != 0);
    EXPECT_TRUE(!there || Slurp(cache / "models/tiny.onnx") == expected);
  });
  ASSERT_EQ(RunFor(command, Microseconds(-1)).status, 0);
  EXPECT_EQ(FilesIn(cache / "models"), std::set<std::string>{"tiny.onnx"});
  EXPECT_EQ(Slurp(cache / "models/tiny.onnx"), expected);
}

}  // namespace
}  // namespace forge
