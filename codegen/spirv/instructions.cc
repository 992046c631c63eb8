// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "codegen/kernel/literal.h"
#include "codegen/spirv/printer.h"

namespace forge::codegen {
namespace {

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
// Of AtomicKind: for floats (Lower leaves no others), signed, unsigned.
constexpr Op kAtomics[][3] = {
    {Op::OpAtomicFAddEXT, Op::OpAtomicIAdd, Op::OpAtomicIAdd},
    {Op::OpNop, Op::OpAtomicSMin, Op::OpAtomicUMin},
    {Op::OpNop, Op::OpAtomicSMax, Op::OpAtomicUMax},
    {Op::OpNop, Op::OpAtomicAnd, Op::OpAtomicAnd},
    {Op::OpNop, Op::OpAtomicOr, Op::OpAtomicOr},
    {Op::OpNop, Op::OpAtomicExchange, Op::OpAtomicExchange},
};
size_t KindOf(DType t) { return IsFloat(t) ? 0 : IsSigned(t) ? 1 : 2; }
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

// Instructions: each gives the id of its result, or 0.

// ---- values -------------------------------------------------------------------------------------

Word Plain(SpirvPrinter& p, const Inst& i) {
  const std::span<const Id> args = p.k.ArgsOf(i);
  DType of = p.ElemOf(args[0]);
  if (i.aux & kNonNegative) of = DType::kU32;
  const Word op = OperationOn(i.code, of);
  FORGE_CHECK(op != 0);
  const Word type = p.TypeOf(i.result);
  const std::vector<Word> operands = p.OfAll(args);
  const Word result =
      op & kExtended ? p.m.AddExtended(static_cast<GLSLstd450>(op & ~kExtended), type, operands)
                     : p.m.AddValue(static_cast<Op>(op), type, operands);
  // A driver without fused arithmetic splits Fma, and may reassociate the parts unless told not to.
  if ((i.aux & kPrecise) && (!(op & kExtended) || i.code == Code::kFma))
    p.m.Decorate(result, spv::Decoration::NoContraction);
  return result;
}

Word Literal(SpirvPrinter& p, const Inst& i) {
  const Type& t = p.k.TypeOf(i.result);
  const bool narrow = BitWidth(t.elem) < 32 && t.elem != DType::kBool;
  const bool arithmetic = t.elem == DType::kF16   ? p.needs.f16
                          : BitWidth(t.elem) == 8 ? p.needs.i8
                                                  : p.needs.i16;
  if (!narrow || arithmetic) return p.Constant(t, i.literal);
  if (IsFloat(t.elem))
    return p.m.AddValue(
        Op::OpFConvert, p.TypeOf(t),
        {p.Constant(t.With(DType::kF32), ToBits(DType::kF32, FloatOf(t.elem, i.literal)))});
  return p.m.AddValue(Op::OpUConvert, p.TypeOf(t), {p.Constant(t.With(DType::kU32), i.literal)});
}

Word LoadScalar(SpirvPrinter& p, const Inst& i) {
  const Word type = p.ElementType(DType::kI32);
  const Word at = p.m.AddValue(Op::OpAccessChain, p.Pointer(p.ScalarStorage(), type),
                               {p.scalars, p.U32(static_cast<Word>(i.literal))});
  return p.m.AddValue(Op::OpLoad, type, {at});
}

Word LoadBuiltin(SpirvPrinter& p, const Inst& i) {
  const BuiltinRow& row = kBuiltins[i.aux];
  const Word u32 = p.ElementType(DType::kU32);
  if (row.component < 0) return p.m.AddValue(Op::OpLoad, u32, {p.DeclareInput(row.variable, u32)});
  const Word vector = p.m.DeclareType(Op::OpTypeVector, {u32, 3});
  const Word all = p.m.AddValue(Op::OpLoad, vector, {p.DeclareInput(row.variable, vector)});
  return p.m.AddValue(Op::OpCompositeExtract, u32, {all, static_cast<Word>(row.component)});
}

// Of numbers that fit: lowering has seen to the others.
Word Convert(SpirvPrinter& p, const Inst& i) {
  const Id arg = p.k.ArgsOf(i)[0];
  const Type &to = p.k.TypeOf(i.result), &from = p.k.TypeOf(arg);
  const Word type = p.TypeOf(to);
  const bool from_float = IsFloat(from.elem), to_float = IsFloat(to.elem);
  if (from.elem == DType::kBool)
    return p.m.AddValue(Op::OpSelect, type,
                        {p.Of(arg), p.Constant(to, ToBits(to.elem, 1)), p.Constant(to, 0)});
  if (to.elem == DType::kBool)
    return p.m.AddValue(from_float ? Op::OpFUnordNotEqual : Op::OpINotEqual, type,
                        {p.Of(arg), p.Constant(from, 0)});
  if (!from_float && !to_float && BitWidth(from.elem) == BitWidth(to.elem)) return p.Of(arg);
  const bool is_signed = IsSigned(from_float ? to.elem : from.elem);
  const Op op = from_float && to_float ? Op::OpFConvert
                : from_float           ? is_signed ? Op::OpConvertFToS : Op::OpConvertFToU
                : to_float             ? is_signed ? Op::OpConvertSToF : Op::OpConvertUToF
                : is_signed            ? Op::OpSConvert
                                       : Op::OpUConvert;
  return p.m.AddValue(op, type, {p.Of(arg)});
}

Word Bitcast(SpirvPrinter& p, const Inst& i) {
  const Id arg = p.k.ArgsOf(i)[0];
  const Word type = p.TypeOf(i.result);
  if (type == p.TypeOf(p.k.values[arg].type)) return p.Of(arg);
  return p.m.AddValue(Op::OpBitcast, type, {p.Of(arg)});
}

Word Composite(SpirvPrinter& p, const Inst& i) {
  const Word type = p.TypeOf(i.result);
  if (i.code == Code::kPack)
    return p.m.AddValue(Op::OpCompositeConstruct, type, p.OfAll(p.k.ArgsOf(i)));
  if (i.code == Code::kExtract)
    return p.m.AddValue(Op::OpCompositeExtract, type, {p.Arg(i, 0), i.aux});
  return p.m.AddValue(Op::OpCompositeInsert, type, {p.Arg(i, 1), p.Arg(i, 0), i.aux});
}

Word MulHigh(SpirvPrinter& p, const Inst& i) {
  const Type& t = p.k.TypeOf(i.result);
  const Word type = p.TypeOf(t), both = p.m.DeclareType(Op::OpTypeStruct, {type, type});
  const Word product = p.m.AddValue(IsSigned(t.elem) ? Op::OpSMulExtended : Op::OpUMulExtended,
                                    both, p.OfAll(p.k.ArgsOf(i)));
  return p.m.AddValue(Op::OpCompositeExtract, type, {product, 1});
}

Word Dot4(SpirvPrinter& p, const Inst& i) {
  const Word type = p.TypeOf(i.result);
  const Word dot =
      p.m.AddValue(kDots[i.aux], type,
                   {p.Arg(i, 0), p.Arg(i, 1),
                    static_cast<Word>(spv::PackedVectorFormat::PackedVectorFormat4x8BitKHR)});
  return p.m.AddValue(Op::OpIAdd, type, {dot, p.Arg(i, 2)});
}

// ---- memory, subgroups --------------------------------------------------------------------------

// A pointer to the element that a load or store names.
Word Access(SpirvPrinter& p, const Inst& i) {
  const View& v = p.k.views[i.view];
  const Word index = p.Arg(i, 0), type = p.TypeOf(v.elem);
  std::vector<Word> words{p.views[i.view], index};
  if (v.space == Space::kGlobal) words.insert(words.begin() + 1, p.U32(0));
  return p.m.AddValue(Op::OpAccessChain, p.Pointer(StorageOf(v.space), type), words);
}

// The operands of a load or store, and what follows them: in Vulkan's memory model only what says
// so is seen by other invocations after a barrier.
std::vector<Word> WithMemoryOperands(SpirvPrinter& p, const Inst& i, std::vector<Word> words) {
  const View& v = p.k.views[i.view];
  const bool exchanges =
      v.space == Space::kGlobal ? v.reads && v.writes : v.space == Space::kShared;
  if (!p.needs.memory_model || !exchanges) return words;
  const bool stores = i.code == Code::kStore || i.code == Code::kMatrixStore;
  const auto made = stores ? spv::MemoryAccessMask::MakePointerAvailable
                           : spv::MemoryAccessMask::MakePointerVisible;
  words.push_back(static_cast<Word>(made | spv::MemoryAccessMask::NonPrivatePointer));
  words.push_back(p.U32(kWorkgroupScope));
  return words;
}

Word Load(SpirvPrinter& p, const Inst& i) {
  return p.m.AddValue(Op::OpLoad, p.TypeOf(p.k.views[i.view].elem),
                      WithMemoryOperands(p, i, {Access(p, i)}));
}

Word Store(SpirvPrinter& p, const Inst& i) {
  p.Add(Op::OpStore, WithMemoryOperands(p, i, {Access(p, i), p.Arg(i, 1)}));
  return 0;
}

// ---- matrices -----------------------------------------------------------------------------------

Word MatrixLoad(SpirvPrinter& p, const Inst& i) {
  const Word layout = i.aux & kColumnMajor ? kColumnMajorLayout : kRowMajor;
  return p.m.AddValue(kOpMatrixLoad, p.TypeOf(i.result),
                      WithMemoryOperands(p, i, {Access(p, i), p.U32(layout), p.Arg(i, 1)}));
}

Word MatrixStore(SpirvPrinter& p, const Inst& i) {
  p.Add(kOpMatrixStore,
        WithMemoryOperands(p, i, {Access(p, i), p.Arg(i, 2), p.U32(kRowMajor), p.Arg(i, 1)}));
  return 0;
}

Word MatrixMulAdd(SpirvPrinter& p, const Inst& i) {
  std::vector<Word> words = p.OfAll(p.k.ArgsOf(i));
  Word is_signed = 0;
  for (size_t n = 0; n < 3; ++n) {
    const DType t = p.ElemOf(p.k.ArgsOf(i)[n]);
    if (IsInt(t) && IsSigned(t)) is_signed |= kMatrixSigned[n];
  }
  if (is_signed != 0) words.push_back(is_signed);
  return p.m.AddValue(kOpMatrixMulAdd, p.TypeOf(i.result), words);
}

// ---- the rest -----------------------------------------------------------------------------------

Word Atomic(SpirvPrinter& p, const Inst& i) {
  const Type& t = p.k.TypeOf(i.result);
  const Word scope = p.k.views[i.view].space == Space::kShared ? kWorkgroupScope : kDeviceScope;
  std::vector<Word> words{Access(p, i), p.U32(scope), p.U32(0)};  // relaxed
  if (i.code == Code::kAtomic) {
    words.push_back(p.Arg(i, 1));
    return p.m.AddValue(kAtomics[i.aux][KindOf(t.elem)], p.TypeOf(t), words);
  }
  words.insert(words.end(), {p.U32(0), p.Arg(i, 2), p.Arg(i, 1)});
  return p.m.AddValue(Op::OpAtomicCompareExchange, p.TypeOf(t), words);
}

Word Barrier(SpirvPrinter& p, const Inst&) {
  p.Add(Op::OpControlBarrier, {p.U32(kWorkgroupScope), p.U32(kWorkgroupScope),
                               p.U32(kAcquireRelease | kUniformMemory | kWorkgroupMemory)});
  return 0;
}

Word Subgroup(SpirvPrinter& p, const Inst& i) {
  const Type& t = p.k.TypeOf(i.result);
  const Word type = p.TypeOf(t), scope = p.U32(kSubgroupScope), value = p.Arg(i, 0);
  switch (i.code) {
    case Code::kShuffle:
      return p.m.AddValue(Op::OpGroupNonUniformShuffle, type, {scope, value, p.Arg(i, 1)});
    case Code::kShuffleXor:
      return p.m.AddValue(Op::OpGroupNonUniformShuffleXor, type, {scope, value, p.U32(i.aux)});
    case Code::kBallot:
      return p.m.AddValue(Op::OpGroupNonUniformBallot, type, {scope, value});
    default:
      break;
  }
  const auto how = i.code == Code::kSubgroupScan ? spv::GroupOperation::InclusiveScan
                                                 : spv::GroupOperation::Reduce;
  const Op op = kReductions[i.aux][KindOf(t.elem)];
  return p.m.AddValue(op, type, {scope, static_cast<Word>(how), value});
}

}  // namespace

Word SpirvPrinter::PrintInst(const Inst& i) {
  static constexpr CodeTable<Word (*)(SpirvPrinter&, const Inst&)> kOther = {
      {Code::kLiteral, Literal},
      {Code::kScalar, LoadScalar},
      {Code::kBuiltin, LoadBuiltin},
      {Code::kConvert, Convert},
      {Code::kBitcast, Bitcast},
      {Code::kPack, Composite},
      {Code::kExtract, Composite},
      {Code::kInsert, Composite},
      {Code::kMulHigh, MulHigh},
      {Code::kDot4, Dot4},
      {Code::kLoad, Load},
      {Code::kStore, Store},
      {Code::kAtomic, Atomic},
      {Code::kCompareExchange, Atomic},
      {Code::kMatrixLoad, MatrixLoad},
      {Code::kMatrixStore, MatrixStore},
      {Code::kMatrixMulAdd, MatrixMulAdd},
      {Code::kBarrier, Barrier},
      {Code::kShuffle, Subgroup},
      {Code::kShuffleXor, Subgroup},
      {Code::kBallot, Subgroup},
      {Code::kSubgroupReduce, Subgroup},
      {Code::kSubgroupScan, Subgroup},
  };
  const auto other = kOther[i.code];
  return other != nullptr ? other(*this, i) : Plain(*this, i);
}

}  // namespace forge::codegen
