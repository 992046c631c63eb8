// SPDX-License-Identifier: Apache-2.0
// Attention by workgroups: rows of Q, a block of keys, then of values, and the block's weights in
// shared memory. What suits GPUs.
#include "codegen/schedules/attention.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;
using Operand = AttentionOperands::Operand;

// Invocations of a workgroup, 8 along rows by 16 along keys and columns.
constexpr int64_t kRowThreads = 8, kColumnThreads = 16;
constexpr int64_t kThreads = kRowThreads * kColumnThreads;

struct AttentionShared {
  int64_t rows = 32, keys = 32;  // to a workgroup at once
  static constexpr Field kFields[] = {
      FieldOf<&AttentionShared::rows>("rows", "Of Q to a workgroup.", "8|16|32|64"),
      FieldOf<&AttentionShared::keys>("keys", "In shared memory.", "16|32|64")};
};

// Lines of shared memory are one vector apart from a multiple of the banks.
int64_t Pitch(int64_t length) { return length + 4; }

// Columns of the result, whole ones to each invocation.
int64_t OwnColumns(const AttentionOperands& a) {
  return (a.width + kColumnThreads - 1) / kColumnThreads;
}

struct Extents {
  int64_t q, block, weights;  // elements
  Extents(const AttentionOperands& a, const AttentionShared& t)
      : q(a.head * Pitch(t.rows)),
        block(std::max(a.head * Pitch(t.keys), t.keys * Pitch(OwnColumns(a) * kColumnThreads))),
        weights(t.rows * Pitch(t.keys)) {}
  int64_t Bytes(Type type) const { return (q + block + weights) * BitWidth(type.elem) / 8; }
};

// The largest tile that shared memory holds and the rows fill.
AttentionShared Defaults(const Region& r, const AttentionOperands& a) {
  const Caps& caps = r.caps();
  AttentionShared best{.rows = 8, .keys = 16};
  // By the estimates of tools/propose-defaults for each class of device.
  const bool wide = caps.min_subgroup_size >= 64,
             narrow = 1 < caps.min_subgroup_size && caps.min_subgroup_size <= 8;
  const int64_t most_rows = caps.few_registers() || wide ? 16 : 32;
  const int64_t most_keys = caps.few_registers() ? 16 : narrow ? 64 : 32;
  for (int64_t rows = 8; rows <= most_rows; rows *= 2)
    for (int64_t keys = 16; keys <= most_keys; keys *= 2) {
      const AttentionShared t{.rows = rows, .keys = keys};
      if (rows > 8 && a.rows.max() <= rows / 2) continue;
      if (Extents(a, t).Bytes(a.type) <= caps.max_shared_bytes) best = t;
    }
  return best;
}

Verdict Fits(const Region& r, const AttentionOperands& a, const AttentionShared& t) {
  const Caps& caps = r.caps();
  if (caps.runs_on_cpu) return Verdict::No("barriers are dear on this device");
  return WorkgroupFits(kThreads, caps, Extents(a, t).Bytes(a.type));
}

class Tile {
 public:
  Tile(Emission& m, const AttentionOperands& a, const AttentionShared& t)
      : m_(m),
        a_(a),
        t_(t),
        tiles_{a.rows, t.rows},
        own_rows_(static_cast<size_t>(t.rows / kRowThreads)),
        own_keys_(static_cast<size_t>(t.keys / kColumnThreads)),
        own_columns_(static_cast<size_t>(OwnColumns(a))) {
    const Extents extents(a, t);
    q_ = m.AddShared("q", a.type, extents.q);
    block_ = m.AddShared("block", a.type, extents.block);
    weights_ = m.AddShared("weights", a.type, extents.weights);
  }
  Dim count() const { return a_.batch * tiles_.count(); }
  void Run(const Dim& at);

 private:
  // Copies lines `first` .. first + count - 1 of an operand to shared memory: element j of line i
  // to place(i, j); 0 for lines beyond its extent.
  struct Lines {
    Operand operand{};
    Dim first, extent;
    int64_t count = 0, length = 0;
    int lanes = 1;
  };
  void Fill(uint16_t view, const Lines& lines,
            absl::FunctionRef<Dim(const Dim& i, const Dim& j)> place);
  Vals Scores(const Dim& first);  // [row * own_keys + key]
  Vals Products();
  void StoreWeights(const Vals& weights);
  void Accumulate(OnlineRows& rows);
  void Block(const Dim& first, OnlineRows& rows);
  void Finish(const OnlineRow& row, size_t r);
  Dim OwnRow(size_t r) const { return row_ * static_cast<int64_t>(own_rows_) + int64_t(r); }
  Dim OwnKey(size_t k) const { return column_ * static_cast<int64_t>(own_keys_) + int64_t(k); }
  Val LoadAt(uint16_t view, const Dim& at) { return m_.b.Load(view, m_.e.Value(at)); }

