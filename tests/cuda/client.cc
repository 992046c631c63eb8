// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/client.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/status.h"

namespace forge::emulated {

Client::Client(const std::map<std::string, std::string>& environment) {
  static int number = 0;
  // Another file, or the loader would return the driver of an earlier test.
  const std::filesystem::path copy =
      std::filesystem::temp_directory_path() /
      fmt::format("forge-emulated-cuda-{}-{}.so", getpid(), number++);
  std::filesystem::copy_file(FORGE_BINARY_DIR "/emulated_cuda/libcuda.so.1", copy,
                             std::filesystem::copy_options::overwrite_existing);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  library_ = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(copy);
  FORGE_CHECK(library_ != nullptr);
  Call<unsigned>("cuInit", 0);
  for (const auto& [name, value] : environment) unsetenv(name.c_str());
}

void* Client::Symbol(const char* name) const {
  void* const symbol = dlsym(library_, name);
  FORGE_CHECK(symbol != nullptr);
  return symbol;
}

void Client::MakeCurrent() const {
  CUcontext context = nullptr;
  Call("cuDevicePrimaryCtxRetain", &context, 0);
  Call("cuCtxSetCurrent", context);
}

CUfunction Client::Kernel(const std::string& name, const std::string& arch) const {
  std::ifstream file(std::string(FORGE_SOURCE_DIR "/tests/ptx/kernels/") + name + ".sm_" + arch +
                     ".ptx");
  std::stringstream text;
  text << file.rdbuf();
  const std::string ptx = text.str();
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  FORGE_CHECK(Call("cuModuleLoadData", &module, static_cast<const void*>(ptx.c_str())) ==
              CUDA_SUCCESS);
  FORGE_CHECK(Call("cuModuleGetFunction", &function, module, name.c_str()) == CUDA_SUCCESS);
  return function;
}

}  // namespace forge::emulated
