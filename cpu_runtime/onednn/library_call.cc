// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/onednn/library_call.h"

#include "base/bytes.h"

namespace forge::cpu {
namespace {

constexpr uint64_t kAlignment = 64;

}  // namespace

void LibraryCall::AddOperand(int argument, const dnnl::memory::desc& desc, uint32_t operand) {
  arguments_.push_back({argument, desc});
  operands_.push_back(operand);
}

void LibraryCall::AddPacked(int argument, const dnnl::memory::desc& plain,
                            const dnnl::memory::desc& packed, uint32_t operand) {
  if (plain != packed) {
    const dnnl::reorder::primitive_desc reorder(Engine(), plain, Engine(), packed);
    packings_.push_back(
        {operands_.size(), scratch_bytes_,
         std::make_unique<PrimitiveCall>(
             dnnl::reorder(reorder),
             std::vector<PrimitiveCall::Argument>{{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, packed}})});
    scratch_bytes_ += AlignUp(packed.get_size(), kAlignment);
  }
  AddOperand(argument, packed, operand);
}

void LibraryCall::AddPostOps(const PostOps& post_ops) {
  for (const auto& [position, operand] : post_ops.operands)
    AddOperand(DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, operand.desc,
               operand.operand);
}

void LibraryCall::Finish(dnnl::primitive primitive, const dnnl::memory::desc& out,
                         const dnnl::memory::desc& scratchpad) {
  arguments_.push_back({DNNL_ARG_DST, out});
  arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratchpad});
  scratchpad_ = scratch_bytes_;
  scratch_bytes_ += scratchpad.get_size();
  call_ = std::make_unique<PrimitiveCall>(std::move(primitive), std::move(arguments_));
}

absl::Status LibraryCall::Run(const Arguments& a) const {
  absl::InlinedVector<void*, 12> handles;
  for (uint32_t o : operands_) handles.push_back(a.operands[o]);
  for (const Packing& p : packings_) {
    void* both[] = {handles[p.argument], a.scratch + p.offset};
    FORGE_RETURN_IF_ERROR(p.reorder->Run(both));
    handles[p.argument] = a.scratch + p.offset;
  }
  handles.push_back(a.out);
  handles.push_back(a.scratch + scratchpad_);
  return call_->Run(handles);
}

}  // namespace forge::cpu
