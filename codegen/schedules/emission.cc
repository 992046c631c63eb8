// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/emission.h"

#include <algorithm>

namespace forge::codegen {

Emission::Emission(const Region& r, std::string name, std::array<uint32_t, 3> workgroup)
    : region(r),
      launch{.kernel = {.name = std::move(name),
                        .workgroup = workgroup,
                        .approximate = r.approximate()}},
      b(launch.kernel),
      e(b, r, launch) {}

Launch Emission::Take() && {
  b.Finish();
  return std::move(launch);
}

// The grid comes first: builtins of an axis with one workgroup are literals.
Emission::Work Emission::Workgroups(const ir::Dim& count) {
  const int64_t limit = region.caps().max_grid_x;
  if (count.max() <= limit) {
    launch.kernel.grid = {count, 1, 1};
    return {b.Builtin(BuiltinKind::kWorkgroupX), count, true};
  }
  // Rows of equal length, as few as hold them all.
  ir::Dim width = limit;
  if (count.is_constant()) {
    const int64_t n = count.constant(), rows = (n + limit - 1) / limit;
    width = (n + rows - 1) / rows;
  }
  const ir::Dim rows = CeilDiv(count, width);
  launch.kernel.grid = {width, rows, 1};
  Val index =
      b.Builtin(BuiltinKind::kWorkgroupY) * b.Scalar(width) + b.Builtin(BuiltinKind::kWorkgroupX);
  return {index, count, width * rows == count};
}

Emission::Work Emission::PartsOfWorkgroups(const ir::Dim& count, int64_t parts, BuiltinKind which) {
  const Work groups = Workgroups(CeilDiv(count, parts));
  Val index = groups.index * static_cast<double>(parts) + b.Builtin(which);
  return {index, count, groups.exact && count.divisor() % parts == 0};
}

Emission::Work Emission::Invocations(const ir::Dim& count) {
  return PartsOfWorkgroups(count, launch.kernel.workgroup[0], BuiltinKind::kLocalX);
}

void Emission::Guarded(const Work& work, absl::FunctionRef<void(const ir::Dim& at)> body) {
  const ir::Dim at = e.Coordinate(work.index, LastIndex(work.count));
  if (work.exact) return body(at);
  b.If(work.index < b.Scalar(work.count), [&] { body(at); });
}

void Emission::EachSubgroup(const ir::Dim& count, absl::FunctionRef<void(const ir::Dim& at)> body) {
  const int64_t subgroups = launch.kernel.workgroup[0] / launch.kernel.subgroup;
  Guarded(PartsOfWorkgroups(count, subgroups, BuiltinKind::kSubgroup), body);
}

Vals Emission::Loop(const ir::Dim& count, Vals carried,
                    absl::FunctionRef<Vals(const ir::Dim& i, Vals carried)> body) {
  return b.For({b.Int(0), b.Scalar(count), b.Int(1)}, std::move(carried), [&](Val i, Vals inner) {
    return body(e.Coordinate(i, LastIndex(count)), std::move(inner));
  });
}

uint16_t Emission::AddShared(std::string name, const SharedArray& array) {
  return b.AddView({.name = std::move(name),
                    .space = Space::kShared,
                    .elem = array.elem,
                    .extent = static_cast<uint32_t>(array.extent),
                    .reads = true,
                    .writes = true,
                    .swizzled = array.swizzled});
}

Launch ForPlaces(const Region& r, std::string name, int64_t workgroup, const ir::Dims& space,
                 absl::FunctionRef<void(Emission& m, const ir::Dims& place)> body) {
  Emission m(r, std::move(name), {static_cast<uint32_t>(workgroup), 1, 1});
  m.Guarded(m.Invocations(ir::Product(space)),
            [&](const ir::Dim& at) { body(m, Unflatten(at, space)); });
  return std::move(m).Take();
}

Position Guard(Emission& m, const ir::Dim& position, const ir::Dim& extent) {
  const bool low = position.min() >= 0, high = position.max() < extent.min();
  if (m.e.Certain({position, 0, extent})) return {position, {}};
  Val v = m.e.Value(position), inside;
  if (!low) inside = v >= 0;
  if (!high) inside = Both(inside, v < m.b.Scalar(extent));
  return {m.e.Coordinate(select(inside, v, 0), LastIndex(extent), position.divisor()), inside};
}

Val Both(Val a, Val b) { return a.b == nullptr ? b : b.b == nullptr ? a : a & b; }

void IfInside(Builder& b, Val inside, absl::FunctionRef<void()> body) {
  if (inside)
    b.If(inside, body);
  else
    body();
}

Val Where(Val inside, Val v, double other) { return inside ? select(inside, v, other) : v; }

Val LoadWithin(Emission& m, const Coordinate& row, const Coordinate& column,
               absl::FunctionRef<Val(const ir::Dim& row, const ir::Dim& column)> load) {
  const Position i = Guard(m, row.at, row.extent), j = Guard(m, column.at, column.extent);
  const Val v = load(i.at, j.at);
  return Where(Both(i.inside, j.inside), v, 0);
}

std::vector<Position> TiledAxis::All(Emission& m, const ir::Dim& tile) const {
  std::vector<Position> out;
  for (int64_t i = 0; i < size; ++i) {
    const ir::Dim at = tile * size + i;
    Position& p = out.emplace_back(Position{at, {}});
    if (exact() || m.e.Certain({at, 0, extent})) continue;
    const Val v = m.e.Value(at), last = m.b.Scalar(extent - 1);
    p = {m.e.Coordinate(min(v, last), LastIndex(extent)), v <= last};
  }
  return out;
}

void FinishRow(Emission& m, const TiledAxis& columns, std::span<const Position> at,
               std::span<const Val> row,
               absl::FunctionRef<void(const ir::Dim& first, Val neighbours)> finish) {
  const auto lanes = static_cast<size_t>(columns.exact() ? LanesFor(columns.size) : 1);
  for (size_t j = 0; j < row.size(); j += lanes)
    IfInside(m.b, at[j].inside, [&] { finish(at[j].at, Packed(row.subspan(j, lanes))); });
}

int64_t TileSize(const ir::Dim& extent, int64_t most) {
  if (extent.max() <= most) return std::max<int64_t>(extent.max(), 1);
  for (int64_t t = most; t > most / 2; --t)
    if (extent.divisor() % t == 0) return t;
  return most;
}

ir::Dim Any(const ir::Dim& extent, int64_t divisor) {
  return ir::Dim(std::make_shared<ir::Symbol>(
      ir::Symbol{.name = "any", .min = 0, .max = LastIndex(extent), .divisor = divisor}));
}

int LanesAlong(const Region& r, int operand, const ir::Dim& extent,
               absl::FunctionRef<ir::Dims(const ir::Dim& at)> index) {
  for (int lanes : {4, 2}) {
    if (extent.divisor() % lanes != 0) continue;
    const auto lane = std::make_shared<ir::Symbol>(
        ir::Symbol{.name = "lane", .min = 0, .max = lanes - 1, .divisor = 1});
    const ir::Dim at = Any(extent - lanes + 1, lanes) + ir::Dim(lane);
    if (r.Contiguous(operand, index(at), lane, lanes)) return lanes;
  }
  return 1;
}

int LanesAlongLast(const Region& r, int operand) {
  const ir::Dims& shape = r.anchor_inputs()[static_cast<size_t>(operand)].shape();
  return LanesAlong(r, operand, shape.back(), [&](const ir::Dim& along) {
    ir::Dims index;
    for (const ir::Dim& extent : shape) index.push_back(Any(extent, 1));
    index.back() = along;
    return index;
  });
}

void Unpack(Val v, Vals& out) {
  if (v.type().lanes == 1) return out.push_back(v);
  for (int i = 0; i < v.type().lanes; ++i) out.push_back(v.b->Extract(v, i));
}

Val Packed(std::span<const Val> parts) {
  if (parts.size() == 1) return parts[0];
  return parts[0].b->Pack(parts[0].type().Lanes(static_cast<int>(parts.size())), parts);
}

void AddProducts(std::span<const Val> a, std::span<const Val> b, Vals& sums, MultiplyAdd by) {
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j) {
      Val& sum = sums[i * b.size() + j];
      sum = by(a[i], b[j], sum);
    }
}

