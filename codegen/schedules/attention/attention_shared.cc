// SPDX-License-Identifier: Apache-2.0
// Attention by workgroups: rows of Q, a block of keys, then of values, and the block's weights in
// shared memory. What suits GPUs. Where heads are too long for shared memory, they go through it in
// slices. Where rows are too few to fill a device, several workgroups share the keys of a row
// (flash decoding), and a second launch combines what they have of it.
#include "codegen/schedules/attention/attention.h"
#include "codegen/schedules/split.h"
#include "codegen/schedules/workgroup.h"

namespace forge::codegen {
namespace {
namespace attention_shared {

using ir::Dim;
using ir::Dims;
using Operand = AttentionOperands::Operand;

constexpr int64_t kStep = 4;  // keys whose values are added at once
constexpr int64_t kLeastSlice = 16, kMostSlice = 64;

struct AttentionShared {
  int64_t rows = 32, keys = 32;  // to a workgroup at once
  int64_t slice = 0;             // elements of those, the same; 0: all
  int64_t parts = 1;             // of all keys, each a workgroup's
  static constexpr Field kFields[] = {
      FieldOf<&AttentionShared::rows>("rows", "Of Q to a workgroup.", "8|16|32|64"),
      FieldOf<&AttentionShared::keys>("keys", "In shared memory.", "16|32|64"),
      FieldOf<&AttentionShared::slice>("slice", "Of a key in shared memory; 0: all.", "0|16|32|64"),
      FieldOf<&AttentionShared::parts>("parts", "Workgroups that share a row's keys.",
                                       "1|4|16|64")};
};

// Columns of the result, whole ones to each invocation.
int64_t OwnColumns(const AttentionOperands& a) {
  return (a.width + TileThreads::kColumns - 1) / TileThreads::kColumns;
}

// What shared memory holds at once.
struct Extents {
  int64_t depth, values;  // elements of Q and K, keys of V
  SharedArray q, block, weights;
  Extents(const AttentionOperands& a, const AttentionShared& t)
      : depth(t.slice > 0 ? t.slice : a.head),
        values(t.keys),
        q{a.type, depth * Pitch(t.rows)},
        weights{a.type, t.rows * Pitch(t.keys)} {
    const int64_t of_keys = depth * Pitch(t.keys),
                  line = Pitch(OwnColumns(a) * TileThreads::kColumns);
    while (t.slice > 0 && values > kStep && values * line > of_keys) values /= 2;
    block = {a.type, std::max(of_keys, values * line)};
  }
  std::array<SharedArray, 3> Arrays() const { return {q, block, weights}; }
};

// Sums of an invocation, which registers hold.
int64_t OwnSums(const AttentionOperands& a, const AttentionShared& t) {
  return t.rows / TileThreads::kRows * OwnColumns(a);
}
constexpr int64_t kMostSums = 64, kSumsUnasked = 32;

// What is kept of a row and part: its values, the largest score and the sum.
Dim LineOf(const AttentionOperands& a, const Dim& part) { return part * (a.width + 2); }
int64_t ScratchBytes(const AttentionOperands& a, int64_t parts) {
  return (LineOf(a, a.batch * a.rows * parts) * ElementBytes(a.type)).max();
}

int64_t PartsFor(const Region& r, const AttentionOperands& a, int64_t rows) {
  const int64_t tiles = (a.batch * CeilDiv(a.rows, rows)).max();
  const int64_t parts = kSplitAttention.PartsOf(tiles, a.keys.min());
  return ScratchFits(r, ScratchBytes(a, parts)) ? parts : 1;
}

// The largest tile that shared memory holds and the rows fill, of whole keys where there is one.
AttentionShared Defaults(const Region& r, const AttentionOperands& a) {
  const Caps& caps = r.caps();
  const auto holds = [&](const AttentionShared& t) {
    return SharedBytes(Extents(a, t).Arrays()) <= caps.max_shared_bytes;
  };
  AttentionShared best{.rows = 8, .keys = 16};
  const bool whole = holds(best);
  if (!whole) best.slice = kLeastSlice;
  // By the estimates of tools/propose-defaults for each class of device.
  const bool only_64 = caps.min_subgroup_size == 64 && caps.max_subgroup_size == 64,
             narrow = 1 < caps.min_subgroup_size && caps.min_subgroup_size <= 8;
  const int64_t most_rows = caps.few_registers() || only_64 ? 16 : 32;
  const int64_t most_keys = caps.few_registers() ? 16 : narrow ? 64 : 32;
  for (int64_t rows = 8; rows <= most_rows; rows *= 2)
    for (int64_t keys = 16; keys <= most_keys; keys *= 2) {
      if (rows > 8 && a.rows.max() <= rows / 2) continue;
      AttentionShared t{.rows = rows, .keys = keys};
      if (whole && holds(t)) best = t;
      if (whole || OwnSums(a, t) > kSumsUnasked) continue;
      for (t.slice = kLeastSlice; t.slice <= kMostSlice; t.slice *= 2)
        if (holds(t)) best = t;
    }
  best.parts = PartsFor(r, a, best.rows);
  return best;
}

Verdict Fits(const Region& r, const AttentionOperands& a, const AttentionShared& t) {
  const Caps& caps = r.caps();
  if (caps.runs_on_cpu) return Verdict::No("barriers are dear on this device");
  if (t.slice >= std::max<int64_t>(a.head, 1)) return Verdict::No("a key is one slice");
  if (t.slice > 0 && OwnSums(a, t) > kMostSums) return Verdict::No("sums do not fit registers");
  if (t.parts > 1 && a.keys.max() < t.parts * t.keys) return Verdict::No("keys are few");
  if (Verdict v = PartsFit(r, t.parts, ScratchBytes(a, t.parts)); !v) return v;
  return WorkgroupFits(TileThreads::kAll, caps, Extents(a, t).Arrays());
}

class Tile {
 public:
  Tile(Emission& m, const AttentionOperands& a, const AttentionShared& t)
      : m_(m),
        a_(a),
        t_(t),
        tiles_{a.rows, t.rows},
        own_rows_(static_cast<size_t>(t.rows / TileThreads::kRows)),
        own_keys_(static_cast<size_t>(t.keys / TileThreads::kColumns)),
        own_columns_(static_cast<size_t>(OwnColumns(a))),
        extents_(a, t) {
    q_ = m.AddShared("q", extents_.q);
    block_ = m.AddShared("block", extents_.block);
    weights_ = m.AddShared("weights", extents_.weights);
  }
  Dim count() const { return a_.batch * tiles_.count() * t_.parts; }
  void Run(const Dim& at);

