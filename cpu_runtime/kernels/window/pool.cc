// SPDX-License-Identifier: Apache-2.0
// Pooling. Means are the library's; maxima are our own, since the library's lose NaN and give the
// lowest finite number for a window of -infinity.
#include "ir/ops/spatial/pool.h"

#include <algorithm>
#include <cmath>

#include "cpu_runtime/kernels/window/library_convolution.h"
#include "cpu_runtime/kernels/window/pool_axis.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"

namespace forge::cpu {
namespace {

template <class T>
class PoolCall final : public AnchorCall {
 public:
  PoolCall(const ir::Pool& op, View x, View y, uint32_t operand, int threads)
      : largest_(op.kind == ir::PoolKind::kMax),
        count_padding_(op.count_include_pad),
        axes_(PoolAxesOf(op, x)),
        x_(std::move(x)),
        y_(std::move(y)),
        x_steps_(ir::VolumeOf(x_.strides)),
        y_steps_(ir::VolumeOf(y_.strides)),
        places_(ir::VolumeOf(y_.shape)),
        operand_(operand),
        threads_(threads) {
    taps_ = AllTapsOf(axes_, places_);
    // More padding than elements is not worth a place.
    const PoolAxis& last = axes_[2];
    slides_ = largest_ && last.before <= last.extent && last.after <= last.extent;
    channels_last_ = x_.strides[1] == 1 && y_.strides[1] == 1 && x_.shape[1] > 1;
  }
  std::string_view kernel() const override { return "pool"; }
  uint64_t scratch_bytes() const override {
    return channels_last_ ? 0 : row_bytes() * static_cast<uint64_t>(threads_);
  }

  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[operand_]);
    auto* y = reinterpret_cast<T*>(a.out);
    const int64_t images = y_.shape[0], channels = channels_last_ ? 1 : y_.shape[1];
    const int64_t rows = places_[0] * places_[1];
    const int64_t window = axes_[0].kernel * axes_[1].kernel * axes_[2].kernel;
    const double work = static_cast<double>(y_.elements()) * static_cast<double>(window);
    ParallelParts({images * channels * rows, 1, WorthThreads(work) ? threads_ : 1},
                  [&](int thread, int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t row = i % rows, nc = i / rows;
                      const int64_t c = nc % channels, n = nc / channels;
                      const T* from = x + n * x_.strides[0] + c * x_.strides[1];
                      const Row at{row / places_[1], row % places_[1]};
                      T* to = y + n * y_.strides[0] + c * y_.strides[1] + at.o * y_steps_[0] +
                              at.p * y_steps_[1];
                      if (channels_last_)
                        RowOfChannels(from, to, at);
                      else
                        RowOfPlane(from, to, at, RowScratch(a.scratch, thread));
                    }
                  });
    return absl::OkStatus();
  }

 private:
  // A row of the result: its places along the first two axes.
  struct Row {
    int64_t o, p;
  };
  const Taps& TapsAt(size_t axis, int64_t place) const {
    return taps_[axis][static_cast<size_t>(place)];
  }
  T start() const { return StartOf<T>(largest_ ? ir::ReduceKind::kMax : ir::ReduceKind::kSum); }
  void Combine(T* into, const T* x, int64_t n) const {
    const auto kind = largest_ ? ir::ReduceKind::kMax : ir::ReduceKind::kSum;
    RowLoopsOf<T>().combine[static_cast<size_t>(kind)](into, x, static_cast<size_t>(n));
  }
  // A row of x; where maxima slide, with its padding and as far as the last window reaches.
  int64_t row_elements() const {
    const PoolAxis& last = axes_[2];
    if (!slides_) return last.extent;
    return std::max(last.before + last.extent, (places_[2] - 1) * last.stride + last.reach());
  }
  uint64_t row_bytes() const {
    return (static_cast<uint64_t>(row_elements()) * sizeof(T) + 63) / 64 * 64;
  }
  T* RowScratch(uint8_t* scratch, int thread) const {
    return reinterpret_cast<T*>(scratch + row_bytes() * static_cast<uint64_t>(thread));
  }
  // Calls f(offset in x) for each row of x that the windows of a row meet.
  template <class F>
  void ForRows(const Row& at, F f) const {
    const Taps &o = TapsAt(0, at.o), &p = TapsAt(1, at.p);
    for (int64_t i = o.begin; i < o.end; ++i)
      for (int64_t j = p.begin; j < p.end; ++j)
        f((o.place + i * axes_[0].dilation) * x_steps_[0] +
          (p.place + j * axes_[1].dilation) * x_steps_[1]);
  }
  // What the sum over a window becomes.
  T Mean(T sum, const Row& at, const Taps& s) const {
    int64_t n = count_padding_ ? s.counted : s.end - s.begin;
    for (const Taps* t : {&TapsAt(0, at.o), &TapsAt(1, at.p)})
      n *= count_padding_ ? t->counted : t->end - t->begin;
    return n > 0 ? sum / static_cast<T>(n) : T{0};
  }

  // Channels are neighbours: a window is combined for all of them at once.
  void RowOfChannels(const T* x, T* y, const Row& at) const {
    const int64_t channels = x_.shape[1];
    for (int64_t q = 0; q < places_[2]; ++q) {
      const Taps& s = TapsAt(2, q);
      T* to = y + q * y_steps_[2];
      std::fill_n(to, channels, start());
      ForRows(at, [&](int64_t row) {
        for (int64_t j = s.begin; j < s.end; ++j)
          Combine(to, x + row + (s.place + j * axes_[2].dilation) * x_steps_[2], channels);
      });
      if (largest_) continue;
      for (int64_t c = 0; c < channels; ++c) to[c] = Mean(to[c], at, s);
    }
  }

  // Columns are neighbours: the rows of a window are combined first, then its columns.
  void RowOfPlane(const T* x, T* y, const Row& at, T* row) const {
    const PoolAxis& last = axes_[2];
    std::fill_n(row, row_elements(), start());
    T* image = row + (slides_ ? last.before : 0);
    ForRows(at, [&](int64_t from) { Combine(image, x + from, last.extent); });
    if (slides_) SlideMaximum(row);
    for (int64_t q = 0; q < places_[2]; ++q)
      y[q * y_steps_[2]] = slides_ ? row[q * last.stride] : Folded(row, at, TapsAt(2, q));
  }

  T Folded(const T* row, const Row& at, const Taps& s) const {
    T sum = start();
    for (int64_t j = s.begin; j < s.end; ++j) {
      const T v = row[s.place + j * axes_[2].dilation];
      if (!largest_)
        sum += v;
      else if (!(sum >= v) && !std::isnan(sum))
        sum = v;
    }
    return largest_ ? sum : Mean(sum, at, s);
  }

  // Each element becomes the largest of the window that begins there. Windows of twice the taps are
  // made of two that lie side by side, and the whole one of two that overlap.
  void SlideMaximum(T* row) const {
    const PoolAxis& last = axes_[2];
    int64_t room = row_elements();
    for (int64_t taps = 1, more; taps < last.kernel; taps += more) {
      more = std::min(taps, last.kernel - taps);
      room -= more * last.dilation;
      Combine(row, row + more * last.dilation, room);
    }
  }

  bool largest_, count_padding_;
  ir::PerAxis<PoolAxis> axes_;
  View x_, y_;
  ir::PerAxis<int64_t> x_steps_, y_steps_, places_;
  uint32_t operand_;
  int threads_;
  ir::PerAxis<std::vector<Taps>> taps_;
  bool channels_last_ = false, slides_ = false;
};

