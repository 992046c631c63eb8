// SPDX-License-Identifier: Apache-2.0
// The formulas of Lower().
#pragma once
#include "codegen/kernel_ir.h"

namespace forge::codegen {

struct LowerRules {
  Builder& b;
  const Caps& caps;

  // What `i`, with operands `x`, becomes; nothing when it stays.
  Val Apply(const Inst& i, const Type& type, std::span<const Val> x) const;

  Val IsNan(Val x) const;
  Val Extreme(Code code, Val a, Val b) const;  // Min or Max of floats
  Val Convert(Val x, const Type& to) const;    // nothing when SPIR-V's will do
  Val Converted(Val x, const Type& to) const;
  Val FloatToInt(Val x, const Type& to) const;  // 32 bits or more
  Val SubgroupExtreme(const Inst& i, Val x) const;
  Val Dot4(DotKind kind, std::span<const Val> x) const;
};

// ---- 64-bit integers on devices without them: a value is two u32s -------------------------------

// A value of the kernel being lowered: itself, or the halves of 64-bit integers.
struct Wide {
  Val lo, hi;  // hi is absent where the value is whole
};
inline bool IsWide(const Type& t) { return t.elem == DType::kI64 || t.elem == DType::kU64; }

// Operations that have no form in halves: products' high parts, reductions over subgroups.
bool HasHalves(const Kernel& k, const Inst& i);

struct WideRules {
  Builder& b;
  const LowerRules& rules;

  // What `i` becomes, whose result or an operand is a 64-bit integer; `k` is the kernel it is of.
  Wide Apply(const Kernel& k, const Inst& i, std::span<const Wide> x) const;

  Wide Literal(const Type& t, uint64_t bits) const;
  Wide Add(Wide x, Wide y) const;
  Wide Sub(Wide x, Wide y) const;
  Wide Mul(Wide x, Wide y) const;
  Wide Neg(Wide x) const;
  Wide Shl(Wide x, Val n) const;  // n below 64
  Wide Shr(Wide x, Val n, bool is_signed) const;
  Val Eq(Wide x, Wide y) const;
  Val Lt(Wide x, Wide y, bool is_signed) const;
  Wide Select(Val condition, Wide x, Wide y) const;
  struct Division {
    Wide quotient, remainder;
  };
  Division Divide(Wide x, Wide y) const;  // unsigned, y above 0
  Wide DivideSigned(Code code, Wide x, Wide y) const;
  // Memory: `view` is of u32x2 for a 64-bit integer, of u32x4 for two or four.
  Wide Load(uint16_t view, Val index, int lanes) const;
  void Store(uint16_t view, Val index, Wide value) const;

  Wide FromFloat(Val x, const Type& to) const;
  Val ToFloat(Wide x, const Type& to, bool is_signed) const;
  Wide Extend(Val x) const;  // integers of up to 32 bits, and bool

 private:
  Val U32(Val like, uint32_t v) const { return b.Bits(kU32.Lanes(like.type().lanes), v); }
  Val Raw(Code code, Val x, Val y) const { return b.Emit(code, x.type(), {x, y}); }
  // The same instruction of the low halves and of the high ones; what is whole takes part in both.
  Wide EachHalf(const Inst& i, const Type& type, std::span<const Wide> x) const;
  Wide Convert(const Type& from, const Type& to, Wide x) const;
  Wide Bitcast(const Type& to, Wide x) const;
};

// The view that stands for one of 64-bit integers.
View HalvesView(View v);

}  // namespace forge::codegen
