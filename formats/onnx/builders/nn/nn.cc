// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/op/axes.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/norm/batch_norm.h"
#include "ir/ops/norm/batch_norm_training.h"
#include "ir/ops/norm/group_norm.h"
#include "ir/ops/norm/instance_norm.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/einsum.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/log_softmax.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"

namespace forge::formats {
namespace {

// factor * x; x itself for 1.
ir::Value Scaled(OnnxNode& n, double factor, ir::Value x) {
  if (factor == 1) return x;
  return n.fn()(ir::Mul{}, {x, n.fn()(ir::Fill{factor, x.type().dtype(), {}}, {})});
}

ir::Value Reshaped(OnnxNode& n, ir::Value x, ir::Dims shape) {
  return n.fn()(ir::Reshape{std::move(shape)}, {x});
}

// `v` [groups], each element repeated for the channels of its group.
ir::Value PerChannel(OnnxNode& n, ir::Value v, const ir::Dim& channels) {
  if (v.type().rank() != 1) return v;  // refused by the norm
  const ir::Dim groups = v.type().shape()[0];
  const ir::Dim each = ir::FloorDiv(channels, ir::Max(groups, 1));
  const ir::Value column = Reshaped(n, v, {groups, 1});
  const ir::Value rows = n.fn()(ir::BroadcastTo{{groups, each}}, {column});
  return Reshaped(n, rows, {groups * each});
}

ir::LayerNorm NormOf(OnnxNode& n) {
  if (n.Int("stash_type", 1) != 1) n.Fail("only f32 statistics are supported");
  return {.axis = n.Int("axis", -1), .epsilon = n.Float("epsilon", 1e-5f)};
}

// Until version 13 of softmax and its like everything from the axis on was one row.
ir::Values OnRows(OnnxNode& n, absl::FunctionRef<ir::Value(ir::Value)> make) {
  const ir::Value x = n.in(0);
  if (!x.type().is_tensor()) {
    n.Fail("the rank of its operand is not known before the model runs");
    return {};
  }
  const absl::StatusOr<int64_t> axis = ir::NormalAxis(n.Int("axis", 1), x.type().rank());
  if (!axis.ok()) {
    n.Fail("{}", Message(axis.status()));
    return {};
  }
  if (*axis == x.type().rank() - 1) return {make(x)};
  const ir::Dims shape = x.type().shape();
  const std::span<const ir::Dim> all(shape);
  const auto at = static_cast<size_t>(*axis);
  const ir::Dims rows = {ir::Product(all.first(at)), ir::Product(all.subspan(at))};
  return {Reshaped(n, make(Reshaped(n, x, rows)), shape)};
}

// 1 at the first of the greatest elements along the axis, 0 elsewhere.
ir::Value FirstMaximum(OnnxNode& n, ir::Value x, int64_t axis) {
  if (!x.type().is_tensor()) n.Fail("the rank of its operand is not known before the model runs");
  if (!n.status().ok()) return x;
  const absl::StatusOr<int64_t> along = ir::NormalAxis(axis, x.type().rank());
  if (!along.ok()) n.Fail("{}", Message(along.status()));
  if (!along.ok()) return x;
  const ir::Dim extent = x.type().shape()[static_cast<size_t>(*along)];
  ir::Dims shape(static_cast<size_t>(x.type().rank()), 1);
  shape[static_cast<size_t>(*along)] = extent;
  const ir::Value order =
      Reshaped(n, n.fn()(ir::Iota{.dtype = DType::kI32, .count = extent}, {}), shape);
  const ir::Value top = ir::ReduceAxes(ir::ReduceKind::kMax, x, {*along});
  const ir::Value last = ir::ScalarOf(n.fn(), extent, DType::kI32);
  const ir::Value at = ir::select(n.fn()(ir::Equal{}, {x, top}), order, last);
  const ir::Value first = ir::ReduceAxes(ir::ReduceKind::kMin, at, {*along});
  return ir::convert(n.fn()(ir::Equal{}, {order, first}), x.type().dtype());
}

// In training the momentum is the share of the old statistics, and variances are biased.
ir::Values BuildBatchNormalization(OnnxNode& n) {
  const double momentum = n.Float("momentum", 0.9f), epsilon = n.Float("epsilon", 1e-5f);
  if (n.since() < 7 && !n.Flag("is_test")) n.Fail("is in training mode");
  if (n.since() < 9 && !n.Flag("spatial", true))
    n.Fail("statistics per position are not supported");
  const std::array in = {n.in(0), n.in(1), n.in(2), n.in(3), n.in(4)};
  if (n.since() < 14 || !n.Flag("training_mode"))
    return n.fn().Add(ir::BatchNorm{.axis = 1, .epsilon = epsilon}, in);
  return n.fn().Add(
      ir::BatchNormTraining{
          .axis = 1, .epsilon = epsilon, .momentum = 1 - momentum, .correction = 0},
      in);
}

ir::Values BuildInstanceNormalization(OnnxNode& n) {
  if (n.since() < 6) n.Ignore("consumed_inputs");
  const ir::InstanceNorm op{.epsilon = n.Float("epsilon", 1e-5f)};
  return {n.fn()(op, {n.in(0), n.in(1), n.in(2)})};
}

// Until version 21 gamma and beta had one element for each group.
ir::Values BuildGroupNormalization(OnnxNode& n) {
  if (n.since() >= 21 && n.Int("stash_type", 1) != 1) n.Fail("only f32 statistics are supported");
  if (!n.Has("num_groups")) n.Fail("has no num_groups");
  const ir::GroupNorm op{.groups = n.Int("num_groups", 1), .epsilon = n.Float("epsilon", 1e-5f)};
  ir::Value gamma = n.in(1), beta = n.in(2);
  if (n.since() < 21) {
    const ir::Type x = n.type(0);
    if (!x.is_tensor() || x.rank() < 2 || !gamma.type().is_tensor() || !beta.type().is_tensor()) {
      n.Fail("the rank of its operand is not known, or less than 2");
      return {n.in(0)};
    }
    gamma = PerChannel(n, gamma, x.shape()[1]);
    beta = PerChannel(n, beta, x.shape()[1]);
  }
  return {n.fn()(op, {n.in(0), gamma, beta})};
}

ir::Values BuildGemm(OnnxNode& n) {
  n.Ignore("broadcast");  // the bias broadcasts anyway; gone since opset 7
  const ir::MatMul op{.transpose_a = n.Flag("transA"), .transpose_b = n.Flag("transB")};
  const double alpha = n.Float("alpha", 1), beta = n.Float("beta", 1);
  for (size_t i : {size_t{0}, size_t{1}})
    if (n.type(i).is_tensor() && n.type(i).rank() != 2)
      n.Fail("{} is not a matrix", n.type(i).ToText());
  const ir::Value product = Scaled(n, alpha, n.fn()(op, {n.in(0), n.in(1)}));
  if (!n.HasInput(2) || beta == 0) return {product};
  return {n.fn()(ir::Add{}, {product, Scaled(n, beta, n.in(2))})};
}

ir::Values BuildRmsNormalization(OnnxNode& n) {
  ir::LayerNorm op = NormOf(n);
  op.subtract_mean = false;
  return n.fn().Add(op, std::array{n.in(0), n.in(1)});
}

ir::Values BuildLayerNormalization(OnnxNode& n) {
  ir::LayerNorm op = NormOf(n);
  op.statistics = n.HasOutput(1) || n.HasOutput(2);
  return n.fn().Add(op, std::array{n.in(0), n.in(1), n.in(2)});
}

// As numpy.matmul: a vector on the left is a row, on the right a column, and the result lacks it.
ir::Values BuildMatMul(OnnxNode& n) {
  return {ProductOf(n, n.in(0), n.in(1), [&](ir::Value a, ir::Value b) {
    const bool integers = Has(kIntTypes, a.type().dtype());
    const ir::AnyOp op = integers ? ir::AnyOp(ir::Einsum{"...ij,...jk->...ik"}) : ir::MatMul{};
    return n.fn()(op, {a, b});
  })};
}

ir::Values BuildSoftmax1(OnnxNode& n) {
  return OnRows(n, [&](ir::Value x) { return n.fn()(ir::Softmax{.axis = -1}, {x}); });
}
ir::Values BuildSoftmax13(OnnxNode& n) {
  return {n.fn()(ir::Softmax{.axis = n.Int("axis", -1)}, {n.in(0)})};
}

ir::Values BuildLogSoftmax1(OnnxNode& n) {
  return OnRows(n, [&](ir::Value x) { return n.fn()(ir::LogSoftmax{.axis = -1}, {x}); });
}
ir::Values BuildLogSoftmax13(OnnxNode& n) {
  return {n.fn()(ir::LogSoftmax{.axis = n.Int("axis", -1)}, {n.in(0)})};
}

ir::Values BuildHardmax1(OnnxNode& n) {
  return OnRows(n, [&](ir::Value x) { return FirstMaximum(n, x, -1); });
}
ir::Values BuildHardmax13(OnnxNode& n) { return {FirstMaximum(n, n.in(0), n.Int("axis", -1))}; }

ir::Values BuildEinsum(OnnxNode& n) {
  ir::Values in;
  for (size_t i = 0; i < n.inputs(); ++i) in.push_back(n.in(i));
  return n.fn().Add(ir::Einsum{n.String("equation", "")}, in);
}

constexpr OnnxOp kNnOps[] = {
    {"", "BatchNormalization", 1, 5, 5, BuildBatchNormalization},
    {"", "BatchNormalization", 7, 5, 5, BuildBatchNormalization},
    {"", "BatchNormalization", 9, 5, 5, BuildBatchNormalization},
    {"", "BatchNormalization", 14, 5, 5, BuildBatchNormalization},
    {"", "Einsum", 12, 1, kAnyNumber, BuildEinsum},
    {"", "Gemm", 1, 3, 3, BuildGemm},
    {"", "Gemm", 11, 2, 3, BuildGemm},
    {"", "GroupNormalization", 18, 3, 3, BuildGroupNormalization},
    {"", "GroupNormalization", 21, 3, 3, BuildGroupNormalization},
    {"", "Hardmax", 1, 1, 1, BuildHardmax1},
    {"", "Hardmax", 13, 1, 1, BuildHardmax13},
    {"", "InstanceNormalization", 1, 3, 3, BuildInstanceNormalization},
    {"", "InstanceNormalization", 6, 3, 3, BuildInstanceNormalization},
    {"", "LayerNormalization", 17, 2, 3, BuildLayerNormalization},
    {"", "LogSoftmax", 1, 1, 1, BuildLogSoftmax1},
    {"", "LogSoftmax", 13, 1, 1, BuildLogSoftmax13},
    {"", "MatMul", 1, 2, 2, BuildMatMul},
    {"", "RMSNormalization", 23, 2, 2, BuildRmsNormalization},
    {"", "Softmax", 1, 1, 1, BuildSoftmax1},
    {"", "Softmax", 13, 1, 1, BuildSoftmax13},
};

}  // namespace

std::span<const OnnxOp> NnOps() { return kNnOps; }

}  // namespace forge::formats
