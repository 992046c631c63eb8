// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/device.h"

#include "base/platform.h"
#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/processor.h"

namespace forge::cpu {
namespace {

absl::StatusOr<ProgramRef> CompileOne(const CompileRequest& r, const Settings& settings) {
  FORGE_ASSIGN_OR_RETURN(const Task task, Task::Of(*r.op, r.in, r.out));
  const Kernel* kernel = FindKernel(task);
  if (kernel == nullptr) return Unimplemented("{} has no kernel", r.op->name());
  if (Verdict v = kernel->Takes(task); !v) return Unimplemented("{}", v.text());
  return kernel->Compile(task, settings);
}

}  // namespace

CpuDevice::CpuDevice(DeviceInfo info, Settings settings)
    : HostDevice(std::move(info)),
      settings_(settings),
      target_("cpu: " + this->info().name, settings) {}

std::vector<absl::StatusOr<ProgramRef>> CpuDevice::Compile(std::span<const CompileRequest> requests,
                                                           CompileProgress progress) {
  std::vector<absl::StatusOr<ProgramRef>> programs;
  programs.reserve(requests.size());
  for (const CompileRequest& r : requests) {
    programs.push_back(CompileOne(r, settings_));
    if (!programs.back().ok()) programs.back() = Annotate(programs.back().status(), r.name);
    if (!progress(programs.size())) break;
  }
  programs.resize(requests.size(), Aborted("cancelled"));
  return programs;
}

std::vector<DeviceInfo> CpuDriver::List() { return {ProcessorInfo()}; }

absl::StatusOr<DeviceRef> CpuDriver::Open(size_t index, const DeviceOptions& options) {
  if (index != 0) return NotFound("cpu:{} does not exist; the only device is cpu:0", index);
  const int threads = options.threads > 0 ? options.threads : CpuCount();
  DeviceInfo info = ProcessorInfo();
  info.limits.emplace_back("threads in use", std::to_string(threads));
  return DeviceRef(std::make_shared<CpuDevice>(std::move(info), Settings{threads}));
}

}  // namespace forge::cpu
