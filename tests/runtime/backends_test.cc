// SPDX-License-Identifier: Apache-2.0
// Devices by name, and what is said of those that are not there.
#include "runtime/backends.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/platform.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace forge {
namespace {

using absl::StatusCode;

TEST(BackendsTest, OpensTheReferenceByNameAndNumber) {
  for (const char* name : {"reference", "reference:0", "reference:EVALUATORS"}) {
    FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef d, OpenDevice(name, {}));
    EXPECT_EQ(d->info().id, "reference:0") << name;
  }
}

TEST(BackendsTest, NamesWhatThereIsInstead) {
  EXPECT_THAT(OpenDevice("metal", {}),
              Fails(StatusCode::kInvalidArgument, "unknown backend 'metal'; the backends are cpu"));
  EXPECT_THAT(OpenDevice("", {}), Fails(StatusCode::kInvalidArgument, "unknown backend ''"));
  EXPECT_THAT(OpenDevice("reference:7", {}),
              Fails(StatusCode::kUnavailable, "no reference device '7'"));
  EXPECT_THAT(
      OpenDevice("reference:geforce", {}),
      Fails(StatusCode::kUnavailable, "the devices are reference:0 (reference evaluators)"));
  EXPECT_THAT(FindDriver("opencl"), Fails(StatusCode::kInvalidArgument, "opencl"));
}

TEST(BackendsTest, ListsEveryBackendOnce) {
  const std::vector<BackendDevices> all = ListDevices();
  ASSERT_EQ(all.size(), BackendNames().size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].backend, BackendNames()[i]);
    EXPECT_TRUE(all[i].status.ok() || !Message(all[i].status).empty());
    for (const DeviceInfo& d : all[i].devices) {
      EXPECT_EQ(d.backend, all[i].backend);
      EXPECT_FALSE(d.name.empty());
    }
  }
}

TEST(BackendsTest, AutoAlwaysFindsADevice) { EXPECT_THAT(OpenDevice("auto", {}), Succeeds()); }

// ---- plug-ins that are not there. A driver is looked for once in a process, so these run in one
// of their own, which finds libforge in a folder without plug-ins.

class PluginChildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Environment("FORGE_TEST_CHILD")) GTEST_SKIP() << "run by PluginsTest";
  }
};

TEST_F(PluginChildTest, AbsentPlugins) {
  const std::string folder = *Environment("FORGE_PLUGIN_PATH");
  for (const char* backend : {"cpu", "vulkan", "cuda"}) {
    EXPECT_THAT(
        OpenDevice(backend, {}),
        Fails(StatusCode::kUnavailable, fmt::format("no libforge_{}.so in {}", backend, folder)));
  }
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef d, OpenDevice("auto", {}));
  EXPECT_EQ(d->info().id, "reference:0");
  FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(testing::AddingModel(), d));
  const NamedTensor x{"x", Tensor({1, 3}, {1, 2, 3})};
  FORGE_ASSERT_OK_AND_ASSIGN(auto y, s->Run({&x, 1}));
  EXPECT_EQ(Numbers(y[0].value), (std::vector<double>{11, 22, 33}));
  EXPECT_FALSE(ListDevices()[0].status.ok());
}

TEST_F(PluginChildTest, DamagedPlugin) {
  EXPECT_THAT(OpenDevice("vulkan", {}),
              Fails(StatusCode::kUnavailable, "cannot load the vulkan backend"));
  EXPECT_THAT(OpenDevice("auto", {}), Succeeds());
}

TEST_F(PluginChildTest, StrangersLibrary) {
  EXPECT_THAT(OpenDevice("vulkan", {}), Fails(StatusCode::kUnavailable, "is not a Forge plug-in"));
}

TEST_F(PluginChildTest, OpensTheProcessor) {
  const auto before = Environment("GOMP_SPINCOUNT");
  EXPECT_THAT(OpenDevice("cpu", {}), Succeeds());
  EXPECT_EQ(Environment("GOMP_SPINCOUNT"), before);
}

class PluginsTest : public ::testing::Test {
 protected:
  // Runs a test of PluginChildTest with `plugins_` as the folder of plug-ins.
  void ExpectPasses(const std::string& test) {
    const std::filesystem::path lib = FolderOf(reinterpret_cast<const void*>(&BackendNames));
    for (const auto& e : std::filesystem::directory_iterator(lib))
      if (e.path().filename().string().starts_with("libforge.so"))
        std::filesystem::copy(e.path(), libraries_ / e.path().filename().string(),
                              std::filesystem::copy_options::copy_symlinks);
    const std::string command = fmt::format(
        "FORGE_TEST_CHILD=1 GTEST_OUTPUT= LD_LIBRARY_PATH='{}' FORGE_PLUGIN_PATH='{}' '{}' "
        "--gtest_filter=PluginChildTest.{} >'{}' 2>&1",
        libraries_.path().string(), plugins_.path().string(),
        std::filesystem::read_symlink("/proc/self/exe").string(), test, (logs_ / "log").string());
    const int status = std::system(command.c_str());
    std::ifstream log(logs_ / "log");
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << std::string{std::istreambuf_iterator<char>(log), {}};
  }
  TempFolder libraries_, plugins_, logs_;
};

TEST_F(PluginsTest, AbsentOnesAreNamedAndTheRestWorks) { ExpectPasses("AbsentPlugins"); }

TEST_F(PluginsTest, DamagedOnesAreNamed) {
  plugins_.Write("libforge_vulkan.so", "no library at all");
  ExpectPasses("DamagedPlugin");
}

TEST_F(PluginsTest, StrangersAreRefused) {
  // Somebody else's library: a second libforge would be one too many for AddressSanitizer.
  Dl_info stranger{};
  std::string (*const format)(fmt::string_view, fmt::format_args) = &fmt::vformat;
  ASSERT_NE(dladdr(reinterpret_cast<const void*>(format), &stranger), 0);
  std::filesystem::copy(std::filesystem::canonical(stranger.dli_fname),
                        plugins_ / "libforge_vulkan.so");
  ExpectPasses("StrangersLibrary");
}

// Threads that spin for long take processors from those they wait for; sleepers wake slowly.
TEST(BackendsTest, ThreadsOfTheProcessorSpinBriefly) {
  const TempFolder folder;
  const auto log_of = [&](const std::string& environment) {
    const std::filesystem::path log = folder / "log";
    const std::string command = fmt::format(
        "FORGE_TEST_CHILD=1 GTEST_OUTPUT= OMP_DISPLAY_ENV=verbose {} '{}' "
        "--gtest_filter=PluginChildTest.OpensTheProcessor >'{}' 2>&1",
        environment, std::filesystem::read_symlink("/proc/self/exe").string(), log.string());
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream in(log);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  EXPECT_THAT(log_of(""), ::testing::HasSubstr("GOMP_SPINCOUNT = '2000'"));
  EXPECT_THAT(log_of("OMP_WAIT_POLICY=passive"), ::testing::HasSubstr("GOMP_SPINCOUNT = '0'"));
  EXPECT_THAT(log_of("GOMP_SPINCOUNT=7"), ::testing::HasSubstr("GOMP_SPINCOUNT = '7'"));
}

}  // namespace
}  // namespace forge
