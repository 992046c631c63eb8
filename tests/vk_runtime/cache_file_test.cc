// SPDX-License-Identifier: Apache-2.0
// What is kept between runs: compiled kernels, and which ways of compiling are fastest.
#include "vk_runtime/pipelines/cache_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "ir/ops/product/matmul.h"
#include "runtime/plan/autotune.h"
#include "tests/support/ir_values.h"
#include "tests/support/temp_folder.h"
#include "tests/vk_runtime/vulkan_test.h"
#include "vk_runtime/self_test/probes.h"

namespace forge::vk {
namespace {

class PipelineFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("forge-vk-{}-{}", getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "cache" / "vk.bin";
    queries_.properties.vendorID = 7;
    queries_.properties.pipelineCacheUUID[3] = 9;
    written_.kernels = {3, 1, UINT64_MAX};
    written_.blob = {1, 2, 3, 4, 5};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Content() const {
    std::ifstream f(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(f), {}};
  }
  void Put(const std::string& content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  bool Empty() const {
    const PipelineFile f = ReadPipelineFile(path_, queries_);
    return f.kernels.empty() && f.blob.empty();
  }

  std::filesystem::path folder_, path_;
  Queries queries_;
  PipelineFile written_;
};

TEST_F(PipelineFileTest, ReadsWhatItWrote) {
  ASSERT_OK(WritePipelineFile(path_, queries_, written_));
  const PipelineFile read = ReadPipelineFile(path_, queries_);
  EXPECT_EQ(read.kernels, written_.kernels);
  EXPECT_EQ(read.blob, written_.blob);
}

TEST_F(PipelineFileTest, IgnoresTheFileOfAnotherDriver) {
  ASSERT_OK(WritePipelineFile(path_, queries_, written_));
  queries_.properties.driverVersion = 1;
  EXPECT_TRUE(Empty());
}

TEST_F(PipelineFileTest, IgnoresDamage) {
  EXPECT_TRUE(Empty());  // absent
  ASSERT_OK(WritePipelineFile(path_, queries_, written_));
  const std::string good = Content();
  for (size_t n = 0; n < good.size(); ++n) {
    Put(good.substr(0, n));
    EXPECT_TRUE(Empty()) << "cut to " << n;
  }
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    Put(bad);
    EXPECT_TRUE(Empty());
  }
  Put(good);
  EXPECT_FALSE(Empty());
}

TEST_F(PipelineFileTest, SaysWhatCannotBeWritten) {
  const absl::Status s = WritePipelineFile("/proc/no/such/vk.bin", queries_, written_);
  EXPECT_FALSE(s.ok());
  EXPECT_NE(Message(s).find("/proc/no"), std::string_view::npos);
}

// The whole device on a cache folder that is new, warm, and damaged.
TEST(PipelineCacheTest, CountsWhatItCompiledAndFound) {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("forge-xdg-{}", getpid());
  const ScopedEnvironment cache("XDG_CACHE_HOME", folder.string());
  const auto counts = [&]() -> std::optional<std::pair<int, int>> {
    VulkanDriver driver;
    if (!driver.List().at(0).usable) return std::nullopt;
    auto device = driver.Open(0, {.threads = 1, .cache = true});
    EXPECT_TRUE(device.ok());
    auto& vulkan = static_cast<VulkanDevice&>(**device);
    const auto shader = TransposeShader(1, 8, 8, vulkan.context()->caps());
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(MakeProgram(*shader, vulkan.pipelines()).ok());
    EXPECT_TRUE(vulkan.pipelines().Save().ok());
    return std::pair(vulkan.compile_counts().compiled, vulkan.compile_counts().cached);
  };
  const auto first = counts();
  if (!first) GTEST_SKIP() << "no Vulkan device";
  EXPECT_EQ(*first, std::pair(1, 0));
  EXPECT_EQ(*counts(), std::pair(0, 1));
  for (const auto& file : std::filesystem::directory_iterator(folder / "forge"))
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_EQ(*counts(), std::pair(1, 0));
  std::filesystem::remove_all(folder);
}

// Devices that stand for processes, which have a file together.
class SharedPipelineCacheTest : public VulkanTest {
 protected:
  void SetUp() override {
    VulkanTest::SetUp();
    if (!IsSkipped()) device_.reset();
  }
  std::shared_ptr<VulkanDevice> NewDevice() {
    auto device = driver_->Open(0, {.threads = 1, .cache = true});
    EXPECT_TRUE(device.ok()) << Message(device.status());
    return std::static_pointer_cast<VulkanDevice>(*device);
  }
  // The kernel of that number.
  static void Make(VulkanDevice& device, uint32_t number) {
    const codegen::Caps& caps = device.context()->caps();
    codegen::Kernel kernel = KernelOf(PlainProbe(), caps);
    kernel.workgroup[0] = number;
    const auto code = PrintCode(kernel, 2, caps);
    ASSERT_OK(code.status());
    ASSERT_OK(device.pipelines().Get(*code).status());
  }
  // Of the first `count` kernels, how many a new process finds.
  int64_t Found(uint32_t count) {
    const auto device = NewDevice();
    for (uint32_t n = 1; n <= count; ++n) Make(*device, n);
    return device->pipelines().cached();
  }

