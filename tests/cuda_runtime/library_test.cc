// SPDX-License-Identifier: Apache-2.0
// What the plug-in needs when it is loaded, and what it says where a library is missing.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cuda_runtime/api/libraries.h"
#include "cuda_runtime/api/settings.h"
#include "tests/support/scoped_environment.h"
#include "tests/support/temp_folder.h"

namespace forge::cuda {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CudaLibrariesTest, NamesTheVariableThatWouldHelp) {
  const char* const names[] = {"libthat-is-not-there.so.1"};
  const absl::Status s = OpenCudaLibrary("NVRTC", names, "nvidia-cuda-nvrtc").status();
  EXPECT_TRUE(absl::IsUnavailable(s));
  EXPECT_THAT(s.message(), HasSubstr("libthat-is-not-there.so.1 in FORGE_CUDA_PATH"));
}

TEST(CudaLibrariesTest, SearchesTheFoldersOfWheels) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "nvidia/cu13/lib");
  const DefaultEnvironment path("FORGE_CUDA_PATH", folder.path().c_str());
  if (Environment("FORGE_CUDA_PATH") != folder.path().string())
    GTEST_SKIP() << "FORGE_CUDA_PATH is set";
  EXPECT_THAT(CudaFolders(), Contains(folder / "nvidia/cu13/lib"));
  EXPECT_THAT(CudaFolders(), Contains(folder / "lib64"));
}

// The names of the libraries that the loader must find for an ELF file.
std::vector<std::string> NeededBy(std::span<const uint8_t> file) {
  const auto at = [&](uint64_t offset, auto like) {
    FORGE_CHECK(offset + sizeof(like) <= file.size());
    std::memcpy(&like, file.data() + offset, sizeof(like));
    return like;
  };
  const auto header = at(0, Elf64_Ehdr{});
  const auto section = [&](uint64_t n) {
    return at(header.e_shoff + n * header.e_shentsize, Elf64_Shdr{});
  };
  std::vector<std::string> names;
  for (uint64_t n = 0; n < header.e_shnum; ++n) {
    const Elf64_Shdr dynamic = section(n);
    if (dynamic.sh_type != SHT_DYNAMIC) continue;
    const uint64_t strings = section(dynamic.sh_link).sh_offset;
    for (uint64_t o = 0; o < dynamic.sh_size; o += sizeof(Elf64_Dyn)) {
      const auto entry = at(dynamic.sh_offset + o, Elf64_Dyn{});
      if (entry.d_tag == DT_NEEDED)
        names.emplace_back(reinterpret_cast<const char*>(file.data()) + strings + entry.d_un.d_val);
    }
  }
  return names;
}

TEST(CudaLibrariesTest, ThePluginNeedsNoneOfThem) {
  const auto file = MapFile(FORGE_BINARY_DIR "/lib/libforge_cuda.so");
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<std::string> needed = NeededBy({file->data(), file->size()});
  EXPECT_THAT(needed, Contains(StartsWith("libforge.so")));
  for (const std::string name : {"libcu", "libnv"})
    EXPECT_THAT(needed, Not(Contains(StartsWith(name))));
}

Settings With(const char* disable) {
  const ScopedEnvironment hide("FORGE_CUDA_DISABLE", disable);
  const auto settings = Settings::FromEnvironment();
  EXPECT_TRUE(settings.ok()) << settings.status();
  return settings.value_or(Settings{});
}

TEST(CudaSettingsTest, HidesWhatIsNamed) {
  EXPECT_TRUE(With("").cublaslt && With("").graphs);
  EXPECT_FALSE(With("cublaslt").cublaslt);
  EXPECT_TRUE(With("cublaslt").graphs);
  EXPECT_FALSE(With("graphs,cublaslt").cublaslt || With("graphs,cublaslt").graphs);
  EXPECT_FALSE(With("all").cublaslt || With("all").graphs);
}

TEST(CudaSettingsTest, NamesStepsOnRequest) {
  for (const auto& [value, on] : {std::pair{"", false}, {"0", false}, {"1", true}}) {
    const ScopedEnvironment nvtx("FORGE_CUDA_NVTX", value);
    EXPECT_EQ(With("").nvtx, on) << value;
  }
  const ScopedEnvironment nvtx("FORGE_CUDA_NVTX", "yes");
  EXPECT_THAT(Settings::FromEnvironment().status().message(),
              HasSubstr("FORGE_CUDA_NVTX=yes is not valid; give 1 or 0"));
}

TEST(CudaSettingsTest, RefusesOtherNames) {
  const ScopedEnvironment hide("FORGE_CUDA_DISABLE", "graphs,cudnn");
  const absl::Status s = Settings::FromEnvironment().status();
  EXPECT_TRUE(absl::IsInvalidArgument(s));
  EXPECT_THAT(s.message(), HasSubstr("'cudnn'"));
  EXPECT_THAT(s.message(), HasSubstr("cublaslt"));
}

}  // namespace
}  // namespace forge::cuda
