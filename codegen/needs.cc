// SPDX-License-Identifier: Apache-2.0
#include "codegen/needs.h"

namespace forge::codegen {
namespace {

void NeedArithmetic(Needs& n, DType t) {
  if (t == DType::kF16) n.f16 = true;
  if (t == DType::kF32) n.f32 = true;
  if (t == DType::kI8 || t == DType::kU8) n.i8 = true;
  if (t == DType::kI16 || t == DType::kU16) n.i16 = true;
}

// These have no form that only stores.
void NeedWide(Needs& n, DType t) {
  if (t == DType::kF64) n.f64 = true;
  if (t == DType::kI64 || t == DType::kU64) n.i64 = true;
}

void NeedView(Needs& n, const View& v) {
  NeedWide(n, v.elem.elem);
  if (v.space != Space::kGlobal) return NeedArithmetic(n, v.elem.elem);
  const int width = BitWidth(v.elem.elem);
  n.storage8 |= width == 8;
  n.storage16 |= width == 16;
}

void NeedSubgroup(Needs& n, const Inst& i) {
  const auto builtin = static_cast<BuiltinKind>(i.aux);
  switch (i.code) {
    case Code::kBuiltin:
      n.subgroup_basic |= builtin == BuiltinKind::kLane || builtin == BuiltinKind::kSubgroup;
      break;
    case Code::kShuffle:
    case Code::kShuffleXor:
      n.subgroup_shuffle = true;
      break;
    case Code::kSubgroupReduce:
    case Code::kSubgroupScan:
      n.subgroup_arithmetic = true;
      break;
    case Code::kBallot:
      n.subgroup_ballot = true;
      break;
    default:
      break;
  }
}

}  // namespace

Needs NeedsOf(const Kernel& k) {
  Needs n;
  for (const View& v : k.views) NeedView(n, v);
  for (const ValueInfo& v : k.values) NeedWide(n, v.type.elem);
  for (const Block& b : k.blocks) {
    for (const Inst& i : b.insts) {
      NeedSubgroup(n, i);
      n.int_dot |= i.code == Code::kDot4;
      n.matrices |= i.code == Code::kMatrixMulAdd || i.code == Code::kMatrixLoad;
      n.matrix_elements |= i.code == Code::kForElements;
      // A narrow literal is made by converting a wide one where it is all there is.
      if (i.code == Code::kLoad || i.code == Code::kStore || i.code == Code::kConvert ||
          i.code == Code::kLiteral)
        continue;
      for (Id a : k.ArgsOf(i)) NeedArithmetic(n, k.values[a].type.elem);
      for (uint32_t r = 0; r < i.result_count; ++r)
        NeedArithmetic(n, k.values[i.result + r].type.elem);
    }
  }
  return n;
}

}  // namespace forge::codegen
