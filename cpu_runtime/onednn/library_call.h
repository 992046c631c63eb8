// SPDX-License-Identifier: Apache-2.0
// An anchor that is computed by a oneDNN primitive.
#pragma once
#include "cpu_runtime/onednn/library.h"
#include "cpu_runtime/onednn/packed.h"
#include "cpu_runtime/onednn/post_ops.h"
#include "cpu_runtime/program.h"

namespace forge::cpu {

// A call of a primitive. Arguments may be added in any order, then Finish is called; these
// functions throw dnnl::error.
class LibraryCall final : public AnchorCall {
 public:
  explicit LibraryCall(const char* implementation) : name_(KernelName(implementation)) {}

  void AddOperand(int argument, const dnnl::memory::desc& desc, uint32_t operand);
  // Adds an operand with layout `plain` that is reordered to `packed` at each run, unless the two
  // are equal.
  void AddPacked(int argument, const dnnl::memory::desc& plain, const dnnl::memory::desc& packed,
                 uint32_t operand);
  void AddPostOps(const PostOps& post_ops);
  void Finish(dnnl::primitive primitive, const dnnl::memory::desc& out,
              const dnnl::memory::desc& scratchpad);

  std::string_view kernel() const override { return name_; }
  uint64_t scratch_bytes() const override { return scratch_bytes_; }
  absl::Status Run(const Arguments& a) const override;

 private:
  struct Packing {
    size_t argument;
    uint64_t offset;  // offset in the scratch memory
    std::unique_ptr<PrimitiveCall> reorder;
  };
  std::string name_;
  std::vector<PrimitiveCall::Argument> arguments_;
  std::vector<uint32_t> operands_;
  std::vector<Packing> packings_;
  uint64_t scratchpad_ = 0, scratch_bytes_ = 0;
  std::unique_ptr<PrimitiveCall> call_;
};

}  // namespace forge::cpu
