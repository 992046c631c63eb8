// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/recurrent/unit_rows.h"

namespace forge::codegen {
namespace {

using ir::Dim;

constexpr int64_t kMostCells = 16;  // units of rows, of an invocation; sums stay in registers

// Vectors of units that an invocation has.
int64_t VectorsOf(const UnitSpace& space, const UnitTiles& t) {
  return CeilDiv(space.units, t.lanes * t.workgroup).max();
}

}  // namespace

UnitTiles DefaultUnitTiles(const Caps& caps, const UnitSpace& space) {
  UnitTiles t{.workgroup = 32, .lanes = LanesFor(space.units)};
  const int64_t enough = caps.runs_on_cpu ? 64 : 256;
  const auto grow_to = [&](int64_t most, int64_t units_of_one) {
    while (t.workgroup < most && t.workgroup * units_of_one < space.units.max() &&
           WorkgroupFits(t.workgroup * 2, caps))
      t.workgroup *= 2;
  };
  grow_to(enough, t.lanes);
  grow_to(256, kMostCells);
  // Rows share the loads of weights, where enough workgroups are left.
  const int64_t workgroups = caps.runs_on_cpu ? 2 : 64;
  while (t.rows < 4 && space.rows.min() >= t.rows * 2 * workgroups &&
         VectorsOf(space, t) * t.lanes * t.rows * 2 <= kMostCells)
    t.rows *= 2;
  return t;
}

Verdict UnitTilesFit(const UnitSpace& space, const UnitTiles& t) {
  if (!space.units.is_constant()) return Verdict::No("the number of units is open");
  if (LanesFor(space.units) % t.lanes != 0) return Verdict::No("vectors do not divide the units");
  if (VectorsOf(space, t) * t.lanes * t.rows > kMostCells)
    return Verdict::No(
        fmt::format("{} units are too many for {} invocations", space.hidden(), t.workgroup));
  return Verdict::Yes();
}

void UnitRows::Take(const Dim& rows) {
  const Dim local = m_.e.Coordinate(m_.b.Builtin(BuiltinKind::kLocalX), t_.workgroup - 1);
  const Dim vectors = FloorDiv(space_.units, t_.lanes);
  for (int64_t row = 0; row < t_.rows; ++row)
    row_.push_back(Guard(m_, rows * t_.rows + row, space_.rows));
  for (int64_t first = 0; first < vectors.max(); first += t_.workgroup)
    unit_.push_back(Guard(m_, local + first, vectors));
}

Dim UnitRows::Column(int64_t part, size_t cell) {
  return space_.units * part + UnitOf(cell).at * t_.lanes + m_.e.Lane(lanes());
}

Vals UnitRows::StateOf(int operand) {
  Vals out;
  for (size_t i = 0; i < cells(); ++i)
    out.push_back(Has(operand) ? m_.e.At(operand, {RowOf(i).at, Column(0, i)}, lanes()) : Zero());
  return out;
}

Vals UnitRows::LengthsOf(int operand) {
  Vals out;
  for (const Position& row : row_)
    if (Has(operand)) out.push_back(convert(m_.e.At(operand, {row.at}), DType::kI32));
  return out;
}

void UnitRows::StoreShared(const SharedPlace& to, std::span<const Val> of_cells) {
  for (size_t i = 0; i < cells(); ++i)
    IfReal(i, [&] {
      const Dim first = to.columns * static_cast<int64_t>(RowIndex(i)) + space_.units * to.part;
      Vals elements;
      Unpack(of_cells[i], elements);
      for (int64_t lane = 0; lane < t_.lanes; ++lane) {
        const Dim at = first + UnitOf(i).at * t_.lanes + lane;
        m_.b.Store(to.view, to.first + m_.e.Value(at), elements[static_cast<size_t>(lane)]);
      }
    });
}

}  // namespace forge::codegen
