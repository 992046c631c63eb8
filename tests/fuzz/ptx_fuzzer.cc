// SPDX-License-Identifier: Apache-2.0
// PTX: the parser, the decoder, and some steps of each kernel that is left.
#include "tests/ptx/machine/machine.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using forge::ptx::LoadedModule;
  forge::ptx::Memory memory(uint64_t{64} << 20);
  const auto loaded =
      LoadedModule::Load(std::string(reinterpret_cast<const char*>(data), size), memory);
  if (!loaded.ok()) return 0;
  for (const forge::ptx::Function& f : (*loaded)->module().functions) {
    if (!f.entry) continue;
    const auto program = (*loaded)->Kernel(f.name);
    if (!program.ok()) continue;
    const forge::ptx::Launch launch{.program = *program,
                                    .memory = &memory,
                                    .threads = {40},
                                    .params = std::vector<uint8_t>((*program)->param_bytes),
                                    .most_steps = 2000};
    forge::ptx::RunLaunch(launch, 1, nullptr).IgnoreError();
  }
  return 0;
}
