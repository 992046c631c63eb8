// SPDX-License-Identifier: Apache-2.0
#include "ir/training/mixed_precision.h"

#include <algorithm>

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/conv_transpose.h"
#include "ir/training/alternatives.h"
#include "ir/type/host_value.h"

namespace forge::ir {
namespace {

constexpr double kFirstScale = 65536, kGrowth = 2, kBackoff = 0.5, kInterval = 2000;

struct Precision {
  std::string_view name;
  DType dtype;
};
constexpr Precision kPrecisions[] = {
    {"exact", DType::kF32}, {"f16", DType::kF16}, {"bf16", DType::kBF16}};

bool IsProduct(const AnyOp& op) {
  return op.Is<MatMul>() || op.Is<Conv>() || op.Is<ConvTranspose>();
}

bool IsF32(const Value& v) { return !v || v.type().dtype() == DType::kF32; }

Variable* ScalarState(Module& m, std::string name, double initial) {
  const HostValue value = HostValue::Scalar(DType::kF32, initial);
  return m.AddVariable({.name = std::move(name),
                        .role = Variable::Role::kState,
                        .type = value.type(),
                        .init = Variable::Storage{value.shared_bytes(), value.type(), {}}});
}

}  // namespace

absl::StatusOr<DType> ParsePrecision(std::string_view name) {
  for (const Precision& p : kPrecisions)
    if (p.name == name) return p.dtype;
  return InvalidArgument("precision '{}' is not {}", name,
                         Alternatives(kPrecisions, &Precision::name));
}

void CopyAtPrecision(const Node& node, DType precision, Copier& copy, Function& out) {
  Values in = copy.OperandsOf(node);
  if (precision == DType::kF32 || !IsProduct(node.op) || !std::ranges::all_of(in, IsF32)) {
    copy.CopyNode(node);
    return;
  }
  const Function::Scope scope(out, node.from);
  for (Value& v : in)
    if (v) v = out(Cast{precision}, {v});
  const Values made = out.Add(node.op, in);
  for (uint32_t k = 0; k < node.outs; ++k)
    copy.Map(node.first_out + k, out(Cast{DType::kF32}, {made[k]}));
}

LossScale::LossScale(Module& m)
    : scale_(ScalarState(m, "loss_scale", kFirstScale)),
      steps_(ScalarState(m, "loss_scale.steps", 0)) {}

void LossScale::Update(Function& f, Value finite) const {
  const Value scale = f.Read(scale_), steps = f.Read(steps_) + 1.0;
  const Value waits = steps < kInterval;
  f.Store(scale_, select(finite, select(waits, scale, scale * kGrowth), scale * kBackoff));
  f.Store(steps_, select(finite, select(waits, steps, 0.0), 0.0));
}

}  // namespace forge::ir
