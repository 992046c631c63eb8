// SPDX-License-Identifier: Apache-2.0
// Operators whose results have as many elements as the data say: the count is a value that a plan
// reads before it goes on.
#include <array>

#include "formats/onnx/builders/families.h"
#include "ir/op/axes.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/nonzero.h"
#include "ir/ops/indexing/scatter.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/scan.h"
#include "ir/ops/sorting/arg_sort.h"

namespace forge::formats {
namespace {

// How many elements are not 0.
ir::Value CountOf(ir::Value x) {
  ir::Function& f = *x.fn;
  const ir::Value zero = f(ir::Fill{0, x.type().dtype(), {}}, {});
  const ir::Value is = f(ir::NotEqual{}, {x, zero});
  return f(ir::Reduce{.kind = ir::ReduceKind::kSum, .keep_dims = false},
           {convert(is, DType::kI64)});
}

// The first elements of a list, as many as `count` says.
ir::Value First(ir::Value list, ir::Value count) {
  const ir::Function::RuntimeField end[] = {{"end", count}};
  return list.fn->AddRuntimeValued(ir::Slice{.begin = {0}}, std::array{list}, end)[0];
}

ir::Value Flat(ir::Value x) { return (*x.fn)(ir::Reshape{{Product(x.type().shape())}}, {x}); }

// The order of the rows of x, [n, k], by their first columns first; equal rows keep theirs.
ir::Value OrderOfRows(ir::Value x) {
  ir::Function& f = *x.fn;
  const ir::Dims& shape = x.type().shape();
  ir::Value order = f(ir::Iota{.count = shape[0]}, {});
  for (int64_t k = shape[1].constant(); k-- > 0;) {
    const ir::Value column = f(ir::Reshape{{shape[0]}}, {f(ir::Slice{{k}, {k + 1}, {1}}, {x})});
    const ir::Value sorted = f(ir::ArgSort{}, {f(ir::Gather{}, {column, order})});
    order = f(ir::Gather{}, {order, sorted});
  }
  return order;
}

// Where a row of x differs from the one before it.
ir::Value StartsOfRuns(ir::Value x) {
  ir::Function& f = *x.fn;
  const ir::Dims& shape = x.type().shape();
  const ir::Value zero = f(ir::Fill{0, DType::kI64, {}}, {});
  const ir::Value previous =
      f(ir::Maximum{}, {f(ir::Iota{.begin = -1, .count = shape[0]}, {}), zero});
  const ir::Value differs = f(ir::NotEqual{}, {x, f(ir::Gather{}, {x, previous})});
  const ir::Value any = f(ir::Reduce{.kind = ir::ReduceKind::kMax, .axes = {1}, .keep_dims = false},
                          {convert(differs, DType::kI64)});
  const ir::Value first = f(ir::Equal{}, {f(ir::Iota{.count = shape[0]}, {}), zero});
  return f(ir::Maximum{}, {any, convert(first, DType::kI64)});
}

// The slices of x along an axis as the rows of a matrix.
ir::Value Rows(ir::Value x, int64_t axis) {
  std::vector<int64_t> order = {axis};
  ir::Dim columns = 1;
  for (int64_t a = 0; a < x.type().rank(); ++a) {
    if (a == axis) continue;
    order.push_back(a);
    columns = columns * x.type().shape()[static_cast<size_t>(a)];
  }
  const ir::Dim& n = x.type().shape()[static_cast<size_t>(axis)];
  return (*x.fn)(ir::Reshape{{n, columns}}, {(*x.fn)(ir::Transpose{order}, {x})});
}

// The groups of equal rows, in order; each list has an entry for each row, those beyond `count`
// mean nothing.
struct Groups {
  ir::Value count;  // of groups
  ir::Value first;  // the first row of each
  ir::Value sizes;
  ir::Value of;  // the group of each row
};

// Without values where `rows` have no order, which the function's status says.
Groups GroupsOf(ir::Value rows) {
  ir::Function& f = *rows.fn;
  const ir::Dim n = rows.type().shape()[0];
  const ir::Value order = OrderOfRows(rows);
  if (!f.status().ok()) return {};  // of elements without an order
  const ir::Value starts = StartsOfRuns(f(ir::Gather{}, {rows, order}));
  const ir::Value one = f(ir::Fill{1, DType::kI64, {}}, {});
  const ir::Value group = f(ir::Sub{}, {f(ir::Scan{}, {starts}), one});
  const auto list = [&](const Number& v) { return f(ir::Fill{v, DType::kI64, {n}}, {}); };
  const ir::Value none = list(INT64_MAX), zeros = list(0), ones = list(1);
  return {.count = CountOf(starts),
          .first = f(ir::Scatter{.mode = ir::ScatterMode::kMin}, {none, group, order}),
          .sizes = f(ir::Scatter{.mode = ir::ScatterMode::kAdd}, {zeros, group, ones}),
          .of = f(ir::Scatter{}, {zeros, order, group})};
}

// The same groups in the order of their first rows.
Groups ByFirstRow(const Groups& g) {
  ir::Function& f = *g.first.fn;
  const ir::Dim& n = g.first.type().shape()[0];
  const ir::Value order = f(ir::ArgSort{}, {g.first});
  const ir::Value zeros = f(ir::Fill{0, DType::kI64, {n}}, {});
  const ir::Value place = f(ir::Scatter{}, {zeros, order, f(ir::Iota{.count = n}, {})});
  return {.count = g.count,
          .first = f(ir::Gather{}, {g.first, order}),
          .sizes = f(ir::Gather{}, {g.sizes, order}),
          .of = f(ir::Gather{}, {place, g.of})};
}

// The positions of what a constant selects among `extent`.
ir::Value ChosenBy(OnnxNode& n, const ir::HostValue& condition, const ir::Dim& extent) {
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < condition.elements(); ++i)
    if (condition.i64(i) != 0) chosen.push_back(i);
  if (!chosen.empty() && extent.max() <= chosen.back())
    n.Fail("element {} of the condition is beyond {}", chosen.back(), extent.ToText());
  ir::HostValue places =
      *ir::HostValue::Zeros(DType::kI64, std::array{static_cast<int64_t>(chosen.size())});
  for (size_t i = 0; i < chosen.size(); ++i) places.SetI64(static_cast<int64_t>(i), chosen[i]);
  return n.MakeConstant(places);
}

ir::Values BuildNonZero(OnnxNode& n) {
  if (!n.type(0).is_tensor()) n.Fail("an operand of unknown rank");
  if (!n.status().ok()) return {};
  const ir::Value x = n.in(0);
  const ir::Function::RuntimeField count[] = {{"count", CountOf(x)}};
  return n.fn().AddRuntimeValued(ir::Nonzero{}, std::array{x}, count);
}

ir::Values BuildCompress(OnnxNode& n) {
  const ir::Type& t = n.type(0);
  if (!t.is_tensor() || !n.type(1).is_tensor()) n.Fail("an operand of unknown rank");
  const bool along_axis = n.Has("axis");
  const int64_t given = n.Int("axis", 0);
  if (!n.status().ok()) return {};
  const ir::Value x = along_axis ? n.in(0) : Flat(n.in(0));
  const absl::StatusOr<int64_t> axis = ir::NormalAxis(given, x.type().rank());
  if (!axis.ok()) n.Fail("{}", Message(axis.status()));
  if (!n.status().ok()) return {};
  const ir::Dim& extent = x.type().shape()[static_cast<size_t>(*axis)];
  if (const std::optional<ir::HostValue> constant = n.Constant(1)) {
    const ir::Value places = ChosenBy(n, *constant, extent);
    if (!n.status().ok()) return {};
    return {n.fn()(ir::Gather{.axis = *axis}, {x, places})};
  }
  const ir::Value condition = n.in(1);
  if (condition.type().rank() != 1) {
    n.Fail("its condition has rank {}", condition.type().rank());
    return {};
  }
  // An index beyond the extent is an error of the gather.
  const ir::Value order = n.fn()(ir::ArgSort{.descending = true}, {condition});
  return {n.fn()(ir::Gather{.axis = *axis}, {x, First(order, CountOf(condition))})};
}

ir::Values BuildUnique(OnnxNode& n) {
  const ir::Type& t = n.type(0);
  if (!t.is_tensor()) n.Fail("an operand of unknown rank");
  const bool sorted = n.Flag("sorted", true), along_axis = n.Has("axis");
  const int64_t given = n.Int("axis", 0);
  if (!n.status().ok()) return {};
  const ir::Value x = along_axis ? n.in(0) : Flat(n.in(0));
  const absl::StatusOr<int64_t> axis = ir::NormalAxis(given, x.type().rank());
  if (!axis.ok()) n.Fail("{}", Message(axis.status()));
  if (!n.status().ok()) return {};
  const ir::Value rows = Rows(x, *axis);
  constexpr int64_t kMostColumns = 256;  // each is a sort
  const ir::Dim& columns = rows.type().shape()[1];
  if (!columns.is_constant() || columns.constant() > kMostColumns)
    n.Fail("slices of {} elements; a known number of at most {} is supported", columns.ToText(),
           kMostColumns);
  if (!n.status().ok()) return {};
  Groups groups = GroupsOf(rows);
  if (!n.fn().status().ok()) return {};
  if (!sorted) groups = ByFirstRow(groups);
  const ir::Value first = First(groups.first, groups.count);
  return {n.fn()(ir::Gather{.axis = *axis}, {x, first}), first, groups.of,
          First(groups.sizes, groups.count)};
}

constexpr OnnxOp kSelectionOps[] = {
    {"", "Compress", 9, 2, 2, BuildCompress},
    {"", "NonZero", 9, 1, 1, BuildNonZero},
    {"", "Unique", 11, 1, 1, BuildUnique},
};

}  // namespace

std::span<const OnnxOp> SelectionOps() { return kSelectionOps; }

}  // namespace forge::formats
