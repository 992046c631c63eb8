// SPDX-License-Identifier: Apache-2.0
// Code shared by oneDNN's convolution and deconvolution. A Library class describes one of them:
//   using Op = ...; using Primitive = ...; static constexpr std::string_view kName = ...;
//   Library(const Op&, const View& image, const View& result);
//   bool possible() const;
//   dnnl::memory::desc PlainWeights(const View&) const;
//   Primitive::primitive_desc Describe(weights, bias, dnnl::post_ops) const;
// Functions that return no Status throw dnnl::error.
#pragma once
#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/onednn/library_call.h"
#include "ir/ops/spatial/window.h"

namespace forge::cpu {

// A window in the terms of oneDNN, where a dilation of 0 means no gaps.
struct LibraryWindow {
  explicit LibraryWindow(const ir::Window& w) {
    for (const ir::WindowAxis& a : w) {
      strides.push_back(a.stride);
      dilations.push_back(a.dilation - 1);
      before.push_back(a.before);
      after.push_back(a.after);
    }
  }
  dnnl::memory::dims strides, dilations, before, after;
};

enum ConvolutionOperand : size_t { kImage, kWeights, kBias };

inline bool HasBias(const ir::Node& node) {
  return node.in.size() > kBias && node.in[kBias] != ir::kAbsent;
}

template <class Library>
auto DescribeBest(const Library& library, const dnnl::memory::desc& weights, const Task& task,
                  PostOps& post_ops) {
  const ir::Node& node = *task.anchor();
  return DescribeFast(task, node.first_out, post_ops, [&](const PostOps& p) {
    return library.Describe(weights, HasBias(node), p.ops);
  });
}

// Creates the call of the primitive; null where oneDNN has no implementation.
template <class Library>
MadeAnchor MakeLibraryConvolution(const AnchorSite& site, const Library& library) {
  const ir::Node& node = *site.task.anchor();
  const auto operand = [&](size_t i) { return *site.task.OperandOf(node.in[i]); };
  const bool bias = HasBias(node);
  PostOps post_ops = PlanPostOps(site.task, node.first_out);
  const PackedEncoding* packed = PackedOf(site.task.type(operand(kWeights)));
  const dnnl::memory::desc plain =
      packed ? packed->plain() : library.PlainWeights(site.operands[operand(kWeights)]);
  const dnnl::memory::desc weights = packed ? packed->packed() : AnyLayout(plain);
  const auto d = DescribeBest(library, weights, site.task, post_ops);
  if (!d.get(true)) return {nullptr, node.first_out};
  auto call = std::make_unique<LibraryCall>(d.impl_info_str());
  call->AddOperand(DNNL_ARG_SRC, d.src_desc(), operand(kImage));
  if (packed)
    call->AddOperand(DNNL_ARG_WEIGHTS, weights, operand(kWeights));
  else
    call->AddPacked(DNNL_ARG_WEIGHTS, plain, d.weights_desc(), operand(kWeights));
  if (bias) call->AddOperand(DNNL_ARG_BIAS, d.bias_desc(), operand(kBias));
  call->AddPostOps(post_ops);
  call->Finish(typename Library::Primitive(d), d.dst_desc(), d.scratchpad_desc());
  return {std::move(call), post_ops.value};
}

// Returns the encoding of the weights that oneDNN prefers; null where it has no kernel or uses
// the weights as they are.
template <class Library>
ir::EncodingRef PackedWeights(const Task& task, const ir::EncodingChoice& choice) {
  const ir::Node& node = *task.anchor();
  const uint32_t x = *task.OperandOf(node.in[kImage]), w = *task.OperandOf(node.in[kWeights]);
  const ir::Type& out = task.body().type(node.first_out);
  const absl::StatusOr<View> image = ComputedViewOf(task.type(x).With(choice.in[x])),
                             weights = ComputedViewOf(task.type(w).With(ir::EncodingRef())),
                             result = ComputedViewOf(out.With(choice.out[0]));
  if (!image.ok() || !weights.ok() || !result.ok()) return nullptr;
  const Library library(*node.op.As<typename Library::Op>(), *image, *result);
  if (!library.possible()) return nullptr;
  ir::EncodingRef packed;
  const absl::Status s = Guarded(Library::kName, [&] {
    const dnnl::memory::desc plain = library.PlainWeights(*weights);
    PostOps post_ops = PlanPostOps(task, node.first_out);
    const auto d = DescribeBest(library, AnyLayout(plain), task, post_ops);
    if (d.get(true) && (d.weights_desc() != plain || task.type(w).dtype() != weights->dtype))
      packed = PackedEncoding::Make(plain, d.weights_desc());
  });
  return s.ok() ? packed : nullptr;
}

}  // namespace forge::cpu