  Emission& m_;
  const AttentionOperands& a_;
  const AttentionShared& t_;
  TiledAxis tiles_;
  size_t own_rows_, own_keys_, own_columns_;  // to an invocation
  uint16_t q_, block_, weights_;              // q: [head][rows]; weights: [rows][keys]
  Dim batch_, tile_, local_, row_, column_;
};

void Tile::Fill(uint16_t view, const Lines& lines,
                absl::FunctionRef<Dim(const Dim& i, const Dim& j)> place) {
  const int64_t across = lines.length / lines.lanes, vectors = lines.count * across;
  for (int64_t first = 0; first < vectors; first += kThreads) {
    const Dim at = local_ + first;
    auto copy = [&] {
      const Dims of = Unflatten(at, {lines.count, across});
      const Dim j = of[1] * lines.lanes;
      const Position line = Guard(m_, lines.first + of[0], lines.extent);
      const Val v =
          Where(line.inside, a_.Load(m_, lines.operand, batch_, line.at, j, lines.lanes), 0);
      for (int c = 0; c < lines.lanes; ++c)
        m_.b.Store(view, m_.e.Value(place(of[0], j + c)),
                   lines.lanes == 1 ? v : m_.b.Extract(v, c));
    };
    if (first + kThreads <= vectors)
      copy();
    else
      m_.b.If(m_.e.Value(at) < static_cast<double>(vectors), copy);
  }
}

// Of this invocation's rows and keys.
Vals Tile::Products() {
  Builder& b = m_.b;
  const int64_t step = a_.head % 8 == 0 ? 8 : a_.head % 4 == 0 ? 4 : 1;
  return b.For({b.Int(0), b.Int(a_.head), b.Int(step), Builder::Range::kNot},
               Vals(own_rows_ * own_keys_, b.Literal(a_.type, 0)), [&](Val i, Vals sums) {
                 const Dim first = m_.e.Coordinate(i, a_.head - step, step);
                 for (int64_t s = 0; s < step; ++s) {
                   Vals rows, keys;
                   for (size_t r = 0; r < own_rows_; ++r)
                     rows.push_back(LoadAt(q_, (first + s) * Pitch(t_.rows) + OwnRow(r)));
                   for (size_t k = 0; k < own_keys_; ++k)
                     keys.push_back(LoadAt(block_, (first + s) * Pitch(t_.keys) + OwnKey(k)));
                   AddProducts(rows, keys, sums);
                 }
                 return sums;
               });
}

Vals Tile::Scores(const Dim& first) {
  Vals scores = Products();
  for (size_t n = 0; n < scores.size(); ++n) {
    const Position row = Guard(m_, tile_ * t_.rows + OwnRow(n / own_keys_), a_.rows);
    const Position key = Guard(m_, first + OwnKey(n % own_keys_), a_.keys);
    const Val mask = a_.masked ? a_.Load(m_, Operand::kMask, batch_, row.at, key.at, 1) : Val();
    scores[n] = a_.Score(m_, row.at, key, scores[n], mask);
  }
  return scores;
}

void Tile::StoreWeights(const Vals& weights) {
  for (size_t n = 0; n < weights.size(); ++n)
    m_.b.Store(weights_, m_.e.Value(OwnRow(n / own_keys_) * Pitch(t_.keys) + OwnKey(n % own_keys_)),
               weights[n]);
}

