// SPDX-License-Identifier: Apache-2.0
// Transposed convolution, which the library calls deconvolution.
#include "cpu_runtime/kernels/convolution_choices.h"
#include "cpu_runtime/onednn/library_call.h"
#include "ir/ops/conv_transpose2d.h"

namespace forge::cpu {
namespace {

enum Operands : size_t { kImage, kWeights, kBias };

using Description = dnnl::deconvolution_forward::primitive_desc;

// The library's plain loops, which only its own tests should meet.
bool IsFast(const Description& d) {
  if (!d.get(true)) return false;
  const std::string_view name = d.impl_info_str();
  return name.find("ref") == name.npos && name.find("any") == name.npos;
}

// As the library describes it. Its functions throw dnnl::error.
class LibraryTransposed {
 public:
  LibraryTransposed(const ir::ConvTranspose2d& op, const View& x, const View& y)
      : op_(op), x_(x), y_(y) {}

  // [m, c, r, s], with a group axis in front when there are groups.
  dnnl::memory::desc PlainWeights(const View& w) const {
    View v{w.dtype,
           {w.shape[1], w.shape[0] / op_.groups, w.shape[2], w.shape[3]},
           {w.strides[1], w.strides[0], w.strides[2], w.strides[3]}};
    if (op_.groups == 1) return DescOf(v);
    v.shape.insert(v.shape.begin(), op_.groups);
    v.strides.insert(v.strides.begin(), v.shape[2] * w.strides[0]);
    return DescOf(v);
  }

  // Empty where the library cannot.
  Description Describe(const dnnl::memory::desc& weights, bool bias,
                       const dnnl::post_ops& post_ops) const {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes.set_post_ops(post_ops);
    const dnnl::memory::desc b =
        bias ? DescOf(DenseView(DType::kF32, {y_.shape[1]})) : dnnl::memory::desc();
    const dnnl::memory::dims dilations = {op_.dilations[0] - 1, op_.dilations[1] - 1};
    const dnnl::memory::dims after = {op_.padding[2] - op_.output_padding[0],
                                      op_.padding[3] - op_.output_padding[1]};
    return {Engine(),
            dnnl::prop_kind::forward_inference,
            dnnl::algorithm::deconvolution_direct,
            ImageDescOf(x_),
            weights,
            b,
            ImageDescOf(y_),
            op_.strides,
            dilations,
            {op_.padding[0], op_.padding[1]},
            after,
            attributes,
            /*allow_empty=*/true};
  }

  // Without the post-ops, of which none is left then, where they would bring plain loops.
  // value: the result without them
  Description DescribeBest(const dnnl::memory::desc& weights, bool bias, uint32_t value,
                           PostOps& post_ops) const {
    Description d = Describe(weights, bias, post_ops.ops);
    if (post_ops.empty() || IsFast(d)) return d;
    post_ops = PostOps{.value = value};
    return Describe(weights, bias, {});
  }

 private:
  const ir::ConvTranspose2d& op_;
  const View &x_, &y_;
};

// The result where the image has no elements.
class BiasOnly final : public AnchorCall {
 public:
  BiasOnly(View y, std::optional<uint32_t> bias) : y_(std::move(y)), bias_(bias) {}
  std::string_view kernel() const override { return "bias"; }

  absl::Status Run(const Arguments& a) const override {
    auto* y = reinterpret_cast<float*>(a.out);
    const auto* bias = bias_ ? reinterpret_cast<const float*>(a.operands[*bias_]) : nullptr;
    for (int64_t n = 0; n < y_.shape[0]; ++n)
      for (int64_t m = 0; m < y_.shape[1]; ++m)
        for (int64_t p = 0; p < y_.shape[2]; ++p)
          for (int64_t q = 0; q < y_.shape[3]; ++q)
            y[n * y_.strides[0] + m * y_.strides[1] + p * y_.strides[2] + q * y_.strides[3]] =
                bias ? bias[m] : 0;
    return absl::OkStatus();
  }

 private:
  View y_;
  std::optional<uint32_t> bias_;
};

class TransposedMaker {
 public:
  explicit TransposedMaker(const AnchorSite& site)
      : site_(site),
        node_(*site.task.anchor()),
        bias_(node_.in.size() > kBias && node_.in[kBias] != ir::kAbsent),
        library_(*node_.op.As<ir::ConvTranspose2d>(), site.operands[Operand(kImage)], site.out) {}

  absl::StatusOr<MadeAnchor> Make() {
    if (site_.operands[Operand(kImage)].elements() == 0 || site_.out.elements() == 0) {
      const auto bias = bias_ ? std::optional(Operand(kBias)) : std::nullopt;
      return MadeAnchor{std::make_unique<BiasOnly>(site_.out, bias), node_.first_out};
    }
    MadeAnchor made;
    FORGE_RETURN_IF_ERROR(Guarded("deconvolution", [&] { made = MakeCall(); }));
    if (!made.call) return Unimplemented("oneDNN has no such deconvolution");
    return made;
  }

 private:
  uint32_t Operand(size_t i) const { return *site_.task.OperandOf(node_.in[i]); }

