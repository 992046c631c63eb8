// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/indexing/scatter.h"

#include "codegen/region/index.h"
#include "codegen/region/storage.h"
#include "ir/analysis/in_place.h"

namespace forge::codegen {
namespace {

// An invocation for each column pays from so many on.
constexpr int64_t kManyColumns = 4096, kManyColumnsOfCore = 16;
// On CPUs a core that walks a column of up to a million updates is as fast as several cores whose
// invocations meet at atomics; longer ones wait for memory.
constexpr int64_t kCoresOfColumn = 6, kCachedColumn = int64_t{1} << 20;
// A column of so few updates is quick whatever the number of columns.
constexpr int64_t kShortColumn = 32;

Launch CopyLaunch(const Region& r) {
  const ir::Type& out = r.anchor_output();
  const int lanes = LanesFor(out.elements());
  return ForPlaces(r, fmt::format("scatter_copy_x{}", lanes), 64, {FloorDiv(out.elements(), lanes)},
                   [&](Emission& m, const ir::Dims& at) {
                     const ir::Dims index = Unflatten(at[0] * lanes + m.e.Lane(lanes), out.shape());
                     m.e.Finish(index, m.e.At(0, index, lanes), lanes);
                   });
}

}  // namespace

ir::Dims ScatterForm::columns() const {
  ir::Dims out = updates;
  out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  return out;
}

std::optional<ScatterForm> ScatterFormOf(const Region& r) {
  const auto* op = r.AnchorAs<ir::Scatter>();
  if (op == nullptr) return std::nullopt;
  const ir::Types& in = r.anchor_inputs();
  const int64_t axis = op->axis < 0 ? op->axis + in[0].rank() : op->axis;
  return ScatterForm{
      *op, static_cast<size_t>(axis), in[0].shape(), in[1].shape(), in[2].shape(), in[0].dtype()};
}

Verdict ScatterStands(const Region& r) {
  if (ir::UpdateOf(r.body()) || r.body().nodes().size() == 1) return Verdict::Yes();
  return Verdict::No("others read the tensor that is updated, or what is made of it");
}

bool HasManyColumns(const Region& r, const ScatterForm& s) {
  if (s.count().max() <= kShortColumn) return true;
  const Caps& caps = r.caps();
  const bool cached = s.count().max() <= kCachedColumn;
  const int64_t many = !caps.runs_on_cpu ? kManyColumns
                       : cached          ? caps.cores / kCoresOfColumn
                                         : caps.cores * kManyColumnsOfCore;
  return ir::Product(s.columns()).max() >= many;
}

Verdict ScratchFits(const Region& r, const ir::Dim& bytes) {
  // Open dimensions are decided when they are bound.
  if (!bytes.is_constant() || bytes.max() <= r.caps().max_operand_bytes) return Verdict::Yes();
  return Verdict::No(fmt::format("{} bytes of scratch, a buffer has at most {}", bytes.max(),
                                 r.caps().max_operand_bytes));
}

void ForTarget(Emission& m, const ScatterForm& s, const ir::Dims& at,
               absl::FunctionRef<void(const ir::Dims& to)> body) {
  Val index = m.e.At(1, BroadcastIndex(at, s.indices));
  if (IsWide(index.type())) index = max(min(index, INT32_MAX), INT32_MIN);  // outside stays outside
  index = convert(index, DType::kI32);
  const Val extent = m.b.Scalar(s.extent());
  index = select(index < 0, index + extent, index);
  m.b.If((index >= 0) & (index < extent), [&] {
    ir::Dims to = at;
    to[s.axis] = m.e.Coordinate(index, LastIndex(s.extent()));
    body(to);
  });
}

Launch ForUpdates(const Region& r, const ScatterForm& s, std::string name, int64_t workgroup,
                  absl::FunctionRef<void(Emission& m, const ScatterPlace& p)> body) {
  return ForPlaces(r, std::move(name), workgroup, s.updates, [&](Emission& m, const ir::Dims& at) {
    ForTarget(m, s, at,
              [&](const ir::Dims& to) { body(m, ScatterPlace{at, to, Flatten(to, s.x)}); });
  });
}

Val ElementBefore(Emission& m, const ScatterForm& s, const ir::Dim& vector, int lanes) {
  const auto result = static_cast<int>(m.region.body().arguments().size());
  return m.e.LoadFrom(result, Type{s.dtype}.Lanes(lanes), vector);
}

Val Updated(const ScatterForm& s, Val element, Val update) {
  const Element y{element, s.dtype}, u{update, s.dtype};
  switch (s.op.mode) {
    case ir::ScatterMode::kSet:
      return update;
    case ir::ScatterMode::kAdd:
      return (y + u).v;
    case ir::ScatterMode::kMul:
      return (y * u).v;
    case ir::ScatterMode::kMin:
      return min(y, u).v;
    case ir::ScatterMode::kMax:
      return max(y, u).v;
  }
  return update;
}

Program ScatterProgram(const Region& r, std::vector<Launch> launches,
                       std::vector<int64_t> scratch_bytes) {
  Program out{.kernel = launches.back().kernel.name, .scratch_bytes = std::move(scratch_bytes)};
  if (!ir::UpdateOf(r.body())) out.launches.push_back(CopyLaunch(r));
  for (Launch& launch : launches) out.launches.push_back(std::move(launch));
  return out;
}

}  // namespace forge::codegen
