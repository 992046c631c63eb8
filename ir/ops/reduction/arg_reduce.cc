// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/reduction/arg_reduce.h"

#include <cmath>

#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"

namespace forge::ir {
namespace {

// Is `x` to be chosen, which comes after `best`?
template <class T>
bool IsBetter(const ArgReduce& op, T x, T best) {
  const bool both = std::isnan(x) && std::isnan(best);
  if (both || x == best) return op.select_last_index;
  if (std::isnan(x) || std::isnan(best)) return std::isnan(x);
  return op.kind == ArgReduceKind::kMax ? x > best : x < best;
}

template <class T>
void EvaluateAs(const ArgReduce& op, std::span<const T> x, std::span<const Lane> lanes,
                HostValue& y) {
  for (size_t l = 0; l < lanes.size(); ++l) {
    const Lane& lane = lanes[l];
    int64_t best = 0;
    for (int64_t i = 1; i < lane.n; ++i)
      if (IsBetter(op, x[static_cast<size_t>(lane[i])], x[static_cast<size_t>(lane[best])]))
        best = i;
    y.SetI64(static_cast<int64_t>(l), best);
  }
}

}  // namespace

absl::StatusOr<Types> ArgReduce::infer(TypeSpan in) const {
  const Dims& x = in[0].shape();
  if (all) {
    if (in[0].elements().max() == 0) return InvalidArgument("no element of {}", in[0].ToText());
    return Types{Type::Tensor(DType::kI64, keep_dims ? Dims(x.size(), Dim(1)) : Dims())};
  }
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, in[0].rank()));
  Dims shape = x;
  if (shape[static_cast<size_t>(along)].max() == 0)
    return InvalidArgument("axis {} of {} has no element", along, in[0].ToText());
  if (keep_dims)
    shape[static_cast<size_t>(along)] = 1;
  else
    shape.erase(shape.begin() + along);
  return Types{Type::Tensor(DType::kI64, std::move(shape))};
}

absl::Status ArgReduce::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  if (x.elements() == 0 && e.out(0).elements() == 0) return absl::OkStatus();
  std::vector<Lane> lanes = {{0, 1, x.elements()}};
  if (!all) {
    FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, x.rank()));
    lanes = Lanes(x.shape(), static_cast<int>(along));
  }
  if (Has(kFloatTypes, x.dtype())) {
    EvaluateAs<double>(*this, Doubles(x), lanes, e.out(0));
    return absl::OkStatus();
  }
  const std::vector<int64_t> bits = Integers(x);
  if (Has(kUnsignedTypes, x.dtype()))
    EvaluateAs<uint64_t>(*this, std::vector<uint64_t>(bits.begin(), bits.end()), lanes, e.out(0));
  else
    EvaluateAs<int64_t>(*this, bits, lanes, e.out(0));
  return absl::OkStatus();
}

Cost ArgReduce::cost(TypeSpan in) const { return {.flops = in[0].elements(), .terms = 0}; }

Cases ArgReduce::cases() {
  Cases cases;
  for (ArgReduceKind kind : {ArgReduceKind::kMax, ArgReduceKind::kMin}) {
    cases.push_back({ArgReduce{kind}, {"ordered[3,7] in -2..2"}});
    cases.push_back({ArgReduce{kind, 1, false, false}, {"ordered[5,3,4] in -4..4"}});
    cases.push_back({ArgReduce{kind, 0, false, true, true}, {"ordered[2,65,3] in -1..1"}});
    cases.push_back({ArgReduce{kind, -1, true}, {"float[4,1,9]"}});
    cases.push_back({ArgReduce{kind, -1, true, false, true}, {"ordered[3,5] in 0..1"}});
    cases.push_back({ArgReduce{kind, -1}, {"ordered[2,37] edges"}});
    cases.push_back({ArgReduce{kind, 0, false, true, true}, {"ordered[40] edges"}});
    cases.push_back({ArgReduce{kind, 1}, {"f32[3,700] in 0..1"}});
    cases.push_back({ArgReduce{kind, 0, false, false}, {"u32[9001,4] in 0..40"}});
    cases.push_back({ArgReduce{kind, 0}, {"f32[70001] in -40..40"}});
    cases.push_back({.op = ArgReduce{kind}, .in = {"f32[16777216]"}, .bench = true});
  }
  for (const int64_t axis : {0, 1})
    cases.push_back({.op = ArgReduce{.axis = axis}, .in = {"f32[4096,4096]"}, .bench = true});
  cases.push_back({ArgReduce{}, {"f32[2,50] in -inf..-inf"}});
  cases.push_back({ArgReduce{ArgReduceKind::kMin, 0, false, true, true}, {"f32[600] in inf..inf"}});
  cases.push_back({ArgReduce{.all = true, .keep_dims = false}, {"f32[]"}});
  cases.push_back({ArgReduce{.axis = -2}, {"float[2,1,3]"}});
  cases.push_back({ArgReduce{.axis = 1}, {"float[0,3]"}});
  cases.push_back({ArgReduce{.axis = 2}, {"f32[2,3]"}, "axis 2 is outside rank 2"});
  cases.push_back({ArgReduce{.axis = 0}, {"f32[0,3]"}, "axis 0 of f32[0, 3] has no element"});
  cases.push_back({ArgReduce{.all = true}, {"f32[2,0]"}, "no element of f32[2, 0]"});
  cases.push_back({ArgReduce{}, {"c64[2,3]"}, "x"});
  return cases;
}

FORGE_DEFINE_OP(ArgReduce)

}  // namespace forge::ir
