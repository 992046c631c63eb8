// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/target.h"

#include <algorithm>

#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/onednn/packed.h"

namespace forge::cpu {
namespace {

Verdict Judge(const Task& task) {
  const Kernel* kernel = FindKernel(task);
  if (kernel == nullptr)
    return Verdict::No(fmt::format("{} has no kernel", task.anchor()->op.name()));
  return kernel->Takes(task);
}

// Does the choice pack an operand that more than the anchor's one operand reads? Nothing else reads
// packed elements.
bool PacksSharedOperand(const Task& task, const ir::EncodingChoice& choice) {
  for (const ir::Function::Input& a : task.body().arguments()) {
    const uint32_t i = *task.OperandOf(a.value);
    if (task.UsesOf(a.value) > 1 && PackedOf(task.type(i).With(choice.in[i]))) return true;
  }
  return false;
}

// Would a kernel of element-wise ops compute some of them, on operands that it repeats, over and
// over for its many elements? Another step costs less.
bool RepeatsOps(const Task& task) {
  constexpr int64_t kManyElements = 1 << 16, kManyTimes = 16;
  if (task.anchor() != nullptr) return false;
  ir::Dim all = 0;
  for (size_t i = 0; i < task.results(); ++i)
    all = Max(all, task.type(task.first_result() + i).elements());
  const auto nodes = task.body().nodes();
  return all.min() >= kManyElements &&
         std::any_of(nodes.begin(), nodes.end(), [&](const ir::Node& node) {
           const ir::Dim made = task.body().type(node.first_out).elements();
           return node.op.def().scalar && (all - made * kManyTimes).min() >= 0;
         });
}

}  // namespace

Verdict CpuTarget::Supports(const ir::Candidate& node) const {
  if (node.op.def().info.host) return Verdict::No("it runs on the host, outside any device");
  if (node.op.is_view()) return Verdict::Yes("view");
  const absl::StatusOr<Task> task = Task::Of(node.op, node.in, node.out);
  if (!task.ok()) return Verdict::No(std::string(Message(task.status())));
  return Judge(*task);
}

Verdict CpuTarget::Fuses(const ir::Function& body) const {
  const absl::StatusOr<Task> task = Task::OfBody(body);
  if (!task.ok()) return Verdict::No(std::string(Message(task.status())));
  if (RepeatsOps(*task)) return Verdict::No("ops on few elements would run for each of many");
  return Judge(*task);
}

std::vector<ir::EncodingChoice> CpuTarget::Encodings(const ir::Candidate& node) const {
  const absl::StatusOr<Task> task = Task::Of(node.op, node.in, node.out);
  if (!task.ok()) return {};
  const Kernel* kernel = FindKernel(*task);
  if (kernel == nullptr) return {};
  std::vector<ir::EncodingChoice> choices = kernel->Encodings(*task, settings_);
  std::erase_if(choices, [&](const ir::EncodingChoice& c) { return PacksSharedOperand(*task, c); });
  return choices;
}

double CpuTarget::Seconds(const ir::Candidate& node) const {
  const absl::StatusOr<Task> task = Task::Of(node.op, node.in, node.out);
  return task.ok() ? EstimateSeconds(*task, settings_) : 0;
}

}  // namespace forge::cpu
