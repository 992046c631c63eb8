// SPDX-License-Identifier: Apache-2.0
// Copies an update into a tensor whose other elements the result holds already.
#include "ir/ops/movement/update_slice.h"

#include <cstring>

#include "cpu_runtime/kernels/kernel.h"
#include "ir/analysis/in_place.h"
#include "ir/op/elements.h"

namespace forge::cpu {
namespace {

class UpdateProgram final : public HostProgram {
 public:
  UpdateProgram(const ir::Type& y, const ir::Type& update, const ir::Dims& begin)
      : element_(StoredBytes(y.dtype())), shape_(ir::Constants(update.shape())) {
    strides_ = ir::Strides(ir::Constants(y.shape()));
    for (size_t axis = 0; axis < shape_.size(); ++axis) {
      first_ += begin[axis].constant() * strides_[axis];
      elements_ *= shape_[axis];
    }
    // Axes that lie in a row in both tensors are one.
    rows_ = shape_.size();
    for (run_ = 1; rows_ > 0 && strides_[rows_ - 1] == run_; --rows_) run_ *= shape_[rows_ - 1];
  }
  std::string_view kernel() const override { return "update_slice"; }
  std::optional<Update> update() const override {
    return Update{0, static_cast<uint64_t>(elements_) * element_};
  }
  absl::Status Run(const HostArguments& a) const override {
    if (elements_ == 0) return absl::OkStatus();
    const size_t bytes = static_cast<size_t>(run_) * element_;
    const uint8_t* from = a.operands[1].data();
    for (ir::Box at(std::span<const int64_t>(shape_).first(rows_)); at; at.Next(), from += bytes) {
      int64_t to = first_;
      for (size_t axis = 0; axis < rows_; ++axis) to += (*at)[axis] * strides_[axis];
      std::memcpy(a.operands[2].data() + static_cast<size_t>(to) * element_, from, bytes);
    }
    return absl::OkStatus();
  }

 private:
  size_t element_;
  std::vector<int64_t> shape_;  // of the update
  ir::Index strides_;           // of the result
  int64_t first_ = 0, elements_ = 1;
  size_t rows_ = 0;  // axes in front of the runs that are copied at once
  int64_t run_ = 1;  // their elements
};

class SliceUpdate final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::UpdateSlice>(task); }
  Verdict Takes(const Task& task) const override {
    if (task.body().nodes().size() != 1) return Verdict::No("update_slice stands alone");
    const DType t = task.type(0).dtype();
    if (StoredBytes(t) == 0)
      return Verdict::No(fmt::format("elements of {} are not whole bytes", Name(t)));
    if (!ir::UpdateOf(task.body())) return Verdict::No("x and the update are one operand");
    return Verdict::Yes("update_slice");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings&) const override {
    const ir::Dims& begin = task.anchor()->op.As<ir::UpdateSlice>()->begin;
    return ProgramRef(std::make_shared<UpdateProgram>(task.type(2), task.type(1), begin));
  }
};

}  // namespace

const Kernel& UpdateSliceKernel() {
  static const SliceUpdate kKernel;
  return kKernel;
}

}  // namespace forge::cpu
