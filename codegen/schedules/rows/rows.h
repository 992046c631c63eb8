// SPDX-License-Identifier: Apache-2.0
// Ops that need a whole row before they can write its elements. Each row is computed by an
// invocation, a subgroup or a workgroup, depending on the number and length of rows. An op states
// its formula once, over a Row.
#pragma once
#include <functional>

#include "codegen/kernel/functions.h"
#include "codegen/schedules/workgroup.h"

namespace forge::codegen {

// The rows of the anchor's first operand: `within` marks the axes of a row's elements; the other
// axes number the rows.
struct RowSpace {
  RowSpace(const Region& r, std::span<const int64_t> axes);  // of a row's elements
  ir::Dim rows() const { return ir::Product(outer); }
  ir::Dim length() const { return ir::Product(inner); }
  bool last() const { return !within.empty() && within.back(); }  // a row is contiguous
  int64_t lanes() const;  // width of vectors along the last axis of the tensor
  ir::Dims Index(const ir::Dim& row, const ir::Dim& element) const;

  std::vector<bool> within;  // by axis
  ir::Dims outer, inner;
};

struct RowFormula;

// One row for a formula, or as many neighbouring rows as a vector has lanes.
class Row {
 public:
  // Combines the partial results of the invocations that share a row.
  using Combiner = std::function<Val(ReduceKind kind, Val mine)>;
  struct Exponentials {
    Val top, sum;  // the largest x, or the least finite number; of exp(x - top)
  };
  // The part of a row that an invocation computes.
  struct Share {
    ir::Dim row;
    int across = 1, along = 1;  // lanes over rows, or over elements of a row
    ir::Dim first = 0;          // its first vector of the row
    int64_t step = 1;           // from one of its vectors to the next
    int64_t held = 0;           // vectors kept in registers; 0: read in each pass
    Combiner combine = {};      // null: the invocation has the whole row
    // For a part of a row that is split between launches: its end, and the exponentials of the row.
    std::optional<ir::Dim> end = {};
    std::optional<Exponentials> exponentials = {};
  };
  Row(Emission& m, const RowSpace& space, const RowFormula& formula, Share share);

  const Region& region() const { return m_.region; }
  // The anchor's attributes.
  template <class T>
  const T& op() const {
    return *m_.region.AnchorAs<T>();
  }
  double length() const { return static_cast<double>(space_.length().constant()); }
  Val Literal(double v) { return Literal(v, lanes()); }  // of the type that rows are computed in
  // Of the numbers that an element is to the formula; of operand k, the element at the same place,
  // broadcast.
  using Numbers = const Vals&;
  using Operands = absl::FunctionRef<Val(int operand)>;
  // Statistics of all elements, in every lane. Unless elements are in registers, a statistic that
  // depends on another is computed in the same pass (online).
  Vals Sums(size_t count, absl::FunctionRef<Vals(Numbers)> f);  // of the first `count` of f
  Val Sum(absl::FunctionRef<Val(Val)> f);                       // f(the first number)
  Exponentials SumExponentials();
  struct Moments {
    Val mean, variance;
  };
  // Computed around the mean: E[x^2] - E[x]^2 cancels when the mean is large.
  //   source: Welford, Chan et al., updating formulas
  Moments MeanAndVariance();
  // Stores f for each element.
  void Store(absl::FunctionRef<Val(Numbers, Operands of)> f);
  // Stores a number of the row as its element of another result of the anchor, which has one
  // element for each row.
  void StoreNumber(int result, Val number);
  // Stores numbers of the row in scratch 0: first those of index 0 of all rows, then of index 1.
  void Keep(std::span<const Val> numbers);

 private:
  // A vector of elements in registers.
  struct Held {
    Position at;  // among the vectors of the row
    Vals numbers;
  };
  const std::vector<Held>& HeldVectors();
  Val OperandAt(int operand, const ir::Dims& index);
  Vals NumbersAt(const ir::Dims& index);
  Vals Fold(Vals start, absl::FunctionRef<Vals(const Vals&, Numbers)> f);
  Val Literal(double v, int lanes);
  Val OverLanes(ReduceKind kind, Val v) const;  // reduces lanes over elements of a row
  Val Combine(ReduceKind kind, Val mine);
  void IfFirst(absl::FunctionRef<void()> body);  // once for each row
  ir::Dim VectorCount() const { return FloorDiv(space_.length(), share_.along); }
  Builder::Range Vectors();  // those of this invocation
  ir::Dims Index(const ir::Dim& vector);
  int lanes() const { return std::max(share_.across, share_.along); }
  Emission& m_;
  const RowSpace& space_;
  const RowFormula& formula_;
  Share share_;
  std::vector<Held> held_;
};

// A formula over rows.
struct RowFormula {
  std::string_view name;
  std::vector<int64_t> (*axes)(const Region&);  // of a row's elements
  void (*emit)(Row&);
  // What an element is to the formula, of the elements of operands: that of the first by default.
  size_t numbers = 1;
  Vals (*of_element)(const Region&, Row::Operands) = nullptr;
  // Which anchors it is for; null: all of their op.
  bool (*takes)(const Region&, const RowSpace&) = nullptr;
};

// Parameters of the schedules of rows.
struct RowTiles {
  int64_t workgroup = 64;
  int64_t rows = 1;      // neighbouring rows of an invocation; of a subgroup, consecutive rows that
                         // share the loads of the other operands
  int64_t elements = 1;  // of a row, loaded at once
  bool held = false;
  static constexpr Field kFields[] = {
      FieldOf<&RowTiles::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128|256"),
      FieldOf<&RowTiles::rows>("rows", "To an invocation or a subgroup.", "1|2|4"),
      FieldOf<&RowTiles::elements>("elements", "Of a row, loaded at once.", "1|2|4"),
      FieldOf<&RowTiles::held>("held", "Rows stay in registers: they are read once.")};
};
// A formula over the rows of an anchor; `by` says which scope computes a row.
struct SharedRows {
  Scope by;
  const RowFormula& formula;
  RowSpace space;
};
RowTiles DefaultRowTiles(const Region& r, const SharedRows& rows);
Verdict RowTilesFit(const Region& r, const SharedRows& rows, const RowTiles& t);
Program EmitRows(const Region& r, const SharedRows& rows, const RowTiles& t);

// nullopt: the anchor is no Op, or none that the formula takes.
template <Scope kBy, class Op, const RowFormula& kFormula>
std::optional<SharedRows> SharedRowsOf(const Region& r) {
  if (r.AnchorAs<Op>() == nullptr) return std::nullopt;
  SharedRows rows{kBy, kFormula, {r, kFormula.axes(r)}};
  if (kFormula.takes != nullptr && !kFormula.takes(r, rows.space)) return std::nullopt;
  return rows;
}
// The schedule of anchors of type Op with a row for each kBy.
template <Scope kBy, class Op, const RowFormula& kFormula>
constexpr Schedule RowSchedule(std::string_view name) {
  return ScheduleOn<RowTiles, SharedRowsOf<kBy, Op, kFormula>, DefaultRowTiles, RowTilesFit,
                    EmitRows>(name);
}

}  // namespace forge::codegen
