// SPDX-License-Identifier: Apache-2.0
// The gradients of attention by workgroups, in two launches: one has some rows and goes over the
// keys, for dq; the other has some keys and goes over the rows, for dk and dv. Both keep their sums
// in registers, and the products that give probabilities and their gradients go through shared
// memory in slices. Nobody waits for another workgroup, and sums have one order.
#include "ir/ops/product/attention_gradient.h"

#include "codegen/schedules/attention/attention.h"
#include "codegen/schedules/workgroup.h"

namespace forge::codegen {
namespace {
namespace attention_gradient {

using ir::Dim;
using ir::Dims;
using Op = ir::AttentionGradient;

constexpr int64_t kStep = 4;  // lines whose products are added at once

struct AttentionGradientTiles {
  int64_t own = 32, other = 32, slice = 16;
  static constexpr Field kFields[] = {
      FieldOf<&AttentionGradientTiles::own>("own", "Rows or keys of a workgroup.", "8|16|32"),
      FieldOf<&AttentionGradientTiles::other>("other", "Keys or rows at once.", "16|32"),
      FieldOf<&AttentionGradientTiles::slice>("slice", "Elements in shared memory.", "16|32|64")};
};

std::optional<AttentionOperands> GradientOf(const Region& r) {
  const auto* op = r.AnchorAs<Op>();
  if (op == nullptr) return std::nullopt;
  std::optional<AttentionOperands> a = OperandsOf(r, op->forward(), Op::kMask);
  return a && a->width > 0 ? a : std::nullopt;
}

int64_t OwnColumns(int64_t length) {
  return (length + TileThreads::kColumns - 1) / TileThreads::kColumns;
}

// What shared memory holds at once.
struct Extents {
  int64_t values;  // lines of the other side whose elements are added at once
  int64_t pitch;   // between them
  SharedArray own, other, weights;
  Extents(const AttentionOperands& a, const AttentionGradientTiles& t)
      : values(t.other),
        pitch(Pitch(OwnColumns(std::max(a.head, a.width)) * TileThreads::kColumns)),
        own{a.type, t.slice * Pitch(t.own)},
        weights{a.type, t.own * Pitch(t.other)} {
    const int64_t slice = t.slice * Pitch(t.other);
    while (values > kStep && values * pitch > slice) values /= 2;
    other = {a.type, std::max(slice, values * pitch)};
  }
  std::array<SharedArray, 4> Arrays() const { return {own, other, weights, weights}; }
};

// Sums of an invocation, which registers hold.
int64_t OwnSums(const AttentionOperands& a, const AttentionGradientTiles& t) {
  return t.own / TileThreads::kRows * (OwnColumns(a.head) + OwnColumns(a.width));
}
constexpr int64_t kMostSums = 64, kSumsUnasked = 32;

AttentionGradientTiles Defaults(const Region& r, const AttentionOperands& a) {
  const Caps& caps = r.caps();
  AttentionGradientTiles best{.own = 8, .other = 16};
  const int64_t most = caps.few_registers() ? 16 : 32;
  for (const int64_t own : {16, 32})
    for (const int64_t other : {16, 32}) {
      const AttentionGradientTiles t{.own = own, .other = other};
      if (own <= most && other <= most && OwnSums(a, t) <= kSumsUnasked &&
          SharedBytes(Extents(a, t).Arrays()) <= caps.max_shared_bytes)
        best = t;
    }
  return best;
}

Verdict Fits(const Region& r, const AttentionOperands& a, const AttentionGradientTiles& t) {
  const Caps& caps = r.caps();
  if (caps.runs_on_cpu) return Verdict::No("barriers are dear on this device");
  if (OwnSums(a, t) > kMostSums) return Verdict::No("sums do not fit registers");
  return WorkgroupFits(TileThreads::kAll, caps, Extents(a, t).Arrays());
}

// The operands of one side: a line is a row, with q and dy, or a key, with k and v.
struct Side {
  Op::Operand product, value;  // what scores, and what gradients of probabilities, are made of
  Dim extent;
};

// A tile of one side's lines, to which the other side's lines come in blocks.
class Tile {
 public:
  Tile(Emission& m, const AttentionOperands& a, const AttentionGradientTiles& t, bool of_rows);
  Dim count() const { return ir::Product(places_) * lines_.count(); }
  void Run(const Dim& at);

