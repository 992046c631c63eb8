// SPDX-License-Identifier: Apache-2.0
// Transposed convolution, which the library calls deconvolution.
#include "cpu_runtime/kernels/window/convolution_choices.h"
#include "cpu_runtime/kernels/window/library_convolution.h"
#include "cpu_runtime/parallel.h"
#include "ir/ops/spatial/conv_transpose.h"

namespace forge::cpu {
namespace {

using Description = dnnl::deconvolution_forward::primitive_desc;

// As the library describes it. Its functions throw dnnl::error.
class LibraryTransposed {
 public:
  using Op = ir::ConvTranspose;
  using Primitive = dnnl::deconvolution_forward;
  static constexpr std::string_view kName = "deconvolution";
  LibraryTransposed(const ir::ConvTranspose& op, const View& x, const View& y)
      : op_(op), window_(ir::WindowOver(op, x.shape.size())), x_(x), y_(y) {
    const auto more = ir::ForEachAxis(op.output_padding, window_.after.size(), 0);
    for (size_t a = 0; a < more.size(); ++a) window_.after[a] -= more[a];
  }

  bool possible() const { return x_.elements() > 0 && y_.elements() > 0; }

  // [m, c, ...], with a group axis in front when there are groups.
  dnnl::memory::desc PlainWeights(const View& w) const {
    View v = w;
    std::swap(v.shape[0], v.shape[1]);
    std::swap(v.strides[0], v.strides[1]);
    v.shape[1] /= op_.groups;
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
    return {Engine(),
            dnnl::prop_kind::forward_inference,
            dnnl::algorithm::deconvolution_direct,
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
  const ir::ConvTranspose& op_;
  LibraryWindow window_;
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
    const ir::PerAxis<int64_t> places = ir::VolumeOf(y_.shape), steps = ir::VolumeOf(y_.strides);
    for (int64_t nm = 0; nm < y_.shape[0] * y_.shape[1]; ++nm) {
      const int64_t n = nm / y_.shape[1], m = nm % y_.shape[1];
      float* to = y + n * y_.strides[0] + m * y_.strides[1];
      for (int64_t i = 0; i < ir::PlacesOf(places); ++i) {
        const ir::PerAxis<int64_t> at = ir::PlaceIn(places, i);
        to[at[0] * steps[0] + at[1] * steps[1] + at[2] * steps[2]] = bias ? bias[m] : 0;
      }
    }
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
        library_(*node_.op.As<ir::ConvTranspose>(), site.operands[Operand(kImage)], site.out) {}

  absl::StatusOr<MadeAnchor> Make() {
    if (!library_.possible()) {
      const auto bias = HasBias(node_) ? std::optional(Operand(kBias)) : std::nullopt;
      return MadeAnchor{std::make_unique<BiasOnly>(site_.out, bias), node_.first_out};
    }
    MadeAnchor made;
    FORGE_RETURN_IF_ERROR(
        Guarded(library_.kName, [&] { made = MakeLibraryConvolution(site_, library_); }));
    if (!made.call) return Unimplemented("oneDNN does not support this deconvolution");
    return made;
  }

 private:
  uint32_t Operand(size_t i) const { return *site_.task.OperandOf(node_.in[i]); }

  const AnchorSite& site_;
  const ir::Node& node_;
  LibraryTransposed library_;
};

View Last(const std::vector<int64_t>& shape) {
  ir::Dims dims(shape.begin(), shape.end());
  return *ViewOf(ir::Type::Tensor(DType::kF32, std::move(dims)).With(ChannelsLast(shape.size())));
}

// Has the library a kernel of its own for this window, whatever the image?
Verdict LibraryTakes(const ir::ConvTranspose& op, const ir::Dims& weights) {
  for (const ir::Dim& d : weights)
    if (!d.is_constant() || d.constant() < 1) return Verdict::No("its weights are not constant");
  const std::vector<int64_t> w = ir::Constants(weights);
  std::vector<int64_t> x = {1, w[0]}, y = {1, w[1] * op.groups};
  const ir::Window window = ir::WindowOver(op, w.size());
  const std::vector<int64_t> more = ir::ForEachAxis(op.output_padding, window.size(), 0);
  for (size_t a = 0; a < window.size(); ++a) {
    constexpr int64_t kPixels = 16, kMost = 1 << 16;
    const int64_t stride = window[a].stride, off = window[a].before + window[a].after;
    const int64_t reach = (w[2 + a] - 1) * window[a].dilation;
    if (reach > kMost || off > kMost || stride > kMost || more[a] > kMost)
      return Verdict::No("its window is too large");
    x.push_back(off / stride + kPixels);
    y.push_back((x.back() - 1) * stride + reach + 1 - off + more[a]);
  }
  bool fast = false;
  const View image = Last(x), result = Last(y);
  const absl::Status s = Guarded(LibraryTransposed::kName, [&] {
    const LibraryTransposed library(op, image, result);
    const auto plain = library.PlainWeights(DenseView(DType::kF32, w));
    fast = IsFast(library.Describe(AnyLayout(plain), /*bias=*/true, {}));
  });
  if (!s.ok()) return Verdict::No(std::string(Message(s)));
  return fast ? Verdict::Yes("dnnl deconvolution")
              : Verdict::No("oneDNN has only its reference implementation for it");
}

class ConvolutionTranspose final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::ConvTranspose>(task); }

  Verdict Takes(const Task& task) const override {
    const ir::Node& node = *task.anchor();
    const DType t = task.body().type(node.first_out).dtype();
    if (ComputedAs(t) != DType::kF32)
      return Verdict::No(fmt::format("transposed convolution has no kernel for {}", Name(t)));
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return LibraryTakes(*node.op.As<ir::ConvTranspose>(),
                        task.body().type(node.in[kWeights]).shape());
  }

  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    if (ComputedAs(task.body().type(task.anchor()->first_out).dtype()) != DType::kF32) return {};
    return ConvolutionChoices(task, settings, [&](const ir::EncodingChoice& choice) {
      return PackedWeights<LibraryTransposed>(task, choice);
    });
  }

  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    return MakeAnchorProgram(task, settings,
                             [](const AnchorSite& site) { return TransposedMaker(site).Make(); });
  }
};

}  // namespace

const Kernel& ConvolutionTransposeKernel() {
  static const ConvolutionTranspose kKernel;
  return kKernel;
}

}  // namespace forge::cpu
