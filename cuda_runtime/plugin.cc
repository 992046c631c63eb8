// SPDX-License-Identifier: Apache-2.0
// The one symbol that libforge_cuda.so is opened for.
#include "cuda_runtime/driver.h"

extern "C" __attribute__((visibility("default"))) const forge::Plugin* forge_plugin() {
  static forge::cuda::CudaDriver driver;
  static const forge::Plugin plugin = {.abi = forge::kPluginAbi,
                                       .backend = "cuda",
                                       .driver = +[]() -> forge::Driver* { return &driver; }};
  return &plugin;
}
