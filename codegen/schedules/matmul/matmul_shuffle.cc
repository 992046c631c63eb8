// SPDX-License-Identifier: Apache-2.0
// Matrix product by subgroups, without shared memory or barriers. One operand is spread over the
// lanes, four steps of k at once, and exchanged by shuffles; of the other each lane loads its own.
//
//   lanes on columns: a lane owns 4 columns of C; lane i loads rows i, S + i ... of A along k
//   lanes on rows:    a lane owns 4 rows of C; lane i loads columns i, S + i ... of B along k, or,
//                     where that is cheaper, its part of the block as 4 columns of one step
#include <limits>

#include "codegen/schedules/matmul/gemm.h"

namespace forge::codegen {
namespace {
namespace matmul_shuffle {

using ir::Dim;
using ir::Dims;

constexpr int kDepth = 4;  // steps of k at once: the length of a vector
constexpr int kOwned = 4;  // rows or columns of C to a lane

struct MatmulShuffle {
  int64_t subgroups = 4;
  int64_t shared = 8;  // rows (or columns) of C that all lanes of a subgroup work on, whole blocks
  bool lanes_on_rows = false;  // else on columns
  int64_t group = 1;           // of shared tiles, taken along the owned ones
  static constexpr Field kFields[] = {
      FieldOf<&MatmulShuffle::subgroups>("subgroups", "Of a workgroup.", "1|2|4|8"),
      FieldOf<&MatmulShuffle::shared>("shared", "Rows or columns common to a subgroup.",
                                      "4|8|16|32"),
      FieldOf<&MatmulShuffle::lanes_on_rows>("lanes_on_rows", "Lanes own rows, not columns."),
      FieldOf<&MatmulShuffle::group>("group", "Of shared tiles, taken along the owned.", "1|4|16")};
};

// The factor of which lanes own places, and the one whose places they share.
const Factor& OwnOf(const Gemm& g, const MatmulShuffle& t) { return t.lanes_on_rows ? g.a : g.b; }
const Factor& SharedOf(const Gemm& g, const MatmulShuffle& t) {
  return t.lanes_on_rows ? g.b : g.a;
}

// How many tiles of `size` cover an axis; one where its extent is not known.
int64_t TilesOf(const Dim& extent, int64_t size) {
  return extent.is_constant() ? (extent.constant() + size - 1) / size : 1;
}

// Instructions of a subgroup for all tiles and four steps of k. A load is made lane by lane,
// whatever its width; see Caps::runs_on_cpu.
double CostOf(const Gemm& g, const MatmulShuffle& t, int64_t lanes) {
  constexpr double kLoad = 45, kFma = 1.2;
  const int64_t parts = (t.shared + lanes - 1) / lanes;
  const int64_t of_a = t.lanes_on_rows ? kOwned : parts, of_b = t.lanes_on_rows ? parts : kOwned;
  const int a_vector = g.a.lanes_k, b_vector = std::max(g.b.lanes_along, g.b.lanes_k);
  const auto loads =
      static_cast<double>(of_a * (a_vector == 4 ? 1 : 4) + of_b * (b_vector == 4 ? 1 : 4));
  const double fmas = static_cast<double>(t.shared * kOwned * kDepth);
  const int64_t tiles =
      TilesOf(OwnOf(g, t).extent, lanes * kOwned) * TilesOf(SharedOf(g, t).extent, t.shared);
  return static_cast<double>(tiles) * (loads * kLoad + fmas * kFma);
}

// The code of large tiles takes long to compile, twice as long as that of tiles half as large; the
// time that they save is worth it in large products, counted in multiplications.
constexpr double kLargeProduct = 1 << 26;
constexpr int64_t kMostShared = 32;
int64_t MostShared(const Gemm& g) {
  double all = 1;
  for (const Dim& d : {g.batch, g.m(), g.n(), g.k}) all *= static_cast<double>(d.max());
  return all < kLargeProduct ? kMostShared / 2 : kMostShared;
}

// Whether a tile holds the rows that are reduced, if there are any.
Verdict RowsFit(const Region& r, const Gemm& g, const MatmulShuffle& t) {
  if (r.reduction() != nullptr && !t.lanes_on_rows &&
      BitWidth(AccumulatorOf(r.body().type(r.reduction()->first_out).dtype()).elem) > 32)
    return Verdict::No("lanes shuffle sums of 32 bits");
  return HoldsRows(r, g, t.lanes_on_rows ? t.shared : r.caps().subgroup_size * kOwned);
}

MatmulShuffle TilesFor(const Region& r, const Gemm& g) {
  const int64_t lanes = std::max<int64_t>(r.caps().subgroup_size, 1);
  const bool long_rows = r.reduction() != nullptr && g.n().max() > lanes * kOwned;
  const int64_t most = long_rows ? kMostShared : MostShared(g);
  MatmulShuffle best;
  double least = std::numeric_limits<double>::infinity();
  for (const bool on_rows : {false, true})
    for (int64_t shared = 4; shared <= most; shared *= 2) {
      const MatmulShuffle t{.shared = shared, .lanes_on_rows = on_rows};
      const double cost = CostOf(g, t, lanes);
      if (cost < least && RowsFit(r, g, t)) best = t, least = cost;
    }
  return best;
}

MatmulShuffle Defaults(const Region& r, const Gemm& g) {
  MatmulShuffle t = TilesFor(r, g);
  t.group = GroupFor(r, g, SharedOf(g, t), t.shared);
  return t;
}

// Below this share of useful work, tiles of single invocations are faster.
constexpr double kLeastFilled = 0.4;

Verdict Fits(const Region& r, const Gemm& g, const MatmulShuffle& t) {
  const Caps& caps = r.caps();
  const int64_t lanes = caps.subgroup_size;
  if (Verdict v = ShufflesAreQuick(caps); !v) return v;
  const Dim &own = OwnOf(g, t).extent, &shared = SharedOf(g, t).extent;
  const double useful = static_cast<double>(own.max()) * static_cast<double>(shared.max());
  const double done = static_cast<double>(TilesOf(own, lanes * kOwned) * lanes * kOwned) *
                      static_cast<double>(TilesOf(shared, t.shared) * t.shared);
  if (CeilDiv(shared, t.shared).divisor() % t.group != 0)
    return Verdict::No("groups do not divide the tiles");
  if (useful < kLeastFilled * done && (r.reduction() == nullptr || HoldsShortRows(r, g)))
    return Verdict::No("tiles would be mostly empty");
  if (Verdict v = RowsFit(r, g, t); !v) return v;
  return WorkgroupFits(t.subgroups * lanes, caps);
}

// Tiles that hold rows may cost a little more, which is less than another launch.
Verdict Reduces(const Region& r, const Gemm& g, const MatmulShuffle& alone) {
  constexpr double kLittle = 1.1;
  const MatmulShuffle t = Defaults(r, g);
  const double most = kLittle * CostOf(g, alone, r.caps().subgroup_size);
  const bool is_dear = CostOf(g, t, r.caps().subgroup_size) > most;
  return RowsFit(r, g, is_dear ? alone : t);
}

// The tile of one subgroup: `wide` positions along the lanes' axis, `shared` along the other.
class Tile {
 public:
  // place: batch, and tile along the shared and the owned axis
  Tile(Emission& m, const Gemm& g, const MatmulShuffle& t, const Dims& place);
  void Run();

