// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/matmul_slices.h"

namespace forge::codegen {

using ir::Dim;

Slice::Slice(const Gemm& g, bool is_a, int64_t length) : g(g), is_a(is_a), length(length) {
  const int on_k = is_a ? g.a_lanes_k : g.b_lanes_k, across = is_a ? g.a_lanes_m : g.b_lanes_n;
  lanes_on_k = on_k >= across;
  lanes = std::max(on_k, across);
}

Val Slice::Load(Emission& m, const Dim& batch, const Dim& along, const Dim& k) const {
  // Vectors are whole: they are inside when their first element is.
  const Position p = Guard(m, along, is_a ? g.m : g.n), q = Guard(m, k, g.k);
  Gemm::At at{batch, p.at, p.at, q.at};
  Dim& vector = lanes_on_k ? at.k : is_a ? at.m : at.n;
  vector = vector + m.e.Lane(lanes);
  return Where(Both(p.inside, q.inside), is_a ? g.A(m, at, lanes) : g.B(m, at, lanes), 0);
}

std::vector<Vals> Slice::LoadAlongK(Emission& m, const Dim& batch, const Dim& along, const Dim& k,
                                    int count) const {
  Vals loaded;  // by k, then by column
  for (int i = 0; i < count; i += lanes_on_k ? lanes : 1)
    Unpack(Load(m, batch, along, k + i), loaded);
  std::vector<Vals> out(static_cast<size_t>(columns()));
  for (size_t i = 0; i < loaded.size(); ++i) out[i % out.size()].push_back(loaded[i]);
  return out;
}

void SliceLoop::ForUnits(absl::FunctionRef<void(const Unit& unit)> body) const {
  for (const SliceCopy& c : copies) {
    const int64_t columns = c.slice.length / c.slice.columns(), rows = depth / c.steps;
    for (int64_t first = 0; first < columns * rows; first += threads) {
      const Dim at = local + first;
      const bool along_k = c.slice.runs_along_k();
      const ir::Dims place =
          along_k ? Unflatten(at, {columns, rows}) : Unflatten(at, {rows, columns});
      const bool all = first + threads <= columns * rows;
      body({c, place[along_k ? 0 : 1] * c.slice.columns(), place[along_k ? 1 : 0] * c.steps,
            all ? Val{} : m.e.Value(at) < static_cast<double>(columns * rows)});
    }
  }
}

void SliceLoop::Fill(const Dim& k) const {
  ForUnits([&](const Unit& u) {
    IfInside(m.b, u.inside, [&] { u.copy.put(u.copy.fetch(u.along, k + u.k), 0, u.along, u.k); });
  });
}

std::vector<Vals> SliceLoop::Fetch(const Dim& k) const {
  std::vector<Vals> out;
  ForUnits([&](const Unit& u) {
    Vals fetched;
    const auto fetch = [&] { return fetched = u.copy.fetch(u.along, k + u.k); };
    const auto nothing = [&] {
      Vals zeros;
      for (const Val& v : fetched) zeros.push_back(m.b.Literal(v.type(), 0));
      return zeros;
    };
    out.push_back(u.inside ? m.b.If(u.inside, fetch, nothing) : fetch());
  });
  return out;
}

void SliceLoop::Put(std::span<const Vals> fetched, const Dim& stage) const {
  size_t next = 0;
  ForUnits([&](const Unit& u) {
    const Vals& values = fetched[next++];
    IfInside(m.b, u.inside, [&] { u.copy.put(values, stage, u.along, u.k); });
  });
}

Vals SliceLoop::Run(const TilePart& part, Vals sums) const {
  Builder& b = m.b;
  const auto k = [&](Val i) {
    return m.e.Coordinate(m.e.Value(part.first) + i, part.last) * depth;
  };
  if (stages == 1)
    return b.For({b.Int(0), part.steps, b.Int(1)}, std::move(sums), [&](Val i, Vals carried) {
      Fill(k(i));
      b.Barrier();
      carried = multiply(std::move(carried), 0);
      b.Barrier();
      return carried;
    });
  Fill(k(b.Int(0)));
  b.Barrier();
  const Val last = part.steps - 1.0;
  const auto stage = [&](Val i) { return Mod(m.e.Coordinate(i, part.last), stages); };
  sums = b.For({b.Int(0), last, b.Int(1)}, std::move(sums), [&](Val i, Vals carried) {
    const std::vector<Vals> fetched = Fetch(k(i + 1.0));
    carried = multiply(std::move(carried), stage(i));
    Put(fetched, stage(i + 1.0));
    b.Barrier();
    return carried;
  });
  return multiply(std::move(sums), stage(last));
}

std::string StagesText(int64_t stages) { return stages > 1 ? "_staged" : ""; }

Verdict StagesFit(const Gemm& g, int64_t stages) {
  if (stages > 1 && g.k.min() < 1) return Verdict::No("k may be empty");
  return Verdict::Yes();
}

}  // namespace forge::codegen
