// SPDX-License-Identifier: Apache-2.0
// Softmax: an invocation for each row where rows are many or barriers dear, else a workgroup.
#include "ir/ops/softmax.h"

#include "codegen/element.h"
#include "codegen/schedules/list.h"
#include "codegen/schedules/workgroup.h"
#include "ir/ops/axes.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

struct Shape {
  size_t axis;
  Dims all, outer;  // outer: without the axis

  explicit Shape(const Region& r) : all(r.anchor_output().shape()), outer(all) {
    const auto a = ir::NormalAxis(r.AnchorAs<ir::Softmax>()->axis, r.anchor_output().rank());
    FORGE_CHECK(a.ok());
    axis = static_cast<size_t>(*a);
    outer.erase(outer.begin() + *a);
  }
  const Dim& length() const { return all[axis]; }
  Dim rows() const { return ir::Product(outer); }
  bool last() const { return axis + 1 == all.size(); }
  Dims Index(const Dim& row, const Dim& element) const {
    Dims index = Unflatten(row, outer);
    index.insert(index.begin() + static_cast<ptrdiff_t>(axis), element);
    return index;
  }
};

bool Takes(const Region& r) { return r.AnchorAs<ir::Softmax>() != nullptr; }

Val Sum(Val a, Val b) { return a + b; }
Val Larger(Val a, Val b) { return max(a, b); }

// The lanes of a vector as one.
Val Across(Val v, Val (*fold)(Val, Val)) {
  Val all = v.b->Extract(v, 0);
  for (int i = 1; i < v.type().lanes; ++i) all = fold(all, v.b->Extract(v, i));
  return all;
}

// Every lane's row (across) or all lanes of a row (along), elements begin, begin + step ... of it.
struct Rows {
  Emission& m;
  const Shape& shape;
  Dim row;
  int across = 1, along = 1;
  Val begin, step;

  int lanes() const { return std::max(across, along); }
  // Folds f(element) over the row's vectors.
  Val Fold(Val start, absl::FunctionRef<Val(Val, Val)> f) {
    Builder& b = m.b;
    return b.For(
        {begin, b.Scalar(FloorDiv(shape.length(), along)), step}, {start},
        [&](Val i, Vals carried) { return Vals{f(carried[0], m.e.At(0, Index(i), lanes()))}; })[0];
  }
  void Store(absl::FunctionRef<Val(Val)> f) {
    Builder& b = m.b;
    b.For({begin, b.Scalar(FloorDiv(shape.length(), along)), step}, {}, [&](Val i, Vals) {
      const Dims index = Index(i);
      m.e.Finish(index, f(m.e.At(0, index, lanes())), lanes());
      return Vals{};
    });
  }
  Dims Index(Val i) {
    const Dim last = FloorDiv(shape.length(), along);
    return shape.Index(row, m.e.Coordinate(i, LastIndex(last)) * along + m.e.Lane(along));
  }
  Val Literal(double v) {
    return m.b.Literal(AccumulatorOf(m.region.anchor_output().dtype()).Lanes(lanes()), v);
  }
};

constexpr double kLowest = -std::numeric_limits<double>::infinity();

// ---- one invocation for each row ----------------------------------------------------------------

struct SoftmaxSerial {
  int64_t workgroup = 64;
  int64_t rows = 1;      // neighbours to an invocation
  int64_t elements = 1;  // of a row, loaded at once
  static constexpr Field kFields[] = {
      FieldOf<&SoftmaxSerial::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128"),
      FieldOf<&SoftmaxSerial::rows>("rows", "Neighbours to an invocation.", "1|2|4"),
      FieldOf<&SoftmaxSerial::elements>("elements", "Of a row, loaded at once.", "1|2|4")};
};

std::shared_ptr<void> SerialDefaults(const Region& r) {
  const Shape shape(r);
  SoftmaxSerial t;
  (shape.last() ? t.elements : t.rows) =
      LanesFor(shape.last() ? shape.length() : shape.outer.back());
  return Boxed(t);
}

Verdict SerialFits(const Region& r, const void* p) {
  const auto& t = Parameters<SoftmaxSerial>(p);
  const Shape shape(r);
  if (shape.rows().divisor() % t.rows != 0 || shape.length().divisor() % t.elements != 0)
    return Verdict::No("vectors do not divide the rows");
  return WorkgroupFits(t.workgroup, r.caps());
}

