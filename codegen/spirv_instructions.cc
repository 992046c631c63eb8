// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "codegen/literal.h"
#include "codegen/spirv_printer.h"

namespace forge::codegen {
namespace {

using spv::Op;
using Word = SpirvModule::Word;

// ---- the table ----------------------------------------------------------------------------------

// An instruction of the core, or of GLSL.std.450 with this bit.
constexpr Word kExtended = 1u << 16;
constexpr Word W(Op op) { return static_cast<Word>(op); }
constexpr Word W(GLSLstd450 op) { return kExtended | static_cast<Word>(op); }

// By what the operands are; 0: none.
struct Row {
  Word of_float = 0, of_signed = 0, of_unsigned = 0, of_bool = 0;
};
constexpr CodeTable<Row> kOperations = {
    {Code::kAdd, {W(Op::OpFAdd), W(Op::OpIAdd), W(Op::OpIAdd)}},
    {Code::kSub, {W(Op::OpFSub), W(Op::OpISub), W(Op::OpISub)}},
    {Code::kMul, {W(Op::OpFMul), W(Op::OpIMul), W(Op::OpIMul)}},
    {Code::kDiv, {W(Op::OpFDiv), W(Op::OpSDiv), W(Op::OpUDiv)}},
    {Code::kRem, {0, W(Op::OpSRem), W(Op::OpUMod)}},
    {Code::kMin, {W(GLSLstd450FMin), W(GLSLstd450SMin), W(GLSLstd450UMin)}},
    {Code::kMax, {W(GLSLstd450FMax), W(GLSLstd450SMax), W(GLSLstd450UMax)}},
    {Code::kFma, {W(GLSLstd450Fma)}},
    {Code::kAnd, {0, W(Op::OpBitwiseAnd), W(Op::OpBitwiseAnd), W(Op::OpLogicalAnd)}},
    {Code::kOr, {0, W(Op::OpBitwiseOr), W(Op::OpBitwiseOr), W(Op::OpLogicalOr)}},
    {Code::kXor, {0, W(Op::OpBitwiseXor), W(Op::OpBitwiseXor), W(Op::OpLogicalNotEqual)}},
    {Code::kNot, {0, W(Op::OpNot), W(Op::OpNot), W(Op::OpLogicalNot)}},
    {Code::kShl, {0, W(Op::OpShiftLeftLogical), W(Op::OpShiftLeftLogical)}},
    {Code::kShr, {0, W(Op::OpShiftRightArithmetic), W(Op::OpShiftRightLogical)}},
    {Code::kEq, {W(Op::OpFOrdEqual), W(Op::OpIEqual), W(Op::OpIEqual), W(Op::OpLogicalEqual)}},
    {Code::kLt, {W(Op::OpFOrdLessThan), W(Op::OpSLessThan), W(Op::OpULessThan)}},
    {Code::kLe, {W(Op::OpFOrdLessThanEqual), W(Op::OpSLessThanEqual), W(Op::OpULessThanEqual)}},
    {Code::kSelect, {0, 0, 0, W(Op::OpSelect)}},
    {Code::kNeg, {W(Op::OpFNegate), W(Op::OpSNegate), W(Op::OpSNegate)}},
    {Code::kAbs, {W(GLSLstd450FAbs), W(GLSLstd450SAbs)}},
    {Code::kSqrt, {W(GLSLstd450Sqrt)}},
    {Code::kRsqrt, {W(GLSLstd450InverseSqrt)}},
    {Code::kExp2, {W(GLSLstd450Exp2)}},
    {Code::kLog2, {W(GLSLstd450Log2)}},
    {Code::kSin, {W(GLSLstd450Sin)}},
    {Code::kCos, {W(GLSLstd450Cos)}},
    {Code::kFloor, {W(GLSLstd450Floor)}},
    {Code::kRoundEven, {W(GLSLstd450RoundEven)}},
};

Word OperationOn(Code c, DType t) {
  const Row& r = kOperations[c];
  if (t == DType::kBool) return r.of_bool;
  return IsFloat(t) ? r.of_float : IsSigned(t) ? r.of_signed : r.of_unsigned;
}

// Of ReduceKind: for floats, signed, unsigned.
constexpr Op kReductions[][3] = {
    {Op::OpGroupNonUniformFAdd, Op::OpGroupNonUniformIAdd, Op::OpGroupNonUniformIAdd},
    {Op::OpGroupNonUniformFMin, Op::OpGroupNonUniformSMin, Op::OpGroupNonUniformUMin},
    {Op::OpGroupNonUniformFMax, Op::OpGroupNonUniformSMax, Op::OpGroupNonUniformUMax},
    {Op::OpGroupNonUniformFMul, Op::OpGroupNonUniformIMul, Op::OpGroupNonUniformIMul},
};
// Of AtomicKind: signed, unsigned.
constexpr Op kAtomics[][2] = {
    {Op::OpAtomicIAdd, Op::OpAtomicIAdd}, {Op::OpAtomicSMin, Op::OpAtomicUMin},
    {Op::OpAtomicSMax, Op::OpAtomicUMax}, {Op::OpAtomicAnd, Op::OpAtomicAnd},
    {Op::OpAtomicOr, Op::OpAtomicOr},     {Op::OpAtomicExchange, Op::OpAtomicExchange},
};
// Of DotKind.
constexpr Op kDots[] = {Op::OpSDotKHR, Op::OpUDotKHR, Op::OpSUDotKHR};

struct BuiltinRow {
  spv::BuiltIn variable;
  int component;  // -1: a scalar
};
constexpr BuiltinRow kBuiltins[] = {
    {spv::BuiltIn::WorkgroupId, 0},
    {spv::BuiltIn::WorkgroupId, 1},
    {spv::BuiltIn::WorkgroupId, 2},
    {spv::BuiltIn::LocalInvocationId, 0},
    {spv::BuiltIn::LocalInvocationId, 1},
    {spv::BuiltIn::LocalInvocationId, 2},
    {spv::BuiltIn::SubgroupLocalInvocationId, -1},
    {spv::BuiltIn::SubgroupId, -1},
};

constexpr Word kWorkgroupScope = 2, kDeviceScope = 1;
constexpr Word kRowMajor = 0, kColumnMajorLayout = 1;
// Operands of a matrix product that are signed: A, B, C with the result.
constexpr Word kMatrixSigned[] = {1, 2, 4 | 8};
constexpr Word kAcquireRelease = 0x8, kUniformMemory = 0x40, kWorkgroupMemory = 0x100;

}  // namespace

// ---- values -------------------------------------------------------------------------------------

Word SpirvPrinter::Plain(const Inst& i) {
  const std::span<const Id> args = k_.ArgsOf(i);
  DType of = ElemOf(args[0]);
  if (i.aux & kNonNegative) of = DType::kU32;
  const Word op = OperationOn(i.code, of);
  FORGE_CHECK(op != 0);
  const Word type = TypeOf(i.result);
  const std::vector<Word> operands = OfAll(args);
  const Word result = op & kExtended
                          ? m_.AddExtended(static_cast<GLSLstd450>(op & ~kExtended), type, operands)
                          : m_.AddValue(static_cast<Op>(op), type, operands);
  // A driver without fused arithmetic splits Fma, and may reassociate the parts unless told not to.
  if ((i.aux & kPrecise) && (!(op & kExtended) || i.code == Code::kFma))
    m_.Decorate(result, spv::Decoration::NoContraction);
  return result;
}

Word SpirvPrinter::Literal(const Inst& i) {
  const Type& t = k_.TypeOf(i.result);
  const bool narrow = BitWidth(t.elem) < 32 && t.elem != DType::kBool;
  const bool arithmetic = t.elem == DType::kF16   ? needs_.f16
                          : BitWidth(t.elem) == 8 ? needs_.i8
                                                  : needs_.i16;
  if (!narrow || arithmetic) return Constant(t, i.literal);
  if (IsFloat(t.elem))
    return m_.AddValue(
        Op::OpFConvert, TypeOf(t),
        {Constant(t.With(DType::kF32), ToBits(DType::kF32, FloatOf(t.elem, i.literal)))});
  return m_.AddValue(Op::OpUConvert, TypeOf(t), {Constant(t.With(DType::kU32), i.literal)});
}

Word SpirvPrinter::LoadScalar(const Inst& i) {
  const Word type = ElementType(DType::kI32);
  const Word at = m_.AddValue(Op::OpAccessChain, Pointer(spv::StorageClass::PushConstant, type),
                              {scalars_, U32(static_cast<Word>(i.literal))});
  return m_.AddValue(Op::OpLoad, type, {at});
}

Word SpirvPrinter::LoadBuiltin(const Inst& i) {
  const BuiltinRow& row = kBuiltins[i.aux];
  const Word u32 = ElementType(DType::kU32);
  if (row.component < 0) return m_.AddValue(Op::OpLoad, u32, {DeclareInput(row.variable, u32)});
  const Word vector = m_.DeclareType(Op::OpTypeVector, {u32, 3});
  const Word all = m_.AddValue(Op::OpLoad, vector, {DeclareInput(row.variable, vector)});
  return m_.AddValue(Op::OpCompositeExtract, u32, {all, static_cast<Word>(row.component)});
}

// Of numbers that fit: lowering has seen to the others.
Word SpirvPrinter::Convert(const Inst& i) {
  const Id arg = k_.ArgsOf(i)[0];
  const Type &to = k_.TypeOf(i.result), &from = k_.TypeOf(arg);
  const Word type = TypeOf(to);
  const bool from_float = IsFloat(from.elem), to_float = IsFloat(to.elem);
  if (from.elem == DType::kBool)
    return m_.AddValue(Op::OpSelect, type,
                       {Of(arg), Constant(to, ToBits(to.elem, 1)), Constant(to, 0)});
  if (to.elem == DType::kBool)
    return m_.AddValue(from_float ? Op::OpFUnordNotEqual : Op::OpINotEqual, type,
                       {Of(arg), Constant(from, 0)});
  if (!from_float && !to_float && BitWidth(from.elem) == BitWidth(to.elem)) return Of(arg);
  const bool is_signed = IsSigned(from_float ? to.elem : from.elem);
  const Op op = from_float && to_float ? Op::OpFConvert
                : from_float           ? is_signed ? Op::OpConvertFToS : Op::OpConvertFToU
                : to_float             ? is_signed ? Op::OpConvertSToF : Op::OpConvertUToF
                : is_signed            ? Op::OpSConvert
                                       : Op::OpUConvert;
  return m_.AddValue(op, type, {Of(arg)});
}

Word SpirvPrinter::Bitcast(const Inst& i) {
  const Id arg = k_.ArgsOf(i)[0];
  const Word type = TypeOf(i.result);
  if (type == TypeOf(k_.values[arg].type)) return Of(arg);
  return m_.AddValue(Op::OpBitcast, type, {Of(arg)});
}

Word SpirvPrinter::Composite(const Inst& i) {
  const std::span<const Id> args = k_.ArgsOf(i);
  const Word type = TypeOf(i.result);
  if (i.code == Code::kPack) return m_.AddValue(Op::OpCompositeConstruct, type, OfAll(args));
  if (i.code == Code::kExtract)
    return m_.AddValue(Op::OpCompositeExtract, type, {Of(args[0]), i.aux});
  return m_.AddValue(Op::OpCompositeInsert, type, {Of(args[1]), Of(args[0]), i.aux});
}

Word SpirvPrinter::MulHigh(const Inst& i) {
  const Type& t = k_.TypeOf(i.result);
  const Word type = TypeOf(t), both = m_.DeclareType(Op::OpTypeStruct, {type, type});
  const Word product = m_.AddValue(IsSigned(t.elem) ? Op::OpSMulExtended : Op::OpUMulExtended, both,
                                   OfAll(k_.ArgsOf(i)));
  return m_.AddValue(Op::OpCompositeExtract, type, {product, 1});
}

Word SpirvPrinter::Dot4(const Inst& i) {
  const std::span<const Id> args = k_.ArgsOf(i);
  const Word type = TypeOf(i.result);
  const Word dot =
      m_.AddValue(kDots[i.aux], type,
                  {Of(args[0]), Of(args[1]),
                   static_cast<Word>(spv::PackedVectorFormat::PackedVectorFormat4x8BitKHR)});
  return m_.AddValue(Op::OpIAdd, type, {dot, Of(args[2])});
}

// ---- memory, subgroups --------------------------------------------------------------------------

Word SpirvPrinter::Access(const Inst& i) {
  const View& v = k_.views[i.view];
  const Word index = Of(k_.ArgsOf(i)[0]), type = TypeOf(v.elem);
  std::vector<Word> words{views_[i.view], index};
  if (v.space == Space::kGlobal) words.insert(words.begin() + 1, U32(0));
  return m_.AddValue(Op::OpAccessChain, Pointer(StorageOf(v.space), type), words);
}

std::vector<Word> SpirvPrinter::WithMemoryOperands(const Inst& i, std::vector<Word> words) {
  if (!needs_.matrices || k_.views[i.view].space != Space::kShared) return words;
  const bool stores = i.code == Code::kStore || i.code == Code::kMatrixStore;
  const auto made = stores ? spv::MemoryAccessMask::MakePointerAvailable
                           : spv::MemoryAccessMask::MakePointerVisible;
  words.push_back(static_cast<Word>(made | spv::MemoryAccessMask::NonPrivatePointer));
  words.push_back(U32(kWorkgroupScope));
  return words;
}

Word SpirvPrinter::Load(const Inst& i) {
  return m_.AddValue(Op::OpLoad, TypeOf(k_.views[i.view].elem), WithMemoryOperands(i, {Access(i)}));
}

Word SpirvPrinter::Store(const Inst& i) {
  Add(Op::OpStore, WithMemoryOperands(i, {Access(i), Of(k_.ArgsOf(i)[1])}));
  return 0;
}

// ---- matrices -----------------------------------------------------------------------------------

Word SpirvPrinter::MatrixLoad(const Inst& i) {
  const Word layout = i.aux & kColumnMajor ? kColumnMajorLayout : kRowMajor;
  return m_.AddValue(kOpMatrixLoad, TypeOf(i.result),
                     WithMemoryOperands(i, {Access(i), U32(layout), Of(k_.ArgsOf(i)[1])}));
}

Word SpirvPrinter::MatrixStore(const Inst& i) {
  const std::span<const Id> args = k_.ArgsOf(i);
  Add(kOpMatrixStore, WithMemoryOperands(i, {Access(i), Of(args[2]), U32(kRowMajor), Of(args[1])}));
  return 0;
}

Word SpirvPrinter::MatrixMulAdd(const Inst& i) {
  std::vector<Word> words = OfAll(k_.ArgsOf(i));
  Word is_signed = 0;
  for (size_t n = 0; n < 3; ++n) {
    const DType t = ElemOf(k_.ArgsOf(i)[n]);
    if (IsInt(t) && IsSigned(t)) is_signed |= kMatrixSigned[n];
  }
  if (is_signed != 0) words.push_back(is_signed);
  return m_.AddValue(kOpMatrixMulAdd, TypeOf(i.result), words);
}

// ---- the rest -----------------------------------------------------------------------------------

Word SpirvPrinter::Atomic(const Inst& i) {
  const Type& t = k_.TypeOf(i.result);
  const Word scope = k_.views[i.view].space == Space::kShared ? kWorkgroupScope : kDeviceScope;
  return m_.AddValue(kAtomics[i.aux][IsSigned(t.elem) ? 0 : 1], TypeOf(t),
                     {Access(i), U32(scope), U32(0), Of(k_.ArgsOf(i)[1])});
}

Word SpirvPrinter::Barrier(const Inst&) {
  Add(Op::OpControlBarrier, {U32(kWorkgroupScope), U32(kWorkgroupScope),
                             U32(kAcquireRelease | kUniformMemory | kWorkgroupMemory)});
  return 0;
}

Word SpirvPrinter::Subgroup(const Inst& i) {
  const std::span<const Id> args = k_.ArgsOf(i);
  const Type& t = k_.TypeOf(i.result);
  const Word type = TypeOf(t), scope = U32(kSubgroupScope), value = Of(args[0]);
  switch (i.code) {
    case Code::kShuffle:
      return m_.AddValue(Op::OpGroupNonUniformShuffle, type, {scope, value, Of(args[1])});
    case Code::kShuffleXor:
      return m_.AddValue(Op::OpGroupNonUniformShuffleXor, type, {scope, value, U32(i.aux)});
    case Code::kBallot:
      return m_.AddValue(Op::OpGroupNonUniformBallot, type, {scope, value});
    default:
      break;
  }
  const auto how = i.code == Code::kSubgroupScan ? spv::GroupOperation::InclusiveScan
                                                 : spv::GroupOperation::Reduce;
  const Op op = kReductions[i.aux][IsFloat(t.elem) ? 0 : IsSigned(t.elem) ? 1 : 2];
  return m_.AddValue(op, type, {scope, static_cast<Word>(how), value});
}

}  // namespace forge::codegen
