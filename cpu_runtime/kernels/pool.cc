// SPDX-License-Identifier: Apache-2.0
// Pooling. Means are the library's; maxima are our own, since the library's lose NaN and give the
// lowest finite number for a window of -infinity.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/onednn/library_call.h"
#include "cpu_runtime/parallel.h"
#include "cpu_runtime/rows/row_loops.h"
#include "ir/ops/pool2d.h"

namespace forge::cpu {
namespace {

// The taps of a window that meet the image along one axis, and what a mean divides by.
struct Taps {
  int64_t begin, end;  // of the kernel
  int64_t place;       // in the image of tap 0
  int64_t counted;     // positions in the image and its padding
};

Taps TapsOf(const ir::Pool2d& op, size_t axis, int64_t o, int64_t extent) {
  const int64_t step = op.dilations[axis], place = o * op.strides[axis] - op.padding[axis];
  const auto first_at = [&](int64_t bound) {  // the first tap at `bound` or after it
    return std::clamp<int64_t>((bound - place + step - 1) / step, 0, op.kernel[axis]);
  };
  const int64_t begin = place >= 0 ? 0 : first_at(0);
  const int64_t end = place >= extent ? 0 : first_at(extent);
  const int64_t padded = extent + op.padding[axis + 2];
  return {begin, std::max(begin, end), place, place >= padded ? 0 : first_at(padded)};
}

template <class T>
class PoolCall final : public AnchorCall {
 public:
  PoolCall(ir::Pool2d op, View x, View y, uint32_t operand, int threads)
      : op_(std::move(op)),
        x_(std::move(x)),
        y_(std::move(y)),
        operand_(operand),
        threads_(threads) {
    for (int64_t p = 0; p < y_.shape[2]; ++p) rows_.push_back(TapsOf(op_, 0, p, x_.shape[2]));
    for (int64_t q = 0; q < y_.shape[3]; ++q) columns_.push_back(TapsOf(op_, 1, q, x_.shape[3]));
    channels_last_ = x_.strides[1] == 1 && y_.strides[1] == 1 && x_.shape[1] > 1;
  }
  std::string_view kernel() const override { return "pool"; }
  uint64_t scratch_bytes() const override {
    return channels_last_ ? 0 : row_bytes() * static_cast<uint64_t>(threads_);
  }

  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[operand_]);
    auto* y = reinterpret_cast<T*>(a.out);
    const int64_t images = y_.shape[0], planes = channels_last_ ? 1 : y_.shape[1];
    const int64_t rows = y_.shape[2], window = op_.kernel[0] * op_.kernel[1];
    const double work = static_cast<double>(y_.elements()) * static_cast<double>(window);
    ParallelParts({images * planes * rows, 1, WorthThreads(work) ? threads_ : 1},
                  [&](int thread, int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t p = i % rows, c = i / rows % planes, n = i / rows / planes;
                      const T* from = x + n * x_.strides[0] + c * x_.strides[1];
                      T* to = y + n * y_.strides[0] + c * y_.strides[1] + p * y_.strides[2];
                      if (channels_last_)
                        RowOfChannels(from, to, p);
                      else
                        RowOfPlane(from, to, p, RowScratch(a.scratch, thread));
                    }
                  });
    return absl::OkStatus();
  }

 private:
  bool is_max() const { return op_.kind == ir::PoolKind::kMax; }
  T start() const { return StartOf<T>(is_max() ? ir::ReduceKind::kMax : ir::ReduceKind::kSum); }
  auto combine() const {
    return RowLoopsOf<T>()
        .combine[static_cast<size_t>(is_max() ? ir::ReduceKind::kMax : ir::ReduceKind::kSum)];
  }
  uint64_t row_bytes() const {
    return (static_cast<uint64_t>(x_.shape[3]) * sizeof(T) + 63) / 64 * 64;
  }
  T* RowScratch(uint8_t* scratch, int thread) const {
    return reinterpret_cast<T*>(scratch + row_bytes() * static_cast<uint64_t>(thread));
  }
  // What a sum over the window becomes.
  T Finish(T sum, const Taps& r, const Taps& s) const {
    if (is_max()) return sum;
    const int64_t n =
        op_.count_include_pad ? r.counted * s.counted : (r.end - r.begin) * (s.end - s.begin);
    return n > 0 ? sum / static_cast<T>(n) : T{0};
  }

  // Channels are neighbours: a window is combined for all of them at once.
  void RowOfChannels(const T* x, T* y, int64_t p) const {
    const Taps& r = rows_[static_cast<size_t>(p)];
    const auto channels = static_cast<size_t>(x_.shape[1]);
    for (int64_t q = 0; q < y_.shape[3]; ++q) {
      const Taps& s = columns_[static_cast<size_t>(q)];
      T* to = y + q * y_.strides[3];
      std::fill_n(to, channels, start());
      for (int64_t i = r.begin; i < r.end; ++i)
        for (int64_t j = s.begin; j < s.end; ++j)
          combine()(to,
                    x + (r.place + i * op_.dilations[0]) * x_.strides[2] +
                        (s.place + j * op_.dilations[1]) * x_.strides[3],
                    channels);
      if (!is_max())
        for (size_t c = 0; c < channels; ++c) to[c] = Finish(to[c], r, s);
    }
  }

  // Columns are neighbours: the rows of a window are combined first, then its columns.
  void RowOfPlane(const T* x, T* y, int64_t p, T* row) const {
    const Taps& r = rows_[static_cast<size_t>(p)];
    const auto width = static_cast<size_t>(x_.shape[3]);
    std::fill_n(row, width, start());
    for (int64_t i = r.begin; i < r.end; ++i)
      combine()(row, x + (r.place + i * op_.dilations[0]) * x_.strides[2], width);
    for (int64_t q = 0; q < y_.shape[3]; ++q) {
      const Taps& s = columns_[static_cast<size_t>(q)];
      T sum = start();
      for (int64_t j = s.begin; j < s.end; ++j) {
        const T v = row[s.place + j * op_.dilations[1]];
        if (!is_max())
          sum += v;
        else if (!(sum >= v) && !std::isnan(sum))
          sum = v;
      }
      y[q * y_.strides[3]] = Finish(sum, r, s);
    }
  }

  ir::Pool2d op_;
  View x_, y_;
  uint32_t operand_;
  int threads_;
  std::vector<Taps> rows_, columns_;
  bool channels_last_ = false;
};