  TempFolder folder_;
  ScopedEnvironment cache_{"XDG_CACHE_HOME", folder_.path().string()};
};

TEST_F(SharedPipelineCacheTest, KeepsWhatTwoProcessesCompiled) {
  const auto one = NewDevice(), other = NewDevice();
  Make(*one, 1);
  Make(*other, 2);
  ASSERT_OK(one->pipelines().Save());
  ASSERT_OK(other->pipelines().Save());
  EXPECT_EQ(Found(2), 2);
}

TEST_F(SharedPipelineCacheTest, KeepsWhatIsSavedAtTheSameTime) {
  constexpr uint32_t kProcesses = 4;
  std::vector<std::shared_ptr<VulkanDevice>> devices;
  for (uint32_t n = 1; n <= kProcesses; ++n) {
    devices.push_back(NewDevice());
    Make(*devices.back(), n);
  }
  std::vector<std::thread> threads;
  for (const auto& device : devices)
    threads.emplace_back([&] { EXPECT_TRUE(device->pipelines().Save().ok()); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(Found(kProcesses), kProcesses);
}

TEST_F(SharedPipelineCacheTest, SavesLaterWhatCouldNotBeWritten) {
  const auto device = NewDevice();
  Make(*device, 1);
  std::filesystem::remove_all(folder_ / "forge");
  std::ofstream(folder_ / "forge") << "a file where the folder should be";
  EXPECT_FALSE(device->pipelines().Save().ok());
  std::filesystem::remove(folder_ / "forge");
  ASSERT_OK(device->pipelines().Save());
  EXPECT_EQ(Found(1), 1);
}

TEST(CacheFileTest, TellsDevicesOfOneUuidApart) {
  Queries one{}, other{};
  other.properties.deviceID = 1;
  EXPECT_NE(CacheFile(one, ".bin"), CacheFile(other, ".bin"));
  other = one;
  other.properties.deviceName[0] = 'x';
  EXPECT_NE(CacheFile(one, ".bin"), CacheFile(other, ".bin"));
  other = one;
  other.properties.driverVersion = 1;  // replaces the file of the older version
  EXPECT_EQ(CacheFile(one, ".bin"), CacheFile(other, ".bin"));
}

class TunedChoicesTest : public ::testing::Test {
 protected:
  codegen::TunedChoices Read(bool use_file = true) const {
    return {use_file ? CacheFile(queries_, ".tuned") : std::filesystem::path(),
            CacheTitle(queries_, "tuned 2")};
  }
  std::filesystem::path Path() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "forge"))
      return entry.path();
    return {};
  }