 private:
  // Copies an operand's lines from `first` on, of Q and K their elements from `begin` on, to shared
  // memory, where lines of Q and K are columns; 0 for what is beyond its extent.
  void Fill(Operand which, const Dim& first, const Dim& begin = 0);
  Vals Scores(const Dim& first);  // [row * own_keys + key]
  Vals Products(const Dim& first);
  Vals AddSlice(Vals sums);
  void StoreWeights(const Vals& weights);
  void AddValues(const Dim& first, OnlineRows& rows);
  void AddPart(const Dim& begin, OnlineRows& rows);
  void Block(const Dim& first, OnlineRows& rows);
  void Keep(OnlineRows& rows, size_t r);  // in scratch
  Dim OwnRow(size_t r) const { return row_ * static_cast<int64_t>(own_rows_) + int64_t(r); }
  Dim OwnKey(size_t k) const { return column_ * static_cast<int64_t>(own_keys_) + int64_t(k); }
  Dim OwnColumn(size_t c) const {
    return column_ * static_cast<int64_t>(own_columns_) + int64_t(c);
  }
  int64_t value_pitch() const { return Pitch(OwnColumns(a_) * TileThreads::kColumns); }
  bool sliced() const { return t_.slice > 0; }
  Val LoadAt(uint16_t view, const Dim& at) { return m_.b.Load(view, m_.e.Value(at)); }

