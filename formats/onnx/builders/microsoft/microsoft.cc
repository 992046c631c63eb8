// SPDX-License-Identifier: Apache-2.0
// Operators of the domain com.microsoft, which onnxruntime puts into models that it optimises.
#include <array>
#include <limits>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/nn/window.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::formats {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

ir::Value TimesFactor(ir::Value x, double factor) { return factor == 1 ? x : x * factor; }

ir::Values BuildFusedMatMul(OnnxNode& n) {
  for (const char* name : {"transBatchA", "transBatchB"})
    if (n.Flag(name)) n.Fail("attribute '{}' is not supported", name);
  const bool transpose_a = n.Flag("transA"), transpose_b = n.Flag("transB");
  const double alpha = n.Float("alpha", 1);
  // A vector has nothing to transpose.
  const ir::Value y = ProductOf(n, n.in(0), n.in(1), [&](ir::Value a, ir::Value b) {
    const ir::MatMul op{.transpose_a = transpose_a && n.type(0).rank() > 1,
                        .transpose_b = transpose_b && n.type(1).rank() > 1};
    return n.fn()(op, {a, b});
  });
  return {TimesFactor(y, alpha)};
}

ir::Value GeluOf(OnnxNode& n, bool tanh_form) {
  const ir::Value x = n.HasInput(1) ? n.in(0) + n.in(1) : n.in(0);
  return n.fn()(ir::Gelu{.tanh_form = tanh_form}, {x});
}

ir::Values BuildExactGelu(OnnxNode& n) { return {GeluOf(n, false)}; }
ir::Values BuildFastGelu(OnnxNode& n) { return {GeluOf(n, true)}; }

ir::Values BuildQuickGelu(OnnxNode& n) {
  constexpr float kAlpha = 1.702f;
  const ir::Value x = ir::Widened(n.in(0));
  const ir::Value y = x * n.fn()(ir::Sigmoid{}, {x * n.Float("alpha", kAlpha)});
  return {ir::Narrowed(y, n.type(0).dtype())};
}

ir::Values BuildSimplifiedLayerNormalization(OnnxNode& n) {
  if (n.Int("stash_type", 1) != 1) n.Fail("only f32 statistics are supported");
  if (n.HasOutput(1)) n.Fail("its statistics are not supported");
  const ir::LayerNorm op{
      .axis = n.Int("axis", -1), .epsilon = n.Float("epsilon", 1e-5f), .subtract_mean = false};
  return n.fn().Add(op, std::array{n.in(0), n.in(1)});
}

// The norm of x + skip + bias, and that sum as output 3. Operand `bias` may be absent.
ir::Values SkipNorm(OnnxNode& n, bool subtract_mean, size_t beta, size_t bias) {
  if (n.HasOutput(1) || n.HasOutput(2)) n.Fail("its statistics are not supported");
  const ir::LayerNorm op{
      .axis = -1, .epsilon = n.Float("epsilon", 1e-12f), .subtract_mean = subtract_mean};
  ir::Value sum = ir::Widened(n.in(0)) + ir::Widened(n.in(1));
  if (n.HasInput(bias)) sum = sum + ir::Widened(n.in(bias));
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  const ir::Value x = ir::Narrowed(sum, n.type(0).dtype());
  std::vector<ir::Value> in = {x, n.in(2)};
  if (subtract_mean) in.push_back(n.in(beta));
  return {n.fn().Add(op, in)[0], {}, {}, x};
}

ir::Values BuildSkipLayerNormalization(OnnxNode& n) { return SkipNorm(n, true, 3, 4); }
ir::Values BuildSkipSimplifiedLayerNormalization(OnnxNode& n) { return SkipNorm(n, false, 4, 3); }

// Weights [n, blocks, bytes] of `bits` bits, low bits first, as [n, k] in f32.
ir::Value UnpackedWeights(OnnxNode& n, ir::Value packed, int64_t bits, ir::Dims shape) {
  ir::Values parts;
  const ir::Dims stored = packed.type().shape();
  ir::Dims apart = stored;
  apart.push_back(1);
  const auto number = [&](double v) {
    return n.MakeConstant(ir::HostValue::Scalar(DType::kU8, v));
  };
  for (int64_t shift = 0; shift < 8; shift += bits) {
    ir::Value v = n.fn()(ir::ShiftRight{}, {packed, number(static_cast<double>(shift))});
    if (bits < 8) v = n.fn()(ir::And{}, {v, number(static_cast<double>((int64_t{1} << bits) - 1))});
    parts.push_back(ReshapedTo(n, v, apart));
  }
  const auto last = static_cast<int64_t>(stored.size());
  const ir::Value all = parts.size() == 1 ? parts[0] : Joined(n, parts, last);
  return Converted(n, ReshapedTo(n, all, std::move(shape)), DType::kF32);
}

