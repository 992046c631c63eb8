// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/target.h"

#include "cpu_runtime/kernels/kernel.h"

namespace forge::cpu {
namespace {

Verdict Judge(const Task& task) {
  const Kernel* kernel = FindKernel(task);
  if (kernel == nullptr)
    return Verdict::No(fmt::format("{} has no kernel", task.anchor()->op.name()));
  return kernel->Takes(task);
}

}  // namespace

Verdict CpuTarget::Supports(const ir::Candidate& node) const {
  if (node.op.def().info.host) return Verdict::No("it runs on the host, outside any device");
  const absl::StatusOr<Task> task = Task::Of(node.op, node.in, node.out);
  if (!task.ok()) return Verdict::No(std::string(Message(task.status())));
  return Judge(*task);
}

Verdict CpuTarget::Fuses(const ir::Function& body) const {
  const absl::StatusOr<Task> task = Task::OfBody(body);
  if (!task.ok()) return Verdict::No(std::string(Message(task.status())));
  return Judge(*task);
}

std::vector<ir::EncodingChoice> CpuTarget::Encodings(const ir::Candidate& node) const {
  const absl::StatusOr<Task> task = Task::Of(node.op, node.in, node.out);
  if (!task.ok()) return {};
  const Kernel* kernel = FindKernel(*task);
  return kernel == nullptr ? std::vector<ir::EncodingChoice>{}
                           : kernel->Encodings(*task, settings_);
}

double CpuTarget::Seconds(const ir::Candidate& node) const {
  const absl::StatusOr<Task> task = Task::Of(node.op, node.in, node.out);
  return task.ok() ? EstimateSeconds(*task, settings_) : 0;
}

}  // namespace forge::cpu
