// SPDX-License-Identifier: Apache-2.0
// Attention of the domain com.microsoft, its positions and its caches.
#include <array>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/nn/heads.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/product/attention.h"
#include "ir/ops/product/matmul.h"

namespace forge::formats {
namespace {

constexpr double kHidden = -10000;  // onnxruntime's mask_filter_value, unless the node states one

struct HeadsOfNode {
  ir::Value q, k, v;  // [b, heads, rows, e], [b, heads, keys, e or w]
  ir::Value mask;     // added to the scores, or bool; absent
  bool causal = false;
  double scale = 0, softcap = 0;
};

// [b, s, heads * w] in the type of the queries.
ir::Value Attended(OnnxNode& n, const HeadsOfNode& a) {
  const ir::Attention op{.scale = a.scale,
                         .softcap = a.softcap,
                         .causal = a.causal ? ir::Causal::kBottomRight : ir::Causal::kNone};
  const ir::Values y = n.fn().Add(op, std::array{a.q, a.k, a.v, a.mask});
  return n.fn().status().ok() ? HeadsTogether(n, y[0]) : a.q;
}

// What is added to the scores [b, heads, rows, keys]: operand `i` tells which keys count, by their
// number for each sequence, by truths for each key, or for each row and key. Absent where it is.
ir::Value MaskOf(OnnxNode& n, size_t i, const ir::Dims& q, const ir::Dim& keys) {
  const double hidden = n.Float("mask_filter_value", kHidden);
  if (!n.HasInput(i)) return {};
  if (!HasRank(n, i, 1, 3)) return {};
  const ir::Dims given = n.type(i).shape();
  const DType dtype = n.type(0).dtype();
  ir::Value counts;
  if (given.size() == 1) {
    if (!(given[0] == q[0])) {
      n.Fail("a mask {} is not supported", n.type(i).ToText());
      return {};
    }
    const ir::Value length = ReshapedTo(n, Converted(n, n.in(i), DType::kI32), {given[0], 1, 1, 1});
    counts = Places(n, keys, 3, 4) < length;
  } else {
    const ir::Dims shape = given.size() == 2 ? ir::Dims{given[0], 1, 1, given[1]}
                                             : ir::Dims{given[0], 1, given[1], given[2]};
    counts = ReshapedTo(n, Converted(n, n.in(i), DType::kI32), shape) > 0.0;
  }
  const auto number = [&](double v) { return n.fn()(ir::Fill{v, dtype, {}}, {}); };
  return ir::select(counts, number(0), number(hidden));
}

ir::Value Together(ir::Value a, ir::Value b) { return !a ? b : !b ? a : a + b; }

// Operands with a past before them, along the axis of keys.
ir::Value Behind(OnnxNode& n, size_t past, ir::Value x) {
  return n.HasInput(past) && HasRank(n, past, 4, 4) ? Joined(n, {n.in(past), x}, 2) : x;
}

// x w + bias holds queries, keys and values side by side.
ir::Values BuildMicrosoftAttention(OnnxNode& n) {
  const int64_t heads = n.Int("num_heads", 0);
  std::vector<int64_t> sizes = n.Ints("qkv_hidden_sizes");
  HeadsOfNode a{.causal = n.Flag("unidirectional"), .scale = n.Float("scale", 0)};
  if (n.Flag("do_rotary")) n.Fail("do_rotary is not supported");
  if (n.Flag("past_present_share_buffer")) n.Fail("past_present_share_buffer is not supported");
  if (heads < 1) n.Fail("num_heads is {}", heads);
  if (!n.status().ok() || !HasRank(n, 0, 3, 3) || !HasRank(n, 1, 2, 2)) return {};
  ir::Value all = n.fn()(ir::MatMul{}, {n.in(0), n.in(1)});
  if (n.HasInput(2)) all = all + n.in(2);
  const ir::Dim width = n.type(1).shape()[1];
  if (sizes.empty() && width.is_constant()) sizes.assign(3, width.constant() / 3);
  if (sizes.size() != 3 ||
      std::ranges::any_of(sizes, [&](int64_t s) { return s < 1 || s % heads != 0; }) ||
      !(ir::Dim(sizes[0] + sizes[1] + sizes[2]) == width)) {
    n.Fail("weights {} do not hold queries, keys and values of {} heads", n.type(1).ToText(),
           heads);
    return {};
  }
  const auto part = [&](int64_t begin, int64_t size) {
    return HeadsOf(n, Part(n, all, 2, begin, begin + size), heads);
  };
  if (!n.fn().status().ok()) return {};
  a.q = part(0, sizes[0]), a.k = part(sizes[0], sizes[1]);
  a.v = part(sizes[0] + sizes[1], sizes[2]);
  ir::Value present;
  if (n.HasInput(4)) {  // [2, b, heads, past, e]
    if (!HasRank(n, 4, 5, 5)) return {};
    const ir::Dims past = n.type(4).shape();
    const ir::Dims one(past.begin() + 1, past.end());
    a.k = Joined(n, {ReshapedTo(n, Part(n, n.in(4), 0, 0, 1), one), a.k}, 2);
    a.v = Joined(n, {ReshapedTo(n, Part(n, n.in(4), 0, 1, 2), one), a.v}, 2);
  }
  if (!n.fn().status().ok()) return {};
  if (n.HasOutput(1)) {
    ir::Dims one = a.k.type().shape();
    one.insert(one.begin(), 1);
    present = Joined(n, {ReshapedTo(n, a.k, one), ReshapedTo(n, a.v, one)}, 0);
  }
  a.mask = Together(MaskOf(n, 3, a.q.type().shape(), a.k.type().shape()[2]), n.in(5));
  if (!n.status().ok()) return {};
  return {Attended(n, a), present};
}

// [b, s, heads, parts, e] as `parts` tensors [b, heads, s, e].
ir::Values Unpacked(OnnxNode& n, ir::Value x, int64_t parts) {
  const ir::Dims s = x.type().shape();
  ir::Values out;
  for (int64_t i = 0; i < parts; ++i)
    out.push_back(Permuted(n, ReshapedTo(n, Part(n, x, 3, i, i + 1), {s[0], s[1], s[2], s[4]}),
                           {0, 2, 1, 3}));
  return out;
}

// Queries, keys and values of MultiHeadAttention, whichever way they are packed.
bool ReadQueries(OnnxNode& n, int64_t heads, HeadsOfNode& a) {
  const auto biased = [&](size_t i, ir::Value x, const ir::Dim& begin) {
    if (!n.HasInput(3) || x.type().rank() != 3) return x;
    const ir::Dim width = x.type().shape()[2];
    return i < 3 ? x + Part(n, n.in(3), 0, begin, begin + width) : x;
  };
  if (!HasRank(n, 0, 3, 5)) return false;
  if (n.type(0).rank() == 5) {
    const ir::Values all = Unpacked(n, n.in(0), 3);
    a.q = all[0], a.k = all[1], a.v = all[2];
    if (n.HasInput(3)) n.Fail("a bias of packed operands is not supported");
    return n.status().ok() && n.fn().status().ok();
  }
  if (!HasRank(n, 0, 3, 3) || !HasRank(n, 1, 3, 5)) return false;
  const ir::Dim width = n.type(0).shape()[2];
  a.q = HeadsOf(n, biased(0, n.in(0), 0), heads);
  if (n.type(1).rank() == 5) {
    const ir::Values both = Unpacked(n, n.in(1), 2);
    a.k = both[0], a.v = both[1];
    return n.fn().status().ok();
  }
  if (!HasRank(n, 2, n.type(1).rank(), n.type(1).rank())) return false;
  const bool apart = n.type(1).rank() == 4;  // [b, heads, keys, e]
  a.k = apart ? n.in(1) : HeadsOf(n, biased(1, n.in(1), width), heads);
  a.v = apart ? n.in(2) : HeadsOf(n, biased(2, n.in(2), width * 2), heads);
  return n.fn().status().ok();
}

ir::Values BuildMultiHeadAttention(OnnxNode& n) {
  const int64_t heads = n.Int("num_heads", 0);
  HeadsOfNode a{.causal = n.Flag("unidirectional"), .scale = n.Float("scale", 0)};
  if (heads < 1) n.Fail("num_heads is {}", heads);
  if (n.HasInput(8) || n.HasInput(9)) n.Fail("a shared cache is not supported");
  if (n.HasOutput(3)) n.Fail("its scores as a result are not supported");
  if (!n.status().ok() || !ReadQueries(n, heads, a)) return {};
  a.k = Behind(n, 6, a.k), a.v = Behind(n, 7, a.v);
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  a.mask = Together(MaskOf(n, 4, a.q.type().shape(), a.k.type().shape()[2]), n.in(5));
  if (!n.status().ok()) return {};
  return {Attended(n, a), a.k, a.v};
}

// ---- positions and grouped heads ----------------------------------------------------------------

ir::Values BuildMicrosoftRotaryEmbedding(OnnxNode& n) {
  const int64_t given = n.Int("num_heads", 0), part = n.Int("rotary_embedding_dim", 0);
  const bool interleaved = n.Flag("interleaved");
  if (n.Flag("is_packed_batching")) n.Fail("is_packed_batching is not supported");
  if (n.Float("scale", 1) != 1) n.Fail("attribute 'scale' is not supported");
  if (!n.status().ok() || !HasRank(n, 0, 3, 4) || !HasRank(n, 1, 1, 2) || !HasRank(n, 2, 2, 2) ||
      !HasRank(n, 3, 2, 2))
    return {};
  const ir::Dim half = n.type(2).shape()[1];
  const bool packed = n.type(0).rank() == 3;
  const ir::Dim width = n.type(0).shape().back();
  int64_t heads = given;
  if (packed && heads == 0 && half.is_constant() && width.is_constant() && half.constant() > 0)
    heads = width.constant() / (2 * half.constant());
  if (packed && heads < 1) {
    n.Fail("the number of heads is not known");
    return {};
  }
  const ir::Value x = packed ? HeadsOf(n, n.in(0), heads) : n.in(0);
  if (!n.fn().status().ok()) return {};
  const ir::Dims shape = x.type().shape();
  ir::Value positions = n.in(1);
  if (n.type(1).rank() == 1)  // the first one, of every sequence
    positions =
        Places(n, shape[2], 1, 2) + ReshapedTo(n, Converted(n, positions, DType::kI32), {1, 1});
  const ir::Dim size = part > 0 ? ir::Dim(part) : half * 2;
  const ir::Value cos = AnglesAt(n, n.in(2), positions), sin = AnglesAt(n, n.in(3), positions);
  if (!n.fn().status().ok()) return {};
  const ir::Value y = Rotated(n, x, {cos, sin, size, interleaved});
  if (!n.fn().status().ok()) return {};
  return {packed ? HeadsTogether(n, y) : y};
}

// What GroupQueryAttention says of its sequences; counts are i32 [b, 1, 1, 1].
struct Sequences {
  ir::Value before;  // of a sequence: how many keys it has before this call
  ir::Dim keys;      // places of the cache that is the result
};

// The new keys or values behind those of the cache, each sequence at its place; zeros behind them.
ir::Value Cached(OnnxNode& n, const Sequences& s, size_t past, ir::Value x) {
  const ir::Dims shape = x.type().shape();
  const ir::Dim places = n.HasInput(past) ? n.type(past).shape()[2] : ir::Dim(0);
  const ir::Value all = n.HasInput(past) ? Joined(n, {n.in(past), x}, 2) : x;
  const ir::Value at = Places(n, s.keys, 2, 4), own = at - s.before;
  const ir::Value first = ir::ScalarOf(n.fn(), places, DType::kI32);
  const ir::Value is_new =
      n.fn()(ir::And{}, {~(own < 0.0), own < ir::ScalarOf(n.fn(), shape[2], DType::kI32)});
  const ir::Value last = ir::ScalarOf(n.fn(), places + shape[2] - 1, DType::kI32);
  const ir::Value from = ir::select(is_new, own + first, ir::min(at, last));
  ir::Dims result = shape;
  result[2] = s.keys;
  const ir::Value index = n.fn()(ir::BroadcastTo{result}, {from});
  const ir::Value held = n.fn()(ir::GatherElements{.axis = 2}, {all, index});
  return ir::select(n.fn()(ir::Or{}, {is_new, own < 0.0}), held, 0.0);
}

// True where a row sees a key: [b, 1, rows, keys].
ir::Value SeenKeys(OnnxNode& n, const Sequences& s, const ir::Dim& rows, int64_t window) {
  const ir::Value key = Places(n, s.keys, 3, 4), row = Places(n, rows, 2, 4) + s.before;
  const ir::Value seen = ~(key > row);
  return window < 0 ? seen : n.fn()(ir::And{}, {seen, key > row - static_cast<double>(window)});
}

// q, k and v as heads: separate operands, or side by side in the first.
bool ReadGroups(OnnxNode& n, int64_t heads, int64_t kv_heads, HeadsOfNode& a) {
  if (!HasRank(n, 0, 3, 3)) return false;
  if (n.HasInput(1)) {
    if (!HasRank(n, 1, 3, 3) || !HasRank(n, 2, 3, 3)) return false;
    a.q = HeadsOf(n, n.in(0), heads);
    a.k = HeadsOf(n, n.in(1), kv_heads), a.v = HeadsOf(n, n.in(2), kv_heads);
    return n.fn().status().ok();
  }
  const ir::Dim each = ir::FloorDiv(n.type(0).shape()[2], heads + 2 * kv_heads);
  const ir::Dim k = each * heads, v = each * (heads + kv_heads);
  a.q = HeadsOf(n, Part(n, n.in(0), 2, 0, k), heads);
  a.k = HeadsOf(n, Part(n, n.in(0), 2, k, v), kv_heads);
  a.v = HeadsOf(n, Part(n, n.in(0), 2, v, v + each * kv_heads), kv_heads);
  return n.fn().status().ok();
}

// Turns queries and new keys by their places in the sequences.
void RotateGroups(OnnxNode& n, const Sequences& s, HeadsOfNode& a) {
  const bool interleaved = n.Flag("rotary_interleaved");
  if (!n.Flag("do_rotary")) return;
  if (!HasRank(n, 7, 2, 2) || !HasRank(n, 8, 2, 2)) return;
  const ir::Dims shape = a.q.type().shape();
  const ir::Value row = ReshapedTo(n, s.before, {shape[0], 1}) + Places(n, shape[2], 1, 2);
  const ir::Value positions = n.HasInput(9) ? n.in(9) : row;
  const Rotation r{AnglesAt(n, n.in(7), positions), AnglesAt(n, n.in(8), positions),
                   n.type(7).shape()[1] * 2, interleaved};
  if (!n.fn().status().ok()) return;
  a.q = Rotated(n, a.q, r), a.k = Rotated(n, a.k, r);
}

// Rows see the keys up to their own; sequences may differ in length, and lie in the cache from its
// begin on. Operand 5 is the length of each sequence less one, operand 6 that of the longest.
ir::Values BuildGroupQueryAttention(OnnxNode& n) {
  const int64_t heads = n.Int("num_heads", 0), kv_heads = n.Int("kv_num_heads", 0);
  const int64_t window = n.Int("local_window_size", -1);
  HeadsOfNode a{.scale = n.Float("scale", 0), .softcap = n.Float("softcap", 0)};
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    n.Fail("{} heads of queries for {} of keys", heads, kv_heads);
  if (n.Flag("smooth_softmax") || n.HasInput(11)) n.Fail("smooth_softmax is not supported");
  if (n.HasInput(10)) n.Fail("attention_bias is not supported");
  for (const size_t i : {5u, 6u})
    if (!n.HasInput(i)) n.Fail("input {} is not given", i);
  if (n.HasInput(1) != n.HasInput(2) || n.HasInput(3) != n.HasInput(4))
    n.Fail("one of keys and values is not given");
  if (!n.status().ok() || !ReadGroups(n, heads, kv_heads, a)) return {};
  const std::optional<ir::Dims> total = n.Contents(6);
  if (!total || total->size() != 1) {
    n.Fail("the total length is not known before the model runs");
    return {};
  }
  const ir::Dims q = a.q.type().shape();
  Sequences s{.keys = (*total)[0]};
  if (n.HasInput(3)) {
    if (!HasRank(n, 3, 4, 4) || !HasRank(n, 4, 4, 4)) return {};
    s.keys = ir::Max(n.type(3).shape()[2], s.keys);
  }
  const ir::Value length = ReshapedTo(n, Converted(n, n.in(5), DType::kI32), {q[0], 1, 1, 1}) + 1.0;
  s.before = ir::max(length - ir::ScalarOf(n.fn(), q[2], DType::kI32), 0.0);
  if (!n.fn().status().ok()) return {};
  RotateGroups(n, s, a);
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  const ir::Value k = Cached(n, s, 3, a.k), v = Cached(n, s, 4, a.v);
  if (!n.fn().status().ok()) return {};
  a.k = RepeatedHeads(n, k, heads / kv_heads), a.v = RepeatedHeads(n, v, heads / kv_heads);
  a.mask = SeenKeys(n, s, q[2], window);
  return {Attended(n, a), k, v};
}

constexpr OnnxOp kMicrosoftAttentionOps[] = {
    {kMicrosoft, "Attention", 1, 2, 7, BuildMicrosoftAttention},
    {kMicrosoft, "GroupQueryAttention", 1, 1, 12, BuildGroupQueryAttention},
    {kMicrosoft, "MultiHeadAttention", 1, 1, 10, BuildMultiHeadAttention},
    {kMicrosoft, "RotaryEmbedding", 1, 4, 4, BuildMicrosoftRotaryEmbedding},
};

}  // namespace

std::span<const OnnxOp> MicrosoftAttentionOps() { return kMicrosoftAttentionOps; }

}  // namespace forge::formats
