// SPDX-License-Identifier: Apache-2.0
// How steps of recurrent networks are shared out: a workgroup computes all steps of some rows, with
// what passes between its invocations in shared memory. Invocations have adjacent units of all
// these rows, so that they load adjacent weights, each once for all rows.
#pragma once
#include "codegen/kernel/functions.h"
#include "codegen/schedules/emission.h"

namespace forge::codegen {

struct UnitTiles {
  int64_t workgroup = 64;
  int64_t lanes = 1;
  int64_t rows = 1;
  static constexpr Field kFields[] = {
      FieldOf<&UnitTiles::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128|256"),
      FieldOf<&UnitTiles::lanes>("lanes", "Adjacent units, loaded at once.", "1|2|4"),
      FieldOf<&UnitTiles::rows>("rows", "To a workgroup.", "1|2|4")};
};

// The steps of a layer, whatever its cell: s, n and h of the op's signature.
struct UnitSpace {
  ir::Dim steps, rows, units;
  DType dtype = DType::kF32;
  int64_t hidden() const { return units.constant(); }
  Type type() const { return AccumulatorOf(dtype); }
};

UnitTiles DefaultUnitTiles(const Caps& caps, const UnitSpace& space);
// Whether the sums of an invocation stay in registers; the schedule checks its workgroup.
Verdict UnitTilesFit(const UnitSpace& space, const UnitTiles& t);

// The rows and units of one workgroup and invocation. Lists of values have one for each cell: the
// vectors of units of the first row, then of the next.
class UnitRows {
 public:
  UnitRows(Emission& m, const UnitSpace& space, const UnitTiles& t) : m_(m), space_(space), t_(t) {}
  // Takes rows number `rows` of all workgroups.
  void Take(const ir::Dim& rows);

  int lanes() const { return static_cast<int>(t_.lanes); }
  size_t cells() const { return row_.size() * unit_.size(); }
  size_t rows() const { return row_.size(); }
  size_t RowIndex(size_t cell) const { return cell / unit_.size(); }
  const Position& RowOf(size_t cell) const { return row_[RowIndex(cell)]; }
  const Position& UnitOf(size_t cell) const { return unit_[cell % unit_.size()]; }
  Val Zero() { return m_.b.Literal(space_.type().Lanes(lanes()), 0); }
  bool Has(int operand) const { return m_.region.has_input(operand); }
  // The columns of the units of a cell in part `part`, of h columns each.
  ir::Dim Column(int64_t part, size_t cell);
  // Elements of an operand [n, h], or zeros.
  Vals StateOf(int operand);
  // Elements of an operand [s, n, p] at a step, of part `part`.
  Val AtStep(int operand, const ir::Dim& step, int64_t part, size_t cell) {
    return m_.e.At(operand, {step, RowOf(cell).at, Column(part, cell)}, lanes());
  }
  // The number of steps of each row, an operand [n]; empty where it is not given.
  Vals LengthsOf(int operand);
  void IfReal(size_t cell, absl::FunctionRef<void()> body) {
    IfInside(m_.b, Both(RowOf(cell).inside, UnitOf(cell).inside), body);
  }
  // Stores elements of [row, column] in shared memory, of part `part` of rows of `columns`.
  struct SharedPlace {
    uint16_t view = 0;
    Val first;
    ir::Dim columns;
    int64_t part = 0;
  };
  void StoreShared(const SharedPlace& to, std::span<const Val> of_cells);
  static Val Sigmoid(Val x) { return 1.0 / (1.0 + exp(-x)); }

 private:
  Emission& m_;
  const UnitSpace& space_;
  const UnitTiles& t_;
  std::vector<Position> row_, unit_;  // of this invocation; units in vectors
};

}  // namespace forge::codegen
