// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/product/attention.h"

#include <cmath>
#include <limits>

#include "ir/dim/broadcast.h"
#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/product/attention_gradient.h"
#include "ir/ops/product/attention_parts.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/log_sum_exp.h"
#include "ir/ops/reduction/softmax.h"

namespace forge::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kMasked = -kInfinity;

absl::StatusOr<Type> ScoresOf(TypeSpan in) {
  const MatMul product{.transpose_b = true};
  FORGE_ASSIGN_OR_RETURN(const Types scores, product.infer(in.first(2)));
  return scores[0];
}

Dim Rows(const Value& v) { return v.type().shape()[v.type().shape().size() - 2]; }

// The scores, without those of keys that their row does not see.
Value InBand(Function& f, Value scores, const Attention::Band& band) {
  if (!band.first && !band.last) return scores;
  const Dim rows = Rows(scores), keys = scores.type().shape().back();
  const Value row =
      f(Reshape{.shape = {rows, 1}}, {f(Iota{.dtype = DType::kI32, .count = rows}, {})});
  const Value key = f(Iota{.dtype = DType::kI32, .count = keys}, {});
  const auto from = [&](const Dim& distance) {
    return row + f(Iota{.dtype = DType::kI32, .begin = distance, .step = 0, .count = 1}, {});
  };
  if (band.first) scores = select(key < from(*band.first), kMasked, scores);
  if (band.last) scores = select(key > from(*band.last), kMasked, scores);
  return scores;
}

// The leading axes of matrices.
Dims Leading(const Value& v) {
  const Dims& shape = v.type().shape();
  return {shape.begin(), shape.end() - 2};
}

// The matrices repeated along leading axes.
Value Repeated(Value v, Dims leading) {
  const Dims& shape = v.type().shape();
  leading.insert(leading.end(), shape.end() - 2, shape.end());
  return shape == leading ? v : (*v.fn)(BroadcastTo{std::move(leading)}, {v});
}

}  // namespace

double ScaleOfScores(const Attention& op, const Dim& head) {
  return head.is_constant() || op.scale != 0 ? op.ScaleFor(head.is_constant() ? head.constant() : 1)
                                             : 1;
}

Value ScoresBeforeMasks(const Attention& op, Value q, Value k) {
  const Value product = (*q.fn)(MatMul{.transpose_b = true}, {Widened(q), Widened(k)});
  const Value scores = product * ScaleOfScores(op, q.type().shape().back());
  return op.softcap != 0 ? tanh(scores / op.softcap) * op.softcap : scores;
}

Value Masked(const Attention& op, Value scores, Value mask) {
  Function& f = *scores.fn;
  scores = InBand(f, scores, op.BandOf(Rows(scores), scores.type().shape().back()));
  if (!mask) return scores;
  return mask.type().dtype() == DType::kBool ? select(mask, scores, kMasked)
                                             : scores + Widened(mask);
}

Attention::Band Attention::BandOf(const Dim& rows, const Dim& keys) const {
  const Dim own = causal == Causal::kBottomRight ? keys - rows : Dim(0);
  Band b;
  if (window_left >= 0) b.first = own - window_left;
  if (causal != Causal::kNone)
    b.last = own;
  else if (window_right >= 0)
    b.last = own + window_right;
  return b;
}

double Attention::ScaleFor(int64_t head) const {
  return scale != 0 || head == 0 ? scale : 1 / std::sqrt(static_cast<double>(head));
}

absl::StatusOr<Types> Attention::infer(TypeSpan in) const {
  for (const int64_t window : {window_left, window_right})
    if (window < -1 || window > INT32_MAX)
      return InvalidArgument("a window of {} keys is neither -1 nor a number of them", window);
  if (!(softcap >= 0) || std::isinf(softcap))
    return InvalidArgument("softcap {} is not a number from 0 on", softcap);
  FORGE_ASSIGN_OR_RETURN(const Type scores, ScoresOf(in));
  if (in.size() > 3 && in[3]) {
    const Dims* shapes[] = {&scores.shape(), &in[3].shape()};
    const auto all = BroadcastShapes(shapes);
    if (!all.ok() || !MayEqualBroadcast(scores.shape(), *all))
      return InvalidArgument("the mask {} does not broadcast to the scores {}", in[3].ToText(),
                             ToText(scores.shape()));
    const DType mask = in[3].dtype(), q = in[0].dtype();
    if (mask != DType::kBool && mask != q && mask != WideOf(q))
      return InvalidArgument("the mask is {}, q is {}", Name(mask), Name(q));
  }
  const Type operands[] = {scores, in[2]};
  FORGE_ASSIGN_OR_RETURN(Types out, MatMul{}.infer(operands));
  if (log_sums) {
    Dims rows = out[0].shape();
    rows.back() = 1;
    out.push_back(Type::Tensor(WideOf(in[0].dtype()), std::move(rows)));
  }
  return out;
}