  MadeAnchor MakeCall() {
    PostOps post_ops = PlanPostOps(site_.task, node_.first_out);
    const PackedEncoding* packed = PackedOf(site_.task.type(Operand(kWeights)));
    const dnnl::memory::desc plain =
        packed ? packed->plain() : library_.PlainWeights(site_.operands[Operand(kWeights)]);
    const dnnl::memory::desc weights = packed ? packed->packed() : AnyLayout(plain);
    const Description d = library_.DescribeBest(weights, bias_, node_.first_out, post_ops);
    if (!d.get(true)) return {};
    auto call = std::make_unique<LibraryCall>(d.impl_info_str());
    call->AddOperand(DNNL_ARG_SRC, d.src_desc(), Operand(kImage));
    if (packed)
      call->AddOperand(DNNL_ARG_WEIGHTS, weights, Operand(kWeights));
    else
      call->AddPacked(DNNL_ARG_WEIGHTS, plain, d.weights_desc(), Operand(kWeights));
    if (bias_) call->AddOperand(DNNL_ARG_BIAS, d.bias_desc(), Operand(kBias));
    call->AddPostOps(post_ops);
    call->Finish(dnnl::deconvolution_forward(d), d.dst_desc(), d.scratchpad_desc());
    return {std::move(call), post_ops.value};
  }

  const AnchorSite& site_;
  const ir::Node& node_;
  bool bias_;
  LibraryTransposed library_;
};

View Last(const std::vector<int64_t>& shape) {
  const int64_t c = shape[1], row = c * shape[3];
  return {DType::kF32, shape, {row * shape[2], 1, row, c}};
}

// Has the library a kernel of its own for this window, whatever the image?
Verdict LibraryTakes(const ir::ConvTranspose2d& op, const ir::Dims& weights) {
  for (const ir::Dim& d : weights)
    if (!d.is_constant() || d.constant() < 1) return Verdict::No("its weights are no constants");
  const std::vector<int64_t> w = ir::Constants(weights);
  std::vector<int64_t> x = {1, w[0]}, y = {1, w[1] * op.groups};
  for (size_t a = 0; a < 2; ++a) {
    constexpr int64_t kPixels = 16, kMost = 1 << 16;
    const int64_t reach = (w[2 + a] - 1) * op.dilations[a];
    const int64_t off = op.padding[a] + op.padding[2 + a];
    if (reach > kMost || off > kMost || op.strides[a] > kMost || op.output_padding[a] > kMost)
      return Verdict::No("its window is too large");
    x.push_back(off / op.strides[a] + kPixels);
    y.push_back((x.back() - 1) * op.strides[a] + reach + 1 - off + op.output_padding[a]);
  }
  bool fast = false;
  const View image = Last(x), result = Last(y);
  const absl::Status s = Guarded("deconvolution", [&] {
    const LibraryTransposed library(op, image, result);
    const auto plain = library.PlainWeights(DenseView(DType::kF32, w));
    fast = IsFast(library.Describe(AnyLayout(plain), /*bias=*/true, {}));
  });
  if (!s.ok()) return Verdict::No(std::string(Message(s)));
  return fast ? Verdict::Yes("dnnl deconvolution") : Verdict::No("oneDNN has plain loops for it");
}

class ConvolutionTranspose final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::ConvTranspose2d>(task); }

  Verdict Takes(const Task& task) const override {
    const ir::Node& node = *task.anchor();
    const DType t = task.body().type(node.first_out).dtype();
    if (ComputedAs(t) != DType::kF32)
      return Verdict::No(fmt::format("transposed convolution has no kernel for {}", Name(t)));
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return LibraryTakes(*node.op.As<ir::ConvTranspose2d>(),
                        task.body().type(node.in[kWeights]).shape());
  }

  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    if (task.body().type(task.anchor()->first_out).dtype() != DType::kF32) return {};
    return ConvolutionChoices(task, settings, [&](const ir::EncodingChoice& choice) {
      return PackedWeights(task, choice);
    });
  }

  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    return MakeAnchorProgram(task, settings,
                             [](const AnchorSite& site) { return TransposedMaker(site).Make(); });
  }

 private:
  // Null where the library has no kernel or takes weights as they are.
  static ir::EncodingRef PackedWeights(const Task& task, const ir::EncodingChoice& choice) {
    const ir::Node& node = *task.anchor();
    const uint32_t x = *task.OperandOf(node.in[kImage]), w = *task.OperandOf(node.in[kWeights]);
    const ir::Type& out = task.body().type(node.first_out);
    const absl::StatusOr<View> image = ViewOf(task.type(x).With(choice.in[x])),
                               weights = ViewOf(task.type(w).With(ir::EncodingRef())),
                               result = ViewOf(out.With(choice.out[0]));
    if (!image.ok() || !weights.ok() || !result.ok()) return nullptr;
    if (image->elements() == 0 || result->elements() == 0) return nullptr;
    ir::EncodingRef packed;
    const absl::Status s = Guarded("deconvolution", [&] {
      const LibraryTransposed library(*node.op.As<ir::ConvTranspose2d>(), *image, *result);
      const bool bias = node.in.size() > kBias && node.in[kBias] != ir::kAbsent;
      const dnnl::memory::desc plain = library.PlainWeights(*weights);
      PostOps post_ops = PlanPostOps(task, node.first_out);
      const Description d = library.DescribeBest(AnyLayout(plain), bias, node.first_out, post_ops);
      if (d.get(true) && d.weights_desc() != plain)
        packed = PackedEncoding::Make(plain, d.weights_desc());
    });
    return s.ok() ? packed : nullptr;
  }
};

}  // namespace

const Kernel& ConvolutionTransposeKernel() {
  static const ConvolutionTranspose kKernel;
  return kKernel;
}

}  // namespace forge::cpu