absl::StatusOr<Program> SerialEmit(const Region& r, const void* p) {
  const auto& t = Parameters<SoftmaxSerial>(p);
  const Shape shape(r);
  const int across = static_cast<int>(t.rows), along = static_cast<int>(t.elements);
  Program out{.kernel = fmt::format("softmax_serial_{}x{}", across, along),
              .launches = {},
              .scratch_bytes = {}};
  Emission m(r, out.kernel, {static_cast<uint32_t>(t.workgroup), 1, 1});
  m.Guarded(m.Invocations(FloorDiv(shape.rows(), across)), [&](const Dim& at) {
    Rows rows{m, shape, at * across + m.e.Lane(across), across, along, m.b.Int(0), m.b.Int(1)};
    Val top = rows.Fold(rows.Literal(kLowest), &Larger);
    if (along > 1) top = Across(top, &Larger);
    Val sum = rows.Fold(rows.Literal(0), [&](Val s, Val x) { return s + exp(x - top); });
    if (along > 1) sum = Across(sum, &Sum);
    rows.Store([&](Val x) { return exp(x - top) / sum; });
  });
  out.launches.push_back(std::move(m).Take());
  return out;
}

// ---- a workgroup for each row -------------------------------------------------------------------

struct SoftmaxRows {
  int64_t workgroup = 128;
  int64_t elements = 1;
  static constexpr Field kFields[] = {
      FieldOf<&SoftmaxRows::workgroup>("workgroup", "Invocations in a workgroup.", "64|128|256"),
      FieldOf<&SoftmaxRows::elements>("elements", "Of a row, loaded at once.", "1|2|4")};
};

// Rows shorter than this are left to one invocation each.
constexpr int64_t kLongRow = 256, kFewRows = 64;

std::shared_ptr<void> RowsDefaults(const Region& r) {
  const Shape shape(r);
  return Boxed(
      SoftmaxRows{.workgroup = 128, .elements = shape.last() ? LanesFor(shape.length()) : 1});
}

Verdict RowsFits(const Region& r, const void* p) {
  const auto& t = Parameters<SoftmaxRows>(p);
  const Shape shape(r);
  if (!shape.last()) return Verdict::No("rows lie side by side");
  if (shape.length().max() < kLongRow) return Verdict::No("rows are short");
  if (r.caps().runs_on_cpu && shape.rows().min() >= kFewRows)
    return Verdict::No("barriers are dear and rows are many");
  if (shape.length().divisor() % t.elements != 0)
    return Verdict::No("vectors do not divide the rows");
  if (WorkgroupTree::SharedBytes(t.workgroup, AccumulatorOf(r.anchor_output().dtype())) >
      r.caps().max_shared_bytes)
    return Verdict::No("too little shared memory");
  return WorkgroupFits(t.workgroup, r.caps());
}

absl::StatusOr<Program> RowsEmit(const Region& r, const void* p) {
  const auto& t = Parameters<SoftmaxRows>(p);
  const Shape shape(r);
  const int along = static_cast<int>(t.elements);
  Program out{.kernel = fmt::format("softmax_rows_{}x{}", t.workgroup, along),
              .launches = {},
              .scratch_bytes = {}};
  Emission m(r, out.kernel, {static_cast<uint32_t>(t.workgroup), 1, 1});
  m.Guarded(m.Workgroups(shape.rows()), [&](const Dim& row) {
    Rows rows{m, shape, row, 1, along, m.b.Builtin(BuiltinKind::kLocalX), m.b.Int(t.workgroup)};
    WorkgroupTree tree(m, AccumulatorOf(r.anchor_output().dtype()));
    Val top = tree.Combine(Across(rows.Fold(rows.Literal(kLowest), &Larger), &Larger), &Larger);
    Val sum = rows.Fold(rows.Literal(0), [&](Val s, Val x) { return s + exp(x - top); });
    Val total = tree.Combine(Across(sum, &Sum), &Sum);
    rows.Store([&](Val x) { return exp(x - top) / total; });
  });
  out.launches.push_back(std::move(m).Take());
  return out;
}

}  // namespace

const Schedule kSoftmaxSerial{.name = "softmax_serial",
                              .parameters = SoftmaxSerial::kFields,
                              .takes = &Takes,
                              .defaults = &SerialDefaults,
                              .fits = &SerialFits,
                              .emit = &SerialEmit};
const Schedule kSoftmaxRows{.name = "softmax_rows",
                            .parameters = SoftmaxRows::kFields,
                            .takes = &Takes,
                            .defaults = &RowsDefaults,
                            .fits = &RowsFits,
                            .emit = &RowsEmit};

}  // namespace forge::codegen
