// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/movement/bit_cast.h"

#include <algorithm>

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"

namespace forge::ir {

absl::StatusOr<Types> BitCast::infer(TypeSpan in) const {
  const DType from = in[0].dtype();
  if (from == DType::kString || BitWidth(from) != BitWidth(to))
    return InvalidArgument("{} and {} differ in width", Name(from), Name(to));
  return Types{in[0].With(to)};
}

absl::Status BitCast::evaluate(Eval& e) const {
  std::ranges::copy(e.in(0)->bytes(), e.out(0).mutable_bytes().begin());
  return absl::OkStatus();
}

Cases BitCast::cases() {
  return {{BitCast{DType::kI32}, {"f32[2,3]"}},
          {BitCast{DType::kF32}, {"i32[19]"}},
          {BitCast{DType::kU8}, {"i8[3,1]"}},
          {BitCast{DType::kI16}, {"u16[]"}},
          {BitCast{DType::kU8}, {"bool[5]"}},
          {BitCast{DType::kI64}, {"f64[2,0]"}},
          {BitCast{DType::kI64}, {"f32[2]"}, "differ in width"}};
}

FORGE_DEFINE_OP(BitCast)

}  // namespace forge::ir
