// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/norm/layer_norm_gradient.h"

#include <numeric>

#include "ir/op/define.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/norm/layer_norm.h"

namespace forge::ir {

absl::StatusOr<Types> LayerNormGradient::infer(TypeSpan in) const {
  const LayerNorm forward{.axis = axis, .statistics = true};
  const Type operands[] = {in[kX], in.size() > kGamma ? in[kGamma] : Type()};
  FORGE_ASSIGN_OR_RETURN(const Types y, forward.infer(operands));
  if (!MayEqual(y[1].shape(), in[kInverseDeviation].shape()))
    return InvalidArgument("the statistics are {}, inverse_deviation is {}", y[1].ToText(),
                           in[kInverseDeviation].ToText());
  Types out{Type::Tensor(in[kDy].dtype(), in[kDy].shape())};
  if (columns) {
    FORGE_ASSIGN_OR_RETURN(const int64_t first, NormalAxis(axis, in[kX].rank()));
    const Dims row(in[kX].shape().begin() + first, in[kX].shape().end());
    out.insert(out.end(), 2, Type::Tensor(WideOf(in[kDy].dtype()), row));
  }
  return out;
}

Values LayerNormGradient::decompose(Function& f, ValueSpan in) const {
  const Type type = in[kDy].type();
  const auto first = NormalAxis(axis, type.rank());
  if (!first.ok()) f.Fail(first.status());
  if (!f.status().ok()) return Values(columns ? 3 : 1, in[kDy]);
  const bool centred = in.size() > kMean && in[kMean];
  const Value x = Widened(in[kX]), dy = Widened(in[kDy]), r = in[kInverseDeviation];
  const Value z = (centred ? x - in[kMean] : x) * r;
  if (columns) {
    std::vector<int64_t> outer(static_cast<size_t>(*first));
    std::iota(outer.begin(), outer.end(), 0);
    const auto sum = [&](Value v) {
      if (outer.empty()) return v;
      return f(Reduce{.axes = outer, .keep_dims = false}, {v});
    };
    return {f.Add(LayerNormGradient{axis}, in)[0], sum(dy * z), sum(dy)};
  }
  const std::vector<int64_t> inner = AxesOfNorm(axis, type.rank());
  const auto average = [&](Value v) { return ReduceAxes(ReduceKind::kMean, v, inner); };
  const Value dz = in.size() > kGamma && in[kGamma] ? dy * Widened(in[kGamma]) : dy;
  const Value off = centred ? dz - average(dz) : dz;
  return {Narrowed(r * (off - z * average(dz * z)), type.dtype())};
}

Cases LayerNormGradient::cases() {
  using Op = LayerNormGradient;
  using Text = const std::string&;
  const auto at = [](const Op& op, Text dtype, Text x, Text row, Text gamma = "",
                     bool centred = true) {
    const std::string wide = dtype == "f64" ? "f64" : "f32";
    return Case{.op = op,
                .in = {dtype + x, dtype + x, wide + row + " in 0.5..2", centred ? wide + row : "",
                       gamma.empty() ? "" : dtype + gamma}};
  };
  Cases all = {at(Op{}, "f32", "[7,1000]", "[7,1]", "[1000]"),
               at(Op{}, "f32", "[7,1000]", "[7,1]", "[1000]", false),
               at(Op{.axis = 1}, "f32", "[3,5,7]", "[3,1,1]", "[7]"),
               at(Op{.axis = 0}, "f32", "[4,3]", "[1,1]", "[4,1]"),
               at(Op{}, "f32", "[4,1]", "[4,1]", "[1]"),
               at(Op{}, "f32", "[0,4]", "[0,1]", "[4]"),
               at(Op{}, "f32", "[3,0]", "[3,1]", "[0]"),
               at(Op{}, "f32", "[6,2600]", "[6,1]"),
               at(Op{.axis = 1, .columns = true}, "f32", "[40,5,7]", "[40,1,1]", "[5,7]"),
               at(Op{.axis = 0, .columns = true}, "f32", "[3,8]", "[1,1]", "", false),
               at(Op{.columns = true}, "f32", "[0,4]", "[0,1]", "[4]"),
               {Op{.axis = 2}, {"f32[2,3]", "f32[2,3]", "f32[2,1]"}, "axis 2 is outside rank 2"},
               {Op{}, {"f32[2,3]", "f32[2,3]", "f32[2,3]"}, "the statistics are f32[2, 1]"},
               {Op{}, {"f32[2,3]", "f32[2,3]", "f32[2,1]", "", "f32[4]"}, "does not broadcast"}};
  for (const char* dtype : {"f16", "bf16", "f32", "f64"}) {
    all.push_back(at(Op{}, dtype, "[2,3,8]", "[2,3,1]", "[8]"));
    all.push_back(at(Op{}, dtype, "[5,33]", "[5,1]", "", false));
    all.push_back(at(Op{.columns = true}, dtype, "[4,5,33]", "[4,5,1]", "[33]"));
  }
  all.push_back(at(Op{.columns = true}, "f32", "[4096,1024]", "[4096,1]", "[1024]"));
  all.back().bench = true;
  return all;
}

FORGE_DEFINE_OP(LayerNormGradient)

}  // namespace forge::ir