  Emission& m_;
  const AttentionOperands& a_;
  const AttentionShared& t_;
  TiledAxis tiles_;
  size_t own_rows_, own_keys_, own_columns_;  // to an invocation
  Extents extents_;
  uint16_t q_, block_, weights_;  // q: [depth][rows]; weights: [rows][keys]
  Dim batch_, tile_, part_, local_, row_, column_;
};

void Tile::Fill(Operand which, const Dim& first, const Dim& begin) {
  const bool is_q = which == Operand::kQ, is_v = which == Operand::kV;
  const SharedLines to{.view = is_q ? q_ : block_,
                       .count = is_q   ? t_.rows
                                : is_v ? extents_.values
                                       : t_.keys,
                       .length = is_v ? a_.width : extents_.depth,
                       .lanes = a_.lanes[which],
                       .pitch = is_v ? value_pitch() : 0};
  FillShared(m_, local_, to, [&](const Dim& line, const Dim& element) {
    return LoadWithin(
        m_, {first + line, is_q ? a_.rows : a_.keys}, {begin + element, a_.length(which)},
        [&](const Dim& i, const Dim& j) { return a_.Load(m_, which, batch_, i, j, to.lanes); });
  });
}

// Of this invocation's rows and keys.
Vals Tile::Products(const Dim& first) {
  Builder& b = m_.b;
  const int64_t depth = std::max<int64_t>(extents_.depth, 1), last = (a_.head - 1) / depth * depth;
  return b.For({b.Int(0), b.Int(a_.head), b.Int(depth), Builder::Range::kNot},
               Vals(own_rows_ * own_keys_, b.Literal(a_.type, 0)), [&](Val i, Vals sums) {
                 const Dim begin = m_.e.Coordinate(i, last, depth);
                 if (sliced()) Fill(Operand::kQ, tile_ * t_.rows, begin);
                 Fill(Operand::kK, first, begin);
                 b.Barrier();
                 sums = AddSlice(std::move(sums));
                 if (sliced()) b.Barrier();  // the next one overwrites this one
                 return sums;
               });
}

Vals Tile::AddSlice(Vals sums) {
  Builder& b = m_.b;
  const int64_t depth = extents_.depth, step = depth % 8 == 0 ? 8 : depth % 4 == 0 ? 4 : 1;
  return b.For({b.Int(0), b.Int(depth), b.Int(step), Builder::Range::kNot}, std::move(sums),
               [&](Val i, Vals sums) {
                 const Dim first = m_.e.Coordinate(i, depth - step, step);
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
  Vals scores = Products(first);
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
void Tile::AddValues(const Dim& first, OnlineRows& rows) {
  Builder& b = m_.b;
  const int64_t step = extents_.values;
  rows.all = b.For({b.Int(0), b.Int(t_.keys), b.Int(step), Builder::Range::kNot}, rows.all,
                   [&](Val i, const Vals& carried) {
                     OnlineRows part{own_columns_, carried};
                     const Dim begin = m_.e.Coordinate(i, t_.keys - step, step);
                     if (sliced()) Fill(Operand::kV, first + begin);
                     b.Barrier();
                     AddPart(begin, part);
                     b.Barrier();  // what comes next overwrites this
                     return part.all;
                   });
}

// Those of the keys in shared memory, which begin at `begin` of the block.
void Tile::AddPart(const Dim& begin, OnlineRows& rows) {
  Builder& b = m_.b;
  Dims columns;  // beyond the width, its last one: only what is there was written
  for (size_t c = 0; c < own_columns_; ++c) columns.push_back(Guard(m_, OwnColumn(c), a_.width).at);
  const auto add = [&](const Dim& key, OnlineRows& to) {
    Vals values;
    for (size_t c = 0; c < own_columns_; ++c)
      values.push_back(LoadAt(block_, key * value_pitch() + columns[c]));
    for (size_t r = 0; r < own_rows_; ++r) {
      const Val w = LoadAt(weights_, OwnRow(r) * Pitch(t_.keys) + begin + key);
      to.sum(r) = to.sum(r) + w;
      for (size_t c = 0; c < own_columns_; ++c) to.value(r, c) = fma(w, values[c], to.value(r, c));
    }
  };
  rows.all = b.For({b.Int(0), b.Int(extents_.values), b.Int(kStep), Builder::Range::kNot}, rows.all,
                   [&](Val i, const Vals& carried) {
                     OnlineRows part{own_columns_, carried};
                     const Dim first = m_.e.Coordinate(i, extents_.values - kStep, kStep);
                     for (int64_t s = 0; s < kStep; ++s) add(first + s, part);
                     return part.all;
                   });
}

void Tile::Block(const Dim& first, OnlineRows& rows) {
  Builder& b = m_.b;
  Vals weights = Scores(first);
  StoreWeights(weights);
  b.Barrier();
  for (size_t r = 0; r < own_rows_; ++r) {
    Vals scores;
    for (int64_t k = 0; k < t_.keys; ++k)
      scores.push_back(LoadAt(weights_, OwnRow(r) * Pitch(t_.keys) + k));
    rows.Raise(r, scores);
  }
  if (!sliced()) Fill(Operand::kV, first);
  for (size_t n = 0; n < weights.size(); ++n)
    weights[n] = exp(weights[n] - rows.top(n / own_keys_));
  b.Barrier();  // all have seen the scores
  StoreWeights(weights);
  AddValues(first, rows);
}

void Tile::Run(const Dim& at) {
  const Dims place = Unflatten(at, {a_.batch, tiles_.count(), t_.parts});
  batch_ = place[0], tile_ = place[1], part_ = place[2];
  Builder& b = m_.b;
  local_ = m_.e.Coordinate(b.Builtin(BuiltinKind::kLocalX), TileThreads::kAll - 1);
  row_ = FloorDiv(local_, TileThreads::kColumns), column_ = Mod(local_, TileThreads::kColumns);
  if (!sliced()) Fill(Operand::kQ, tile_ * t_.rows);
  const KeyBlocks blocks{.row = tile_ * t_.rows,
                         .count = t_.rows,
                         .size = t_.keys,
                         .own_rows = own_rows_,
                         .values = own_columns_,
                         .part = part_,
                         .parts = t_.parts};
  OnlineRows rows = ForBlocks(m_, a_, blocks,
                              [&](const Dim& first, OnlineRows& so_far) { Block(first, so_far); });
  for (size_t r = 0; r < own_rows_; ++r) {
    if (t_.parts > 1)
      Keep(rows, r);
    else
      rows.Finish(m_, a_, r,
                  {batch_, Guard(m_, tile_ * t_.rows + OwnRow(r), a_.rows), OwnColumn(0)});
  }
}

void Tile::Keep(OnlineRows& rows, size_t r) {
  const Position row = Guard(m_, tile_ * t_.rows + OwnRow(r), a_.rows);
  const Dim line = LineOf(a_, (batch_ * a_.rows + row.at) * t_.parts + part_);
  IfInside(m_.b, row.inside, [&] {
    for (size_t c = 0; c < own_columns_; ++c) {
      const Position column = Guard(m_, OwnColumn(c), a_.width);
      IfInside(m_.b, column.inside,
               [&] { m_.e.StoreScratch(0, line + column.at, rows.value(r, c)); });
    }
    m_.b.If(m_.e.Value(column_) == 0, [&] {
      m_.e.StoreScratch(0, line + a_.width, rows.top(r));
      m_.e.StoreScratch(0, line + a_.width + 1, rows.sum(r));
    });
  });
}

// An invocation for each element of the result.
Launch EmitCombine(const Region& r, const AttentionOperands& a, int64_t parts, std::string name) {
  const auto body = [&](Emission& m, const Dims& at) {
    OnlineRows all(m, a, 1, 1);
    all.all = m.Loop(parts, all.all, [&](const Dim& part, const Vals& carried) {
      OnlineRows so_far(1, carried);
      const Dim line = LineOf(a, (at[0] * a.rows + at[1]) * parts + part);
      const auto load = [&](const Dim& i) { return m.e.LoadScratch(0, a.type, line + i); };
      const Val top = load(a.width);
      so_far.Raise(0, {&top, 1});
      const Val weight = exp(top - so_far.top(0));
      so_far.sum(0) = fma(load(a.width + 1), weight, so_far.sum(0));
      so_far.value(0, 0) = fma(load(at[2]), weight, so_far.value(0, 0));
      return so_far.all;
    });
    all.Finish(m, a, 0, {at[0], {at[1], {}}, at[2]});
  };
  return ForPlaces(r, std::move(name), 64, {a.batch, a.rows, a.width}, body);
}

Program Emit(const Region& r, const AttentionOperands& a, const AttentionShared& t) {
  const std::string name =
      fmt::format("attention_shared_{}x{}{}{}", t.rows, t.keys,
                  t.slice > 0 ? fmt::format("_by_{}", t.slice) : "", SplitText(t.parts));
  Emission m(r, name, {static_cast<uint32_t>(TileThreads::kAll), 1, 1});
  Tile tile(m, a, t);
  m.Guarded(m.Workgroups(tile.count()), [&](const Dim& at) { tile.Run(at); });
  if (t.parts == 1) return OneLaunch(std::move(m).Take());
  return SplitProgram(
      std::move(m).Take(), ScratchBytes(a, t.parts), "_combine",
      [&](std::string combine) { return EmitCombine(r, a, t.parts, std::move(combine)); });
}

}  // namespace attention_shared
}  // namespace

const Schedule kAttentionShared =
    ScheduleOn<attention_shared::AttentionShared, AttentionOf, attention_shared::Defaults,
               attention_shared::Fits, attention_shared::Emit>("attention_shared");

}  // namespace forge::codegen
