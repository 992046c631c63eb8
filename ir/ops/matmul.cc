// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/matmul.h"

#include "ir/module.h"
#include "ir/ops/define.h"
#include "ir/ops/elements.h"
#include "ir/ops/reduce.h"

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
std::vector<double> Matrices(const HostValue& v, bool transposed) {
  std::vector<double> stored = Doubles(v);
  if (!transposed || stored.empty()) return stored;
  const size_t rows = static_cast<size_t>(v.dim(v.rank() - 1));
  const size_t columns = static_cast<size_t>(v.dim(v.rank() - 2));
  std::vector<double> out(stored.size());
  for (size_t m = 0; m < stored.size(); m += rows * columns)
    for (size_t i = 0; i < rows * columns; ++i)
      out[m + i] = stored[m + i % columns * rows + i / columns];
  return out;
}

struct Sizes {
  int64_t m, n, k;
};

void Multiply(const double* a, const double* b, double* y, const Sizes& s) {
  for (int64_t ik = 0; ik < s.m * s.k; ++ik) {
    const double factor = a[ik];
    const double* from = b + ik % s.k * s.n;
    double* to = y + ik / s.k * s.n;
    for (int64_t j = 0; j < s.n; ++j) to[j] += factor * from[j];
  }
}

}  // namespace

absl::StatusOr<Types> MatMul::infer(TypeSpan in) const {
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
  return Types{Type::Tensor(in[0].dtype(), *std::move(out))};
}

Values MatMul::gradient(const GradArgs& g) const {
  const Value a = g.in[0], b = g.in[1], dy = g.dout[0];
  const auto times = [&](Value x, bool tx, Value y, bool ty) {
    return g.fn(MatMul{tx, ty}, {x, y});
  };
  const Value da =
      transpose_a ? times(b, transpose_b, dy, true) : times(dy, false, b, !transpose_b);
  const Value db =
      transpose_b ? times(dy, true, a, transpose_a) : times(a, !transpose_a, dy, false);
  return {SumTo(da, a.type().shape()), SumTo(db, b.type().shape())};
}

absl::Status MatMul::evaluate(Eval& e) const {
  const HostValue &a = *e.in(0), &b = *e.in(1);
  HostValue& y = e.out(0);
  const std::vector<double> left = Matrices(a, transpose_a), right = Matrices(b, transpose_b);
  const Sizes size{y.dim(y.rank() - 2), y.dim(y.rank() - 1),
                   a.dim(a.rank() - (transpose_a ? 2 : 1))};
  const auto batch = [](const HostValue& v) { return v.shape().first(v.shape().size() - 2); };
  const Index a_strides = BroadcastStrides(batch(a), batch(y));
  const Index b_strides = BroadcastStrides(batch(b), batch(y));
  std::vector<double> sums(static_cast<size_t>(y.elements()));
  double* to = sums.data();
  for (Box at(batch(y)); at && !sums.empty(); at.Next(), to += size.m * size.n) {
    int64_t i = 0, j = 0;
    for (size_t axis = 0; axis < a_strides.size(); ++axis) {
      i += (*at)[axis] * a_strides[axis];
      j += (*at)[axis] * b_strides[axis];
    }
    Multiply(left.data() + i * size.m * size.k, right.data() + j * size.k * size.n, to, size);
  }
  Store(sums, y);
  return absl::OkStatus();
}

Cost MatMul::cost(TypeSpan in) const {
  const Dim terms = ShapeOfOperand(in[0].shape(), transpose_a).columns;
  const auto out = infer(in);
  return {.flops = out.ok() ? out->front().elements() * terms * 2 : Dim(0), .terms = terms};
}

Cases MatMul::cases() {
  return {{MatMul{}, {"float[4,5]", "float[5,3]"}},
          {MatMul{}, {"float[1,7]", "float[7,1]"}},
          {MatMul{true, false}, {"float[5,4]", "float[5,3]"}},
          {MatMul{false, true}, {"float[4,5]", "float[3,5]"}},
          {MatMul{true, true}, {"f32[33,17]", "f32[9,33]"}},
          {MatMul{}, {"f32[2,3,4,5]", "f32[5,6]"}},
          {MatMul{}, {"f32[4,5]", "f32[3,5,2]"}},
          {MatMul{}, {"float[2,1,4,5]", "float[3,5,6]"}},
          {MatMul{false, true}, {"f32[2,1,3,8]", "f32[1,4,5,8]"}},
          {MatMul{}, {"f32[65,130]", "f32[130,67]"}},
          {MatMul{}, {"f32[128,128]", "f32[128,128]"}},
          {MatMul{}, {"f32[1,1000]", "f32[1000,10]"}},
          {MatMul{false, true}, {"f32[1,257]", "f32[31,257]"}},
          {MatMul{}, {"f32[0,5]", "f32[5,3]"}},
          {MatMul{}, {"f32[4,0]", "f32[0,3]"}},
          {MatMul{}, {"f32[0,2,3]", "f32[1,3,2]"}},
          {.op = MatMul{}, .in = {"f32[512,512]", "f32[512,512]"}, .bench = true},
          {.op = MatMul{}, .in = {"f32[1024,1024]", "f32[1024,1024]"}, .bench = true},
          {.op = MatMul{}, .in = {"f32[2048,2048]", "f32[2048,2048]"}, .bench = true},
          {.op = MatMul{}, .in = {"f16[1024,1024]", "f16[1024,1024]"}, .bench = true},
          {.op = MatMul{}, .in = {"f32[1,1024]", "f32[1024,1000]"}, .bench = true},
          {.op = MatMul{}, .in = {"f32[1,4096]", "f32[4096,4096]"}, .bench = true},
          {.op = MatMul{false, true}, .in = {"f16[1,4096]", "f16[4096,4096]"}, .bench = true},
          {.op = MatMul{false, true}, .in = {"f32[12,128,64]", "f32[12,128,64]"}, .bench = true},
          {MatMul{}, {"f32[4,5]", "f32[4,5]"}, "5 columns and b 4 rows"},
          {MatMul{}, {"f32[2,4,5]", "f32[3,5,4]"}, "do not broadcast"},
          {MatMul{}, {"f32[5]", "f32[5,4]"}, "rank"},
          {MatMul{}, {"f32[4,5]", "f16[5,4]"}, "like a"}};
}

FORGE_DEFINE_OP(MatMul)

}  // namespace forge::ir
