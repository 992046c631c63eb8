// SPDX-License-Identifier: Apache-2.0
// Attention by subgroups, without shared memory or barriers: lanes own rows of Q, and each holds
// one key and value of a block, which all see by shuffles. What suits a device that runs on a CPU.
#include "codegen/schedules/attention/attention.h"

namespace forge::codegen {
namespace {
namespace attention_shuffle {

using ir::Dim;
using ir::Dims;
using Operand = AttentionOperands::Operand;

struct AttentionShuffle {
  int64_t subgroups = 4;
  int64_t rows = 2;  // of Q, to a lane
  static constexpr Field kFields[] = {
      FieldOf<&AttentionShuffle::subgroups>("subgroups", "Of a workgroup.", "1|2|4|8"),
      FieldOf<&AttentionShuffle::rows>("rows", "Of Q, to a lane.", "1|2|4")};
};

// A lane keeps its rows of Q and of the result in registers, and the kernel has an instruction for
// each element of them and key of a block.
constexpr int64_t kMostKept = 512, kKeptInRegisters = 256;

// Of so few rows for each lane, a kernel with two at once takes longer to compile than it gains.
constexpr int64_t kFewTiles = 4;

AttentionShuffle Defaults(const Region& r, const AttentionOperands& a) {
  const int64_t lanes = std::max<int64_t>(r.caps().subgroup_size, 1);
  AttentionShuffle t;
  if (2 * (a.head + a.width) > kKeptInRegisters || a.rows.max() <= kFewTiles * lanes) t.rows = 1;
  return t;
}

Verdict Fits(const Region& r, const AttentionOperands& a, const AttentionShuffle& t) {
  const Caps& caps = r.caps();
  const int64_t lanes = caps.subgroup_size;
  if (Verdict v = ShufflesAreQuick(caps); !v) return v;
  if (a.type.elem != DType::kF32) return Verdict::No("sums are not kept in f32");
  if (t.rows * (a.head + a.width) > kMostKept)
    return Verdict::No(fmt::format("rows of {} and {} are long", a.head, a.width));
  return WorkgroupFits(t.subgroups * lanes, caps);
}

// The tile of one subgroup: all lanes' rows of one batch.
class Tile {
 public:
  Tile(Emission& m, const AttentionOperands& a, const AttentionShuffle& t)
      : m_(m),
        a_(a),
        own_(static_cast<size_t>(t.rows)),
        lanes_(static_cast<int>(m.region.caps().subgroup_size)),
        tiles_{a.rows, t.rows * lanes_} {}
  Dim count() const { return a_.batch * tiles_.count(); }
  void Run(const Dim& at);

 private:
  void Place(const Dim& at);
  Vals LoadRow(Operand which, const Dim& i);  // in vectors
  // Calls f(i, x) for each element x of the row that lane `lane` holds.
  void ForEach(const Vals& held, int lane, absl::FunctionRef<void(size_t i, Val x)> f);
  std::vector<Vals> Scores(const Dim& first, const Position& mine);  // [row][key]
  std::vector<Vals> Mask(const Dim& first, const Position& mine);    // the same
  void Block(const Dim& first, OnlineRows& rows);

