// SPDX-License-Identifier: Apache-2.0
// fuzz-seeds FOLDER: writes the first inputs of every target to FOLDER/TARGET/. They are small, and
// made from what the tests use: the ops' own cases, nodes of every ONNX operator, files of every
// kind that the readers know.
#include "tests/fuzz/seeds.h"

#include <cstdio>

#include "base/platform.h"

namespace {

absl::Status WriteAll(const std::filesystem::path& folder) {
  using namespace forge::fuzz;
  const std::pair<const char*, Files (*)()> targets[] = {{"model_bin", ModelBinSeeds},
                                                         {"onnx", OnnxSeeds},
                                                         {"npy", NpySeeds},
                                                         {"idx", IdxSeeds},
                                                         {"safetensors", SafetensorsSeeds},
                                                         {"image", ImageSeeds},
                                                         {"ptx", PtxSeeds}};
  for (const auto& [target, seeds] : targets) {
    std::error_code error;
    std::filesystem::create_directories(folder / target, error);
    int written = 0;
    for (const std::string& file : seeds()) {
      const std::span content(reinterpret_cast<const uint8_t*>(file.data()), file.size());
      FORGE_RETURN_IF_ERROR(
          forge::WriteFile(folder / target / fmt::format("seed-{:04}", written++), content));
    }
    std::printf("%s: %d files\n", target, written);
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz-seeds FOLDER\n");
    return 2;
  }
  const absl::Status status = WriteAll(argv[1]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "fuzz-seeds: error: %s\n", std::string(forge::Message(status)).c_str());
  return 1;
}
