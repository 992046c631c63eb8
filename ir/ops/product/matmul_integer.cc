// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/product/matmul_integer.h"

#include "ir/op/define.h"

namespace forge::ir {

absl::StatusOr<Types> MatMulInteger::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(Dims shape, product().Shape(in));
  return Types{Type::Tensor(DType::kI32, std::move(shape))};
}

absl::Status MatMulInteger::evaluate(Eval& e) const { return product().Evaluate(e); }

Cost MatMulInteger::cost(TypeSpan in) const { return product().CostOf(in); }

Cases MatMulInteger::cases() {
  return {
      {MatMulInteger{}, {"i8[4,5]", "i8[5,3]"}},
      {MatMulInteger{}, {"u8[4,5]", "u8[5,3]"}},
      {MatMulInteger{}, {"u8[7,16]", "i8[16,12]"}},
      {MatMulInteger{}, {"i8[1,64]", "u8[64,36]"}},
      {MatMulInteger{true, false}, {"i8[16,4]", "i8[16,3]"}},
      {MatMulInteger{false, true}, {"u8[33,20]", "i8[18,20]"}},
      {MatMulInteger{true, true}, {"i8[33,17]", "i8[9,33]"}},
      {MatMulInteger{}, {"i8[2,1,20,24]", "i8[3,24,16]"}},
      {MatMulInteger{}, {"u8[65,130]", "i8[130,68]"}},
      {MatMulInteger{false, true}, {"i8[64,128]", "i8[64,128]"}},
      {MatMulInteger{}, {"u8[2,200003]", "u8[200003,2]"}},
      {MatMulInteger{}, {"i8[0,5]", "i8[5,3]"}},
      {MatMulInteger{}, {"i8[4,0]", "i8[0,3]"}},
      {.op = MatMulInteger{}, .in = {"i8[1024,1024]", "i8[1024,1024]"}, .bench = true},
      {.op = MatMulInteger{false, true}, .in = {"u8[1024,1024]", "i8[1024,1024]"}, .bench = true},
      {MatMulInteger{}, {"i8[4,5]", "i8[4,5]"}, "5 columns and b 4 rows"},
      {MatMulInteger{}, {"i8[5]", "i8[5,4]"}, "rank"},
      {MatMulInteger{}, {"f32[4,5]", "f32[5,4]"}, "f32"}};
}

FORGE_DEFINE_OP(MatMulInteger)

}  // namespace forge::ir
