// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/runner.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/ptx/hardware.h"

namespace forge::ptx {

absl::Status RunPtx(const std::string& text, const std::string& kernel, const RunOptions& options,
                    std::vector<Argument> arguments, Statistics* statistics) {
  if (RunsOnHardware()) return RunOnHardware(text, kernel, options, std::move(arguments));
  Memory memory;
  FORGE_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedModule> module,
                         LoadedModule::Load(text, memory));
  FORGE_ASSIGN_OR_RETURN(const Program* const program, module->Kernel(kernel));
  if (arguments.size() != program->params.size())
    return InvalidArgument("{} has {} parameters", kernel, program->params.size());
  Launch launch{.program = program,
                .memory = &memory,
                .grid = options.grid,
                .threads = options.threads,
                .dynamic_shared = options.dynamic_shared,
                .params = std::vector<uint8_t>(program->param_bytes),
                .order = options.order,
                .seed = options.seed,
                .races = true,
                .most_steps = options.most_steps};
  std::vector<uint64_t> bases(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    uint8_t* const at = launch.params.data() + program->params[i].offset;
    if (a.scalar_bytes != 0) {
      std::memcpy(at, a.scalar, a.scalar_bytes);
      continue;
    }
    FORGE_ASSIGN_OR_RETURN(bases[i], memory.Allocate(a.buffer.size()));
    std::copy(a.buffer.begin(), a.buffer.end(), memory.Find(bases[i], a.buffer.size()).host.get());
    std::memcpy(at, &bases[i], sizeof(bases[i]));
  }
  const absl::Status status = RunLaunch(launch, options.host_threads, statistics);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (bases[i] == 0) continue;
    const uint8_t* const from = memory.Find(bases[i], arguments[i].buffer.size()).host.get();
    std::copy(from, from + arguments[i].buffer.size(), arguments[i].buffer.begin());
  }
  return status;
}

std::string KernelText(const std::string& name, const std::string& arch) {
  std::ifstream file(std::string(FORGE_SOURCE_DIR "/tests/ptx/kernels/") + name + ".sm_" + arch +
                     ".ptx");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace forge::ptx
