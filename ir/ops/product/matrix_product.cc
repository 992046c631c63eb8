// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/product/matrix_product.h"

#include "ir/op/define.h"
#include "ir/op/elements.h"

namespace forge::ir {
namespace {

// Extents of one operand: leading axes, then rows and columns as the formula has them.
struct OperandShape {
  Dims batch;
  Dim rows, columns;
};

OperandShape ShapeOfOperand(const Dims& shape, bool transposed) {
  const size_t n = shape.size();
  OperandShape o{Dims(shape.begin(), shape.end() - 2), shape[n - 2], shape[n - 1]};
  if (transposed) std::swap(o.rows, o.columns);
  return o;
}

// Matrices of one operand in row-major order, whatever way they are stored.
template <class T>
std::vector<T> Matrices(const HostValue& v, std::vector<T> stored, bool transposed) {
  if (!transposed || stored.empty()) return stored;
  const size_t rows = static_cast<size_t>(v.dim(v.rank() - 1));
  const size_t columns = static_cast<size_t>(v.dim(v.rank() - 2));
  std::vector<T> out(stored.size());
  for (size_t m = 0; m < stored.size(); m += rows * columns)
    for (size_t i = 0; i < rows * columns; ++i)
      out[m + i] = stored[m + i % columns * rows + i / columns];
  return out;
}

struct Sizes {
  int64_t m, n, k;
};

template <class T>
void Multiply(const T* a, const T* b, T* y, const Sizes& s) {
  for (int64_t ik = 0; ik < s.m * s.k; ++ik) {
    const T factor = a[ik];
    const T* from = b + ik % s.k * s.n;
    T* to = y + ik / s.k * s.n;
    for (int64_t j = 0; j < s.n; ++j) to[j] += Product(factor, from[j]);
  }
}

// All products, in row-major order; `left` and `right` are the operands' elements as stored.
template <class T>
std::vector<T> MultiplyAll(const MatrixProduct& product, std::vector<T> left, std::vector<T> right,
                           Eval& e) {
  const auto [transpose_a, transpose_b] = product;
  const HostValue &a = *e.in(0), &b = *e.in(1);
  const HostValue& y = e.out(0);
  left = Matrices(a, std::move(left), transpose_a);
  right = Matrices(b, std::move(right), transpose_b);
  const Sizes size{y.dim(y.rank() - 2), y.dim(y.rank() - 1),
                   a.dim(a.rank() - (transpose_a ? 2 : 1))};
  const auto batch = [](const HostValue& v) { return v.shape().first(v.shape().size() - 2); };
  const Index a_strides = BroadcastStrides(batch(a), batch(y));
  const Index b_strides = BroadcastStrides(batch(b), batch(y));
  std::vector<T> sums(static_cast<size_t>(y.elements()));
  T* to = sums.data();
  for (Box at(batch(y)); at && !sums.empty(); at.Next(), to += size.m * size.n) {
    int64_t i = 0, j = 0;
    for (size_t axis = 0; axis < a_strides.size(); ++axis) {
      i += (*at)[axis] * a_strides[axis];
      j += (*at)[axis] * b_strides[axis];
    }
    Multiply(left.data() + i * size.m * size.k, right.data() + j * size.k * size.n, to, size);
  }
  return sums;
}

}  // namespace

absl::StatusOr<Dims> MatrixProduct::Shape(TypeSpan in) const {
  const OperandShape a = ShapeOfOperand(in[0].shape(), transpose_a);
  const OperandShape b = ShapeOfOperand(in[1].shape(), transpose_b);
  if (!Unify(a.columns, b.rows).ok())
    return InvalidArgument("a has {} columns and b {} rows", a.columns.ToText(), b.rows.ToText());
  const Dims* batches[] = {&a.batch, &b.batch};
  absl::StatusOr<Dims> out = BroadcastShapes(batches);
  if (!out.ok())
    return InvalidArgument("leading axes {} and {} do not broadcast", ToText(a.batch),
                           ToText(b.batch));
  out->push_back(a.rows);
  out->push_back(b.columns);
  return out;
}

absl::Status MatrixProduct::Evaluate(Eval& e) const {
  HostValue& y = e.out(0);
  if (Has(kComplexTypes, y.dtype())) {
    Store(MultiplyAll(*this, Complexes(*e.in(0)), Complexes(*e.in(1)), e), y);
    return absl::OkStatus();
  }
  const std::vector<double> sums = MultiplyAll(*this, Doubles(*e.in(0)), Doubles(*e.in(1)), e);
  if (!Has(kIntTypes, y.dtype())) {
    Store(sums, y);
    return absl::OkStatus();
  }
  // Exact below 2^53, and i32 wraps.
  for (size_t i = 0; i < sums.size(); ++i)
    y.SetI64(static_cast<int64_t>(i), static_cast<int32_t>(static_cast<int64_t>(sums[i])));
  return absl::OkStatus();
}

Cost MatrixProduct::CostOf(TypeSpan in) const {
  const Dim terms = ShapeOfOperand(in[0].shape(), transpose_a).columns;
  const absl::StatusOr<Dims> out = Shape(in);
  return {.flops = out.ok() ? Product(*out) * terms * 2 : Dim(0), .terms = terms};
}

}  // namespace forge::ir