 private:
  int64_t Length(Op::Operand which) const {
    return which == Op::kV || which == Op::kDy ? a_.width : a_.head;
  }
  const Dims& Shape(int which) const {
    return m_.region.anchor_inputs()[static_cast<size_t>(which)].shape();
  }
  // An element of an operand of the matrix at hand.
  Val Load(int which, const Dim& i, const Dim& j, int lanes = 1) const;
  // Stores lines of an operand from `first` on, their elements from `begin` on, 0 beyond extents:
  // `count` lines and `across` elements in columns, or in lines where `pitch` is given.
  struct Part {
    Op::Operand which = Op::kQ;
    Dim first, extent;  // of lines
    int64_t count = 0;
    Dim begin = 0;  // of elements
    int64_t across = 0, pitch = 0;
  };
  void Fill(uint16_t view, const Part& part);
  Vals Products(Op::Operand own, Op::Operand other, const Dim& first);
  // Adds weights times the other side's lines to sums of [own line][own column].
  Vals AddLines(uint16_t weights, Op::Operand which, const Dim& first, Vals sums);
  Vals Block(const Dim& first, Vals sums);
  // Of a pair of lines: its probability, and the gradient of what its product gave.
  struct Weights {
    Val p, ds;
  };
  Weights Of(const Position& own, const Position& other, Val product, Val dp);
  Vals AllBlocks(Vals sums);
  void Finish(const Vals& sums, int64_t length, int result);

  Dim OwnLine(size_t i) const { return row_ * static_cast<int64_t>(own_) + int64_t(i); }
  Dim OtherLine(size_t i) const { return column_ * static_cast<int64_t>(other_) + int64_t(i); }
  Val LoadAt(uint16_t view, const Dim& at) { return m_.b.Load(view, m_.e.Value(at)); }
  static size_t Columns(int64_t length) { return static_cast<size_t>(OwnColumns(length)); }