Values Attention::decompose(Function& f, ValueSpan in) const {
  const Value scores = Masked(*this, ScoresBeforeMasks(*this, in[0], in[1]), in[3]);
  const Value p = f(Softmax{.masked_rows_zero = true}, {scores});
  const Value y = f(MatMul{}, {p, Widened(in[2])});
  Values out{Narrowed(y, in[0].type().dtype())};
  if (log_sums) {
    const Value sum = f(LogSumExp{.axes = {-1}}, {scores});
    out.push_back(Repeated(select(sum < LeastFinite(sum.type()), kInfinity, sum), Leading(y)));
  }
  return out;
}

// The op for the gradients takes q as often as there are results, and as many keys as values.
Values Attention::gradient(const GradArgs& g) const {
  const Value y = g.out[0], mask = g.in.size() > 3 ? g.in[3] : Value{};
  const Value dy = g.dout[0] ? g.dout[0] : g.fn(Fill{0, y.type().dtype(), y.type().shape()}, {});
  Value delta = ReduceAxes(ReduceKind::kSum, Widened(dy) * Widened(y), {-1});
  if (g.dout[1]) delta = delta - g.dout[1];
  const Dims of_k = Leading(g.in[1]), of_v = Leading(g.in[2]);
  const Dims* both[] = {&of_k, &of_v};
  const absl::StatusOr<Dims> keys = BroadcastShapes(both);
  if (!keys.ok()) return g.fn.Fail(keys.status()), Values(g.in.size());
  const AttentionGradient op{scale, softcap, causal, window_left, window_right};
  const Values in{Repeated(g.in[0], Leading(y)),
                  Repeated(g.in[1], *keys),
                  Repeated(g.in[2], *keys),
                  g.out[1],
                  dy,
                  delta,
                  mask};
  const bool mask_too =
      mask && mask.type().dtype() != DType::kBool && (g.bodies == nullptr || g.bodies->Wants(3));
  Values d = mask_too ? AttentionGradientParts(op, in) : g.fn.Add(op, in);
  if (!g.fn.status().ok()) return Values(g.in.size());
  d.resize(g.in.size());
  for (size_t i = 0; i < d.size(); ++i)
    if (d[i]) d[i] = Narrowed(SumTo(d[i], g.in[i].type().shape()), g.in[i].type().dtype());
  return d;
}

