// SPDX-License-Identifier: Apache-2.0
// Extents as a tensor: known when the program is made.
#include <cstring>

#include "cpu_runtime/kernels/kernel.h"
#include "ir/ops/creation/shape_of.h"

namespace forge::cpu {
namespace {

class ShapeCall final : public AnchorCall {
 public:
  explicit ShapeCall(std::vector<int64_t> extents) : extents_(std::move(extents)) {}
  std::string_view kernel() const override { return "shape"; }
  absl::Status Run(const Arguments& a) const override {
    if (!extents_.empty()) std::memcpy(a.out, extents_.data(), extents_.size() * sizeof(int64_t));
    return absl::OkStatus();
  }

 private:
  std::vector<int64_t> extents_;
};

class Shape final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::ShapeOf>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("shape");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(
        task, settings, [](const AnchorSite& site) -> absl::StatusOr<MadeAnchor> {
          const ir::Node& node = *site.task.anchor();
          const ir::Type& x = site.task.body().type(node.in[0]);
          return MadeAnchor{std::make_unique<ShapeCall>(ir::Constants(x.shape())), node.first_out};
        });
  }
};

}  // namespace

const Kernel& ShapeKernel() {
  static const Shape kKernel;
  return kKernel;
}

}  // namespace forge::cpu
