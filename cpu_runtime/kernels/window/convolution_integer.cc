// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers: the product of the weights with a matrix whose columns are the
// windows, read from the image as they are packed.
#include "cpu_runtime/kernels/axis/rows_along.h"
#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/kernels/product/byte_products.h"
#include "ir/ops/spatial/conv_integer.h"
#include "ir/ops/spatial/window.h"

namespace forge::cpu {
namespace {

// Where the elements of a volume lie behind its first one, in row-major order, with so many
// elements between them along each axis.
std::vector<int64_t> PlacesOf(const ir::PerAxis<int64_t>& extent,
                              const ir::PerAxis<int64_t>& step) {
  std::vector<int64_t> places(static_cast<size_t>(ir::PlacesOf(extent)));
  for (size_t i = 0; i < places.size(); ++i) {
    const ir::PerAxis<int64_t> at = ir::PlaceIn(extent, static_cast<int64_t>(i));
    for (size_t a = 0; a < at.size(); ++a) places[i] += at[a] * step[a];
  }
  return places;
}

// Weights and results of a channel are one row each.
bool HasRows(const View& v) {
  View rows = v;
  rows.shape.erase(rows.shape.begin());
  rows.strides.erase(rows.strides.begin());
  return IsRowMajor(rows);
}

absl::StatusOr<MadeAnchor> MakeConvolutionInteger(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const auto& op = *node.op.As<ir::ConvInteger>();
  const uint32_t x_operand = *site.task.OperandOf(node.in[0]);
  const uint32_t w_operand = *site.task.OperandOf(node.in[1]);
  const View &x = site.operands[x_operand], &w = site.operands[w_operand], &y = site.out;
  if (!HasRows(w) || !HasRows(y))
    return Unimplemented("conv_integer does not support permuted axes");
  const ir::PerAxis<ir::WindowAxis> window =
      ir::InVolume(ir::WindowOver(op.unpadded(), x.shape.size()));
  ir::PerAxis<int64_t> taps = ir::VolumeOf(x.strides), windows = taps;
  for (size_t a = 0; a < window.size(); ++a) {
    taps[a] *= window[a].dilation;
    windows[a] *= window[a].stride;
  }
  ByteProducts p{.kernel = "conv_bytes",
                 .rows = y.shape[1] / op.groups,
                 .columns = ir::PlacesOf(ir::VolumeOf(y.shape)),
                 .a = {w.dtype, nullptr, w.strides[0], 1},
                 .b = x.dtype,
                 .b_columns = PlacesOf(ir::VolumeOf(y.shape), windows),
                 .y_row_stride = y.strides[1],
                 .y_column_stride = 1,
                 .a_operand = w_operand,
                 .b_operand = x_operand,
                 .threads = site.settings.threads};
  const std::vector<int64_t> of_channel = PlacesOf(ir::VolumeOf(w.shape), taps);
  for (int64_t c = 0; c < w.shape[1]; ++c)
    for (const int64_t tap : of_channel) p.b_rows.push_back(c * x.strides[1] + tap);
  for (int64_t n = 0; n < y.shape[0]; ++n)
    for (int64_t g = 0; g < op.groups; ++g)
      p.matrices.push_back({g * p.rows * w.strides[0],
                            n * x.strides[0] + g * w.shape[1] * x.strides[1],
                            n * y.strides[0] + g * p.rows * y.strides[1]});
  return MadeAnchor{MakeByteProducts(std::move(p)), node.first_out};
}

class ConvolutionInteger final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::ConvInteger>(task); }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    // A product of one row: f32 sums so few terms exactly, and faster.
    if (task.body().type(task.anchor()->in[1]).shape()[1] == ir::Dim(1))
      return Verdict::No("conv_bytes multiplies more than one channel with each window");
    return Verdict::Yes("conv_bytes");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeConvolutionInteger);
  }
};

}  // namespace

const Kernel& ConvolutionIntegerKernel() {
  static const ConvolutionInteger kKernel;
  return kKernel;
}

}  // namespace forge::cpu
