// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernel/literal.h"
#include "codegen/spirv/printer.h"

namespace forge::codegen {
namespace {

bool Aliased(const Kernel& k, const View& v) {
  if (v.aliased) return true;
  for (const View& other : k.views)
    if (other.space == Space::kGlobal && other.operand == v.operand && other.elem != v.elem)
      return true;
  return false;
}

// Whether the kernel loads from the operand of a view and stores to it, through whatever view.
bool Exchanges(const Kernel& k, const View& v) {
  bool loads = false, stores = false;
  for (const Block& block : k.blocks)
    for (const Inst& i : block.insts) {
      const bool store = IsOneOf(i.code, {Code::kStore, Code::kMatrixStore});
      const bool load = IsOneOf(i.code, {Code::kLoad, Code::kMatrixLoad});
      const bool both = IsOneOf(i.code, {Code::kAtomic, Code::kCompareExchange});
      if (!store && !load && !both) continue;
      const View& other = k.views[i.view];
      if (other.space != Space::kGlobal || other.operand != v.operand) continue;
      loads |= load || both;
      stores |= store || both;
    }
  return loads && stores;
}

// Of MatrixUse.
constexpr uint32_t kMatrixUses[] = {0, 0, 1, 2};

}  // namespace

void SpirvPrinter::DeclareFeatures() {
  const struct {
    bool used;
    spv::Capability capability;
    std::string_view extension;
  } features[] = {
      {needs.f16, spv::Capability::Float16, {}},
      {needs.f64, spv::Capability::Float64, {}},
      {needs.i8, spv::Capability::Int8, {}},
      {needs.i16, spv::Capability::Int16, {}},
      {needs.i64, spv::Capability::Int64, {}},
      {needs.storage8, spv::Capability::StorageBuffer8BitAccess, "SPV_KHR_8bit_storage"},
      {needs.storage16, spv::Capability::StorageBuffer16BitAccess, {}},
      {needs.subgroup_basic, spv::Capability::GroupNonUniform, {}},
      {needs.subgroup_arithmetic, spv::Capability::GroupNonUniformArithmetic, {}},
      {needs.subgroup_shuffle, spv::Capability::GroupNonUniformShuffle, {}},
      {needs.subgroup_ballot, spv::Capability::GroupNonUniformBallot, {}},
      {needs.int_dot, spv::Capability::DotProductKHR, "SPV_KHR_integer_dot_product"},
      {needs.int_dot, spv::Capability::DotProductInput4x8BitPackedKHR, {}},
      {needs.f32_atomics, spv::Capability::AtomicFloat32AddEXT, "SPV_EXT_shader_atomic_float_add"},
      {needs.matrices, kCooperativeMatrix, "SPV_KHR_cooperative_matrix"},
      {needs.matrix_elements, kMatrixElements, "SPV_NV_cooperative_matrix2"},
      {needs.f32 && caps.signed_zero_inf_nan, spv::Capability::SignedZeroInfNanPreserve,
       "SPV_KHR_float_controls"},
  };
  if (ReliesOnReconvergence()) m.Extension("SPV_KHR_subgroup_uniform_control_flow");
  for (const auto& f : features) {
    if (!f.used) continue;
    m.Capability(f.capability);
    if (!f.extension.empty()) m.Extension(f.extension);
  }
}

Word SpirvPrinter::ElementType(DType t) {
  if (t == DType::kBool) return m.DeclareType(Op::OpTypeBool, {});
  const auto width = static_cast<Word>(BitWidth(t));
  if (IsFloat(t)) return m.DeclareType(Op::OpTypeFloat, {width});
  return m.DeclareType(Op::OpTypeInt, {width, 0});
}

Word SpirvPrinter::TypeOf(const Type& t) {
  const Word element = ElementType(t.elem);
  if (t.is_matrix())
    return m.DeclareType(kOpTypeMatrix, {element, U32(kSubgroupScope), U32(t.rows), U32(t.cols),
                                         U32(kMatrixUses[static_cast<size_t>(t.use)])});
  return t.lanes == 1 ? element : m.DeclareType(Op::OpTypeVector, {element, t.lanes});
}

Word SpirvPrinter::Pointer(spv::StorageClass s, Word type) {
  return m.DeclareType(Op::OpTypePointer, {static_cast<Word>(s), type});
}

Word SpirvPrinter::Constant(const Type& t, uint64_t bits) {
  const Word element = ElementType(t.elem);
  Word one;
  if (t.elem == DType::kBool) {
    one = m.DeclareConstant(bits ? Op::OpConstantTrue : Op::OpConstantFalse, element, {});
  } else {
    const Word words[] = {static_cast<Word>(bits), static_cast<Word>(bits >> 32)};
    one = m.DeclareConstant(Op::OpConstant, element, {words, BitWidth(t.elem) > 32 ? 2u : 1u});
  }
  if (t.is_matrix()) return m.DeclareConstant(Op::OpConstantComposite, TypeOf(t), {one});
  if (t.lanes == 1) return one;
  const std::vector<Word> all(t.lanes, one);
  return m.DeclareConstant(Op::OpConstantComposite, TypeOf(t), all);
}

Word SpirvPrinter::DeclareVariable(spv::StorageClass s, Word type) {
  const auto section =
      s == spv::StorageClass::Function ? SpirvModule::kVariables : SpirvModule::kGlobals;
  const Word variable = m.NewId();
  m.Add(section, Op::OpVariable, {Pointer(s, type), variable, static_cast<Word>(s)});
  return variable;
}

// struct { T data[]; }, one for each T; binding i of set 0 is operand i.
Word SpirvPrinter::DeclareGlobalView(const View& v, bool aliased) {
  const Word element = TypeOf(v.elem);
  const Word array = m.DeclareType(Op::OpTypeRuntimeArray, {element});
  const Word block = m.DeclareType(Op::OpTypeStruct, {array});
  if (blocks.insert(block).second) {
    m.Decorate(array, spv::Decoration::ArrayStride, {static_cast<Word>(ElementBytes(v.elem))});
    m.Decorate(block, spv::Decoration::Block);
    m.PlaceMember(block, 0, 0);
  }
  const Word variable = DeclareVariable(spv::StorageClass::StorageBuffer, block);
  m.Decorate(variable, spv::Decoration::DescriptorSet, {0});
  m.Decorate(variable, spv::Decoration::Binding, {static_cast<Word>(v.operand)});
  m.Decorate(variable, aliased ? spv::Decoration::Aliased : spv::Decoration::Restrict);
  if (!v.writes) m.Decorate(variable, spv::Decoration::NonWritable);
  // NVIDIA's compiler loads what an invocation has stored in an earlier turn of a loop before that
  // turn, unless it is told not to.
  if (!needs.memory_model && Exchanges(k, v)) m.Decorate(variable, spv::Decoration::Coherent);
  if (!v.reads) m.Decorate(variable, spv::Decoration::NonReadable);
  m.Name(variable, v.name);
  return variable;
}

void SpirvPrinter::DeclareViews() {
  absl::flat_hash_map<std::vector<Word>, Word> known;  // equal views of an operand are one variable
  for (const View& v : k.views) {
    if (v.space == Space::kGlobal) {
      Word& variable = known[{static_cast<Word>(v.operand), TypeOf(v.elem)}];
      if (variable == 0) variable = DeclareGlobalView(v, Aliased(k, v));
      views.push_back(variable);
      continue;
    }
    const Word array = m.DeclareType(Op::OpTypeArray, {TypeOf(v.elem), U32(v.extent)});
    views.push_back(DeclareVariable(StorageOf(v.space), array));
    m.Name(views.back(), v.name);
  }
}

void SpirvPrinter::DeclareScalars() {
  if (k.scalars.empty()) return;
  const std::vector<Word> members(k.scalars.size(), ElementType(DType::kI32));
  const Word block = m.NewId();
  m.Add(SpirvModule::kGlobals, Op::OpTypeStruct, {block}, members);
  m.Decorate(block, spv::Decoration::Block);
  for (Word n = 0; n < k.scalars.size(); ++n) m.PlaceMember(block, n, 4 * n);
  scalars = DeclareVariable(ScalarStorage(), block);
  if (ReadsStepValues(k)) {
    m.Decorate(scalars, spv::Decoration::DescriptorSet, {0});
    m.Decorate(scalars, spv::Decoration::Binding, {kParameterBinding});
  }
  m.Name(scalars, "scalars");
}

Word SpirvPrinter::DeclareInput(spv::BuiltIn builtin, Word type) {
  Word& variable = inputs[static_cast<Word>(builtin)];
  if (variable != 0) return variable;
  variable = DeclareVariable(spv::StorageClass::Input, type);
  m.Decorate(variable, spv::Decoration::BuiltIn, {static_cast<Word>(builtin)});
  return variable;
}

void SpirvPrinter::DeclareEntryPoint(Word function) {
  std::vector<Word> interface;
  for (const auto& [builtin, variable] : inputs) interface.push_back(variable);
  m.EntryPoint(function, "main", interface);
  m.Name(function, k.name);
  const auto mode = [&](spv::ExecutionMode e, SpirvModule::Words literals) {
    m.Add(SpirvModule::kModes, Op::OpExecutionMode, {function, static_cast<Word>(e)}, literals);
  };
  mode(spv::ExecutionMode::LocalSize, k.workgroup);
  if (needs.f32 && caps.signed_zero_inf_nan)
    mode(spv::ExecutionMode::SignedZeroInfNanPreserve, {32});
  if (ReliesOnReconvergence()) mode(spv::ExecutionMode::SubgroupUniformControlFlowKHR, {});
}

}  // namespace forge::codegen
