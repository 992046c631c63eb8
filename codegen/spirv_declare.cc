// SPDX-License-Identifier: Apache-2.0
#include "codegen/literal.h"
#include "codegen/spirv_printer.h"

namespace forge::codegen {
namespace {

using spv::Op;

bool Aliased(const Kernel& k, const View& v) {
  if (v.aliased) return true;
  for (const View& other : k.views)
    if (other.space == Space::kGlobal && other.operand == v.operand && other.elem != v.elem)
      return true;
  return false;
}

// Of MatrixUse.
constexpr uint32_t kMatrixUses[] = {0, 0, 1, 2};

int ElementBytes(const Type& t) { return BitWidth(t.elem) / 8 * t.lanes; }

}  // namespace

void SpirvPrinter::DeclareFeatures() {
  const struct {
    bool used;
    spv::Capability capability;
    std::string_view extension;
  } features[] = {
      {needs_.f16, spv::Capability::Float16, {}},
      {needs_.f64, spv::Capability::Float64, {}},
      {needs_.i8, spv::Capability::Int8, {}},
      {needs_.i16, spv::Capability::Int16, {}},
      {needs_.i64, spv::Capability::Int64, {}},
      {needs_.storage8, spv::Capability::StorageBuffer8BitAccess, "SPV_KHR_8bit_storage"},
      {needs_.storage16, spv::Capability::StorageBuffer16BitAccess, {}},
      {needs_.subgroup_basic, spv::Capability::GroupNonUniform, {}},
      {needs_.subgroup_arithmetic, spv::Capability::GroupNonUniformArithmetic, {}},
      {needs_.subgroup_shuffle, spv::Capability::GroupNonUniformShuffle, {}},
      {needs_.subgroup_ballot, spv::Capability::GroupNonUniformBallot, {}},
      {needs_.int_dot, spv::Capability::DotProductKHR, "SPV_KHR_integer_dot_product"},
      {needs_.int_dot, spv::Capability::DotProductInput4x8BitPackedKHR, {}},
      {needs_.matrices, kCooperativeMatrix, "SPV_KHR_cooperative_matrix"},
      {needs_.matrix_elements, kMatrixElements, "SPV_NV_cooperative_matrix2"},
      {needs_.f32 && caps_.signed_zero_inf_nan, spv::Capability::SignedZeroInfNanPreserve,
       "SPV_KHR_float_controls"},
  };
  for (const auto& f : features) {
    if (!f.used) continue;
    m_.Capability(f.capability);
    if (!f.extension.empty()) m_.Extension(f.extension);
  }
}

SpirvPrinter::Word SpirvPrinter::ElementType(DType t) {
  if (t == DType::kBool) return m_.DeclareType(Op::OpTypeBool, {});
  const auto width = static_cast<Word>(BitWidth(t));
  if (IsFloat(t)) return m_.DeclareType(Op::OpTypeFloat, {width});
  return m_.DeclareType(Op::OpTypeInt, {width, 0});
}

SpirvPrinter::Word SpirvPrinter::TypeOf(const Type& t) {
  const Word element = ElementType(t.elem);
  if (t.is_matrix())
    return m_.DeclareType(kOpTypeMatrix, {element, U32(kSubgroupScope), U32(t.rows), U32(t.cols),
                                          U32(kMatrixUses[static_cast<size_t>(t.use)])});
  return t.lanes == 1 ? element : m_.DeclareType(Op::OpTypeVector, {element, t.lanes});
}

SpirvPrinter::Word SpirvPrinter::Pointer(spv::StorageClass s, Word type) {
  return m_.DeclareType(Op::OpTypePointer, {static_cast<Word>(s), type});
}

SpirvPrinter::Word SpirvPrinter::Constant(const Type& t, uint64_t bits) {
  const Word element = ElementType(t.elem);
  Word one;
  if (t.elem == DType::kBool) {
    one = m_.DeclareConstant(bits ? Op::OpConstantTrue : Op::OpConstantFalse, element, {});
  } else {
    const Word words[] = {static_cast<Word>(bits), static_cast<Word>(bits >> 32)};
    one = m_.DeclareConstant(Op::OpConstant, element, {words, BitWidth(t.elem) > 32 ? 2u : 1u});
  }
  if (t.is_matrix()) return m_.DeclareConstant(Op::OpConstantComposite, TypeOf(t), {one});
  if (t.lanes == 1) return one;
  const std::vector<Word> all(t.lanes, one);
  return m_.DeclareConstant(Op::OpConstantComposite, TypeOf(t), all);
}

SpirvPrinter::Word SpirvPrinter::DeclareVariable(spv::StorageClass s, Word type) {
  const auto section =
      s == spv::StorageClass::Function ? SpirvModule::kVariables : SpirvModule::kGlobals;
  const Word variable = m_.NewId();
  m_.Add(section, Op::OpVariable, {Pointer(s, type), variable, static_cast<Word>(s)});
  return variable;
}

// struct { T data[]; }, one for each T; binding i of set 0 is operand i.
SpirvPrinter::Word SpirvPrinter::DeclareGlobalView(const View& v, bool aliased) {
  const Word element = TypeOf(v.elem);
  const Word array = m_.DeclareType(Op::OpTypeRuntimeArray, {element});
  const Word block = m_.DeclareType(Op::OpTypeStruct, {array});
  if (blocks_.insert(block).second) {
    m_.Decorate(array, spv::Decoration::ArrayStride, {static_cast<Word>(ElementBytes(v.elem))});
    m_.Decorate(block, spv::Decoration::Block);
    m_.PlaceMember(block, 0, 0);
  }
  const Word variable = DeclareVariable(spv::StorageClass::StorageBuffer, block);
  m_.Decorate(variable, spv::Decoration::DescriptorSet, {0});
  m_.Decorate(variable, spv::Decoration::Binding, {static_cast<Word>(v.operand)});
  m_.Decorate(variable, aliased ? spv::Decoration::Aliased : spv::Decoration::Restrict);
  if (!v.writes) m_.Decorate(variable, spv::Decoration::NonWritable);
  if (!v.reads) m_.Decorate(variable, spv::Decoration::NonReadable);
  m_.Name(variable, v.name);
  return variable;
}

void SpirvPrinter::DeclareViews() {
  absl::flat_hash_map<std::vector<Word>, Word> known;  // equal views of an operand are one variable
  for (const View& v : k_.views) {
    if (v.space == Space::kGlobal) {
      Word& variable = known[{static_cast<Word>(v.operand), TypeOf(v.elem)}];
      if (variable == 0) variable = DeclareGlobalView(v, Aliased(k_, v));
      views_.push_back(variable);
      continue;
    }
    const Word array = m_.DeclareType(Op::OpTypeArray, {TypeOf(v.elem), U32(v.extent)});
    views_.push_back(DeclareVariable(StorageOf(v.space), array));
    m_.Name(views_.back(), v.name);
  }
}

void SpirvPrinter::DeclareScalars() {
  if (k_.scalars.empty()) return;
  const std::vector<Word> members(k_.scalars.size(), ElementType(DType::kI32));
  const Word block = m_.NewId();
  m_.Add(SpirvModule::kGlobals, Op::OpTypeStruct, {block}, members);
  m_.Decorate(block, spv::Decoration::Block);
  for (Word n = 0; n < k_.scalars.size(); ++n) m_.PlaceMember(block, n, 4 * n);
  scalars_ = DeclareVariable(spv::StorageClass::PushConstant, block);
  m_.Name(scalars_, "scalars");
}

SpirvPrinter::Word SpirvPrinter::DeclareInput(spv::BuiltIn builtin, Word type) {
  Word& variable = inputs_[static_cast<Word>(builtin)];
  if (variable != 0) return variable;
  variable = DeclareVariable(spv::StorageClass::Input, type);
  m_.Decorate(variable, spv::Decoration::BuiltIn, {static_cast<Word>(builtin)});
  return variable;
}

void SpirvPrinter::DeclareEntryPoint(Word function) {
  std::vector<Word> interface;
  for (const auto& [builtin, variable] : inputs_) interface.push_back(variable);
  m_.EntryPoint(function, "main", interface);
  m_.Name(function, k_.name);
  const auto mode = [&](spv::ExecutionMode e, SpirvModule::Words literals) {
    m_.Add(SpirvModule::kModes, Op::OpExecutionMode, {function, static_cast<Word>(e)}, literals);
  };
  mode(spv::ExecutionMode::LocalSize, k_.workgroup);
  if (needs_.f32 && caps_.signed_zero_inf_nan)
    mode(spv::ExecutionMode::SignedZeroInfNanPreserve, {32});
}

}  // namespace forge::codegen