Cases Attention::cases() {
  return {
      {Attention{}, {"float[2,3,8]", "float[2,5,8]", "float[2,5,4]"}},
      {Attention{.scale = 0.3}, {"f32[5,16]", "f32[7,16]", "f32[7,16]"}},
      {Attention{}, {"f32[2,4,6,8]", "f32[2,4,6,8]", "f32[2,4,6,8]", "bool[2,1,1,6]"}},
      {Attention{}, {"f32[2,4,6,8]", "f32[1,4,9,8]", "f32[9,3]", "f32[6,9]"}},
      {Attention{.scale = 1}, {"f32[1,3,4]", "f32[2,5,4]", "f32[2,5,4]", "f32[2,3,1]"}},
      {Attention{}, {"f32[1,33,32]", "f32[1,130,32]", "f32[1,130,32]"}},
      {Attention{}, {"f32[1,9,128]", "f32[1,11,128]", "f32[1,11,128]"}},
      {Attention{}, {"f32[1,3,256]", "f32[1,9,256]", "f32[1,9,256]"}},
      {Attention{.causal = Causal::kBottomRight},
       {"f16[4,21,128]", "f16[1,70,128]", "f16[1,70,128]"}},
      {Attention{}, {"f16[2,37,32]", "f16[2,70,32]", "f16[2,70,32]", "f32[37,70]"}},
      {Attention{.log_sums = true},
       {"bf16[2,9,64]", "bf16[2,140,64]", "bf16[2,140,64]", "f32[2,1,140]"}},
      {Attention{.softcap = 3},
       {"float[2,20,256]", "float[2,40,256]", "float[2,40,256]", "bool[1,40]"}},
      {Attention{}, {"f32[3,200]", "f32[35,200]", "f32[35,130]"}},
      {Attention{}, {"f16[2,4,1,64]", "f16[2,1,1500,64]", "f16[2,1,1500,64]"}},
      {Attention{}, {"f32[2,3,1,43]", "f32[2,1,603,43]", "f32[2,1,603,27]", "f32[2,1,1,603]"}},
      {Attention{}, {"f32[2,3,256]", "f32[2,700,256]", "f32[2,700,256]", "bool[2,1,700]"}},
      {Attention{.scale = 1}, {"f32[2,1,0]", "f32[2,5,0]", "f32[2,5,4]"}},
      {Attention{.scale = 1}, {"f32[2,3,0]", "f32[2,5,0]", "f32[2,5,4]"}},
      {Attention{}, {"f32[0,3,8]", "f32[0,5,8]", "f32[0,5,8]"}},
      {Attention{.causal = Causal::kTopLeft}, {"f32[2,7,8]", "f32[2,5,8]", "f32[2,5,4]"}},
      {Attention{.causal = Causal::kBottomRight}, {"f32[2,37,8]", "f32[2,70,8]", "f32[2,70,4]"}},
      {Attention{.causal = Causal::kBottomRight}, {"f32[7,8]", "f32[5,8]", "f32[5,4]"}},
      {Attention{.softcap = 0.5, .causal = Causal::kTopLeft, .window_left = 20},
       {"f32[2,90,8]", "f32[2,90,8]", "f32[2,90,4]", "f32[2,1,90]"}},
      {Attention{.window_left = 3, .window_right = 2}, {"f32[40,8]", "f32[40,8]", "f32[40,4]"}},
      {Attention{.log_sums = true}, {"float[2,3,8]", "float[2,5,8]", "float[2,5,4]"}},
      {Attention{.causal = Causal::kBottomRight, .log_sums = true},
       {"f32[2,70,8]", "f32[1,37,8]", "f32[1,37,16]"}},
      {Attention{.scale = 1, .log_sums = true},
       {"f32[2,40,3]", "f32[3,1,50,3]", "f32[3,1,50,5]", "bool[50]"}},
      {Attention{.log_sums = true}, {"f16[2,4,1,64]", "f16[2,1,1500,64]", "f16[2,1,1500,64]"}},
      {Attention{.log_sums = true}, {"f32[3,4]", "f32[0,4]", "f32[0,2]"}},
      {.op = Attention{},
       .in = {"f32[12,256,32]", "f32[12,256,32]", "f32[12,256,32]"},
       .bench = true},
      {.op = Attention{},
       .in = {"f32[8,1024,64]", "f32[8,1024,64]", "f32[8,1024,64]"},
       .bench = true},
      {.op = Attention{},
       .in = {"f16[8,1024,64]", "f16[8,1024,64]", "f16[8,1024,64]"},
       .bench = true},
      {Attention{.window_left = -2}, {"f32[3,8]", "f32[5,8]", "f32[5,8]"}, "a window of -2 keys"},
      {Attention{.softcap = -1}, {"f32[3,8]", "f32[5,8]", "f32[5,8]"}, "softcap -1"},
      {Attention{}, {"f32[3,8]", "f32[5,7]", "f32[5,8]"}, "8 columns and b 7 rows"},
      {Attention{}, {"f32[3,8]", "f32[5,8]", "f32[4,8]"}, "5 columns and b 4 rows"},
      {Attention{}, {"f32[3,8]", "f32[5,8]", "f32[5,8]", "f32[2,3,5]"}, "does not broadcast"},
      {Attention{}, {"f32[3,8]", "f32[5,8]", "f32[5,8]", "f16[3,5]"}, "the mask is f16"}};
}

FORGE_DEFINE_OP(Attention)

}  // namespace forge::ir
