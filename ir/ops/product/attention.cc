// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/product/attention.h"

#include <cmath>
#include <limits>

#include "ir/dim/broadcast.h"
#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/softmax.h"

namespace forge::ir {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

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

}  // namespace

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
    if (in[3].dtype() != DType::kBool && in[3].dtype() != in[0].dtype())
      return InvalidArgument("the mask is {}, q is {}", Name(in[3].dtype()), Name(in[0].dtype()));
  }
  const Type operands[] = {scores, in[2]};
  return MatMul{}.infer(operands);
}

Values Attention::decompose(Function& f, ValueSpan in) const {
  const Dim head = in[0].type().shape().back();
  // Scores and probabilities lose too much in 16 bits.
  Value scores = f(MatMul{.transpose_b = true}, {Widened(in[0]), Widened(in[1])});
  if (scale != 0 || head.is_constant())
    scores = scores * ScaleFor(scale != 0 ? 1 : head.constant());
  if (softcap != 0) scores = tanh(scores / softcap) * softcap;
  scores = InBand(f, scores, BandOf(Rows(in[0]), Rows(in[1])));
  if (in[3])
    scores = in[3].type().dtype() == DType::kBool ? select(in[3], scores, kMasked)
                                                  : scores + Widened(in[3]);
  const Value p = f(Softmax{.masked_rows_zero = true}, {scores});
  return {Narrowed(f(MatMul{}, {p, Widened(in[2])}), in[0].type().dtype())};
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
      {.op = Attention{},
       .in = {"f32[12,256,32]", "f32[12,256,32]", "f32[12,256,32]"},
       .bench = true},
      {.op = Attention{},
       .in = {"f32[8,1024,64]", "f32[8,1024,64]", "f32[8,1024,64]"},
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
