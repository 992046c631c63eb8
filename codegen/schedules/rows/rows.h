// SPDX-License-Identifier: Apache-2.0
// Ops that look at a whole row before they write its elements: an invocation, a subgroup or a
// workgroup for each row, by how many and how long they are. An op states its formula once, over a
// Row.
#pragma once
#include <functional>

#include "codegen/kernel/functions.h"
#include "codegen/schedules/workgroup.h"

namespace forge::codegen {

// The rows of the anchor's first operand: some axes are a row's elements, the others number rows.
struct RowSpace {
  RowSpace(const Region& r, std::span<const int64_t> axes);  // of a row's elements
  ir::Dim rows() const { return ir::Product(outer); }
  ir::Dim length() const { return ir::Product(inner); }
  bool last() const { return !within.empty() && within.back(); }  // neighbours lie side by side
  int64_t lanes() const;  // neighbours along the last axis, whatever it is, that a vector holds
  ir::Dims Index(const ir::Dim& row, const ir::Dim& element) const;

  std::vector<bool> within;  // for each axis: is it of a row?
  ir::Dims outer, inner;
};

// Where a formula finds one row, or as many neighbouring rows as a vector has lanes.
class Row {
 public:
  // What invocations of a row computed, as one.
  using Combiner = std::function<Val(ReduceKind kind, Val mine)>;
  struct Exponentials {
    Val top, sum;  // the largest x, or the least finite number; of exp(x - top)
  };
  // How the elements of a row are shared out.
  struct Share {
    ir::Dim row;
    int across = 1, along = 1;  // lanes: of rows, or of elements of a row
    ir::Dim first = 0;          // vector of a row that this invocation sees
    int64_t step = 1;           // from there to its next one
    int64_t held = 0;           // how many, where they stay in registers; 0: read each time
    Combiner combine = {};      // null: each invocation has a row of its own
    // Where it has a part of a row: the vector behind its last one, and what is known of the row.
    std::optional<ir::Dim> end = {};
    std::optional<Exponentials> exponentials = {};
  };
  Row(Emission& m, const RowSpace& space, Share share);

  const Region& region() const { return m_.region; }
  // The anchor's attributes.
  template <class T>
  const T& op() const {
    return *m_.region.AnchorAs<T>();
  }
  double length() const { return static_cast<double>(space_.length().constant()); }
  Val Literal(double v) { return Literal(v, lanes()); }  // of the type that rows are computed in
  // Of all elements x of operand 0, in every lane of a row. What follows another thing of the whole
  // row is computed beside it, in one pass, where elements are not in registers.
  Val Sum(absl::FunctionRef<Val(Val)> f);
  Exponentials SumExponentials();
  struct Moments {
    Val mean, variance;
  };
  // Around the mean: E[x^2] - E[x]^2 loses everything where the mean is large.
  //   source: Welford, Chan et al., updating formulas
  Moments MeanAndVariance();
  // Writes f(x) for each element x of operand 0. `of(k)` is the element of operand k that meets x.
  using Operands = absl::FunctionRef<Val(int operand)>;
  void Store(absl::FunctionRef<Val(Val x, Operands of)> f);
  // Writes a number of the row to its element of another result of the anchor, which has an element
  // for each row.
  void StoreNumber(int result, Val number);
  // Writes numbers of the row to scratch 0: the first of each row, then the second.
  void Keep(std::span<const Val> numbers);

 private:
  // A vector of operand 0 that is in registers.
  struct Held {
    Position at;  // of all vectors of the row
    Val x;
  };
  const std::vector<Held>& HeldVectors();
  Vals Fold(Vals start, absl::FunctionRef<Vals(const Vals&, Val)> f);
  Val Literal(double v, int lanes);
  Val OverLanes(ReduceKind kind, Val v) const;  // those of elements of a row as one
  Val Combine(ReduceKind kind, Val mine);
  void IfFirst(absl::FunctionRef<void()> body);  // once for each row
  ir::Dim VectorCount() const { return FloorDiv(space_.length(), share_.along); }
  Builder::Range Vectors();  // those of this invocation
  ir::Dims Index(const ir::Dim& vector);
  int lanes() const { return std::max(share_.across, share_.along); }
  Emission& m_;
  const RowSpace& space_;
  Share share_;
  std::vector<Held> held_;
};

// A formula over rows.
struct RowFormula {
  std::string_view name;
  std::vector<int64_t> (*axes)(const Region&);  // of a row's elements
  void (*emit)(Row&);
};

// How rows are shared out among invocations, subgroups or workgroups.
struct RowTiles {
  int64_t workgroup = 64;
  int64_t rows = 1;      // neighbours to an invocation; to a subgroup, one after the other: what
                         // meets each is loaded once
  int64_t elements = 1;  // of a row, loaded at once
  bool held = false;
  static constexpr Field kFields[] = {
      FieldOf<&RowTiles::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128|256"),
      FieldOf<&RowTiles::rows>("rows", "To an invocation or a subgroup.", "1|2|4"),
      FieldOf<&RowTiles::elements>("elements", "Of a row, loaded at once.", "1|2|4"),
      FieldOf<&RowTiles::held>("held", "Rows stay in registers: they are read once.")};
};
// A formula over the rows of an anchor, each of an invocation, a subgroup or a workgroup: `by`.
struct SharedRows {
  Scope by;
  const RowFormula& formula;
  RowSpace space;
};
RowTiles DefaultRowTiles(const Region& r, const SharedRows& rows);
Verdict RowTilesFit(const Region& r, const SharedRows& rows, const RowTiles& t);
Program EmitRows(const Region& r, const SharedRows& rows, const RowTiles& t);

// nullopt: the anchor is no Op.
template <Scope kBy, class Op, const RowFormula& kFormula>
std::optional<SharedRows> SharedRowsOf(const Region& r) {
  if (r.AnchorAs<Op>() == nullptr) return std::nullopt;
  return SharedRows{kBy, kFormula, {r, kFormula.axes(r)}};
}
// The schedule that shares out rows of anchors of type Op among kBy.
template <Scope kBy, class Op, const RowFormula& kFormula>
constexpr Schedule RowSchedule(std::string_view name) {
  return ScheduleOn<RowTiles, SharedRowsOf<kBy, Op, kFormula>, DefaultRowTiles, RowTilesFit,
                    EmitRows>(name);
}

}  // namespace forge::codegen
