// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/product/matmul.h"

#include <algorithm>

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/reduction/reduce.h"

namespace forge::ir {

absl::StatusOr<Types> MatMul::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(Dims shape, product().Shape(in));
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

namespace {

// The rows of all matrices below each other, as one matrix.
Value OneMatrix(Value v) {
  const Dims& shape = v.type().shape();
  const Dims rows(shape.begin(), shape.end() - 1);
  return shape.size() == 2 ? v : (*v.fn)(Reshape{{Product(rows), shape.back()}}, {v});
}

bool HoldsOneMatrix(const Type& t) {
  return std::all_of(t.shape().begin(), t.shape().end() - 2,
                     [](const Dim& d) { return d == Dim(1); });
}

}  // namespace

Values MatMul::gradient(const GradArgs& g) const {
  const Value a = g.in[0], b = g.in[1], dy = g.dout[0];
  const auto times = [&](Value x, bool tx, Value y, bool ty) {
    return g.fn(MatMul{tx, ty}, {x, y});
  };
  const Value da =
      transpose_a ? times(b, transpose_b, dy, true) : times(dy, false, b, !transpose_b);
  const Type& of_b = b.type();
  // Where all matrices of a meet one b, its gradient is one product, not the sum of many.
  const bool one = !transpose_a && HoldsOneMatrix(of_b);
  const Value rows = one ? OneMatrix(a) : a, dy_rows = one ? OneMatrix(dy) : dy;
  const Value db = transpose_b ? times(dy_rows, true, rows, transpose_a)
                               : times(rows, !transpose_a, dy_rows, false);
  return {SumTo(da, a.type().shape()),
          one && of_b.rank() > 2 ? g.fn(Reshape{of_b.shape()}, {db}) : SumTo(db, of_b.shape())};
}

absl::Status MatMul::evaluate(Eval& e) const { return product().Evaluate(e); }
Cost MatMul::cost(TypeSpan in) const { return product().CostOf(in); }

Cases MatMul::cases() {
  return {{MatMul{}, {"float[4,5]", "float[5,3]"}},
          {MatMul{}, {"float[1,7]", "float[7,1]"}},
          {MatMul{}, {"complex[2,4,5]", "complex[5,3]"}},
          {MatMul{true, true}, {"complex[5,4]", "complex[3,5]"}},
          {MatMul{}, {"complex[4,0]", "complex[0,3]"}},
          {MatMul{true, false}, {"float[5,4]", "float[5,3]"}},
          {MatMul{false, true}, {"float[4,5]", "float[3,5]"}},
          {MatMul{true, true}, {"f32[33,17]", "f32[9,33]"}},
          {MatMul{}, {"f32[2,3,4,5]", "f32[5,6]"}},
          {MatMul{}, {"f32[4,5]", "f32[3,5,2]"}},
          {MatMul{}, {"float[2,1,4,5]", "float[3,5,6]"}},
          {MatMul{false, true}, {"f32[2,1,3,8]", "f32[1,4,5,8]"}},
          {MatMul{}, {"f32[65,130]", "f32[130,67]"}},
          {MatMul{}, {"f32[128,128]", "f32[128,128]"}},
          {MatMul{}, {"f16[72,392]", "f16[392,200]"}},
          {MatMul{false, true}, {"f16[70,136]", "f16[201,136]"}},
          {MatMul{true, true}, {"bf16[136,72]", "bf16[200,136]"}},
          {MatMul{}, {"f32[1,1000]", "f32[1000,10]"}},
          {MatMul{false, true}, {"f32[1,257]", "f32[31,257]"}},
          {MatMul{}, {"f32[6,16500]", "f32[16500,7]"}},
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
