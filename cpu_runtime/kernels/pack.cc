// SPDX-License-Identifier: Apache-2.0
// Into the library's own layouts: once for each model where the tensor is a constant.
#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/onednn/packed.h"
#include "cpu_runtime/parallel.h"

namespace forge::cpu {
namespace {

class PackProgram final : public HostProgram {
 public:
  PackProgram(PrimitiveCall::Argument from, PrimitiveCall::Argument to, dnnl::primitive reorder,
              int threads)
      : call_(std::move(reorder), {std::move(from), std::move(to)}), threads_(threads) {}
  std::string_view kernel() const override { return "dnnl:reorder"; }
  absl::Status Run(const HostArguments& a) const override {
    const ThreadScope scope(threads_);
    void* both[] = {a.operands[0].data(), a.operands[1].data()};
    return call_.Run(both);
  }

 private:
  PrimitiveCall call_;
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

  std::vector<ir::EncodingChoice> Encodings(const Task&, const Settings&) const override {
    return {};
  }

  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    const PackedEncoding& packed = *PackedOf(task.type(1));
    ProgramRef program;
    FORGE_RETURN_IF_ERROR(Guarded("reorder", [&] {
      const dnnl::reorder::primitive_desc d(Engine(), packed.plain(), Engine(), packed.packed());
      program =
          std::make_shared<PackProgram>(PrimitiveCall::Argument{DNNL_ARG_FROM, packed.plain()},
                                        PrimitiveCall::Argument{DNNL_ARG_TO, packed.packed()},
                                        dnnl::reorder(d), settings.threads);
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
