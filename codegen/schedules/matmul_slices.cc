// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/matmul_slices.h"

namespace forge::codegen {

using ir::Dim;

Slice::Slice(const Factor& f, bool is_a, int64_t length)
    : factor(f),
      is_a(is_a),
      length(length),
      lanes(std::max(f.lanes_k, f.lanes_along)),
      lanes_on_k(f.lanes_k >= f.lanes_along) {}

SlicedTile::SlicedTile(Emission& m, const Tiling& tiling, int64_t threads, Type sum, int64_t step)
    : m_(m),
      tiling_(tiling),
      a_(tiling.gemm().a, true, tiling.size().rows),
      b_(tiling.gemm().b, false, tiling.size().columns),
      threads_(threads),
      step_(step),
      sum_(sum) {}

void SlicedTile::ForUnits(absl::FunctionRef<void(const Unit& unit)> body) const {
  for (const Slice* s : {&a_, &b_}) {
    const int64_t columns = s->length / s->columns(), rows = tiling_.size().depth / s->steps();
    for (int64_t first = 0; first < columns * rows; first += threads_) {
      const Dim at = local_ + first;
      const bool along_k = s->runs_along_k();
      const ir::Dims place =
          along_k ? Unflatten(at, {columns, rows}) : Unflatten(at, {rows, columns});
      const bool all = first + threads_ <= columns * rows;
      body({*s, place[along_k ? 0 : 1] * s->columns(), place[along_k ? 1 : 0] * s->steps(),
            all ? Val{} : m_.e.Value(at) < static_cast<double>(columns * rows)});
    }
  }
}

// Neighbours of the factor from the unit's first place and `k` on; 0 where they lie outside.
Val SlicedTile::Load(const TilePart& part, const Unit& u, const Dim& k) const {
  const Slice& s = u.slice;
  const Dim along = (s.is_a ? part.row : part.column) * s.length + u.along;
  // Vectors are whole: they are inside when their first element is.
  const Position p = Guard(m_, along, s.factor.extent), q = Guard(m_, k, gemm().k);
  Factor::At at{part.batch, p.at, q.at};
  Dim& vector = s.lanes_on_k ? at.k : at.along;
  vector = vector + m_.e.Lane(s.lanes);
  return Where(Both(p.inside, q.inside), s.factor.Load(m_, at, s.lanes), 0);
}

// A vector; or for each of the columns what is packed along k. `k`: of the slice's first step.
Vals SlicedTile::Fetch(const TilePart& part, const Unit& u, const Dim& k) const {
  const Slice& s = u.slice;
  if (!s.pack) return {Load(part, u, k + u.k)};
  Vals loaded;  // by k, then by column
  for (int64_t i = 0; i < s.packed; i += s.lanes_on_k ? s.lanes : 1)
    Unpack(Load(part, u, k + u.k + i), loaded);
  std::vector<Vals> columns(static_cast<size_t>(s.columns()));
  for (size_t i = 0; i < loaded.size(); ++i) columns[i % columns.size()].push_back(loaded[i]);
  Vals out;
  for (const Vals& along_k : columns) out.push_back(s.pack(along_k));
  return out;
}

std::vector<Vals> SlicedTile::FetchAll(const TilePart& part, const Dim& k) const {
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

void SlicedTile::Put(const Unit& u, const Vals& fetched, const Dim& stage) const {
  const Slice& s = u.slice;
  const bool on_k = s.lanes_on_k && !s.pack;  // elements of a vector
  Vals values;
  for (const Val& v : fetched) s.pack ? values.push_back(v) : Unpack(v, values);
  for (size_t n = 0; n < values.size(); ++n) {
    const auto i = static_cast<int64_t>(n);
    const Dim place = s.place(stage, u.along + (on_k ? 0 : i), u.k + (on_k ? i : 0));
    m_.b.Store(s.view, m_.e.Value(place), values[n]);
  }
}

void SlicedTile::Fill(const TilePart& part, const Dim& k) const {
  ForUnits([&](const Unit& u) { IfInside(m_.b, u.inside, [&] { Put(u, Fetch(part, u, k), 0); }); });
  m_.b.Barrier();
}

Vals SlicedTile::LoadFrom(const Slice& s, const Dim& stage, int64_t k) const {
  Vals out;
  for (int64_t i = 0; i < s.count; ++i)
    out.push_back(s.load(m_.e.Value(s.place(stage, s.first + i * s.apart, k))));
  return out;
}

Vals SlicedTile::Multiply(Vals sums, const Dim& stage) {
  for (int64_t k = 0; k < tiling_.size().depth; k += step_) {
    const Vals a = LoadFrom(a_, stage, k), b = LoadFrom(b_, stage, k);
    AddProducts(a, b, sums, [this](Val x, Val y, Val sum) { return MultiplyAdd(x, y, sum); });
  }
  return sums;
}

// After all steps of a part of a tile.
Vals SlicedTile::SumsOf(const TilePart& part) {
  Builder& b = m_.b;
  const Tiling::Size& size = tiling_.size();
  const Vals zeros(static_cast<size_t>(a_.count * b_.count), b.Literal(sum_, 0));
  const auto k = [&](Val i) {
    return m_.e.Coordinate(m_.e.Value(part.first) + i, part.last) * size.depth;
  };
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
  local_ = m_.e.Coordinate(m_.b.Builtin(BuiltinKind::kLocalX), threads_ - 1);
  Place();
  tiling_.ForParts(m_, workgroup, [&](const TilePart& part) {
    const Vals sums = SumsOf(part);
    tiling_.Finish(m_, part, [&](const TilePart& how) { Finish(how, sums); });
  });
}

}  // namespace forge::codegen
