// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/window/convolution_choices.h"
#include "cpu_runtime/kernels/window/convolution_loops.h"
#include "cpu_runtime/kernels/window/library_convolution.h"
#include "cpu_runtime/parallel.h"
#include "ir/ops/spatial/conv.h"

namespace forge::cpu {
namespace {

// A convolution as the library describes it. Its functions throw dnnl::error.
class LibraryConvolution {
 public:
  using Op = ir::Conv;
  using Primitive = dnnl::convolution_forward;
  static constexpr std::string_view kName = "convolution";
  LibraryConvolution(const ir::Conv& op, const View& x, const View& y)
      : op_(op), window_(ir::WindowOver(op, x.shape.size())), x_(x), y_(y) {}

  bool possible() const {
    if (x_.dtype != DType::kF32) return false;
    for (const auto* padding : {&window_.before, &window_.after})
      for (int64_t p : *padding)
        if (p < 0) return false;
    return x_.elements() > 0 && y_.elements() > 0;
  }

  // With a group axis in front when there are groups.
  dnnl::memory::desc PlainWeights(const View& w) const {
    if (op_.groups == 1) return DescOf(w);
    View grouped = w;
    const int64_t per_group = w.shape[0] / op_.groups;
    grouped.shape[0] = per_group;
    grouped.shape.insert(grouped.shape.begin(), op_.groups);
    grouped.strides.insert(grouped.strides.begin(), per_group * w.strides[0]);
    return DescOf(grouped);
  }

  // Empty where the library cannot.
  Primitive::primitive_desc Describe(const dnnl::memory::desc& weights, bool bias,
                                     const dnnl::post_ops& post_ops) const {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes.set_post_ops(post_ops);
    const dnnl::memory::desc b =
        bias ? DescOf(DenseView(DType::kF32, {y_.shape[1]})) : dnnl::memory::desc();
    return {Engine(),
            dnnl::prop_kind::forward_inference,
            dnnl::algorithm::convolution_direct,
            ImageDescOf(x_),
            weights,
            b,
            ImageDescOf(y_),
            window_.strides,
            window_.dilations,
            window_.before,
            window_.after,
            attributes,
            /*allow_empty=*/true};
  }

 private:
  const ir::Conv& op_;
  const LibraryWindow window_;
  const View &x_, &y_;
};

class ConvolutionMaker {
 public:
  explicit ConvolutionMaker(const AnchorSite& site)
      : site_(site),
        node_(*site.task.anchor()),
        op_(*node_.op.As<ir::Conv>()),
        bias_(HasBias(node_)),
        library_(op_, site.operands[Operand(kImage)], site.out) {}

  absl::StatusOr<MadeAnchor> Make() {
    if (library_.possible()) {
      MadeAnchor made;
      FORGE_RETURN_IF_ERROR(
          Guarded(library_.kName, [&] { made = MakeLibraryConvolution(site_, library_); }));
      if (made.call) return made;
    }
    if (PackedOf(site_.task.type(Operand(kWeights))))
      return Internal("the weights are packed, but oneDNN does not support the convolution");
    return MadeAnchor{MakeLoops(), node_.first_out};
  }

 private:
  uint32_t Operand(size_t i) const { return *site_.task.OperandOf(node_.in[i]); }

  std::unique_ptr<AnchorCall> MakeLoops() const {
    ConvolutionLoops loops{.op = op_,
                           .x = site_.operands[Operand(kImage)],
                           .w = site_.operands[Operand(kWeights)],
                           .y = site_.out,
                           .operands = {Operand(kImage), Operand(kWeights)},
                           .threads = site_.settings.threads};
    if (bias_) loops.operands.push_back(Operand(kBias));
    return MakeConvolutionLoops(std::move(loops));
  }

  const AnchorSite& site_;
  const ir::Node& node_;
  const ir::Conv& op_;
  bool bias_;
  LibraryConvolution library_;
};

class Convolution final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::Conv>(task); }

  Verdict Takes(const Task& task) const override {
    const DType t = task.body().type(task.anchor()->first_out).dtype();
    if (!Has(kFloatTypes, t))
      return Verdict::No(fmt::format("convolution has no kernel for {}", Name(t)));
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes(ComputedAs(t) == DType::kF32 ? "dnnl convolution" : "convolution loops");
  }

  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    if (ComputedAs(task.body().type(task.anchor()->first_out).dtype()) != DType::kF32) return {};
    return ConvolutionChoices(task, settings, [&](const ir::EncodingChoice& choice) {
      return PackedWeights<LibraryConvolution>(task, choice);
    });
  }

  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    return MakeAnchorProgram(task, settings,
                             [](const AnchorSite& site) { return ConvolutionMaker(site).Make(); });
  }
};

}  // namespace

const Kernel& ConvolutionKernel() {
  static const Convolution kKernel;
  return kKernel;
}

}  // namespace forge::cpu