  TempFolder folder_;
  ScopedEnvironment cache_{"XDG_CACHE_HOME", folder_.path().string()};
  Queries queries_{};
};

TEST_F(TunedChoicesTest, KeepsChoices) {
  codegen::TunedChoices file = Read();
  EXPECT_FALSE(file.Find(7));
  ASSERT_OK(file.Put(7, "a(b=1)"));
  ASSERT_OK(Read().Put(UINT64_MAX, "c(d=2, e=3)"));
  ASSERT_OK(file.Put(8, "f()"));
  EXPECT_EQ(Read().Find(7), "a(b=1)");
  EXPECT_EQ(Read().Find(UINT64_MAX), "c(d=2, e=3)");
  EXPECT_EQ(Read().Find(8), "f()");
  EXPECT_FALSE(Read(false).Find(7));
}

TEST_F(TunedChoicesTest, AnotherDriverStartsAnew) {
  ASSERT_OK(Read().Put(7, "a()"));
  queries_.properties.driverVersion = 9;
  EXPECT_FALSE(Read().Find(7));
  ASSERT_OK(Read().Put(8, "b()"));
  EXPECT_FALSE(Read().Find(7));
}

TEST_F(TunedChoicesTest, TakesAnythingForAFile) {
  ASSERT_OK(Read().Put(7, "a()"));
  std::ifstream in(Path(), std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  for (size_t n = 0; n <= good.size(); ++n) {
    std::ofstream(Path(), std::ios::binary) << good.substr(0, n);
    EXPECT_EQ(Read().Find(7).has_value(), n == good.size()) << n;
  }
  for (const char* line : {"", " ", "7", "0000000000000007", "0000000000000007 ",
                           "x000000000000007 a", "000000000000000700 a"}) {
    std::ofstream(Path(), std::ios::binary) << good.substr(0, good.find('\n') + 1) << line << "\n";
    EXPECT_FALSE(Read().Find(7)) << line;
  }
}

// Neither reading nor writing waits for the pipe's other end.
TEST_F(TunedChoicesTest, LeavesAPipeAlone) {
  ASSERT_OK(Read().Put(7, "a()"));
  const std::filesystem::path path = Path();
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  codegen::TunedChoices file = Read();
  EXPECT_FALSE(file.Find(7));
  EXPECT_FALSE(file.Put(7, "a()").ok());
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

class SpirvFileTest : public VulkanRunTest {
 protected:
  void SetUp() override {
    Open({.threads = 1, .cache = true});
    if (!IsSkipped() && !Executes()) GTEST_SKIP() << "this device compiles, but runs nothing";
  }
  // What another process prints for a product, whose result is right.
  int Printed() {
    Open({.threads = 1, .cache = true});
    const ir::HostValue a = Counting({64, 32}), b = Counting({32, 48});
    const ir::HostValue* operands[] = {&a, &b};
    ExpectRightBy("", ir::MatMul{}, operands);
    return device_->compile_counts().printed;
  }
  static ir::HostValue Counting(std::vector<int64_t> shape) {
    std::vector<double> v(static_cast<size_t>(shape[0] * shape[1]));
    for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i % 7);
    return Tensor(std::move(shape), v);
  }
  std::filesystem::path Path() const { return CacheFile(device_->context()->queries(), ".spirv"); }

  TempFolder folder_;
  ScopedEnvironment cache_{"XDG_CACHE_HOME", folder_.path().string()};
};

TEST_F(SpirvFileTest, PrintsNothingTwice) {
  EXPECT_GT(Printed(), 0);
  EXPECT_EQ(Printed(), 0);
  EXPECT_EQ(device_->compile_counts().compiled, 0);
  // Other features are another device.
  const ScopedEnvironment hide("FORGE_VK_DISABLE", "signed_zero_inf_nan,subgroup");
  EXPECT_GT(Printed(), 0);
  EXPECT_EQ(Printed(), 0);
}

TEST_F(SpirvFileTest, PrintsAgainWhatIsDamaged) {
  const int all = Printed();
  std::ifstream in(Path(), std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  for (size_t at = 0; at < good.size(); at += good.size() / 7) {
    std::string bad = good;
    bad[at] ^= 4;
    std::ofstream(Path(), std::ios::binary) << bad;
    EXPECT_EQ(Printed(), all) << at;
    EXPECT_EQ(Printed(), 0) << at;
    std::ofstream(Path(), std::ios::binary) << good.substr(0, at);
    EXPECT_EQ(Printed(), all) << at;
  }
}

TEST_F(SpirvFileTest, StaysSmall) {
  const std::vector<uint32_t> words(1 << 20, 7);  // 4 MiB, of which a file has room for three
  for (uint64_t first : {0, 2, 4}) {
    SpirvFile file(*device_->context(), true);
    for (uint64_t hash = first; hash < first + 3; ++hash)
      if (!file.Find(hash)) file.Put(hash, words);
    ASSERT_OK(file.Save());
    EXPECT_LE(std::filesystem::file_size(Path()), 17u << 20);
  }
  SpirvFile file(*device_->context(), true);
  // What was asked for last has stayed, as far as there is room.
  for (uint64_t hash = 0; hash < 4; ++hash) EXPECT_FALSE(file.Find(hash));
  EXPECT_TRUE(file.Find(4) || file.Find(5) || file.Find(6));
}

// Open files stand for processes.
TEST_F(SpirvFileTest, KeepsWhatTwoProcessesAdd) {
  SpirvFile one(*device_->context(), true), other(*device_->context(), true);
  for (uint32_t round = 0; round < 3; ++round) {
    one.Put(2 * round, std::vector<uint32_t>{round});
    ASSERT_OK(one.Save());
    other.Put(2 * round + 1, std::vector<uint32_t>(round, 5));
    ASSERT_OK(other.Save());
  }
  SpirvFile file(*device_->context(), true);
  for (uint32_t round = 0; round < 3; ++round) {
    EXPECT_EQ(file.Find(2 * round), std::vector<uint32_t>{round});
    EXPECT_EQ(file.Find(2 * round + 1), std::vector<uint32_t>(round, 5));
  }
}

TEST_F(SpirvFileTest, MendsAFileThatEndsEarly) {
  SpirvFile one(*device_->context(), true);
  for (uint64_t hash = 0; hash < 3; ++hash) {
    one.Put(hash, std::vector<uint32_t>(9, 7));
    ASSERT_OK(one.Save());
  }
  std::filesystem::resize_file(Path(), std::filesystem::file_size(Path()) - 3);
  SpirvFile other(*device_->context(), true);
  EXPECT_TRUE(other.Find(1));
  EXPECT_FALSE(other.Find(2));
  other.Put(3, std::vector<uint32_t>(2, 1));
  ASSERT_OK(other.Save());
  SpirvFile file(*device_->context(), true);
  EXPECT_TRUE(file.Find(0) && file.Find(1) && file.Find(3));
  one.Put(4, std::vector<uint32_t>(2, 1));  // its file was written anew by another
  ASSERT_OK(one.Save());
  EXPECT_TRUE(SpirvFile(*device_->context(), true).Find(4));
}

class AutotuneTest : public VulkanRunTest {
 protected:
  ProgramRef Compile(const std::string& choice = "") {
    const CompileRequest request{&op_, in_, out_, "a product", choice};
    auto made = device_->Compile({&request, 1}, [](size_t) { return true; });
    EXPECT_TRUE(made[0].ok()) << Message(made[0].status());
    return *made[0];
  }

  const ir::AnyOp op_ = ir::MatMul{};
  const ir::Types in_ = {ir::Type::Tensor(DType::kF32, {64, 32}),
                         ir::Type::Tensor(DType::kF32, {32, 48})};
  const ir::Types out_ = {ir::Type::Tensor(DType::kF32, {64, 48})};
  const CompileRequest request_{&op_, in_, out_, "a product"};
};

TEST_F(AutotuneTest, CompilesAsPreferred) {
  const std::vector<std::string> choices = device_->Choices(request_, 100);
  ASSERT_GT(choices.size(), 5u);
  const std::string by_default(Compile()->kernel());
  EXPECT_EQ(Compile(choices[0])->kernel(), by_default);
  const auto other = std::find_if(choices.begin(), choices.end(), [&](const std::string& c) {
    return Compile(c)->kernel() != by_default;
  });
  ASSERT_NE(other, choices.end());
  CompileRequest preferred = request_;
  preferred.choice = *other;
  ASSERT_OK(device_->Prefer(preferred));
  EXPECT_EQ(Compile()->kernel(), Compile(*other)->kernel());
  // The next search begins with it.
  EXPECT_THAT(device_->Choices(request_, 1), ::testing::ElementsAre(*other));
  EXPECT_EQ(device_->Choices(request_, 100).size(), choices.size());
  preferred.choice = "matmul_simple(rows=-1)";
  EXPECT_FALSE(device_->Prefer(preferred).ok());
}

TEST_F(AutotuneTest, FindsNothingWorseThanTheDefault) {
  const DeviceRef device = device_;
  int told = 0;
  const auto found = Autotune(device, {&request_, 1}, {.seconds = 60, .candidates = 6},
                              [&](size_t, size_t) { ++told; });
  ASSERT_OK(found.status());
  ASSERT_EQ(found->size(), 1u);
  const Autotuned& a = found->front();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(a.tried, 6);
  EXPECT_EQ(a.wrong, 0);
  EXPECT_LE(a.seconds, a.seconds_before);
  EXPECT_GT(a.seconds, 0);
  EXPECT_EQ(Compile()->kernel(), Compile(a.choice)->kernel());
}

}  // namespace
}  // namespace forge::vk