  Emission& m_;
  const AttentionOperands& a_;
  size_t own_;
  int lanes_;
  TiledAxis tiles_;
  Dim batch_, first_, lane_;  // first_: row of the tile
  std::vector<Position> rows_;
  std::vector<Vals> q_;  // elements
};

void Tile::Place(const Dim& at) {
  const Dims tile = Unflatten(at, {a_.batch, tiles_.count()});
  batch_ = tile[0];
  first_ = tile[1] * tiles_.size;
  lane_ = m_.e.Coordinate(m_.b.Builtin(BuiltinKind::kLane), lanes_ - 1);
  for (size_t i = 0; i < own_; ++i) {
    const Dim row = first_ + static_cast<int64_t>(i) * lanes_ + lane_;
    rows_.push_back(Guard(m_, row, a_.rows));
    Vals& elements = q_.emplace_back();
    for (Val v : LoadRow(Operand::kQ, rows_.back().at)) Unpack(v, elements);
  }
}

Vals Tile::LoadRow(Operand which, const Dim& i) {
  const int lanes = a_.lanes[which];
  Vals out;
  for (int64_t j = 0; j < a_.length(which); j += lanes)
    out.push_back(a_.Load(m_, which, batch_, i, j, lanes));
  return out;
}

void Tile::ForEach(const Vals& held, int lane, absl::FunctionRef<void(size_t, Val)> f) {
  size_t i = 0;
  for (Val mine : held) {
    Vals elements;
    Unpack(m_.b.Shuffle(mine, m_.b.Int(lane)), elements);
    for (Val x : elements) f(i++, x);
  }
}

// What a mask says of each row and key. Shuffles carry no bools.
std::vector<Vals> Tile::Mask(const Dim& first, const Position& mine) {
  std::vector<Vals> out(own_);
  if (a_.mask_by_key) {
    Val held = a_.Load(m_, Operand::kMask, batch_, 0, mine.at, 1);
    if (a_.mask_chooses) held = convert(held, DType::kF32);
    for (int k = 0; k < lanes_; ++k) {
      const Val v = m_.b.Shuffle(held, m_.b.Int(k));
      for (Vals& row : out) row.push_back(a_.mask_chooses ? v != 0.0 : v);
    }
    return out;
  }
  for (size_t r = 0; r < own_; ++r)
    for (int k = 0, lanes = a_.lanes[Operand::kMask]; k < lanes_; k += lanes) {
      const Position key = Guard(m_, first + k, a_.keys);
      Unpack(a_.Load(m_, Operand::kMask, batch_, rows_[r].at, key.at, lanes), out[r]);
    }
  return out;
}

std::vector<Vals> Tile::Scores(const Dim& first, const Position& mine) {
  const Vals held = LoadRow(Operand::kK, mine.at);
  const std::vector<Vals> mask = a_.masked ? Mask(first, mine) : std::vector<Vals>();
  std::vector<Vals> out(own_);
  for (int k = 0; k < lanes_; ++k) {
    Vals products(own_, m_.b.Literal(a_.type, 0));
    ForEach(held, k, [&](size_t i, Val x) {
      for (size_t r = 0; r < own_; ++r) products[r] = fma(q_[r][i], x, products[r]);
    });
    const Position key = Guard(m_, first + k, a_.keys);
    for (size_t r = 0; r < own_; ++r) {
      const Val by = a_.masked ? mask[r][static_cast<size_t>(k)] : Val();
      out[r].push_back(a_.Score(m_, rows_[r].at, key, products[r], by));
    }
  }
  return out;
}

void Tile::Block(const Dim& first, OnlineRows& rows) {
  const Position mine = Guard(m_, first + lane_, a_.keys);
  std::vector<Vals> weights = Scores(first, mine);
  for (size_t r = 0; r < own_; ++r) {
    rows.Raise(r, weights[r]);
    for (Val& w : weights[r]) {
      w = exp(w - rows.top(r));
      rows.sum(r) = rows.sum(r) + w;
    }
  }
  Vals held = LoadRow(Operand::kV, mine.at);
  for (Val& v : held) v = Where(mine.inside, v, 0);
  for (int k = 0; k < lanes_; ++k)
    ForEach(held, k, [&](size_t i, Val x) {
      for (size_t r = 0; r < own_; ++r) {
        Val& sum = rows.value(r, i);
        sum = fma(weights[r][static_cast<size_t>(k)], x, sum);
      }
    });
}

void Tile::Run(const Dim& at) {
  Place(at);
  const KeyBlocks blocks{first_, tiles_.size, lanes_, own_, static_cast<size_t>(a_.width)};
  OnlineRows rows = ForBlocks(m_, a_, blocks,
                              [&](const Dim& first, OnlineRows& so_far) { Block(first, so_far); });
  for (size_t r = 0; r < own_; ++r)
    rows.Finish(m_, a_, r, {batch_, rows_[r], 0, LanesFor(a_.width)});
}

Program Emit(const Region& r, const AttentionOperands& a, const AttentionShuffle& t) {
  const auto lanes = static_cast<uint32_t>(r.caps().subgroup_size);
  const auto subgroups = static_cast<uint32_t>(t.subgroups);
  Emission m(r, fmt::format("attention_shuffle_{}", t.rows * lanes), {lanes * subgroups, 1, 1});
  m.launch.kernel.subgroup = lanes;
  Tile tile(m, a, t);
  m.EachSubgroup(tile.count(), [&](const Dim& at) { tile.Run(at); });
  return OneLaunch(std::move(m).Take());
}

}  // namespace attention_shuffle
}  // namespace

const Schedule kAttentionShuffle =
    ScheduleOn<attention_shuffle::AttentionShuffle, AttentionOf, attention_shuffle::Defaults,
               attention_shuffle::Fits, attention_shuffle::Emit>("attention_shuffle");

}  // namespace forge::codegen