// The library divides by the whole window, or by what lies in the image; windows that leave the
// padding, and those without elements, are not for it.
bool LibraryTakes(const ir::Pool& op, const View& x, const View& y) {
  if (op.kind != ir::PoolKind::kAverage || x.dtype != DType::kF32 || x.elements() == 0)
    return false;
  const ir::PerAxis<PoolAxis> axes = PoolAxesOf(op, x);
  const ir::PerAxis<int64_t> places = ir::VolumeOf(y.shape);
  for (size_t a = 0; a < axes.size(); ++a) {
    const int64_t reach = (places[a] - 1) * axes[a].stride + axes[a].kernel;
    if (axes[a].dilation != 1 || reach > axes[a].extent + axes[a].before + axes[a].after)
      return false;
  }
  return true;
}

// No call where the library has none.  Throws dnnl::error.
MadeAnchor MakeLibraryCall(const AnchorSite& site, const ir::Pool& op, uint32_t operand) {
  const ir::Node& node = *site.task.anchor();
  const size_t rank = site.out.shape.size();
  const LibraryWindow window(ir::WindowOver(op, rank));
  const std::vector<int64_t> kernel = ir::ForEachAxis(op.kernel, rank - 2, 1);
  PostOps post_ops = PlanPostOps(site.task, node.first_out);
  // With channels in front oneDNN 3.2 transposes blocks of an image, but not of the operands
  // of binary post-ops.
  const View& x = site.operands[operand];
  if (!post_ops.operands.empty() && x.strides[1] != 1) post_ops = PostOps{.value = node.first_out};
  const auto describe = [&](const PostOps& chain) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes.set_post_ops(chain.ops);
    return dnnl::pooling_forward::primitive_desc(
        Engine(), dnnl::prop_kind::forward_inference,
        op.count_include_pad ? dnnl::algorithm::pooling_avg_include_padding
                             : dnnl::algorithm::pooling_avg_exclude_padding,
        ImageDescOf(site.operands[operand]), ImageDescOf(site.out), window.strides, kernel,
        window.dilations, window.before, window.after, attributes, /*allow_empty=*/true);
  };
  const auto d = DescribeFast(site.task, node.first_out, post_ops, describe);
  if (!d.get(true)) return {nullptr, node.first_out};
  auto call = std::make_unique<LibraryCall>(d.impl_info_str());
  call->AddOperand(DNNL_ARG_SRC, d.src_desc(), operand);
  call->AddPostOps(post_ops);
  call->Finish(dnnl::pooling_forward(d), d.dst_desc(), d.scratchpad_desc());
  return {std::move(call), post_ops.value};
}