// a times the transpose of b, which has blocks of `block` weights with a scale and a zero point.
ir::Values BuildMatMulNBits(OnnxNode& n) {
  const int64_t k = n.Int("K", 0), rows = n.Int("N", 0), bits = n.Int("bits", 4);
  const int64_t block = n.Int("block_size", 0);
  n.Ignore("accuracy_level");  // a hint
  if (bits != 2 && bits != 4 && bits != 8) n.Fail("weights of {} bits are not supported", bits);
  if (k < 1 || rows < 1 || block < 16 || block > (1 << 20))
    n.Fail("K {}, N {}, block_size {}", k, rows, block);
  if (n.HasInput(4)) n.Fail("g_idx is not supported");
  if (!n.status().ok() || !HasRank(n, 1, 3, 3)) return {};
  const int64_t blocks = (k + block - 1) / block, bytes = block * bits / 8;
  if (!(n.type(1).shape() == ir::Dims{rows, blocks, bytes}) || n.type(1).dtype() != DType::kU8) {
    n.Fail("the weights are {}, not u8[{}, {}, {}]", n.type(1).ToText(), rows, blocks, bytes);
    return {};
  }
  const ir::Value weights = UnpackedWeights(n, n.in(1), bits, {rows, blocks, block});
  const ir::Value scale = ReshapedTo(n, Converted(n, n.in(2), DType::kF32), {rows, blocks, 1});
  ir::Value shifted;
  if (!n.HasInput(3)) {
    shifted = weights - static_cast<double>(int64_t{1} << (bits - 1));
  } else if (n.type(3).dtype() == DType::kU8) {
    const int64_t each = (blocks * bits + 7) / 8;
    const ir::Value packed = ReshapedTo(n, n.in(3), {rows, each});
    const ir::Value zero = UnpackedWeights(n, packed, bits, {rows, each * 8 / bits});
    shifted = weights - ReshapedTo(n, Part(n, zero, 1, 0, blocks), {rows, blocks, 1});
  } else {
    shifted = weights - ReshapedTo(n, Converted(n, n.in(3), DType::kF32), {rows, blocks, 1});
  }
  const ir::Value whole = ReshapedTo(n, shifted * scale, {rows, blocks * block});
  const DType dtype = n.type(0).dtype();
  const ir::Value b = Converted(n, Part(n, whole, 1, 0, k), dtype);
  ir::Value y = n.fn()(ir::MatMul{.transpose_b = true}, {n.in(0), b});
  if (n.HasInput(5)) y = y + n.in(5);
  return {y};
}

// ---- convolutions ------------------------------------------------------------------------------

// The activation that attribute `activation` names.
ir::Value Activated(OnnxNode& n, ir::Value x) {
  const std::string kind = n.String("activation", "");
  const std::vector<double> given = n.Floats("activation_params");
  const auto parameter = [&](size_t i, double fallback) {
    return i < given.size() ? given[i] : fallback;
  };
  if (kind.empty()) return x;
  if (kind == "Relu") return n.fn()(ir::Relu{}, {x});
  if (kind == "Tanh") return ir::tanh(x);
  if (kind == "Sigmoid") return n.fn()(ir::Sigmoid{}, {x});
  if (kind == "LeakyRelu") return n.fn()(ir::LeakyRelu{.slope = parameter(0, 0.01)}, {x});
  if (kind == "Clip") return ir::min(ir::max(x, parameter(0, -kInfinite)), parameter(1, kInfinite));
  if (kind == "HardSigmoid")
    return ir::min(ir::max(x * parameter(0, 0.2) + parameter(1, 0.5), 0.0), 1.0);
  n.Fail("the activation {} is not supported", kind);
  return x;
}