int LanesFor(const ir::Dim& extent) {
  return extent.divisor() % 4 == 0 ? 4 : extent.divisor() % 2 == 0 ? 2 : 1;
}

Verdict WorkgroupFits(int64_t invocations, const Caps& caps, std::span<const SharedArray> shared,
                      std::optional<int64_t> most_shared) {
  const int64_t shared_bytes = SharedBytes(shared),
                most = most_shared.value_or(caps.max_shared_bytes);
  if (shared_bytes > most)
    return Verdict::No(
        fmt::format("{} bytes of shared memory, the device has {}", shared_bytes, most));
  if (invocations > std::min(caps.max_workgroup_invocations, caps.max_workgroup_x))
    return Verdict::No(fmt::format("{} invocations in a workgroup, the device allows {}",
                                   invocations, caps.max_workgroup_invocations));
  return Verdict::Yes();
}

Verdict ShufflesAreQuick(const Caps& caps) {
  const int64_t lanes = caps.subgroup_size;
  if (!caps.runs_on_cpu) return Verdict::No("shared memory is faster on this device");
  if (!caps.subgroup_shuffle) return Verdict::No("the device has no shuffles");
  if (lanes < 4 || lanes > 16) return Verdict::No(fmt::format("subgroups of {}", lanes));
  if (lanes < caps.min_subgroup_size || lanes > caps.max_subgroup_size)
    return Verdict::No("the subgroup's size cannot be relied on");
  return Verdict::Yes();
}

int64_t VectorsOfPage(const Caps& caps, const ir::Dim& strips, int64_t least, int64_t most) {
  int64_t v = most;
  while (v > least && (strips.divisor() % v != 0 || strips.min() / v < caps.cores)) v /= 2;
  return v;
}

Program OneLaunch(Launch launch) {
  Program out{.kernel = launch.kernel.name};
  out.launches.push_back(std::move(launch));
  return out;
}

}  // namespace forge::codegen
