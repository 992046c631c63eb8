// SPDX-License-Identifier: Apache-2.0
// Attention, its positions and its caches.
#include "ir/ops/product/attention.h"

#include <cmath>
#include <limits>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/nn/heads.h"
#include "formats/onnx/builders/steps.h"
#include "ir/graph/copier.h"
#include "ir/op/axes.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv.h"

namespace forge::formats {
namespace {

constexpr double kNoScore = -std::numeric_limits<double>::infinity();

// What an Attention node says, with heads as an axis of their own.
struct AttentionNode {
  ir::Value q, k, v;     // [b, heads, rows, e], [b, kv heads, keys, e or w]
  ir::Value mask, past;  // operands; absent
  ir::Value valid_keys;  // [b], i32; absent: all are
  bool packed = false;   // the operands and the result have heads in their last axis
  bool causal = false;
  int64_t window_left = -1, window_right = -1;
  double scale = 0, softcap = 0;

  ir::Dim rows() const { return q.type().shape()[2]; }
  ir::Dim keys() const { return k.type().shape()[2]; }
};

bool ReadHeads(OnnxNode& n, AttentionNode& a) {
  const int64_t q_heads = n.Int("q_num_heads", 0), kv_heads = n.Int("kv_num_heads", 0);
  for (size_t i = 0; i < 3; ++i)
    if (!HasRank(n, i, 3, 4) || n.type(i).rank() != n.type(0).rank()) {
      n.Fail("its operands differ in rank");
      return false;
    }
  a.q = n.in(0), a.k = n.in(1), a.v = n.in(2);
  a.packed = n.type(0).rank() == 3;
  if (!a.packed) return true;
  if (q_heads < 1 || kv_heads < 1) {
    n.Fail("q_num_heads and kv_num_heads must be given with operands of 3 axes");
    return false;
  }
  a.q = HeadsOf(n, a.q, q_heads);
  a.k = HeadsOf(n, a.k, kv_heads), a.v = HeadsOf(n, a.v, kv_heads);
  return n.fn().status().ok();
}

// How many heads of queries share one of keys.
std::optional<int64_t> HeadsPerKeyHead(OnnxNode& n, const AttentionNode& a) {
  if (!n.status().ok() || !n.fn().status().ok()) return std::nullopt;
  const ir::Dim& q = a.q.type().shape()[1];
  const ir::Dim& k = a.k.type().shape()[1];
  if (!q.is_constant() || !k.is_constant() || k.constant() < 1 ||
      q.constant() % k.constant() != 0) {
    n.Fail("{} heads of queries for {} of keys", q.ToText(), k.ToText());
    return std::nullopt;
  }
  return q.constant() / k.constant();
}

// The mask, as long as there are keys; those that it lacks do not count.
ir::Value FullMask(OnnxNode& n, ir::Value mask, const ir::Dim& keys) {
  const ir::Dim missing = keys - mask.type().shape().back();
  if (missing == ir::Dim(0)) return mask;
  const auto rank = static_cast<size_t>(mask.type().rank());
  ir::Dims none(rank, 0), after(rank, 0);
  after.back() = missing;
  const bool is_bool = mask.type().dtype() == DType::kBool;
  return n.fn()(ir::Pad{.before = none, .after = after, .value = is_bool ? 0.0 : kNoScore}, {mask});
}

// True where a row sees a key, [1 or b, 1, rows, keys]; absent where each sees all.
ir::Value Seen(OnnxNode& n, const AttentionNode& a) {
  const ir::Value key = Places(n, a.keys(), 3, 4);
  ir::Value row = Places(n, a.rows(), 2, 4), seen;
  const auto also = [&](ir::Value v) { seen = seen ? n.fn()(ir::And{}, {seen, v}) : v; };
  if (a.valid_keys) {
    const ir::Value valid = ReshapedTo(n, a.valid_keys, {a.valid_keys.type().shape()[0], 1, 1, 1});
    also(key < valid);
    row = row + (valid - ir::ScalarOf(n.fn(), a.rows(), DType::kI32));
  } else if (a.past) {
    row = row + ir::ScalarOf(n.fn(), a.past.type().shape()[2], DType::kI32);
  }
  if (a.causal) also(~(key > row));
  if (a.window_left >= 0) also(~(key < row - static_cast<double>(a.window_left)));
  if (a.window_right >= 0) also(~(key > row + static_cast<double>(a.window_right)));
  return seen;
}

// The result, and what qk_matmul_output shows: scores, capped, masked, or probabilities.
std::pair<ir::Value, ir::Value> Attend(OnnxNode& n, const AttentionNode& a, int64_t shown) {
  const DType dtype = a.q.type().dtype();
  ir::Value scores =
      n.fn()(ir::MatMul{.transpose_b = true}, {ir::Widened(a.q), ir::Widened(a.k)}) * a.scale;
  ir::Value stages[4] = {scores};
  if (a.softcap != 0) scores = ir::tanh(scores / a.softcap) * a.softcap;
  stages[1] = scores;
  if (const ir::Value seen = Seen(n, a)) scores = ir::select(seen, scores, kNoScore);
  if (a.mask)
    scores = a.mask.type().dtype() == DType::kBool ? ir::select(a.mask, scores, kNoScore)
                                                   : scores + ir::Widened(a.mask);
  stages[2] = scores;
  stages[3] = n.fn()(ir::Softmax{.masked_rows_zero = true}, {scores});
  const ir::Value y = n.fn()(ir::MatMul{}, {stages[3], ir::Widened(a.v)});
  return {ir::Narrowed(y, dtype), ir::Narrowed(stages[shown], dtype)};
}

// Is it what the op `attention` computes?
bool IsPlain(const AttentionNode& a) {
  const bool is_banded = a.causal || a.window_left >= 0 || a.window_right >= 0;
  return !a.valid_keys && !(is_banded && a.past) && a.scale != 0;
}

void ReadMore(OnnxNode& n, AttentionNode& a) {
  const ir::Dim head = a.q.type().shape()[3];
  const double usual = head.is_constant() && head.constant() > 0
                           ? 1 / std::sqrt(static_cast<double>(head.constant()))
                           : 0;
  a.scale = n.Float("scale", usual);
  if (a.scale == 0 && !head.is_constant()) n.Fail("the size of a head is not known");
  a.softcap = n.Float("softcap", 0);
  a.causal = n.Flag("is_causal");
  if (n.since() >= 25) {
    a.window_left = n.Int("left_window_size", -1);
    a.window_right = n.Int("right_window_size", -1);
  }
  n.Ignore("softmax_precision");  // f32 or wider is what every device uses
  if (n.HasInput(3) && HasRank(n, 3, 1, 4)) a.mask = FullMask(n, n.in(3), a.keys());
  if (n.since() >= 24 && n.HasInput(6) && HasRank(n, 6, 1, 1))
    a.valid_keys = Converted(n, n.in(6), DType::kI32);
}

ir::Values BuildAttention(OnnxNode& n) {
  AttentionNode a;
  const int64_t shown = n.Int("qk_matmul_output_mode", 0);
  if (shown < 0 || shown > 3) n.Fail("qk_matmul_output_mode is {}", shown);
  if (n.HasInput(4) != n.HasInput(5)) n.Fail("one of past_key and past_value is not given");
  if (!ReadHeads(n, a) || !n.status().ok()) return {};
  if (n.HasInput(4)) {
    if (!HasRank(n, 4, 4, 4) || !HasRank(n, 5, 4, 4)) return {};
    a.past = n.in(4);
    a.k = Joined(n, {n.in(4), a.k}, 2);
    a.v = Joined(n, {n.in(5), a.v}, 2);
    if (!n.fn().status().ok()) return {};
  }
  ReadMore(n, a);
  const ir::Value present_k = a.k, present_v = a.v;
  const std::optional<int64_t> group = HeadsPerKeyHead(n, a);
  if (!group || !n.status().ok()) return {};
  a.k = RepeatedHeads(n, a.k, *group), a.v = RepeatedHeads(n, a.v, *group);
  ir::Value y, qk;
  if (IsPlain(a) && !n.HasOutput(3)) {
    const ir::Attention op{.scale = a.scale,
                           .softcap = a.softcap,
                           .causal = a.causal ? ir::Causal::kTopLeft : ir::Causal::kNone,
                           .window_left = a.window_left,
                           .window_right = a.window_right};
    y = n.fn().Add(op, std::array{a.q, a.k, a.v, a.mask})[0];
  } else {
    std::tie(y, qk) = Attend(n, a, shown);
  }
  if (!n.fn().status().ok()) return {};
  return {a.packed ? HeadsTogether(n, y) : y, present_k, present_v, qk};
}

// What a body makes of scores or probabilities.
ir::Value Modified(OnnxNode& n, std::string_view body, ir::Value x) {
  if (!n.Has(body) || !n.status().ok() || !n.fn().status().ok()) return x;
  ir::Values in = {x};
  const ir::Values captured = n.ValuesOf(n.Captures());
  in.insert(in.end(), captured.begin(), captured.end());
  const ir::Function* f = n.Body(body, {x.type()});
  if (f == nullptr) return x;
  const ir::Values out = ir::Inline(*f, n.fn(), in);
  if (out.size() == 1 && out[0].type() == x.type()) return out[0];
  n.Fail("{} gives {} instead of {}", body,
         out.size() == 1 ? out[0].type().ToText() : fmt::format("{} results", out.size()),
         x.type().ToText());
  return x;
}

// Attention whose scores and probabilities bodies may change.
ir::Values BuildFlexAttention(OnnxNode& n) {
  for (size_t i = 0; i < 3; ++i)
    if (!HasRank(n, i, 4, 4)) return {};
  AttentionNode a;
  a.q = n.in(0), a.k = n.in(1), a.v = n.in(2);
  ReadMore(n, a);
  const std::optional<int64_t> group = HeadsPerKeyHead(n, a);
  if (!group || !n.status().ok()) return {};
  const ir::Value k = RepeatedHeads(n, a.k, *group), v = RepeatedHeads(n, a.v, *group);
  if (!n.Has("score_mod") && !n.Has("prob_mod"))
    return n.fn().Add(ir::Attention{.scale = a.scale}, std::array{a.q, k, v});
  const ir::Value products = n.fn()(ir::MatMul{.transpose_b = true}, {a.q, k});
  const ir::Value scores = Modified(n, "score_mod", products * a.scale);
  const ir::Value probabilities =
      Modified(n, "prob_mod", n.fn()(ir::Softmax{.axis = -1}, {scores}));
  return {n.fn()(ir::MatMul{}, {probabilities, v})};
}

// ---- positions and caches ----------------------------------------------------------------------

ir::Values BuildRotaryEmbedding(OnnxNode& n) {
  const int64_t heads = n.Int("num_heads", 0), given = n.Int("rotary_embedding_dim", 0);
  const bool interleaved = n.Flag("interleaved");
  if (!HasRank(n, 0, 3, 4)) return {};
  const bool packed = n.type(0).rank() == 3;
  if (packed && heads < 1) n.Fail("num_heads must be given with an operand of 3 axes");
  if (!n.status().ok()) return {};
  const ir::Value x = packed ? HeadsOf(n, n.in(0), heads) : n.in(0);
  if (!n.fn().status().ok()) return {};
  const ir::Dim head = x.type().shape()[3];
  const ir::Dim size = given == 0 ? head : ir::Dim(given);
  const int64_t most = head.is_constant() ? head.constant() : INT64_MAX;
  if (given < 0 || given % 2 != 0 || given > most)
    n.Fail("rotary_embedding_dim {} of heads of {} elements", given, head.ToText());
  const DType dtype = x.type().dtype();
  const ir::Value cos = AnglesAt(n, n.in(1), n.in(3)), sin = AnglesAt(n, n.in(2), n.in(3));
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  const ir::Value y = Rotated(n, x, {cos, sin, size, interleaved});
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  return {Converted(n, packed ? HeadsTogether(n, y) : y, dtype)};
}

// Each place of the cache takes the element of the update that belongs there, if there is one.
ir::Values BuildTensorScatter(OnnxNode& n) {
  const std::string mode = n.String("mode", "linear");
  const int64_t given = n.Int("axis", -2);
  if (mode != "linear" && mode != "circular") n.Fail("unknown mode '{}'", mode);
  if (!HasRank(n, 0, 2, 64) || !HasRank(n, 1, n.type(0).rank(), n.type(0).rank())) return {};
  const ir::Value cache = n.in(0), update = n.in(1);
  const absl::StatusOr<int64_t> axis = ir::NormalAxis(given, cache.type().rank());
  if (!axis.ok() || *axis == 0) {
    n.Fail("axis {} is no axis of a sequence", given);
    return {};
  }
  const int64_t rank = cache.type().rank();
  const ir::Dims shape = cache.type().shape();
  const auto at = static_cast<size_t>(*axis);
  const ir::Dim &places = shape[at], &length = update.type().shape()[at];
  ir::Value source = Places(n, places, *axis, rank);
  if (n.HasInput(2)) {
    ir::Dims along(static_cast<size_t>(rank), 1);
    along[0] = shape[0];
    source = source - ReshapedTo(n, Converted(n, n.in(2), DType::kI32), along);
  }
  if (mode == "circular")
    source = n.fn()(ir::Remainder{}, {source, ir::ScalarOf(n.fn(), places, DType::kI32)});
  const ir::Value late = ~(source < ir::ScalarOf(n.fn(), length, DType::kI32));
  const ir::Value other = n.fn()(ir::Or{}, {late, source < 0.0});
  const ir::Value index = n.fn()(ir::BroadcastTo{shape}, {ir::select(other, 0.0, source)});
  const ir::Value taken = n.fn()(ir::GatherElements{.axis = *axis}, {update, index});
  return {n.fn()(ir::Select{}, {other, cache, taken})};
}

// ---- with a state ------------------------------------------------------------------------------

ir::Values BuildCausalConvWithState(OnnxNode& n) {
  const std::string activation = n.String("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    n.Fail("unknown activation '{}'", activation);
  if (!HasRank(n, 0, 3, 3) || !HasRank(n, 1, 3, 3)) return {};
  const ir::Dims x = n.type(0).shape(), w = n.type(1).shape();
  if (!w[0].is_constant() || !w[2].is_constant() || w[2].constant() < 1) {
    n.Fail("the size of its kernel is not known");
    return {};
  }
  const int64_t before = w[2].constant() - 1;
  ir::Value all = n.in(0);
  if (before > 0) {
    const ir::Value past =
        n.HasInput(3) ? n.in(3) : Zeros(n, n.type(0).dtype(), {x[0], x[1], before});
    all = Joined(n, {past, all}, 2);
  }
  if (!n.fn().status().ok()) return {};
  ir::Value y =
      n.fn().Add(ir::Conv{.groups = w[0].constant()}, std::array{all, n.in(1), n.in(2)})[0];
  if (activation != "none") y = n.fn()(ir::Silu{}, {y});
  const ir::Dim total = x[2] + before;
  return {y, Part(n, all, 2, total - before, total)};
}

// The recurrence over a matrix of d x e for each head.
struct LinearState {
  ir::Value q;                  // [b, heads, group * t, d]; of a step the rows of one token
  ir::Value k, v, decay, beta;  // [b, heads, t, ...]
  ir::Value state;              // [b, heads, d, e]
  bool gated = false, delta = false;
  double scale = 1;
};

// One token: the state decays, and learns what the key does not give yet.
ir::Value LinearStep(OnnxNode& n, LinearState& s, int64_t t) {
  const auto token = [&](ir::Value x) { return Part(n, x, 2, t, t + 1); };
  const ir::Value key = Permuted(n, token(s.k), {0, 1, 3, 2});
  if (s.gated) s.state = s.state * ir::exp(Permuted(n, token(s.decay), {0, 1, 3, 2}));
  ir::Value value = token(s.v);
  if (s.delta) {
    value = value - n.fn()(ir::MatMul{}, {token(s.k), s.state});
    value = value * token(s.beta);
  }
  s.state = s.state + key * value;
  return n.fn()(ir::MatMul{}, {s.q, s.state}) * s.scale;
}

bool ReadLinearState(OnnxNode& n, LinearState& s) {
  constexpr int64_t kMostTokens = 1024;  // each is some nodes
  const int64_t q_heads = n.Int("q_num_heads", 0), kv_heads = n.Int("kv_num_heads", 0);
  const std::string rule = n.String("update_rule", "gated_delta");
  const double scale = n.Float("scale", 0);
  n.Ignore("chunk_size");  // a hint
  s.gated = rule == "gated" || rule == "gated_delta";
  s.delta = rule == "delta" || rule == "gated_delta";
  if (!s.gated && !s.delta && rule != "linear") n.Fail("unknown update_rule '{}'", rule);
  if (q_heads < 1 || kv_heads < 1 || q_heads % kv_heads != 0)
    n.Fail("{} heads of queries for {} of keys", q_heads, kv_heads);
  if (s.gated && !n.HasInput(4)) n.Fail("update_rule '{}' needs a decay", rule);
  if (s.delta && !n.HasInput(5)) n.Fail("update_rule '{}' needs a beta", rule);
  for (size_t i = 0; i < 3; ++i)
    if (!HasRank(n, i, 3, 3)) return false;
  const ir::Dim tokens = n.type(0).shape()[1];
  if (!tokens.is_constant() || tokens.constant() > kMostTokens)
    n.Fail("{} tokens; at most {} are supported, known before the model runs", tokens.ToText(),
           kMostTokens);
  if (!n.status().ok()) return false;
  for (size_t i : {1, 2, 4, 5})
    if (const ir::Type& t = n.type(i); t && t.rank() == 3 && t.shape()[1] != tokens)
      n.Fail("input {} has {} tokens, queries have {}", i, t.shape()[1].ToText(), tokens.ToText());
  if (!n.status().ok()) return false;
  s.q = HeadsOf(n, ir::Widened(n.in(0)), q_heads);
  s.k = HeadsOf(n, ir::Widened(n.in(1)), kv_heads);
  s.v = HeadsOf(n, ir::Widened(n.in(2)), kv_heads);
  const auto gate = [&](size_t i) {
    const bool is_shared = i == 5 && n.type(i).shape()[2] == ir::Dim(1);
    return HeadsOf(n, ir::Widened(n.in(i)), is_shared ? 1 : kv_heads);
  };
  if (s.gated && HasRank(n, 4, 3, 3)) s.decay = gate(4);
  if (s.delta && HasRank(n, 5, 3, 3)) s.beta = gate(5);
  if (!n.status().ok() || !n.fn().status().ok()) return false;
  const ir::Dim d = s.k.type().shape()[3], e = s.v.type().shape()[3];
  if (!d.is_constant() || d.constant() < 1) n.Fail("the size of a head is not known");
  if (!n.status().ok()) return false;
  s.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(d.constant()));
  s.state = n.HasInput(3) ? ir::Widened(n.in(3))
                          : Zeros(n, s.k.type().dtype(), {s.k.type().shape()[0], kv_heads, d, e});
  // Queries of a group read the state of their head of keys.
  const int64_t group = q_heads / kv_heads;
  const ir::Dims q = s.q.type().shape();
  if (group != 1 && q.size() == 4) s.q = ReshapedTo(n, s.q, {q[0], kv_heads, group * q[2], q[3]});
  return n.fn().status().ok();
}

ir::Values BuildLinearAttention(OnnxNode& n) {
  LinearState s;
  if (!ReadLinearState(n, s)) return {};
  const DType dtype = n.type(0).dtype();
  const ir::Dims q = s.q.type().shape(), v = s.v.type().shape();
  const int64_t tokens = v[2].constant();
  // [b, kv heads, group * t, d]: the rows of one token lie t apart.
  const ir::Dim group = ir::FloorDiv(q[2], std::max<int64_t>(tokens, 1));
  LinearState step = s;
  ir::Values rows;
  const ir::Value queries = ReshapedTo(n, s.q, {q[0], q[1], group, tokens, q[3]});
  for (int64_t t = 0; t < tokens; ++t) {
    step.q = ReshapedTo(n, Part(n, queries, 3, t, t + 1), {q[0], q[1], group, q[3]});
    const ir::Value y = LinearStep(n, step, t);
    if (!n.fn().status().ok()) return {};
    rows.push_back(ReshapedTo(n, y, {q[0], 1, q[1] * group * v[3]}));
  }
  if (rows.empty()) n.Fail("it has no tokens");
  if (!n.status().ok()) return {};
  const ir::Value y = rows.size() == 1 ? rows[0] : Joined(n, rows, 1);
  const DType state = n.HasInput(3) ? n.type(3).dtype() : dtype;
  return {Converted(n, y, dtype), Converted(n, step.state, state)};
}

constexpr OnnxOp kAttentionOps[] = {
    {"", "Attention", 23, 3, 6, BuildAttention},
    {"", "Attention", 24, 3, 7, BuildAttention},
    {"", "Attention", 25, 3, 7, BuildAttention},
    {"", "CausalConvWithState", 27, 2, 4, BuildCausalConvWithState},
    {"ai.onnx.preview", "FlexAttention", 1, 3, 3, BuildFlexAttention},
    {"", "LinearAttention", 27, 3, 6, BuildLinearAttention},
    {"", "RotaryEmbedding", 23, 3, 4, BuildRotaryEmbedding},
    {"", "TensorScatter", 24, 2, 3, BuildTensorScatter},
};

}  // namespace

std::span<const OnnxOp> AttentionOps() { return kAttentionOps; }

}  // namespace forge::formats