ir::Values BuildFusedConv(OnnxNode& n) {
  const std::optional<PlacedConv> conv = ReadConv(n, 1);
  if (!conv) return {};
  ir::Value y = n.fn().Add(conv->op, std::array{conv->padded(n.in(0)), n.in(1), n.in(2)})[0];
  if (n.HasInput(3)) y = y + n.in(3);
  return {Activated(n, y)};
}

// The weights have their channels second as those of any convolution.
ir::Values BuildNhwcConv(OnnxNode& n) {
  const std::optional<PlacedConv> conv = ReadConv(n, 1, ChannelAxis::kLast);
  if (!conv) return {};
  const ir::Value x = conv->padded(ChannelsFirst(n, n.in(0)));
  const ir::Value y = n.fn().Add(conv->op, std::array{x, n.in(1), n.in(2)})[0];
  if (!n.fn().status().ok()) return {};
  return {ChannelsLast(n, y)};
}

// ---- embeddings --------------------------------------------------------------------------------

// The norm of the sum of each token's rows of two or three tables.
ir::Values BuildEmbedLayerNormalization(OnnxNode& n) {
  const ir::LayerNorm norm{.axis = -1, .epsilon = n.Float("epsilon", 1e-12f)};
  const int64_t mask_type = n.Int("mask_index_type", n.HasInput(7) ? 1 : 0);
  for (const size_t i : {2u, 3u, 5u, 6u})
    if (!n.HasInput(i)) n.Fail("input {} is not given", i);
  if (n.HasInput(4) && !n.HasInput(1)) n.Fail("input 1 is not given");
  if (!n.status().ok() || !HasRank(n, 0, 2, 2) || !HasRank(n, 3, 2, 2)) return {};
  const auto rows = [&](size_t table, ir::Value ids) {
    return n.fn()(ir::Gather{.axis = 0}, {n.in(table), ids});
  };
  const ir::Dims ids = n.type(0).shape();
  const ir::Value positions = n.HasInput(8) ? rows(3, n.in(8)) : Part(n, n.in(3), 0, 0, ids[1]);
  ir::Value sum = rows(2, n.in(0)) + positions;
  if (n.HasInput(4)) sum = sum + rows(4, n.in(1));
  const ir::Value y = n.fn().Add(norm, std::array{sum, n.in(5), n.in(6)})[0];
  ir::Value lengths;  // of the sequences
  if (n.HasOutput(1) && n.HasInput(7) && mask_type == 1)
    lengths =
        n.fn()(ir::Reduce{.axes = {1}, .keep_dims = false}, {Converted(n, n.in(7), DType::kI32)});
  else if (n.HasOutput(1))
    lengths = Zeros(n, DType::kI32, {ids[0]});
  return {y, lengths, n.HasOutput(2) ? sum : ir::Value()};
}

constexpr OnnxOp kMicrosoftOps[] = {
    {kMicrosoft, "BiasGelu", 1, 2, 2, BuildExactGelu},
    {kMicrosoft, "EmbedLayerNormalization", 1, 1, 9, BuildEmbedLayerNormalization},
    {kMicrosoft, "FastGelu", 1, 1, 2, BuildFastGelu},
    {kMicrosoft, "FusedConv", 1, 2, 4, BuildFusedConv},
    {kMicrosoft, "FusedMatMul", 1, 2, 2, BuildFusedMatMul},
    {kMicrosoft, "Gelu", 1, 1, 1, BuildExactGelu},
    {kMicrosoft, "MatMulNBits", 1, 3, 6, BuildMatMulNBits},
    {kMicrosoft, "NhwcConv", 1, 2, 3, BuildNhwcConv},
    {kMicrosoft, "QuickGelu", 1, 1, 1, BuildQuickGelu},
    // onnxruntime has it in the standard's domain.
    {"", "SimplifiedLayerNormalization", 1, 2, 2, BuildSimplifiedLayerNormalization},
    {kMicrosoft, "SkipLayerNormalization", 1, 3, 5, BuildSkipLayerNormalization},
    {kMicrosoft, "SkipSimplifiedLayerNormalization", 1, 3, 4,
     BuildSkipSimplifiedLayerNormalization},
};

}  // namespace

std::span<const OnnxOp> MicrosoftOps() { return kMicrosoftOps; }

}  // namespace forge::formats