  Emission& m_;
  const AttentionOperands& a_;
  const AttentionGradientTiles& t_;
  const bool of_rows_;
  const Side own_side_, other_side_;
  const TiledAxis lines_;
  const size_t own_, other_;  // lines of an invocation
  const Extents extents_;
  Dims places_, repeats_;  // leading axes of results; how often the other side comes with each
  uint16_t own_view_, other_view_, p_, ds_;  // own, other: [element][line]; p, ds: [own][other]
  Dims place_, outer_;                       // this workgroup's; that of rows
  Dim tile_, local_, row_, column_;
};

Tile::Tile(Emission& m, const AttentionOperands& a, const AttentionGradientTiles& t, bool of_rows)
    : m_(m),
      a_(a),
      t_(t),
      of_rows_(of_rows),
      own_side_(of_rows ? Side{Op::kQ, Op::kDy, a.rows} : Side{Op::kK, Op::kV, a.keys}),
      other_side_(of_rows ? Side{Op::kK, Op::kV, a.keys} : Side{Op::kQ, Op::kDy, a.rows}),
      lines_{own_side_.extent, t.own},
      own_(static_cast<size_t>(t.own / TileThreads::kRows)),
      other_(static_cast<size_t>(t.other / TileThreads::kColumns)),
      extents_(a, t),
      places_(a.outer),
      repeats_(a.outer.size(), 1) {
  if (!of_rows) {
    const Dims& k = Shape(Op::kK);
    places_.assign(k.begin(), k.end() - 2);
    const size_t lacking = a.outer.size() - places_.size();
    for (size_t i = 0; i < a.outer.size(); ++i)
      if (i < lacking || places_[i - lacking] == Dim(1)) repeats_[i] = a.outer[i];
  }
  own_view_ = m.AddShared("own", extents_.own);
  other_view_ = m.AddShared("other", extents_.other);
  ds_ = m.AddShared("ds", extents_.weights);
  p_ = of_rows ? ds_ : m.AddShared("p", extents_.weights);
}

Val Tile::Load(int which, const Dim& i, const Dim& j, int lanes) const {
  Dims index = outer_;
  index.push_back(i);
  index.push_back(j + m_.e.Lane(lanes));
  return m_.e.At(which, BroadcastIndex(index, Shape(which)), lanes);
}

void Tile::Fill(uint16_t view, const Part& part) {
  const int lanes = std::min(LanesAlongLast(m_.region, part.which), LanesFor(part.across));
  const SharedLines to{.view = view,
                       .count = part.count,
                       .length = part.across,
                       .lanes = lanes,
                       .pitch = part.pitch};
  FillShared(m_, local_, to, [&](const Dim& line, const Dim& element) {
    return LoadWithin(m_, {part.first + line, part.extent},
                      {part.begin + element, Length(part.which)},
                      [&](const Dim& i, const Dim& j) { return Load(part.which, i, j, lanes); });
  });
}

Vals Tile::Products(Op::Operand own, Op::Operand other, const Dim& first) {
  Builder& b = m_.b;
  const int64_t length = Length(own), slice = t_.slice, last = (length - 1) / slice * slice;
  const auto add = [&](Val i, Vals sums) {
    const Dim element = m_.e.Coordinate(i, slice - kStep, kStep);
    for (int64_t s = 0; s < kStep; ++s) {
      Vals mine, theirs;
      for (size_t n = 0; n < own_; ++n)
        mine.push_back(LoadAt(own_view_, (element + s) * Pitch(t_.own) + OwnLine(n)));
      for (size_t n = 0; n < other_; ++n)
        theirs.push_back(LoadAt(other_view_, (element + s) * Pitch(t_.other) + OtherLine(n)));
      AddProducts(mine, theirs, sums);
    }
    return sums;
  };
  return b.For({b.Int(0), b.Int(length), b.Int(slice), Builder::Range::kNot},
               Vals(own_ * other_, b.Literal(a_.type, 0)), [&](Val i, Vals sums) {
                 const Dim begin = m_.e.Coordinate(i, last, slice);
                 Fill(own_view_, {.which = own,
                                  .first = tile_ * t_.own,
                                  .extent = own_side_.extent,
                                  .count = t_.own,
                                  .begin = begin,
                                  .across = slice});
                 Fill(other_view_, {.which = other,
                                    .first = first,
                                    .extent = other_side_.extent,
                                    .count = t_.other,
                                    .begin = begin,
                                    .across = slice});
                 b.Barrier();
                 sums = b.For({b.Int(0), b.Int(slice), b.Int(kStep), Builder::Range::kNot},
                              std::move(sums), add);
                 b.Barrier();  // the next slices overwrite these
                 return sums;
               });
}

Tile::Weights Tile::Of(const Position& own, const Position& other, Val product, Val dp) {
  const Position &row = of_rows_ ? own : other, &key = of_rows_ ? other : own;
  const auto mask = [&] {
    Dims index = outer_;
    index.push_back(row.at);
    index.push_back(key.at);
    return m_.e.At(Op::kMask, BroadcastIndex(index, Shape(Op::kMask)), 1);
  };
  const Val score = a_.Score(m_, row.at, key, product, a_.masked ? mask() : Val());
  const Val p = Where(row.inside, exp(score - Load(Op::kLogSum, row.at, 0)), 0);
  Val ds = p * (dp - Load(Op::kDelta, row.at, 0)) * a_.scale;
  if (a_.softcap != 0) {
    const Val t = tanh(product * a_.scale / a_.softcap);
    ds = ds * (1.0 - t * t);
  }
  return {p, ds};
}

Vals Tile::AddLines(uint16_t weights, Op::Operand which, const Dim& first, Vals sums) {
  Builder& b = m_.b;
  const size_t columns = Columns(Length(which));
  Dims own_columns;  // beyond the length, its last one: only what is there was written
  for (size_t c = 0; c < columns; ++c)
    own_columns.push_back(
        Guard(m_, column_ * static_cast<int64_t>(columns) + int64_t(c), Length(which)).at);
  const int64_t step = extents_.values;
  const auto add = [&](const Dim& begin, Val i, Vals sums) {
    const Dim line = m_.e.Coordinate(i, step - kStep, kStep);
    for (int64_t s = 0; s < kStep; ++s) {
      Vals by, values;
      for (size_t n = 0; n < own_; ++n)
        by.push_back(LoadAt(weights, OwnLine(n) * Pitch(t_.other) + begin + line + s));
      for (const Dim& column : own_columns)
        values.push_back(LoadAt(other_view_, (line + s) * extents_.pitch + column));
      AddProducts(by, values, sums);
    }
    return sums;
  };
  return b.For({b.Int(0), b.Int(t_.other), b.Int(step), Builder::Range::kNot}, std::move(sums),
               [&](Val i, Vals sums) {
                 const Dim begin = m_.e.Coordinate(i, t_.other - step, step);
                 Fill(other_view_, {.which = which,
                                    .first = first + begin,
                                    .extent = other_side_.extent,
                                    .count = step,
                                    .across = Length(which),
                                    .pitch = extents_.pitch});
                 b.Barrier();
                 sums = b.For({b.Int(0), b.Int(step), b.Int(kStep), Builder::Range::kNot},
                              std::move(sums),
                              [&](Val j, Vals so_far) { return add(begin, j, std::move(so_far)); });
                 b.Barrier();  // the next lines overwrite these
                 return sums;
               });
}

Vals Tile::Block(const Dim& first, Vals sums) {
  const Vals products = Products(own_side_.product, other_side_.product, first);
  const Vals dp = Products(own_side_.value, other_side_.value, first);
  for (size_t n = 0; n < products.size(); ++n) {
    const size_t i = n / other_, j = n % other_;
    const Weights w = Of(Guard(m_, tile_ * t_.own + OwnLine(i), own_side_.extent),
                         Guard(m_, first + OtherLine(j), other_side_.extent), products[n], dp[n]);
    const Val place = m_.e.Value(OwnLine(i) * Pitch(t_.other) + OtherLine(j));
    m_.b.Store(ds_, place, w.ds);
    if (!of_rows_) m_.b.Store(p_, place, w.p);
  }
  const auto head = static_cast<ptrdiff_t>(own_ * Columns(a_.head));
  Vals of_products = AddLines(ds_, other_side_.product, first, {sums.begin(), sums.begin() + head});
  if (of_rows_) return of_products;
  const Vals of_values = AddLines(p_, other_side_.value, first, {sums.begin() + head, sums.end()});
  of_products.insert(of_products.end(), of_values.begin(), of_values.end());
  return of_products;
}

Vals Tile::AllBlocks(Vals sums) {
  const Dim begin = tile_ * t_.own, end = begin + t_.own - 1;
  Between seen;
  if (of_rows_) {
    if (a_.first) seen.first = begin + *a_.first;
    if (a_.last) seen.last = end + *a_.last;
  } else {
    if (a_.last) seen.first = begin - *a_.last;
    if (a_.first) seen.last = end - *a_.first;
  }
  const int64_t last = LastIndex(CeilDiv(other_side_.extent, t_.other));
  return m_.b.For(BlocksOf(m_, other_side_.extent, t_.other, seen), std::move(sums),
                  [&](Val i, Vals so_far) {
                    return Block(m_.e.Coordinate(i, last) * t_.other, std::move(so_far));
                  });
}

void Tile::Finish(const Vals& sums, int64_t length, int result) {
  const size_t columns = Columns(length);
  for (size_t i = 0; i < own_; ++i) {
    const Position line = Guard(m_, tile_ * t_.own + OwnLine(i), own_side_.extent);
    for (size_t c = 0; c < columns; ++c) {
      const Position column =
          Guard(m_, column_ * static_cast<int64_t>(columns) + int64_t(c), length);
      IfInside(m_.b, Both(line.inside, column.inside), [&] {
        Dims index = place_;
        index.push_back(line.at);
        index.push_back(column.at);
        m_.e.Finish(index, sums[i * columns + c], 1, result);
      });
    }
  }
}

void Tile::Run(const Dim& at) {
  Dims axes = places_;
  axes.push_back(lines_.count());
  place_ = Unflatten(at, axes);
  tile_ = place_.back();
  place_.pop_back();
  local_ = m_.e.Coordinate(m_.b.Builtin(BuiltinKind::kLocalX), TileThreads::kAll - 1);
  row_ = FloorDiv(local_, TileThreads::kColumns), column_ = Mod(local_, TileThreads::kColumns);
  const size_t head = own_ * Columns(a_.head), width = of_rows_ ? 0 : own_ * Columns(a_.width);
  const Vals none(head + width, m_.b.Literal(a_.type, 0));
  const size_t lacking = a_.outer.size() - places_.size();
  const Vals sums = m_.Loop(ir::Product(repeats_), none, [&](const Dim& repeat, Vals so_far) {
    outer_ = Unflatten(repeat, repeats_);
    for (size_t i = lacking; i < outer_.size(); ++i)
      if (of_rows_ || !(places_[i - lacking] == Dim(1))) outer_[i] = place_[i - lacking];
    return AllBlocks(std::move(so_far));
  });
  const auto middle = sums.begin() + static_cast<ptrdiff_t>(head);
  Finish({sums.begin(), middle}, a_.head, of_rows_ ? 0 : 1);
  if (!of_rows_) Finish({middle, sums.end()}, a_.width, 2);
}

Launch EmitSide(const Region& r, const AttentionOperands& a, const AttentionGradientTiles& t,
                bool of_rows) {
  Emission m(r,
             fmt::format("attention_gradient_{}x{}_by_{}_{}", t.own, t.other, t.slice,
                         of_rows ? "rows" : "keys"),
             {static_cast<uint32_t>(TileThreads::kAll), 1, 1});
  Tile tile(m, a, t, of_rows);
  m.Guarded(m.Workgroups(tile.count()), [&](const Dim& at) { tile.Run(at); });
  return std::move(m).Take();
}

Program Emit(const Region& r, const AttentionOperands& a, const AttentionGradientTiles& t) {
  Program program = OneLaunch(EmitSide(r, a, t, true));
  program.launches.push_back(EmitSide(r, a, t, false));
  return program;
}

}  // namespace attention_gradient
}  // namespace

const Schedule kAttentionGradient =
    ScheduleOn<attention_gradient::AttentionGradientTiles, attention_gradient::GradientOf,
               attention_gradient::Defaults, attention_gradient::Fits, attention_gradient::Emit>(
        "attention_gradient");

}  // namespace forge::codegen
