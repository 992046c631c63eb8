// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/device.h"

extern "C" const forge::Plugin* forge_plugin() {
  static const forge::Plugin kPlugin{forge::kPluginAbi, "cpu", []() -> forge::Driver* {
                                       static forge::cpu::CpuDriver driver;
                                       return &driver;
                                     }};
  return &kPlugin;
}
