// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/driver/launch.h"

#include <cstring>
#include <fstream>

namespace forge::emulated {
namespace {

constexpr int kHostThreads = 2;

CUresult CodeOf(const absl::Status& finding) {
  if (finding.message().find("is no multiple of") != std::string::npos)
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  return absl::IsAborted(finding) ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_LAUNCH_FAILED;
}

CUresult RunKernel(const ptx::Launch& launch) {
  Device& device = Device::Get();
  ptx::Statistics statistics;
  const absl::Status status = ptx::RunLaunch(launch, kHostThreads, &statistics);
  const std::string& file = device.settings().statistics;
  if (!file.empty())
    std::ofstream(file, std::ios::app)
        << launch.program->name << " grid=" << launch.grid.count()
        << " block=" << launch.threads.count() << " " << statistics.Text() << "\n";
  if (status.ok()) return CUDA_SUCCESS;
  const CUresult code = CodeOf(status);
  device.SetLost(code, std::string(Message(status)));
  return code;
}

// "extra": pairs of a key and a pointer, closed by null. Key 1 is a buffer, key 2 the address of
// its size.
bool FromExtra(void** extra, std::vector<uint8_t>& params) {
  const void* buffer = nullptr;
  const size_t* bytes = nullptr;
  for (; *extra != nullptr; extra += 2) {
    if (extra[0] == reinterpret_cast<void*>(1))
      buffer = extra[1];
    else if (extra[0] == reinterpret_cast<void*>(2))
      bytes = static_cast<const size_t*>(extra[1]);
    else
      return false;
  }
  if (buffer == nullptr || bytes == nullptr) return false;
  std::memcpy(params.data(), buffer, std::min(params.size(), *bytes));
  return *bytes >= params.size();
}

}  // namespace

CUresult MakeLaunch(const CUDA_KERNEL_NODE_PARAMS& p, GraphNode& node) {
  if (p.function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const ptx::Program& program = *p.function->program;
  const uint64_t threads = uint64_t{p.block_x} * p.block_y * p.block_z;
  if (p.grid_x == 0 || p.grid_y == 0 || p.grid_z == 0 || threads == 0 || threads > 1024 ||
      p.block_z > 64 || p.grid_x > 2147483647u || p.grid_y > 65535 || p.grid_z > 65535 ||
      p.shared_bytes > static_cast<unsigned>(p.function->max_dynamic_shared))
    return CUDA_ERROR_INVALID_VALUE;
  if (program.max_threads != 0 && threads > static_cast<uint64_t>(program.max_threads))
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const Settings& s = Device::Get().settings();
  ptx::Launch launch{.program = &program,
                     .memory = &Device::Get().memory(),
                     .grid = {p.grid_x, p.grid_y, p.grid_z},
                     .threads = {p.block_x, p.block_y, p.block_z},
                     .dynamic_shared = p.shared_bytes,
                     .params = std::vector<uint8_t>(program.param_bytes),
                     .order = s.order,
                     .seed = s.seed,
                     .races = s.races};
  if (p.extra != nullptr) {
    if (!FromExtra(p.extra, launch.params)) return CUDA_ERROR_INVALID_VALUE;
  } else {
    if (p.params == nullptr && !program.params.empty()) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < program.params.size(); ++i)
      std::memcpy(launch.params.data() + program.params[i].offset, p.params[i],
                  program.params[i].bytes);
  }
  node.type = GraphNode::Type::kKernel;
  node.kernel = p;
  node.arguments.clear();
  for (const ptx::Program::Param& param : program.params)
    node.arguments.emplace_back(
        launch.params.begin() + static_cast<ptrdiff_t>(param.offset),
        launch.params.begin() + static_cast<ptrdiff_t>(param.offset + param.bytes));
  node.run = [launch = std::move(launch)] { return RunKernel(launch); };
  return CUDA_SUCCESS;
}

}  // namespace forge::emulated
