// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/attention.h"

#include <cmath>

#include "ir/module.h"
#include "ir/ops/define.h"
#include "ir/ops/elements.h"
#include "ir/ops/iota.h"
#include "ir/ops/matmul.h"
#include "ir/ops/reshape.h"
#include "ir/ops/softmax.h"
#include "ir/scalar_math.h"

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

// The operands of one evaluation; offsets of matrices follow from the place in the leading axes.
struct AttentionOperands {
  std::vector<double> q, k, v, mask;
  Index q_strides, k_strides, v_strides, mask_strides;  // of matrices; the mask's of elements
  int64_t length, keys, head, width;
  bool added = true;  // the mask is; else it chooses

  explicit AttentionOperands(const Eval& e)
      : q(Doubles(*e.in(0))),
        k(Doubles(*e.in(1))),
        v(Doubles(*e.in(2))),
        length(e.in(0)->dim(e.in(0)->rank() - 2)),
        keys(e.in(1)->dim(e.in(1)->rank() - 2)),
        head(e.in(0)->dim(e.in(0)->rank() - 1)),
        width(e.in(2)->dim(e.in(2)->rank() - 1)) {}

  // q k^T of row i, scaled and masked; the absolute values of the products go to `magnitude`.
  std::vector<double> Scores(const Index& batch, int64_t i, const Attention& op,
                             double& magnitude) const {
    const double scale = op.ScaleFor(head);
    const Attention::Band band = op.BandOf(length, keys);
    const int64_t first = band.first ? i + band.first->constant() : 0;
    const int64_t last = band.last ? i + band.last->constant() : keys - 1;
    const double* a = q.data() + (At(batch, q_strides) * length + i) * head;
    const double* b = k.data() + At(batch, k_strides) * keys * head;
    std::vector<double> out(static_cast<size_t>(keys));
    for (int64_t j = 0; j < keys; ++j) {
      double sum = 0, all = 0;
      for (int64_t e = 0; e < head; ++e) {
        sum += a[e] * b[j * head + e];
        all += std::fabs(a[e] * b[j * head + e]);
      }
      double& score = out[static_cast<size_t>(j)];
      score = sum * scale;
      if (op.softcap != 0) score = op.softcap * std::tanh(score / op.softcap);
      if (j < first || j > last) score = kMasked;
      double reached = all * std::fabs(scale);
      if (!mask.empty()) {
        const size_t n = batch.size();
        const double m = mask[static_cast<size_t>(At(batch, mask_strides) + i * mask_strides[n] +
                                                  j * mask_strides[n + 1])];
        if (added)
          score += m;
        else if (m == 0)
          score = kMasked;
        if (added && std::isfinite(m)) reached += std::fabs(m);
      }
      if (std::isfinite(score)) magnitude = std::fmax(magnitude, reached);
    }
    return out;
  }

  static int64_t At(const Index& batch, const Index& strides) {
    int64_t place = 0;
    for (size_t axis = 0; axis < batch.size(); ++axis) place += batch[axis] * strides[axis];
    return place;
  }
};

// Scores become probabilities; a row of nothing stays nothing.
void Normalize(std::vector<double>& scores) {
  double high = kMasked, sum = 0;
  for (double s : scores) high = std::fmax(high, s);
  for (double& s : scores) s = high == kMasked && !std::isnan(s) ? 0 : std::exp(s - high);
  for (double s : scores) sum += s;
  for (double& s : scores) s = sum == 0 ? 0 : s / sum;
}

// y = sum over j of weigh(p[j], magnitude of the scores) * v[j], or of its absolute values.
absl::Status Run(Eval& e, const Attention& op, bool magnify) {
  AttentionOperands o(e);
  HostValue& y = e.out(0);
  const auto batch = y.shape().first(y.shape().size() - 2);
  const auto leading = [](const HostValue& t) { return t.shape().first(t.shape().size() - 2); };
  o.q_strides = BroadcastStrides(leading(*e.in(0)), batch);
  o.k_strides = BroadcastStrides(leading(*e.in(1)), batch);
  o.v_strides = BroadcastStrides(leading(*e.in(2)), batch);
  if (e.inputs() > 3 && e.in(3) != nullptr) {
    o.mask = Doubles(*e.in(3));
    o.added = e.in(3)->dtype() != DType::kBool;
    std::vector<int64_t> scores(batch.begin(), batch.end());
    scores.insert(scores.end(), {o.length, o.keys});
    o.mask_strides = BroadcastStrides(e.in(3)->shape(), scores);
  }
  std::vector<double> out(static_cast<size_t>(y.elements()));
  double* to = out.data();
  for (Box at(batch); at && !out.empty(); at.Next()) {
    const double* v = o.v.data() + AttentionOperands::At(*at, o.v_strides) * o.keys * o.width;
    for (int64_t i = 0; i < o.length; ++i, to += o.width) {
      double reached = 0;
      std::vector<double> p = o.Scores(*at, i, op, reached);
      Normalize(p);
      for (int64_t j = 0; j < o.keys; ++j)
        for (int64_t w = 0; w < o.width; ++w) {
          const double term = p[static_cast<size_t>(j)] * v[j * o.width + w];
          // An error of one unit in a score shifts all probabilities by as much, relatively.
          to[w] += magnify ? std::fabs(term) * (1 + 4 * reached) : term;
        }
    }
  }
  Store(out, y);
  return absl::OkStatus();
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
    if (!all.ok() || !(*all == scores.shape()))
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
  if (in.size() > 3 && in[3])
    scores = in[3].type().dtype() == DType::kBool ? select(in[3], scores, kMasked)
                                                  : scores + Widened(in[3]);
  const Value p = f(Softmax{.masked_rows_zero = true}, {scores});
  return {Narrowed(f(MatMul{}, {p, Widened(in[2])}), in[0].type().dtype())};
}

absl::Status Attention::evaluate(Eval& e) const { return Run(e, *this, false); }
absl::Status Attention::magnitude(Eval& e) const { return Run(e, *this, true); }

Cost Attention::cost(TypeSpan in) const {
  const Dim head = in[0].shape().back(), keys = in[1].shape()[in[1].shape().size() - 2];
  const auto scores = ScoresOf(in);
  const Dim flops = scores.ok() ? scores->elements() * (head + in[2].shape().back()) * 2 : Dim(0);
  return {.flops = flops, .terms = head + keys};
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
      {Attention{}, {"f32[2,3,256]", "f32[2,700,256]", "f32[2,700,256]", "bool[2,1,700]"}},
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
