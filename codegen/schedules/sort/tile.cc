// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/sort/tile.h"

#include <bit>
#include <limits>

#include "codegen/region/element.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The bits of an f32 as an integer in its order: zeros of either sign are equal, NaN is last.
Val OrderedBits(Val x) {
  const Val bits = bitcast(x, DType::kI32);
  const Val ordered = bits ^ ((bits >> 31.0) & static_cast<double>(INT32_MAX));
  return select(isnan(x), static_cast<double>(INT32_MAX), select(x == 0.0, 0.0, ordered));
}

int64_t KeyedBytes(const SortOrder& order) {
  return ElementBytes(order.key()) + ElementBytes(kI32);
}

std::array<SharedArray, 2> SharedOf(const SortOrder& order, const SortTiles& t) {
  return {SharedArray{order.key(), t.elements()}, SharedArray{kI32, t.elements()}};
}

}  // namespace

// ---- order --------------------------------------------------------------------------------------

Type SortOrder::key() const {
  if (dtype == DType::kBool) return kI32;
  const Type computed = AccumulatorOf(dtype);
  return computed == kF32 ? kI32 : computed;
}

Val SortOrder::KeyOf(Val element) const {
  if (dtype == DType::kF64) return element;
  Val key = dtype == DType::kBool ? select(element, element.b->Int(1), element.b->Int(0))
            : IsFloat(dtype)      ? OrderedBits(element)
                                  : element;
  return descending ? ~key : key;
}

Val SortOrder::LastKey(Builder& b) const {
  const Type t = key();
  if (dtype == DType::kF64)
    return b.Literal(t, descending ? -kInfinite : std::numeric_limits<double>::quiet_NaN());
  const int bits = BitWidth(t.elem) - (IsSigned(t.elem) ? 1 : 0);
  return b.Bits(t, ~uint64_t{0} >> (64 - bits));
}

Val IsBefore(const SortOrder& order, const Keyed& a, const Keyed& b) {
  Val less, equal = a.key == b.key;
  if (order.dtype == DType::kF64) {
    const Val a_nan = isnan(a.key), b_nan = isnan(b.key);
    less =
        order.descending ? (a.key > b.key) | (a_nan & ~b_nan) : (a.key < b.key) | (b_nan & ~a_nan);
    equal = equal | (a_nan & b_nan);
  } else {
    less = a.key < b.key;
  }
  return less | (equal & (a.index < b.index));
}

Keyed Select(Val condition, const Keyed& a, const Keyed& b) {
  return {select(condition, a.key, b.key), select(condition, a.index, b.index)};
}

// ---- tiles --------------------------------------------------------------------------------------

SortForm SortFormOf(const Region& r, int64_t axis, bool descending) {
  return {{r.anchor_inputs()[0].dtype(), descending}, RowSpace(r, std::array{axis})};
}

SortTiles DefaultSortTiles(const Region& r, const SortForm& f, int64_t most) {
  const Caps& caps = r.caps();
  SortTiles t;
  most = std::min(most, caps.max_shared_bytes / KeyedBytes(f.order));
  t.tile = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
  const int64_t longest = std::max<int64_t>(f.space.length().max(), 2);
  if (longest < t.tile)
    t.tile = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest)));
  // A barrier costs a processor as much as the invocations that it holds.
  t.workgroup = caps.runs_on_cpu ? 8 : std::min(int64_t{128}, caps.max_workgroup_invocations);
  return t;
}

Verdict SortTilesFit(const Region& r, const SortForm& f, const SortTiles& t) {
  if (f.space.length().when() == ir::When::kStep)
    return Verdict::No("the length of rows changes at each step");
  if (f.space.length().max() <= t.tile / 2 && t.tile > 2) return Verdict::No("rows are short");
  return WorkgroupFits(t.workgroup, r.caps(), SharedOf(f.order, t));
}

namespace {

// A workgroup that sorts its tiles in shared memory.
class TileSort {
 public:
  TileSort(Emission& m, const SortOrder& order, const SortTiles& t)
      : m_(m), b_(m.b), order_(order), t_(t), local_(b_.Builtin(BuiltinKind::kLocalX)) {
    const auto arrays = SharedOf(order, t);
    keys_ = m.AddShared("keys", arrays[0]);
    indices_ = m.AddShared("indices", arrays[1]);
  }
  int64_t side_by_side() const { return t_.elements() / t_.tile; }
  Keyed At(Val i) { return {b_.Load(keys_, i), b_.Load(indices_, i)}; }
  void Put(Val i, const Keyed& v) {
    b_.Store(keys_, i, v.key);
    b_.Store(indices_, i, v.index);
  }
  using ForElement = absl::FunctionRef<void(Val i, const Position& tile, const Dim& position)>;
  // Calls f for the elements of this invocation among the first `count` of each tile of the group.
  void ForElements(const Dim& group, const Dim& tiles, int64_t count, ForElement f);
  void Network();

