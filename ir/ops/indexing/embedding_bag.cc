// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/indexing/embedding_bag.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/op/define.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/movement/broadcast_to.h"

namespace forge::ir {
namespace {

// The last of ascending offsets that is not after each of `count` positions: a binary search, whose
// steps are gathers.
Value BagsByOffsets(Value offsets, const Dim& count) {
  Function& f = *offsets.fn;
  const DType t = offsets.type().dtype();
  const Dim& bags = offsets.type().shape()[0];
  const Value position = Along(f, t, count, 0, 1);
  Value bag = f(Fill{0, t, {count}}, {});
  const int64_t last = std::max<int64_t>(bags.max() - 1, 0);
  for (int bit = std::bit_width(static_cast<uint64_t>(last)); bit-- > 0;) {
    const Value next = bag + std::ldexp(1.0, bit);
    const Value begins = f(Gather{.oob = OutOfBounds::kClamp}, {offsets, next});
    const Value before = f(And{}, {IsInside(next, bags), f(GreaterEqual{}, {position, begins})});
    bag = select(before, next, bag);
  }
  return bag;
}

Value BagsByRows(Value indices) {
  Function& f = *indices.fn;
  const Dims& shape = indices.type().shape();
  const Value rows = Along(f, indices.type().dtype(), shape[0], 0, 2);
  return f(Reshape{{indices.type().elements()}}, {f(BroadcastTo{shape}, {rows})});
}

absl::Status CheckBag(const EmbeddingBag& op, ValueSpan in) {
  const int64_t rank = in[1].type().rank();
  if (rank != (in[2] ? 1 : 2))
    return InvalidArgument("indices of rank {} {} offsets", rank, in[2] ? "with" : "without");
  if (op.include_last_offset && !in[2]) return InvalidArgument("there is no last offset");
  if (in[2] && in[2].type().elements().max() < (op.include_last_offset ? 1 : 0))
    return InvalidArgument("there is no last offset");
  if (in[3] && op.kind != ReduceKind::kSum) return InvalidArgument("only sums are scaled");
  return absl::OkStatus();
}

}  // namespace

Values EmbeddingBag::decompose(Function& f, ValueSpan in) const {
  if (absl::Status s = CheckBag(*this, in); !s.ok()) return f.Fail(std::move(s)), Values{in[0]};
  const Type& weight = in[0].type();
  const Dim count = in[1].type().elements();
  const Dim bags =
      in[2] ? in[2].type().shape()[0] - (include_last_offset ? 1 : 0) : in[1].type().shape()[0];
  const Value indices = f(Reshape{{count}}, {in[1]});
  Value bag = in[2] ? BagsByOffsets(in[2], count) : BagsByRows(in[1]);
  if (padding >= 0) {
    const Value row = f(Fill{padding, indices.type().dtype(), {}}, {});
    const Value left_out = f(Equal{}, {Wrapped(indices, weight.shape()[0]), row});
    bag = select(left_out, DimValue(bags, bag), bag);
  }
  Value rows = Widened(f(Gather{}, {in[0], indices}));
  if (in[3]) rows = rows * f(Reshape{{count, 1}}, {Widened(in[3])});
  const Value zeros = f(Fill{0, rows.type().dtype(), {bags, weight.shape()[1]}}, {});
  // An empty bag stays 0.
  const Value y = ReducedInto(zeros, {OnAxis(bag, 0, 2), rows, 0}, kind, false);
  return {Narrowed(y, weight.dtype())};
}

Cases EmbeddingBag::cases() {
  const auto sum = EmbeddingBag{.kind = ReduceKind::kSum};
  const auto max = EmbeddingBag{.kind = ReduceKind::kMax};
  return {{EmbeddingBag{}, {"float[10,4]", "i64[2,5] in 0..9"}},
          {sum, {"float[10,3]", "i64[8] in 0..9", "i64[3] in 0..0"}},
          {sum, {"f64[6,3]", "i64[3,4] in 0..5", "", "f64[3,4]"}},
          {max, {"float[10,4]", "i32[3,5] in 0..9"}},
          {EmbeddingBag{.padding = 2}, {"f64[4,3]", "i64[5,6] in 0..3"}},
          {EmbeddingBag{.kind = ReduceKind::kMax, .padding = 0}, {"f64[3,3]", "i64[5,2] in 0..2"}},
          {EmbeddingBag{.kind = ReduceKind::kSum, .include_last_offset = true},
           {"f32[9,3]", "i64[7] in 0..8", "i64[2] in 0..0"}},
          {sum, {"f16[9,3]", "i64[7] in 0..8", "i64[1] in 0..0", "f16[7]"}},
          {.op = sum, .in = {"f32[100000,128]", "i64[4096,32] in 0..99999"}, .bench = true},
          {EmbeddingBag{}, {"f32[4,3]", "i64[3,0]"}},
          {EmbeddingBag{}, {"f32[4,3]", "i64[0]", "i64[2] in 0..0"}},
          {EmbeddingBag{}, {"f32[4,3]", "i64[3]"}, "indices of rank 1 without offsets"},
          {EmbeddingBag{}, {"f32[4,3]", "i64[3,1]", "i64[1]"}, "indices of rank 2 with offsets"},
          {EmbeddingBag{.include_last_offset = true}, {"f32[4,3]", "i64[3,1]"}, "no last offset"},
          {EmbeddingBag{}, {"f32[4,3]", "i64[3,1]", "", "f32[3,1]"}, "only sums are scaled"}};
}

FORGE_DEFINE_OP(EmbeddingBag)

}  // namespace forge::ir
