// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/sorting/sort.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/movement/gather.h"

namespace forge::ir {
namespace {

// Ascending, NaN last.
template <class T>
bool IsBefore(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);
  return a < b;
}

template <class T>
void EvaluateAs(const Sort& op, std::span<const T> x, int64_t axis, Eval& e) {
  if (x.empty()) return;
  for (const Lane& lane : Lanes(e.in(0)->shape(), static_cast<int>(axis))) {
    const auto at = [&](int64_t i) { return x[static_cast<size_t>(lane[i])]; };
    std::vector<int64_t> order(static_cast<size_t>(lane.n));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      if (std::isnan(at(a)) && std::isnan(at(b))) return false;
      return op.descending ? IsBefore(at(b), at(a)) : IsBefore(at(a), at(b));
    });
    for (int64_t i = 0; i < lane.n; ++i) {
      const int64_t from = order[static_cast<size_t>(i)];
      e.out(0).SetNumber(lane[i], e.in(0)->number(lane[from]));
      e.out(1).SetI64(lane[i], from);
    }
  }
}

}  // namespace

absl::StatusOr<Types> Sort::infer(TypeSpan in) const {
  FORGE_RETURN_IF_ERROR(NormalAxis(axis, in[0].rank()).status());
  return Types{in[0], Type::Tensor(DType::kI64, in[0].shape())};
}

// Sorting the index finds where each element went.
Values Sort::gradient(const GradArgs& g) const {
  if (!g.dout[0]) return {Value{}};
  const Value went = g.fn.Add(Sort{.axis = axis}, std::array{g.out[1]})[1];
  return {g.fn(GatherElements{.axis = axis}, {g.dout[0], went})};
}

absl::Status Sort::evaluate(Eval& e) const {
  const HostValue& x = *e.in(0);
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, x.rank()));
  if (Has(kFloatTypes, x.dtype())) {
    EvaluateAs<double>(*this, Doubles(x), along, e);
    return absl::OkStatus();
  }
  const std::vector<int64_t> bits = Integers(x);
  if (Has(kUnsignedTypes, x.dtype()))
    EvaluateAs<uint64_t>(*this, std::vector<uint64_t>(bits.begin(), bits.end()), along, e);
  else
    EvaluateAs<int64_t>(*this, bits, along, e);
  return absl::OkStatus();
}

Cost Sort::cost(TypeSpan in) const { return {.flops = in[0].elements() * 16, .terms = 0}; }

Cases Sort::cases() {
  return {{Sort{}, {"ordered[3,7] in -2..2"}},
          {Sort{.descending = true}, {"ordered[3,8] in -2..2"}},
          {Sort{.axis = 1}, {"ordered[2,9,5] in -4..4"}},
          {Sort{0, true}, {"ordered[33,2] in 0..9"}},
          {Sort{}, {"ordered[2,37] edges"}},
          {Sort{-1, true}, {"ordered[40] edges"}},
          {Sort{}, {"float[2,300]"}},
          {Sort{-1, true}, {"int[300] in -100..100"}},
          {Sort{}, {"bf16[2,3000] edges"}},
          {Sort{-1, true}, {"f64[2200]"}},
          {Sort{0, true}, {"f32[9000,2] in -3..3"}},
          {Sort{}, {"u64[20000] in 0..50"}},
          {Sort{-1, true}, {"f32[40000] in -3..3"}},
          {Sort{}, {"f32[5,1]"}},
          {Sort{}, {"f32[3,0]"}},
          {Sort{.axis = 1}, {"f32[0,4,2]"}},
          {Sort{.axis = -2}, {"f32[2,1,3]"}},
          {.op = Sort{}, .in = {"f32[1000,1000]"}, .bench = true},
          {.op = Sort{}, .in = {"f32[1048576]"}, .bench = true},
          {.op = Sort{}, .in = {"i64[1048576] in -1e18..1e18"}, .bench = true},
          {.op = Sort{0, true}, .in = {"f32[1000,1000]"}, .bench = true},
          {Sort{.axis = 2}, {"f32[2,3]"}, "axis 2 is outside rank 2"},
          {Sort{}, {"f32[]"}, "axis -1 is outside rank 0"},
          {Sort{}, {"c64[2,3]"}, "x"}};
}

FORGE_DEFINE_OP(Sort)

}  // namespace forge::ir
