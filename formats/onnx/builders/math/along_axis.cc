// SPDX-License-Identifier: Apache-2.0
// Operators that read an axis in order, or put it in order.
#include "formats/onnx/builders/families.h"
#include "ir/ops/reduction/arg_reduce.h"
#include "ir/ops/reduction/scan.h"
#include "ir/ops/sorting/top_k.h"

namespace forge::formats {
namespace {

// Appends an op with an attribute that operand 1 gives, which has one element.
ir::Values WithOperand(OnnxNode& n, auto op, int64_t& attribute, std::string_view field) {
  const std::optional<std::vector<int64_t>> given = n.ConstantInts(1);
  const ir::Function::RuntimeField runtime[] = {{field, n.in(1)}};
  if (!given) return n.fn().AddRuntimeValued(op, std::array{n.in(0)}, runtime);
  if (given->size() != 1) {
    n.Fail("its {} is {} numbers", field, given->size());
    return {};
  }
  attribute = given->front();
  return {};
}

ir::Values Cumulate(OnnxNode& n, ir::ScanKind kind) {
  ir::Scan op{.kind = kind, .exclusive = n.Flag("exclusive"), .reverse = n.Flag("reverse")};
  ir::Values out = WithOperand(n, op, op.axis, "axis");
  return out.empty() && n.status().ok() ? ir::Values{n.fn()(op, {n.in(0)})} : out;
}

ir::Values ArgReduce(OnnxNode& n, ir::ArgReduceKind kind) {
  return {n.fn()(ir::ArgReduce{.kind = kind,
                               .axis = n.Int("axis", 0),
                               .keep_dims = n.Flag("keepdims", true),
                               .select_last_index = n.since() >= 12 && n.Flag("select_last_index")},
                 {n.in(0)})};
}

ir::Values BuildCumSum(OnnxNode& n) { return Cumulate(n, ir::ScanKind::kSum); }
ir::Values BuildCumProd(OnnxNode& n) { return Cumulate(n, ir::ScanKind::kProd); }
ir::Values BuildArgMax(OnnxNode& n) { return ArgReduce(n, ir::ArgReduceKind::kMax); }
ir::Values BuildArgMin(OnnxNode& n) { return ArgReduce(n, ir::ArgReduceKind::kMin); }

ir::Values BuildTopK1(OnnxNode& n) {
  const ir::TopK op{.k = n.Int("k", 0), .axis = n.Int("axis", -1)};
  if (!n.Has("k")) n.Fail("it has no k");
  return n.fn().Add(op, std::array{n.in(0)});
}

// Results are sorted whether or not the model asks for it.
ir::Values BuildTopK10(OnnxNode& n) {
  ir::TopK op{.axis = n.Int("axis", -1), .largest = n.since() < 11 || n.Flag("largest", true)};
  if (n.since() >= 11) n.Ignore("sorted");
  ir::Values out = WithOperand(n, op, op.k, "k");
  return out.empty() && n.status().ok() ? n.fn().Add(op, std::array{n.in(0)}) : out;
}

constexpr OnnxOp kAlongAxisOps[] = {
    {"", "ArgMax", 1, 1, 1, BuildArgMax},    {"", "ArgMax", 12, 1, 1, BuildArgMax},
    {"", "ArgMin", 1, 1, 1, BuildArgMin},    {"", "ArgMin", 12, 1, 1, BuildArgMin},
    {"", "CumProd", 26, 2, 2, BuildCumProd}, {"", "CumSum", 11, 2, 2, BuildCumSum},
    {"", "TopK", 1, 1, 1, BuildTopK1},       {"", "TopK", 10, 2, 2, BuildTopK10},
    {"", "TopK", 11, 2, 2, BuildTopK10},
};

}  // namespace

std::span<const OnnxOp> AlongAxisOps() { return kAlongAxisOps; }

}  // namespace forge::formats
