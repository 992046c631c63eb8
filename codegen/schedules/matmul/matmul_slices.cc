// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/matmul/matmul_slices.h"

#include <algorithm>

#include "codegen/region/storage.h"
#include "codegen/schedules/split.h"

namespace forge::codegen {

using ir::Dim;
using ir::Dims;

// ---- tiles --------------------------------------------------------------------------------------

Tiling::Tiling(const Gemm& g, const Size& size)
    : g_(g),
      size_(size),
      grid_{g.batch, CeilDiv(g.m(), size.rows), CeilDiv(g.n(), size.columns)},
      tiles_(ir::Product(grid_)),
      steps_(CeilDiv(g.k, size.depth)) {
  if (!shared())
    of_one_tile_ = 1;
  else if (has_known_size() && tiles_.min() > 0 && size.workgroups % tiles_.constant() == 0)
    of_one_tile_ = size.workgroups / tiles_.constant();
  share_ =
      of_one_tile_ > 0 ? CeilDiv(steps_, of_one_tile_) : CeilDiv(tiles_ * steps_, size.workgroups);
}

int64_t Tiling::SuggestWorkgroups() const {
  if (!has_known_size()) return 0;
  SplitRule rule = kSplitProducts;
  rule.least = std::max(rule.least, size_.depth);
  const int64_t parts = rule.PartsOf(tiles_.constant(), g_.k.max());
  return parts == 1 ? 0 : tiles_.constant() * parts;
}

std::string Tiling::Text() const {
  const std::string ring = size_.stages > 2 ? fmt::format("_ring{}", size_.stages) : "";
  return (shared() ? fmt::format("_shared_by_{}", size_.workgroups) : "") +
         (size_.stages == 2 ? "_staged" : ring) +
         (size_.group > 1 ? fmt::format("_group{}", size_.group) : "");
}

int64_t Tiling::scratch_bytes() const {
  return size_.workgroups * slots() * size_.rows * size_.columns *
         ElementBytes(AccumulatorOf(g_.dtype));
}

Verdict Tiling::Fits(const Region& r) const {
  if (size_.stages > 1 && g_.k.min() < 1) return Verdict::No("k may be empty");
  if (grid_[1].divisor() % size_.group != 0)
    return Verdict::No("groups do not divide the rows of tiles");
  if (!shared()) return Verdict::Yes();
  if (size_.group > 1) return Verdict::No("workgroups share tiles in their order");
  const Dim all = tiles_ * steps_;
  if (all.min() < size_.workgroups) return Verdict::No("there are fewer steps to share");
  if (all.max() >= int64_t{1} << 30) return Verdict::No("too many steps to share");
  if (has_known_size() && share_.constant() % steps_.constant() == 0)
    return Verdict::No("workgroups have whole tiles");
  SplitOperands bound(r);
  if (may_be_whole()) bound.before = r.bindings();
  if (g_.start) ++bound.after;
  return ScratchFits(r, scratch_bytes(), bound);
}

Dim Tiling::WorkgroupAt(const Dim& tile, const Dim& step) const {
  return of_one_tile_ > 0 ? tile * of_one_tile_ + FloorDiv(step, share_)
                          : FloorDiv(tile * steps_ + step, share_);
}

// The first one where the workgroup began within the tile, or with it.
Dim Tiling::SlotOf(Emission& m, const Dim& tile, const Dim& workgroup) const {
  if (slots() == 1) return workgroup;
  const Val began = m.e.Value(workgroup * share_), is_later = m.e.Value(tile * steps_) > began;
  const Val later = select(is_later, m.b.Int(1), m.b.Int(0));
  return workgroup * slots() + m.e.Coordinate(later, slots() - 1);
}

TilePart Tiling::PartAt(const Dim& tile) const {
  const Dims at = TileAt(tile, grid_, size_.group);
  return {.batch = at[0], .row = at[1], .column = at[2], .last = LastIndex(steps_)};
}

void Tiling::ForParts(Emission& m, const Dim& workgroup,
                      absl::FunctionRef<void(const TilePart&)> body) const {
  Builder& b = m.b;
  if (of_one_tile_ > 0) {
    TilePart part = PartAt(FloorDiv(workgroup, of_one_tile_));
    part.first = Mod(workgroup, of_one_tile_) * share_;
    part.steps = b.Scalar(share_);
    part.last = LastIndex(share_ * of_one_tile_);
    if (shared()) part.is_whole = b.Literal(kBool, 0);
    part.slot = workgroup;
    return body(part);
  }
  const Dim begin = workgroup * share_, end = Min(begin + share_, tiles_ * steps_);
  const Dim most = CeilDiv(share_, steps_) + 1;
  b.For({b.Int(0), b.Scalar(most), b.Int(1)}, {}, [&](Val i, const Vals&) {
    const Dim number = FloorDiv(begin, steps_) + m.e.Coordinate(i, LastIndex(most));
    const Dim first = Max(begin, number * steps_), last = Min(end, (number + 1) * steps_);
    const Val from = m.e.Value(first), count = m.e.Value(last) - from;
    b.If(count > 0.0, [&] {
      const Dim tile = m.e.Coordinate(m.e.Value(number), LastIndex(tiles_));
      TilePart part = PartAt(tile);
      part.first = m.e.Coordinate(m.e.Value(first - number * steps_), LastIndex(steps_));
      part.steps = count;
      part.is_whole = may_be_whole() ? count == b.Scalar(steps_) : b.Literal(kBool, 0);
      part.slot = SlotOf(m, tile, workgroup);
      body(part);
      b.Barrier();  // shared memory is filled anew
    });
    return Vals{};
  });
}

void Tiling::Finish(Emission& m, TilePart part,
                    absl::FunctionRef<void(const TilePart&)> body) const {
  if (!part.is_whole) return body(part);
  const auto finish = [&] {
    body(part);
    return Vals{};
  };
  m.b.If(part.is_whole, finish, [&] {
    part.kept = true;
    return finish();
  });
}

Dim Tiling::PlaceOf(const Dim& slot, const Dim& row, const Dim& column, int lanes) const {
  return (slot * size_.rows + row) * (size_.columns / lanes) + FloorDiv(column, lanes);
}

void Tiling::Store(Emission& m, const TilePart& part, const Dim& row, const Dim& column, Val inside,
                   absl::FunctionRef<Val()> sums) const {
  const Position i = Guard(m, part.row * size_.rows + row, g_.m());
  const Position j = Guard(m, part.column * size_.columns + column, g_.n());
  IfInside(m.b, Both(Both(i.inside, j.inside), inside), [&] {
    Val v = sums();
    if (v.type().elem == DType::kU32) v = bitcast(v, DType::kI32);  // matrices of u8 are summed so
    if (part.kept)
      m.e.StoreScratch(0, PlaceOf(part.slot, row, column, v.type().lanes), v);
    else
      g_.FinishFromZero(m, {part.batch, i.at, j.at}, v);
  });
}

void Tiling::AddUp(Emission& m, const Gemm::At& at, int lanes) const {
  Builder& b = m.b;
  const Dim tile =
      Flatten({at.batch, FloorDiv(at.m, size_.rows), FloorDiv(at.n, size_.columns)}, grid_);
  const Dim row = Mod(at.m, size_.rows), column = Mod(at.n, size_.columns);
  const Dim first = WorkgroupAt(tile, 0), others = WorkgroupAt(tile, steps_ - 1) - first;
  const Type type = AccumulatorOf(g_.dtype).Lanes(lanes);
  const auto unroll =
      others.max() < kSplitProducts.most ? Builder::Range::kWhole : Builder::Range::kNot;
  const auto add = [&](Val i, const Vals& sum) {
    const Dim slot = SlotOf(m, tile, first + m.e.Coordinate(i, others.max()));
    return Vals{sum[0] + m.e.LoadScratch(0, type, PlaceOf(slot, row, column, lanes))};
  };
  // Other tiles have been finished by the workgroup that had them whole.
  IfInside(b, others.min() > 0 ? Val{} : m.e.Value(others) > 0.0, [&] {
    const Vals none = {b.Literal(type, 0)};
    const Vals sum = b.For({b.Int(0), m.e.Value(others + 1), b.Int(1), unroll}, none, add);
    g_.FinishFromZero(m, at, sum[0]);
  });
}

Program Tiling::ProgramOf(const Region& r, Launch tiles) const {
  if (!shared()) return OneLaunch(std::move(tiles));
  const int lanes = LanesFor(g_.n());
  const Dims space = {g_.batch, g_.m(), FloorDiv(g_.n(), lanes)};
  const auto add = [&](Emission& m, const Dims& place) {
    AddUp(m, {place[0], place[1], place[2] * lanes}, lanes);
  };
  return SplitProgram(std::move(tiles), scratch_bytes(), "_add", [&](std::string name) {
    return ForPlaces(r, std::move(name), 64, space, add);
  });
}

// ---- slices -------------------------------------------------------------------------------------

bool ByStepsOf(const Factor& f, Lines lines, int64_t packed) {
  if (lines != Lines::kAsLoaded) return lines == Lines::kAlongC;
  return f.lanes_along == packed && f.lanes_along > f.lanes_k;
}

namespace {

// Whether vectors of halves are loaded as they lie in memory, and can be replaced by zeros.
bool IsRaw(const Region& r, const Gemm& g, const Factor& f) {
  const Caps& caps = r.caps();
  const bool held = f.type == DType::kF16 ? caps.f16 : f.type == DType::kBF16 ? caps.i16 : false;
  if (!held || !caps.storage16 || f.padded || f.load) return false;
  return r.SourceOf(f.operand, f.index({Any(g.batch, 1), Any(f.extent, 1), Any(g.k, 1)}))
      .has_value();
}

bool LiesInPieces(const Region& r, const Gemm& g, const Factor& f) {
  if (f.padded || f.load) return false;
  const bool on_k = f.lanes_k >= f.lanes_along;
  return codegen::LiesInPieces(r, f.operand, on_k ? g.k : f.extent, [&](const Dim& lane) {
    Factor::At at{Any(g.batch, 1), Any(f.extent, on_k ? 1 : kPiece), Any(g.k, on_k ? kPiece : 1)};
    Dim& along = on_k ? at.k : at.along;
    along = along + lane;
    return f.index(at);
  });
}

}  // namespace

Verdict CopiesAsync(const Region& r, const Gemm& g) {
  if (!r.caps().async_copies) return Verdict::No("the device copies nothing past registers");
  if (!LiesInPieces(r, g, g.a) || !LiesInPieces(r, g, g.b))
    return Verdict::No("operands do not lie in pieces of 16 bytes");
  return Verdict::Yes();
}

Slice::Slice(const Region& r, const Gemm& g, bool is_a, int64_t length, const SliceForm& form)
    : factor(is_a ? g.a : g.b),
      is_a(is_a),
      length(length),
      lanes(std::max(factor.lanes_k, factor.lanes_along)),
      lanes_on_k(factor.lanes_k >= factor.lanes_along),
      by_steps(ByStepsOf(factor, form.lines, form.packed)),
      packed_k(by_steps && form.lines == Lines::kAsLoaded ? 1 : form.packed),
      packed_along(form.packed / packed_k),
      raw(form.lines == Lines::kAsLoaded && lanes == form.packed && IsRaw(r, g, factor)),
      apart(is_a ? form.rows : form.columns),
      count(length / ((is_a ? form.down : form.across) * apart)),
      line(form.longest_line > 0 ? std::min(form.longest_line, length) : length) {}

SlicedTile::SlicedTile(const Region& r, const Tiling& tiling, const SliceForm& form)
    : m_(r, form.name, {static_cast<uint32_t>(form.threads), 1, 1}),
      tiling_(tiling),
      form_(form),
      a_(r, tiling.gemm(), true, tiling.size().rows, form),
      b_(r, tiling.gemm(), false, tiling.size().columns, form) {
  m_.launch.kernel.subgroup = static_cast<uint32_t>(form.subgroup);
}

void SlicedTile::Keep(Slice& s, const SharedArray& array, int64_t pitch) {
  s.pitch = pitch;
  s.view = m_.AddShared(s.is_a ? "a" : "b", array);
}

void SlicedTile::ForUnits(absl::FunctionRef<void(const Unit& unit)> body) {
  for (const Slice* s : {&a_, &b_}) {
    const int64_t steps = std::max(s->steps(), s->packed_k);
    const int64_t width = std::max(s->columns(), s->packed_along);
    const int64_t columns = s->length / width, rows = tiling_.size().depth / steps;
    const bool along_k = s->runs_along_k();
    codegen::ForUnits(m_, local_, form_.threads, columns * rows, [&](const Dim& at, Val inside) {
      const Dims place = along_k ? Unflatten(at, {columns, rows}) : Unflatten(at, {rows, columns});
      body({*s, place[along_k ? 0 : 1] * width, place[along_k ? 1 : 0] * steps, inside});
    });
  }
}

// Neighbours of the factor from the unit's first place and `k` on; 0 where they lie outside.
Val SlicedTile::LoadFactor(const TilePart& part, const Unit& u, const Dim& k) {
  const Slice& s = u.slice;
  const Dim along = (s.is_a ? part.row : part.column) * s.length + u.along;
  // Vectors are whole: they are inside when their first element is.
  return LoadWithin(m_, {along, s.factor.extent}, {k, gemm().k}, [&](const Dim& i, const Dim& j) {
    Factor::At at{part.batch, i, j};
    if (s.raw) return LoadRaw(s, at);
    Dim& vector = s.lanes_on_k ? at.k : at.along;
    vector = vector + m_.e.Lane(s.lanes);
    return s.factor.Load(m_, at, s.lanes);
  });
}

Val SlicedTile::LoadRaw(const Slice& s, const Factor::At& at) {
  const Elements::Place place = m_.e.PlaceOf(s.factor.operand, s.factor.index(at), s.lanes);
  return m_.b.Load(place.view, place.index);
}

// A vector; or for each of the columns what is packed along k. `k`: of the slice's first step.
Vals SlicedTile::Fetch(const TilePart& part, const Unit& u, const Dim& k) {
  const Slice& s = u.slice;
  if (form_.packed == 1 || s.raw) return {LoadFactor(part, u, k + u.k)};
  Vals loaded;  // by k, then by column
  if (s.packed_along > 1) {
    Unpack(LoadFactor(part, u, k + u.k), loaded);
    return {Pack(s, loaded)};
  }
  for (int64_t i = 0; i < s.packed_k; i += s.steps())
    Unpack(LoadFactor(part, u, k + u.k + i), loaded);
  std::vector<Vals> columns(static_cast<size_t>(s.columns()));
  for (size_t i = 0; i < loaded.size(); ++i) columns[i % columns.size()].push_back(loaded[i]);
  Vals out;
  for (const Vals& along_k : columns) out.push_back(Pack(s, along_k));
  return out;
}

std::vector<Vals> SlicedTile::FetchAll(const TilePart& part, const Dim& k) {
  std::vector<Vals> out;
  ForUnits([&](const Unit& u) {
    Vals fetched;
    const auto fetch = [&] { return fetched = Fetch(part, u, k); };
    const auto nothing = [&] {
      Vals zeros;
      for (const Val& v : fetched) zeros.push_back(m_.b.Literal(v.type(), 0));
      return zeros;
    };
    out.push_back(u.inside ? m_.b.If(u.inside, fetch, nothing) : fetch());
  });
  return out;
}

int64_t SlicedTile::LinesOf(const Slice& s) const {
  return s.by_steps ? s.length / s.line * (tiling_.size().depth / s.packed_k) : s.length;
}

Val SlicedTile::PlaceOf(const Slice& s, const Dim& stage, const Dim& along, const Dim& k) {
  const Dim step = FloorDiv(k, s.packed_k), lines = stage * LinesOf(s);
  if (!s.by_steps) return m_.e.Value((lines + along) * s.pitch + step);
  const Dim above = FloorDiv(along, s.line) * (tiling_.size().depth / s.packed_k);
  return m_.e.Value((lines + above + step) * s.pitch +
                    FloorDiv(Mod(along, s.line), s.packed_along));
}

void SlicedTile::Put(const Unit& u, const Vals& fetched, const Dim& stage) {
  const Slice& s = u.slice;
  const bool on_k = s.lanes_on_k && form_.packed == 1;  // elements of a vector
  Vals values;
  for (const Val& v : fetched) form_.packed > 1 ? values.push_back(v) : Unpack(v, values);
  for (size_t n = 0; n < values.size(); ++n) {
    const auto i = static_cast<int64_t>(n);
    const Val place = PlaceOf(s, stage, u.along + (on_k ? 0 : i), u.k + (on_k ? i : 0));
    m_.b.Store(s.view, place, values[n]);
  }
}

void SlicedTile::Fill(const TilePart& part, const Dim& k) {
  ForUnits([&](const Unit& u) { IfInside(m_.b, u.inside, [&] { Put(u, Fetch(part, u, k), 0); }); });
  m_.b.Barrier();
}

Vals SlicedTile::LoadAll(const Slice& s, const Dim& stage, int64_t k) {
  Vals out;
  for (int64_t i = 0; i < s.count; ++i)
    out.push_back(Load(s, PlaceOf(s, stage, s.first + i * s.apart, k)));
  return out;
}

Vals SlicedTile::Multiply(Vals sums, const Dim& stage) {
  for (int64_t k = 0; k < tiling_.size().depth; k += form_.steps) {
    const Vals a = LoadAll(a_, stage, k), b = LoadAll(b_, stage, k);
    AddProducts(a, b, sums, [this](Val x, Val y, Val sum) { return MultiplyAdd(x, y, sum); });
  }
  return sums;
}

void SlicedTile::StoreMatrix(const TilePart& part, const Dim& row, const Dim& column, Val matrix,
                             int64_t together) {
  const Type& type = matrix.type();
  const auto lanes = static_cast<int>(together);
  m_.b.ForElements(matrix, lanes, [&](Val r, Val c, Val elements) {
    const Dim i = row + m_.e.Coordinate(r, type.rows - 1);
    const Dim j = column + m_.e.Coordinate(c, type.cols - lanes, lanes);
    if (gemm().n().divisor() % lanes == 0)
      return tiling_.Store(m_, part, i, j, {}, [&] { return elements; });
    for (int n = 0; n < lanes; ++n)
      tiling_.Store(m_, part, i, j + n, {}, [&] { return m_.b.Extract(elements, n); });
  });
}

Val SlicedTile::Wait(Val sum, int) { return sum; }

void SlicedTile::CopyAsync(const TilePart& part, const Slice& s, const Dim& slice) {
  const int64_t depth = tiling_.size().depth;
  const Dims space = s.by_steps ? Dims{s.length / s.line, depth, s.line / kPiece}
                                : Dims{1, s.length, depth / kPiece};
  codegen::ForUnits(
      m_, local_, form_.threads, ir::Product(space).constant(), [&](const Dim& unit, Val exists) {
        const Dims at = Unflatten(unit, space);
        const Dim within = at[0] * s.line + at[2] * kPiece;
        const Dim along = s.by_steps ? within : at[1], k = s.by_steps ? at[1] : within;
        const Position i =
            Guard(m_, (s.is_a ? part.row : part.column) * s.length + along, s.factor.extent);
        const Position j = Guard(m_, slice * depth + k, gemm().k);
        const Val inside = Both(i.inside, j.inside);
        const Elements::Place from =
            m_.e.PlaceOf(s.factor.operand, s.factor.index({part.batch, i.at, j.at}), kPiece);
        const Val to = PlaceOf(s, Mod(slice, tiling_.size().stages), along, k);
        IfInside(m_.b, exists, [&] {
          m_.b.CopyAsync({s.view, to}, {from.view, from.index}, from.elements,
                         inside ? inside : m_.b.Literal(kBool, 1));
        });
      });
}

// Of a slice of the part, as a group; of none beyond the last one.
void SlicedTile::BeginCopies(const TilePart& part, Val slice) {
  m_.b.If(slice < part.steps, [&] {
    const Dim at = m_.e.Coordinate(m_.e.Value(part.first) + slice, part.last);
    CopyAsync(part, a_, at);
    CopyAsync(part, b_, at);
  });
  m_.b.CommitCopies();
}

// Behind the barrier the slice has landed, and all products but those that run have ended: the
// stages of the others are free.
Vals SlicedTile::SumsOfRing(const TilePart& part, const Vals& zeros) {
  Builder& b = m_.b;
  const int64_t ahead = tiling_.size().stages - 1 - form_.running;
  for (int64_t i = 0; i < ahead; ++i) BeginCopies(part, b.Int(i));
  const auto wait = [&](Vals sums, int pending) {
    for (Val& sum : sums) sum = Wait(sum, pending);
    return sums;
  };
  Vals sums = b.For({b.Int(0), part.steps, b.Int(1)}, zeros, [&](Val i, Vals carried) {
    b.WaitCopies(static_cast<int>(ahead - 1));
    b.Barrier();
    const Dim slice = m_.e.Coordinate(m_.e.Value(part.first) + i, part.last);
    const Val next = i + static_cast<double>(ahead);
    if (form_.running == 0) BeginCopies(part, next);
    carried = Multiply(std::move(carried), Mod(slice, tiling_.size().stages));
    if (form_.running > 0) BeginCopies(part, next);
    return wait(std::move(carried), form_.running);
  });
  return wait(std::move(sums), 0);
}

// After all steps of a part of a tile.
Vals SlicedTile::SumsOf(const TilePart& part) {
  Builder& b = m_.b;
  const Tiling::Size& size = tiling_.size();
  const Vals zeros(static_cast<size_t>(a_.count * b_.count), b.Literal(form_.sum, 0));
  const auto k = [&](Val i) {
    return m_.e.Coordinate(m_.e.Value(part.first) + i, part.last) * size.depth;
  };
  if (size.stages > 2) return SumsOfRing(part, zeros);
  if (size.stages == 1)
    return b.For({b.Int(0), part.steps, b.Int(1)}, zeros, [&](Val i, Vals carried) {
      Fill(part, k(i));
      carried = Multiply(std::move(carried), 0);
      b.Barrier();
      return carried;
    });
  Fill(part, k(b.Int(0)));
  const Val last = part.steps - 1.0;
  const auto stage = [&](Val i) { return Mod(m_.e.Coordinate(i, part.last), size.stages); };
  Vals sums = b.For({b.Int(0), last, b.Int(1)}, zeros, [&](Val i, Vals carried) {
    const std::vector<Vals> fetched = FetchAll(part, k(i + 1.0));
    carried = Multiply(std::move(carried), stage(i));
    const Dim next = stage(i + 1.0);
    size_t unit = 0;
    ForUnits([&](const Unit& u) {
      IfInside(b, u.inside, [&] { Put(u, fetched[unit], next); });
      ++unit;
    });
    b.Barrier();
    return carried;
  });
  return Multiply(std::move(sums), stage(last));
}

void SlicedTile::Run(const Dim& workgroup) {
  local_ = m_.e.Coordinate(m_.b.Builtin(BuiltinKind::kLocalX), form_.threads - 1);
  own_ = local_;
  if (form_.subgroup > 0) {
    lane_ = m_.e.Coordinate(m_.b.Builtin(BuiltinKind::kLane), form_.subgroup - 1);
    own_ = m_.e.Coordinate(m_.b.Builtin(BuiltinKind::kSubgroup), form_.down * form_.across - 1);
  }
  if (form_.down * form_.across == 1) own_ = 0;
  a_.first = FloorDiv(own_, form_.across) * (a_.count * a_.apart);
  b_.first = Mod(own_, form_.across) * (b_.count * b_.apart);
  tiling_.ForParts(m_, workgroup, [&](const TilePart& part) {
    const Vals sums = SumsOf(part);
    tiling_.Finish(m_, part, [&](const TilePart& how) { Finish(how, sums); });
  });
}

Launch SlicedTile::Emit() {
  m_.Guarded(m_.Workgroups(tiling_.workgroups()), [&](const Dim& at) { Run(at); });
  return std::move(m_).Take();
}

}  // namespace forge::codegen