 private:
  Gemm::At At(const Dim& own, const Dim& shared) const {
    return t_.lanes_on_rows ? Gemm::At{batch_, own, shared} : Gemm::At{batch_, shared, own};
  }
  // `n` elements of an axis, in blocks of kOwned where it has only whole ones.
  std::vector<Position> PlaceAlong(const Dim& extent, const Dim& first_block, int64_t n);
  Vals Start();
  // Adds `depth` steps of k: kDepth, or 1 where fewer are left.
  Vals Block(const Dim& k, int depth, Vals sums);
  Vals LoadOwn(const Dim& k, int depth);  // [step * kOwned + i]: what this lane owns
  Val LoadShared(const Dim& k, int depth, size_t part);
  // What the lane has that loaded shared position `i`; `mine` is what this one has.
  Val Theirs(const Vals& mine, size_t i) const {
    return m_.b.Shuffle(mine[i / lanes_], m_.b.Int(static_cast<int64_t>(i % lanes_)));
  }
  void Finish(const Vals& sums);
  void FinishRows(const Vals& sums);

  Emission& m_;
  const Gemm& g_;
  const MatmulShuffle& t_;
  const Factor &own_, &shared_;
  const uint32_t lanes_;
  const Dim batch_, lane_;
  std::vector<Position> owned_, common_;
  std::vector<Position> mine_;  // the shared positions that this lane loads
  bool spread_;  // lanes hold parts of rows of B, 4 columns each; else columns or rows along k
};

std::vector<Position> Tile::PlaceAlong(const Dim& extent, const Dim& first_block, int64_t n) {
  const bool whole = extent.divisor() % kOwned == 0;
  std::vector<Position> out;
  for (int64_t i = 0; i < n; ++i) {
    const Dim block = first_block + i / kOwned;
    Position at = whole ? Guard(m_, block, FloorDiv(extent, kOwned))
                        : Guard(m_, first_block * kOwned + i, extent);
    if (whole) at.at = at.at * kOwned + i % kOwned;
    out.push_back(at);
  }
  return out;
}

// What lies beyond the edge is computed from elements that exist, and not stored.
Tile::Tile(Emission& m, const Gemm& g, const MatmulShuffle& t, const Dims& place)
    : m_(m),
      g_(g),
      t_(t),
      own_(OwnOf(g, t)),
      shared_(SharedOf(g, t)),
      lanes_(m.launch.kernel.subgroup),
      batch_(place[0]),
      lane_(m.e.Coordinate(m.b.Builtin(BuiltinKind::kLane), lanes_ - 1)),
      spread_(t.lanes_on_rows && t.shared >= lanes_ && g.b.lanes_along == kOwned &&
              g.b.lanes_k != kDepth && g.k.divisor() % kDepth == 0) {
  owned_ = PlaceAlong(own_.extent, place[2] * lanes_ + lane_, kOwned);
  const Dim first = place[1] * t.shared;
  common_ = PlaceAlong(shared_.extent, FloorDiv(first, kOwned), t.shared);
  for (int64_t i = 0; i < t.shared; i += lanes_) {
    const Dim mine = t.shared < lanes_ ? Mod(lane_, t.shared) : lane_ + i;
    const Dim block = FloorDiv(first, kOwned) + Mod(mine, t.shared / kOwned);
    mine_.push_back(spread_ ? Guard(m_, block, FloorDiv(g_.n(), kOwned))
                            : Guard(m_, first + mine, shared_.extent));
    if (spread_) mine_.back().at = mine_.back().at * kOwned;
  }
}

// Sums of a row begin alike: with lanes on columns, which share rows, each lane loads for others.
Vals Tile::Start() {
  Vals sums;
  if (g_.start && !t_.lanes_on_rows) {
    Vals parts;
    for (const Position& p : mine_) parts.push_back(g_.Start(m_, At(owned_[0].at, p.at)));
    for (size_t i = 0; i < common_.size(); ++i) sums.insert(sums.end(), kOwned, Theirs(parts, i));
    return sums;
  }
  for (const Position& c : common_)
    for (const Position& o : owned_) sums.push_back(g_.Start(m_, At(o.at, c.at)));
  return sums;
}

Vals Tile::LoadOwn(const Dim& k, int depth) {
  const bool by_steps = !t_.lanes_on_rows && own_.lanes_along == kOwned && depth == kDepth;
  return by_steps ? own_.LoadSteps(m_, batch_, owned_, k, depth, kOwned)
                  : own_.LoadPlaces(m_, batch_, owned_, k, depth);
}

// This lane's vector `part` of the shared factor.
Val Tile::LoadShared(const Dim& k, int depth, size_t part) {
  if (!spread_ && shared_.lanes_k == depth)
    return shared_.Load(m_, {batch_, mine_[part].at, k + m_.e.Lane(depth)}, depth);
  if (!spread_) return Packed(shared_.LoadPlaces(m_, batch_, {&mine_[part], 1}, k, depth));
  const Dim step = FloorDiv(lane_ + static_cast<int64_t>(part) * lanes_, t_.shared / kOwned);
  return shared_.Load(m_, {batch_, mine_[part].at + m_.e.Lane(kOwned), k + step}, kOwned);
}

Vals Tile::Block(const Dim& k, int depth, Vals sums) {
  Vals blocks;
  for (size_t part = 0; part < mine_.size(); ++part) blocks.push_back(LoadShared(k, depth, part));
  const Vals own = LoadOwn(k, depth);
  const size_t across = common_.size() / kOwned;  // vectors of one step, where spread
  for (size_t i = 0; i < common_.size(); ++i) {
    const Val theirs = Theirs(blocks, i);
    for (int c = 0; c < depth; ++c) {
      const Val x = depth == 1 ? theirs : m_.b.Extract(theirs, c);
      const auto component = static_cast<size_t>(c);
      const size_t step = spread_ ? i / across : component;
      const size_t shared = spread_ ? i % across * kOwned + component : i;
      for (size_t j = 0; j < kOwned; ++j) {
        Val& sum = sums[shared * kOwned + j];
        sum = fma(own[step * kOwned + j], x, sum);
      }
    }
  }
  return sums;
}

// Each lane folds its columns of a row: all of them where lanes own rows.
void Tile::FinishRows(const Vals& sums) {
  const RowFolding folding(m_, g_);
  const std::vector<Position>& rows = t_.lanes_on_rows ? owned_ : common_;
  const std::vector<Position>& columns = t_.lanes_on_rows ? common_ : owned_;
  for (size_t i = 0; i < rows.size(); ++i) {
    Vals own;
    for (size_t j = 0; j < columns.size(); ++j)
      own.push_back(sums[t_.lanes_on_rows ? j * kOwned + i : i * kOwned + j]);
    const Gemm::At at{batch_, rows[i].at, 0};
    Val all = folding.Fold(at, columns, own), first;
    if (!t_.lanes_on_rows) {
      for (uint32_t step = 1; step < lanes_; step *= 2)
        all = folding.how().Fold(all, m_.b.Shuffle(all, m_.e.Value(Mod(lane_ + step, lanes_))));
      first = m_.e.Value(lane_) == 0.0;
    }
    IfInside(m_.b, Both(rows[i].inside, first), [&] { folding.Finish(at, all); });
  }
}

// Vectors along n where there are whole ones.
void Tile::Finish(const Vals& sums) {
  const size_t lanes = g_.n().divisor() % kOwned == 0 ? kOwned : 1;
  const size_t along_shared = t_.lanes_on_rows ? lanes : 1, along_own = lanes / along_shared;
  const size_t next = t_.lanes_on_rows ? kOwned : 1;  // neighbour along n
  for (size_t i = 0; i < common_.size(); i += along_shared)
    for (size_t j = 0; j < kOwned; j += along_own)
      IfInside(m_.b, Both(owned_[j].inside, common_[i].inside), [&] {
        Vals part;
        for (size_t l = 0; l < lanes; ++l) part.push_back(sums[i * kOwned + j + l * next]);
        g_.Finish(m_, At(owned_[j].at, common_[i].at), Packed(part));
      });
}

void Tile::Run() {
  Builder& b = m_.b;
  const Dim blocks = FloorDiv(g_.k, kDepth);
  Vals sums = m_.Loop(blocks, Start(), [&](const Dim& i, Vals carried) {
    return Block(i * kDepth, kDepth, std::move(carried));
  });
  if (g_.k.divisor() % kDepth != 0) {
    sums = b.For({b.Scalar(blocks * kDepth), b.Scalar(g_.k), b.Int(1)}, std::move(sums),
                 [&](Val i, Vals carried) {
                   return Block(m_.e.Coordinate(i, LastIndex(g_.k)), 1, std::move(carried));
                 });
  }
  if (m_.region.reduction() != nullptr) return FinishRows(sums);
  Finish(sums);
}

Launch EmitTiles(const Region& r, const Gemm& g, const MatmulShuffle& t, const std::string& name) {
  const auto lanes = static_cast<uint32_t>(r.caps().subgroup_size);
  Emission m(r, name, {lanes * static_cast<uint32_t>(t.subgroups), 1, 1});
  m.launch.kernel.subgroup = lanes;
  const Dims space = {g.batch, CeilDiv(SharedOf(g, t).extent, t.shared),
                      CeilDiv(CeilDiv(OwnOf(g, t).extent, kOwned), lanes)};
  m.EachSubgroup(ir::Product(space),
                 [&](const Dim& at) { Tile(m, g, t, TileAt(at, space, t.group)).Run(); });
  return std::move(m).Take();
}

Program Emit(const Region& r, const Gemm& g, const MatmulShuffle& t) {
  return OneLaunch(EmitTiles(
      r, g, t,
      fmt::format("matmul_shuffle_{}_{}x{}{}", t.lanes_on_rows ? "rows" : "columns", t.shared,
                  kOwned, t.group > 1 ? fmt::format("_group{}", t.group) : "")));
}

}  // namespace matmul_shuffle
}  // namespace

Launch EmitShuffleProduct(const Region& r, const Gemm& g, const std::string& name) {
  return matmul_shuffle::EmitTiles(r, g, matmul_shuffle::TilesFor(r, g), name);
}

const Schedule kMatmulShuffle = [] {
  Schedule s = ScheduleOn<matmul_shuffle::MatmulShuffle, GemmOf, matmul_shuffle::Defaults,
                          matmul_shuffle::Fits, matmul_shuffle::Emit>("matmul_shuffle");
  s.reduces = [](const Region& r, const void* alone) {
    return matmul_shuffle::Reduces(r, *GemmOf(r),
                                   *static_cast<const matmul_shuffle::MatmulShuffle*>(alone));
  };
  return s;
}();

}  // namespace forge::codegen