absl::StatusOr<MadeAnchor> MakePool(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::Pool>();
  const uint32_t operand = *site.task.OperandOf(node.in[0]);
  const View& x = site.operands[operand];
  if (LibraryTakes(op, x, site.out)) {
    MadeAnchor made;
    FORGE_RETURN_IF_ERROR(Guarded("pooling", [&] { made = MakeLibraryCall(site, op, operand); }));
    if (made.call) return made;
  }
  const int threads = site.settings.threads;
  if (x.dtype == DType::kF64)
    return MadeAnchor{std::make_unique<PoolCall<double>>(op, x, site.out, operand, threads),
                      node.first_out};
  return MadeAnchor{std::make_unique<PoolCall<float>>(op, x, site.out, operand, threads),
                    node.first_out};
}

class Pool final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::Pool>(task); }
  Verdict Takes(const Task& task) const override {
    const DType t = task.body().type(task.anchor()->first_out).dtype();
    if (!Has(kFloatTypes, t))
      return Verdict::No(fmt::format("pooling has no kernel for {}", Name(t)));
    if (task.anchor()->op.As<ir::Pool>()->finds_places())
      return Verdict::No("indices of pooling are compared tap by tap");
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("pool");
  }
  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    return BothLayouts(task, settings);
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    return MakeAnchorProgram(task, settings, MakePool);
  }
};

}  // namespace

const Kernel& PoolKernel() {
  static const Pool kKernel;
  return kKernel;
}

}  // namespace forge::cpu
