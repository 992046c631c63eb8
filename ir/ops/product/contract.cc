// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/product/contract.h"

#include <algorithm>

#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"

namespace forge::ir {
namespace {

using Labels = std::vector<int>;

bool Contains(std::span<const int> labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

size_t AxisOf(const Labelled& x, int label) {
  return static_cast<size_t>(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
}

Dim ExtentOf(const Labelled& x, int label) { return x.value.type().shape()[AxisOf(x, label)]; }

Labels Joined(std::initializer_list<std::span<const int>> lists) {
  Labels out;
  for (const std::span<const int> list : lists) out.insert(out.end(), list.begin(), list.end());
  return out;
}

Dims ExtentsOf(const Labelled& x, std::span<const int> labels) {
  Dims out;
  for (const int label : labels) out.push_back(ExtentOf(x, label));
  return out;
}

// Repeats axes of extent 1 whose label has another extent in `like`.
void Match(Labelled& x, const Labelled& like, std::span<const int> labels) {
  Dims shape = x.value.type().shape();
  for (const int label : labels)
    if (shape[AxisOf(x, label)] == Dim(1)) shape[AxisOf(x, label)] = ExtentOf(like, label);
  if (shape != x.value.type().shape())
    x.value = (*x.value.fn)(BroadcastTo{std::move(shape)}, {x.value});
}

// The labels of a product by what becomes of them.
struct Roles {
  Labels batch, left, right, summed;
};

Roles RolesOf(const Labelled& a, const Labelled& b, std::span<const int> keep) {
  Roles r;
  for (const int label : a.labels) {
    if (!Contains(b.labels, label))
      r.left.push_back(label);
    else
      (Contains(keep, label) ? r.batch : r.summed).push_back(label);
  }
  for (const int label : b.labels)
    if (!Contains(a.labels, label)) r.right.push_back(label);
  return r;
}

// As [batch.., left.., right.., summed..], with extents of 1 for labels that the operand lacks.
Value Spread(const Labelled& x, const Roles& r) {
  const Labels all = Joined({r.batch, r.left, r.right, r.summed});
  Labels own;
  Dims shape;
  for (const int label : all) {
    const bool has = Contains(x.labels, label);
    if (has) own.push_back(label);
    shape.push_back(has ? ExtentOf(x, label) : Dim(1));
  }
  return (*x.value.fn)(Reshape{std::move(shape)}, {InOrder(x, own)});
}

Labelled ElementByElement(const Labelled& a, const Labelled& b, const Roles& r) {
  const Labels all = Joined({r.batch, r.left, r.right, r.summed});
  return {Spread(a, r) * Spread(b, r), all};
}

bool IsInOrder(const Labelled& x, std::span<const int> labels) {
  return std::is_sorted(labels.begin(), labels.end(),
                        [&](int a, int b) { return AxisOf(x, a) < AxisOf(x, b); });
}

// An operand as matrices [batch.., rows, summed], or [batch.., summed, rows] where that is how its
// axes are.
struct Matrix {
  Value value;
  bool summed_first = false;
};
Matrix AsMatrix(const Labelled& x, const Roles& r, const Labels& rows) {
  const Labels usual = Joined({r.batch, rows, r.summed}), other = Joined({r.batch, r.summed, rows});
  const bool summed_first = !IsInOrder(x, usual) && IsInOrder(x, other);
  Dims shape = ExtentsOf(x, r.batch);
  shape.push_back(Product(ExtentsOf(x, summed_first ? r.summed : rows)));
  shape.push_back(Product(ExtentsOf(x, summed_first ? rows : r.summed)));
  const Value ordered = InOrder(x, summed_first ? other : usual);
  return {(*x.value.fn)(Reshape{std::move(shape)}, {ordered}), summed_first};
}

Labelled AsMatrices(Labelled a, Labelled b, const Roles& r) {
  Function& f = *a.value.fn;
  Match(a, b, r.summed);
  Match(b, a, r.summed);
  const Matrix left = AsMatrix(a, r, r.left), right = AsMatrix(b, r, r.right);
  const MatMul product{.transpose_a = left.summed_first, .transpose_b = !right.summed_first};
  const Value y = f(product, {left.value, right.value});
  if (!f.status().ok()) return {y, {}};
  Dims shape(y.type().shape().begin(), y.type().shape().end() - 2);
  for (const Dim& d : ExtentsOf(a, r.left)) shape.push_back(d);
  for (const Dim& d : ExtentsOf(b, r.right)) shape.push_back(d);
  return {f(Reshape{std::move(shape)}, {y}), Joined({r.batch, r.left, r.right})};
}

}  // namespace

Labelled SumOverOthers(Labelled x, std::span<const int> keep) {
  Reduce sum{.kind = ReduceKind::kSum, .axes = {}, .keep_dims = false};
  Labels kept;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (Contains(keep, x.labels[i]))
      kept.push_back(x.labels[i]);
    else
      sum.axes.push_back(static_cast<int64_t>(i));
  }
  if (sum.axes.empty()) return x;
  return {(*x.value.fn)(sum, {x.value}), kept};
}

Labelled Contract(Labelled a, Labelled b, std::span<const int> keep) {
  if (!a.value.fn->status().ok()) return a;
  a = SumOverOthers(a, Joined({keep, b.labels}));
  b = SumOverOthers(b, Joined({keep, a.labels}));
  const Roles r = RolesOf(a, b, keep);
  const DType t = a.value.type().dtype();
  if (!r.summed.empty() && Has(kFloatTypes | kComplexTypes, t)) return AsMatrices(a, b, r);
  return SumOverOthers(ElementByElement(a, b, r), keep);
}

Value InOrder(const Labelled& x, std::span<const int> labels) {
  if (!x.value.fn->status().ok()) return x.value;
  Transpose op;
  for (const int label : labels) op.permutation.push_back(static_cast<int64_t>(AxisOf(x, label)));
  if (std::is_sorted(op.permutation.begin(), op.permutation.end())) return x.value;
  return (*x.value.fn)(op, {x.value});
}

}  // namespace forge::ir
