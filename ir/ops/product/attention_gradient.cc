// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/product/attention_gradient.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/product/attention_parts.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {

absl::StatusOr<Types> AttentionGradient::infer(TypeSpan in) const {
  const Type mask = in.size() > kMask ? in[kMask] : Type();
  const Type operands[] = {in[kQ], in[kK], in[kV], mask};
  FORGE_ASSIGN_OR_RETURN(const Types y, forward().infer(operands));
  if (!MayEqual(in[kDy].shape(), y[0].shape()))
    return InvalidArgument("attention gives {}, dy is {}", y[0].ToText(), in[kDy].ToText());
  Types out;
  for (const Operand o : {kQ, kK, kV}) out.push_back(Type::Tensor(in[o].dtype(), in[o].shape()));
  return out;
}

Values AttentionGradientParts(const AttentionGradient& op, ValueSpan in) {
  using enum AttentionGradient::Operand;
  Function& f = *in[kQ].fn;
  const Attention forward = op.forward();
  const Value q = Widened(in[kQ]), k = Widened(in[kK]), v = Widened(in[kV]), dy = Widened(in[kDy]);
  const Value scores = ScoresBeforeMasks(forward, q, k);
  const Value p =
      exp(Masked(forward, scores, in.size() > kMask ? in[kMask] : Value{}) - in[kLogSum]);
  const Value of_masked = p * (f(MatMul{.transpose_b = true}, {dy, v}) - in[kDelta]);
  Value of_products = of_masked * ScaleOfScores(forward, q.type().shape().back());
  if (op.softcap != 0) {
    const Value t = scores / op.softcap;
    of_products = of_products * (1.0 - t * t);
  }
  return {f(MatMul{}, {of_products, k}), f(MatMul{.transpose_a = true}, {of_products, q}),
          f(MatMul{.transpose_a = true}, {p, dy}), of_masked};
}

Values AttentionGradient::decompose(Function& f, ValueSpan in) const {
  Values d = AttentionGradientParts(*this, in);
  if (!f.status().ok()) return d;
  d.resize(3);
  for (size_t i = 0; i < d.size(); ++i)
    d[i] = Narrowed(SumTo(d[i], in[i].type().shape()), in[i].type().dtype());
  return d;
}

Cases AttentionGradient::cases() {
  // Of rows, keys and elements as in these operands. Most scores are less than the sums.
  using Text = const std::string&;
  const auto at = [](const AttentionGradient& op, Text dtype, Text q, Text k, Text v,
                     Text mask = "", bool bench = false) {
    const auto last = [](Text shape) { return shape.substr(shape.rfind(',') + 1); };
    const std::string rows = q.substr(0, q.rfind(',') + 1), wide = dtype == "f64" ? "f64" : "f32";
    const auto tensor = [](Text type, Text shape) { return type + "[" + shape + "]"; };
    return Case{.op = op,
                .in = {tensor(dtype, q), tensor(dtype, k), tensor(dtype, v),
                       tensor(wide, rows + "1") + " in 12..14", tensor(dtype, rows + last(v)),
                       tensor(wide, rows + "1"), mask},
                .bench = bench};
  };
  using A = AttentionGradient;
  return {at(A{}, "f32", "2,3,8", "2,5,8", "2,5,4"),
          at(A{}, "f64", "2,3,8", "2,5,8", "2,5,4"),
          at(A{.scale = 0.2}, "f16", "2,3,8", "2,5,8", "2,5,4"),
          at(A{.scale = 0.2}, "bf16", "2,3,8", "2,5,8", "2,5,4", "bool[5]"),
          at(A{.scale = 0.3}, "f32", "5,16", "7,16", "7,16", "f32[5,7]"),
          at(A{}, "f32", "1,33,32", "1,130,32", "1,130,32"),
          at(A{}, "f32", "2,140,64", "2,300,64", "2,300,64"),
          at(A{.causal = Causal::kTopLeft}, "f32", "1,150,20", "1,270,20", "1,270,36"),
          at(A{}, "f32", "2,4,6,8", "2,1,9,8", "2,1,9,8", "bool[2,1,1,9]"),
          at(A{.scale = 0.5}, "f32", "3,2,40,3", "2,50,3", "2,50,5", "f32[2,40,1]"),
          at(A{.softcap = 3}, "f32", "2,20,130", "2,40,130", "2,40,128", "bool[1,40]"),
          at(A{.softcap = 0.5, .causal = Causal::kBottomRight, .window_left = 20}, "f32", "2,90,8",
             "2,90,8", "2,90,4"),
          at(A{.window_left = 3, .window_right = 2}, "f32", "40,8", "40,8", "40,4"),
          at(A{.scale = 1}, "f32", "2,3,0", "2,5,0", "2,5,4"),
          at(A{}, "f32", "2,3,4", "2,5,4", "2,5,0"),
          at(A{}, "f32", "0,3,8", "0,5,8", "0,5,8"),
          at(A{}, "f32", "0,3,8", "1,5,8", "1,5,8"),
          at(A{}, "f32", "3,4", "0,4", "0,2"),
          at(A{}, "f32", "8,1024,64", "8,1024,64", "8,1024,64", "", true),
          {A{},
           {"f32[3,8]", "f32[5,8]", "f32[5,4]", "f32[3,1]", "f32[3,5]", "f32[3,1]"},
           "w should be 4, got 5"},
          {A{},
           {"f32[3,8]", "f32[2,5,8]", "f32[2,5,4]", "f32[3,1]", "f32[3,4]", "f32[3,1]"},
           "attention gives f32[2, 3, 4]"},
          {A{},
           {"f16[3,8]", "f16[5,8]", "f16[5,4]", "f16[3,1]", "f16[3,4]", "f32[3,1]"},
           "expected f32 like q"}};
}

FORGE_DEFINE_OP(AttentionGradient)

}  // namespace forge::ir
