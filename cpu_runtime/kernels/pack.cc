// SPDX-License-Identifier: Apache-2.0
// Into the library's own layouts: once for each model where the tensor is a constant.
#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/onednn/packed.h"
#include "cpu_runtime/parallel.h"

namespace forge::cpu {
namespace {

// Widens what the library computes in another type, then reorders.
class PackProgram final : public HostProgram {
 public:
  // Throws dnnl::error.
  PackProgram(const PackedEncoding& to, DType dtype, int64_t elements, int threads)
      : call_(dnnl::reorder(
                  dnnl::reorder::primitive_desc(Engine(), to.plain(), Engine(), to.packed())),
              {{DNNL_ARG_FROM, to.plain()}, {DNNL_ARG_TO, to.packed()}}),
        widened_bytes_(ComputedAs(dtype) == dtype ? 0 : to.plain().get_size()),
        dtype_(dtype),
        elements_(elements),
        threads_(threads) {}
  std::string_view kernel() const override { return "dnnl:reorder"; }
  uint64_t scratch_bytes() const override { return widened_bytes_; }
  absl::Status Run(const HostArguments& a) const override {
    const ThreadScope scope(threads_);
    void* both[] = {a.operands[0].data(), a.operands[1].data()};
    if (widened_bytes_ > 0) {
      WidenElements(dtype_, a.operands[0].data(), elements_, threads_, a.operands[2].data());
      both[0] = a.operands[2].data();
    }
    return call_.Run(both);
  }

 private:
  PrimitiveCall call_;
  uint64_t widened_bytes_;
  DType dtype_;
  int64_t elements_;
  int threads_;
};

class Pack final : public Kernel {
 public:
  bool Knows(const Task& task) const override {
    for (size_t i = 0; i < task.operands(); ++i)
      if (task.anchor() == nullptr && PackedOf(task.type(i))) return true;
    return false;
  }

  Verdict Takes(const Task& task) const override {
    const bool one = task.operands() == 2 && task.first_result() == 1 &&
                     task.body().nodes().size() == 1 && PackedOf(task.type(1));
    if (!one || task.type(0).encoding())
      return Verdict::No("only relayouts from dense to packed are supported");
    return Verdict::Yes("dnnl:reorder");
  }

  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    FORGE_ASSIGN_OR_RETURN(const View from, task.ViewOfOperand(0));
    ProgramRef program;
    FORGE_RETURN_IF_ERROR(Guarded("reorder", [&] {
      program = std::make_shared<PackProgram>(*PackedOf(task.type(1)), from.dtype, from.elements(),
                                              settings.threads);
    }));
    return program;
  }
};

}  // namespace

const Kernel& PackKernel() {
  static const Pack kKernel;
  return kKernel;
}

}  // namespace forge::cpu
