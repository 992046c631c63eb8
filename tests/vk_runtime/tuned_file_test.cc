// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "ir/ops/matmul.h"
#include "runtime/autotune.h"
#include "tests/support/temp_folder.h"
#include "tests/vk_runtime/vulkan_test.h"
#include "vk_runtime/cache_file.h"

namespace forge::vk {
namespace {

class TunedFileTest : public ::testing::Test {
 protected:
  TunedFile Read(bool use_file = true) const { return TunedFile(queries_, use_file); }
  std::filesystem::path Path() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "forge"))
      return entry.path();
    return {};
  }

  TempFolder folder_;
  ScopedEnvironment cache_{"XDG_CACHE_HOME", folder_.path().string()};
  Queries queries_{};
};

TEST_F(TunedFileTest, KeepsChoices) {
  TunedFile file = Read();
  EXPECT_FALSE(file.Find(7));
  ASSERT_OK(file.Put(7, "a(b=1)"));
  ASSERT_OK(Read().Put(UINT64_MAX, "c(d=2, e=3)"));
  ASSERT_OK(file.Put(8, "f()"));
  EXPECT_EQ(Read().Find(7), "a(b=1)");
  EXPECT_EQ(Read().Find(UINT64_MAX), "c(d=2, e=3)");
  EXPECT_EQ(Read().Find(8), "f()");
  EXPECT_FALSE(Read(false).Find(7));
}

TEST_F(TunedFileTest, AnotherDriverStartsAnew) {
  ASSERT_OK(Read().Put(7, "a()"));
  queries_.properties.driverVersion = 9;
  EXPECT_FALSE(Read().Find(7));
  ASSERT_OK(Read().Put(8, "b()"));
  EXPECT_FALSE(Read().Find(7));
}

TEST_F(TunedFileTest, TakesAnythingForAFile) {
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

class AutotuneTest : public VulkanRunTest {
 protected:
  ProgramRef Compile(const std::string& choice = "") {
    const CompileRequest request{&op_, in_, out_, "a product", choice};
    auto made = device_->Compile({&request, 1}, [](size_t) {});
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
