// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/precision.h"

#include "ir/op/signature.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/passes/passes.h"

namespace forge::ir {
namespace {

bool IsF32(const Value& v) { return v && v.type().dtype() == DType::kF32; }

// Whether the signature demands that operand `i` has the type of the first one. A mask does not.
bool IsFactor(const AnyOp& op, size_t i) {
  const Signature& s = SignatureOf(op.def());
  return &s.input(i) == &s.input(0) || !s.input(i).like.empty();
}

}  // namespace

void CopyAtPrecision(const Node& node, DType precision, Copier& copy, Function& out) {
  Values in = copy.OperandsOf(node);
  if (precision == DType::kF32 || !node.op.def().info.product || !IsF32(in[0]) ||
      !node.runtime_attributes.empty()) {
    copy.CopyNode(node);
    return;
  }
  const Function::Scope scope(out, node.from);
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] && IsFactor(node.op, i)) in[i] = out(Cast{precision}, {in[i]});
  const Values made = out.Add(node.op, in);
  for (uint32_t k = 0; k < node.outs; ++k)
    copy.Map(node.first_out + k, IsF32(made[k]) ? made[k] : out(Cast{DType::kF32}, {made[k]}));
}

absl::Status RoundProducts(const Function& in, Function& out, DType precision) {
  Copier copy(in, out);
  copy.CopyArguments();
  for (const Node& node : in.nodes()) CopyAtPrecision(node, precision, copy, out);
  return copy.Finish();
}

}  // namespace forge::ir