// The library divides by the whole window, or by what lies in the image; windows that leave the
// padding, and those without elements, are not for it.
bool LibraryTakes(const ir::Pool2d& op, const View& x, const View& y) {
  if (op.kind != ir::PoolKind::kAverage || x.dtype != DType::kF32 || x.elements() == 0)
    return false;
  for (size_t a = 0; a < 2; ++a) {
    const int64_t reach = (y.shape[2 + a] - 1) * op.strides[a] + op.kernel[a];
    const int64_t padded = x.shape[2 + a] + op.padding[a] + op.padding[a + 2];
    if (op.dilations[a] != 1 || reach > padded) return false;
  }
  return true;
}

// No call where the library has none.  Throws dnnl::error.
MadeAnchor MakeLibraryCall(const AnchorSite& site, const ir::Pool2d& op, uint32_t operand) {
  const ir::Node& node = *site.task.anchor();
  PostOps post_ops = PlanPostOps(site.task, node.first_out);
  const auto describe = [&](const dnnl::post_ops& ops) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes.set_post_ops(ops);
    return dnnl::pooling_forward::primitive_desc(
        Engine(), dnnl::prop_kind::forward_inference,
        op.count_include_pad ? dnnl::algorithm::pooling_avg_include_padding
                             : dnnl::algorithm::pooling_avg_exclude_padding,
        ImageDescOf(site.operands[operand]), ImageDescOf(site.out), op.strides, op.kernel, {0, 0},
        {op.padding[0], op.padding[1]}, {op.padding[2], op.padding[3]}, attributes,
        /*allow_empty=*/true);
  };
  auto d = describe(post_ops.ops);
  if (!d.get(true) && !post_ops.empty()) {
    post_ops = PostOps{.value = node.first_out};
    d = describe({});
  }
  if (!d.get(true)) return {nullptr, node.first_out};
  auto call = std::make_unique<LibraryCall>(d.impl_info_str());
  call->AddOperand(DNNL_ARG_SRC, d.src_desc(), operand);
  call->AddPostOps(post_ops);
  call->Finish(dnnl::pooling_forward(d), d.dst_desc(), d.scratchpad_desc());
  return {std::move(call), post_ops.value};
}

absl::StatusOr<MadeAnchor> Make(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::Pool2d>();
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
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::Pool2d>(task); }
  Verdict Takes(const Task& task) const override {
    const DType t = task.body().type(task.anchor()->first_out).dtype();
    if (!Has(kFloatTypes, t))
      return Verdict::No(fmt::format("pooling has no kernel for {}", Name(t)));
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("pool");
  }
  std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                            const Settings& settings) const override {
    return BothLayouts(task, settings);
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    const ThreadScope scope(settings.threads);
    return MakeAnchorProgram(task, settings, Make);
  }
};

}  // namespace

const Kernel& PoolKernel() {
  static const Pool kKernel;
  return kKernel;
}

}  // namespace forge::cpu