 private:
  void Compare(Val pair, Val k, Val j);
  Emission& m_;
  Builder& b_;
  const SortOrder& order_;
  const SortTiles& t_;
  Val local_;
  uint16_t keys_, indices_;
};

void TileSort::ForElements(const Dim& group, const Dim& tiles, int64_t count, ForElement f) {
  const int64_t all = side_by_side() * count;
  const Builder::Range range{local_, b_.Int(all), b_.Int(t_.workgroup), Builder::Range::kNot};
  b_.For(range, {}, [&](Val n, const Vals&) {
    const Dim unit = m_.e.Coordinate(n, all - 1);
    const Dim position = Mod(unit, count), beside = FloorDiv(unit, count);
    const Position tile = Guard(m_, group * side_by_side() + beside, tiles);
    f(m_.e.Value(beside * t_.tile + position), tile, position);
    return Vals{};
  });
}

// Orders elements i and i + j of blocks of 2 j; blocks of k ascend and descend in turns, those of a
// whole tile ascend.
void TileSort::Compare(Val pair, Val k, Val j) {
  const Val low = pair & (j - 1.0), i = ((pair ^ low) << 1.0) | low, other = i | j;
  const Keyed x = At(i), y = At(other);
  const Val up = (i & k & static_cast<double>(t_.tile - 1)) == 0.0;
  const Val swap = IsBefore(order_, y, x) ^ ~up;
  Put(i, Select(swap, y, x));
  Put(other, Select(swap, x, y));
}

// Batcher, "Sorting networks and their applications", 1968.
void TileSort::Network() {
  const int levels = std::countr_zero(static_cast<uint64_t>(t_.tile));
  const Builder::Range stages{b_.Int(0), b_.Int(levels * (levels + 1) / 2), b_.Int(1)};
  const Builder::Range pairs{local_, b_.Int(t_.elements() / 2), b_.Int(t_.workgroup),
                             Builder::Range::kNot};
  b_.For(stages, {b_.Int(2), b_.Int(1)}, [&](Val, const Vals& stage) {
    const Val k = stage[0], j = stage[1];
    b_.For(pairs, {}, [&](Val pair, const Vals&) {
      Compare(pair, k, j);
      return Vals{};
    });
    b_.Barrier();
    const Val next = j == 1.0;
    return Vals{select(next, k << 1.0, k), select(next, k, j >> 1.0)};
  });
}

}  // namespace

Launch EmitTileSort(const Region& r, const SortOrder& order, const SortTiles& t, std::string name,
                    const TileSteps& steps) {
  Emission m(r, std::move(name), {static_cast<uint32_t>(t.workgroup), 1, 1});
  const auto work = m.Workgroups(CeilDiv(steps.tiles, t.elements() / t.tile));
  TileSort sort(m, order, t);
  m.Guarded(work, [&](const Dim& group) {
    // Tiles beyond the last one sort it again, so that no shared memory is read before it is
    // written.
    const auto load = [&](Val i, const Position& tile, const Dim& position) {
      sort.Put(i, steps.load(m, tile.at, position));
    };
    sort.ForElements(group, steps.tiles, t.tile, load);
    m.b.Barrier();
    sort.Network();
    const auto store = [&](Val i, const Position& tile, const Dim& position) {
      IfInside(m.b, tile.inside, [&] { steps.store(m, tile.at, position, sort.At(i)); });
    };
    sort.ForElements(group, steps.tiles, steps.stored, store);
  });
  return std::move(m).Take();
}

// ---- elements -----------------------------------------------------------------------------------

Keyed KeyedScratch::Load(Emission& m, int which, const Dim& at) const {
  return {m.e.LoadScratch(2 * which, order.key(), at), m.e.LoadScratch(2 * which + 1, kI32, at)};
}

void KeyedScratch::Store(Emission& m, int which, const Dim& at, const Keyed& v) const {
  m.e.StoreScratch(2 * which, at, v.key);
  m.e.StoreScratch(2 * which + 1, at, v.index);
}

std::vector<int64_t> KeyedScratch::Bytes(int arrays) const {
  std::vector<int64_t> out;
  for (int i = 0; i < arrays; ++i) {
    out.push_back(elements * ElementBytes(order.key()));
    out.push_back(elements * ElementBytes(kI32));
  }
  return out;
}

bool FinishesAtOnce(const Region& r) { return r.bindings() + 2 <= r.caps().max_operands; }

Verdict ScratchBinds(const Region& r) {
  if (std::max<int64_t>(r.bindings() + 1, 4) <= r.caps().max_operands) return Verdict::Yes();
  return Verdict::No("no room for scratch");
}

Launch EmitKept(const Region& r, const SortForm& f, const KeptOrder& kept, std::string name) {
  return ForPlaces(
      r, std::move(name), 64, {f.space.rows(), kept.count}, [&](Emission& m, const Dims& at) {
        const Dim place = at[0] * kept.stride + at[1];
        FinishKeyed(m, f, at[0], at[1], m.e.LoadScratch(2 * kept.which + 1, kI32, place));
      });
}

Keyed LoadKeyed(Emission& m, const SortForm& f, const Dim& row, const Dim& position) {
  const Position at = Guard(m, position, f.space.length());
  Val key = f.order.KeyOf(m.e.At(0, f.space.Index(row, at.at)));
  if (at.inside) key = select(at.inside, key, f.order.LastKey(m.b));
  return {key, m.e.Value(position)};
}

void FinishKeyed(Emission& m, const SortForm& f, const Dim& row, const Dim& place, Val index) {
  const auto last = static_cast<double>(f.length() - 1);
  const Dim from = m.e.Coordinate(min(max(index, 0.0), last), f.length() - 1);
  const Dims to = f.space.Index(row, place);
  const Val value = m.e.At(0, f.space.Index(row, from));
  m.e.Finish(to, value, 1, 0);
  m.e.Finish(to, convert(index, DType::kI64), 1, 1);
}

}  // namespace forge::codegen