// The block's weights and weighted values to the rows' sums.
void Tile::Accumulate(OnlineRows& rows) {
  const int64_t pitch = Pitch(static_cast<int64_t>(own_columns_) * kColumnThreads);
  Builder& b = m_.b;
  const Vals sums =
      b.For({b.Int(0), b.Int(t_.keys), b.Int(4), Builder::Range::kNot}, Flat(rows),
            [&](Val i, const Vals& carried) {
              OnlineRows part = Rows(carried, own_rows_);
              const Dim first = m_.e.Coordinate(i, t_.keys - 4, 4);
              for (int64_t s = 0; s < 4; ++s) {
                Vals values;
                for (size_t c = 0; c < own_columns_; ++c)
                  values.push_back(LoadAt(block_, (first + s) * pitch +
                                                      column_ * static_cast<int64_t>(own_columns_) +
                                                      static_cast<int64_t>(c)));
                for (size_t r = 0; r < own_rows_; ++r) {
                  const Val w = LoadAt(weights_, OwnRow(r) * Pitch(t_.keys) + first + s);
                  part[r].sum = part[r].sum + w;
                  for (size_t c = 0; c < own_columns_; ++c)
                    part[r].values[c] = fma(w, values[c], part[r].values[c]);
                }
              }
              return Flat(part);
            });
  rows = Rows(sums, own_rows_);
}

void Tile::Block(const Dim& first, OnlineRows& rows) {
  Builder& b = m_.b;
  Fill(block_, {Operand::kK, first, a_.keys, t_.keys, a_.head, a_.k_lanes},
       [&](const Dim& i, const Dim& j) { return j * Pitch(t_.keys) + i; });
  b.Barrier();
  Vals weights = Scores(first);
  StoreWeights(weights);
  b.Barrier();
  for (size_t r = 0; r < own_rows_; ++r) {
    Vals scores;
    for (int64_t k = 0; k < t_.keys; ++k)
      scores.push_back(LoadAt(weights_, OwnRow(r) * Pitch(t_.keys) + k));
    Raise(rows[r], scores);
  }
  const int64_t pitch = Pitch(static_cast<int64_t>(own_columns_) * kColumnThreads);
  Fill(block_, {Operand::kV, first, a_.keys, t_.keys, a_.width, a_.v_lanes},
       [&](const Dim& i, const Dim& j) { return i * pitch + j; });
  for (size_t n = 0; n < weights.size(); ++n)
    weights[n] = exp(weights[n] - rows[n / own_keys_].top);
  b.Barrier();  // all have seen the scores
  StoreWeights(weights);
  b.Barrier();
  Accumulate(rows);
  b.Barrier();  // the next block overwrites this one
}

void Tile::Finish(const OnlineRow& row, size_t r) {
  const Position at = Guard(m_, tile_ * t_.rows + OwnRow(r), a_.rows);
  const Val divisor = Divisor(row);
  for (size_t c = 0; c < own_columns_; ++c) {
    const Dim column = column_ * static_cast<int64_t>(own_columns_) + static_cast<int64_t>(c);
    const Position to = Guard(m_, column, a_.width);
    auto store = [&] { m_.e.Finish(a_.Out(batch_, at.at, to.at), row.values[c] / divisor); };
    IfInside(m_.b, Both(at.inside, to.inside), store);
  }
}

void Tile::Run(const Dim& at) {
  const Dims place = Unflatten(at, {a_.batch, tiles_.count()});
  batch_ = place[0], tile_ = place[1];
  Builder& b = m_.b;
  local_ = m_.e.Coordinate(b.Builtin(BuiltinKind::kLocalX), kThreads - 1);
  row_ = FloorDiv(local_, kColumnThreads), column_ = Mod(local_, kColumnThreads);
  Fill(q_, {Operand::kQ, tile_ * t_.rows, a_.rows, t_.rows, a_.head, a_.q_lanes},
       [&](const Dim& i, const Dim& j) { return j * Pitch(t_.rows) + i; });
  const OnlineRows rows =
      ForBlocks(m_, a_, {tile_ * t_.rows, t_.rows, t_.keys}, own_rows_, own_columns_,
                [&](const Dim& first, OnlineRows& so_far) { Block(first, so_far); });
  for (size_t r = 0; r < own_rows_; ++r) Finish(rows[r], r);
}

Program Emit(const Region& r, const AttentionOperands& a, const AttentionShared& t) {
  Emission m(r, fmt::format("attention_shared_{}x{}", t.rows, t.keys),
             {static_cast<uint32_t>(kThreads), 1, 1});
  Tile tile(m, a, t);
  m.Guarded(m.Workgroups(tile.count()), [&](const Dim& at) { tile.Run(at); });
  return OneLaunch(std::move(m).Take());
}

}  // namespace

const Schedule kAttentionShared =
    ScheduleOn<AttentionShared, AttentionOf, Defaults, Fits, Emit>("attention_shared");

}  // namespace forge::codegen
