// SPDX-License-Identifier: Apache-2.0
// From the kernel IR to a SPIR-V module. Private to the printer's sources: declarations
// (spirv_declare.cc), instructions (spirv_instructions.cc) and the walk over blocks
// (spirv_print.cc).
#pragma once
#include <map>

#include "absl/container/flat_hash_set.h"
#include "codegen/analysis.h"
#include "codegen/spirv_module.h"

namespace forge::codegen {

inline constexpr uint32_t kSubgroupScope = 3;
// SPV_KHR_cooperative_matrix: newer than the headers that Forge builds with.
inline constexpr auto kCooperativeMatrix = spv::Capability{6022};
inline constexpr auto kOpTypeMatrix = spv::Op{4456}, kOpMatrixLoad = spv::Op{4457},
                      kOpMatrixStore = spv::Op{4458}, kOpMatrixMulAdd = spv::Op{4459};
// SPV_NV_cooperative_matrix2.
inline constexpr auto kMatrixElements = spv::Capability{5432};
inline constexpr auto kOpMatrixPerElement = spv::Op{5369};

constexpr spv::StorageClass StorageOf(Space s) {
  return s == Space::kGlobal   ? spv::StorageClass::StorageBuffer
         : s == Space::kShared ? spv::StorageClass::Workgroup
                               : spv::StorageClass::Function;
}

class SpirvPrinter {
 public:
  SpirvPrinter(const Kernel& k, const Caps& caps)
      : k_(k), caps_(caps), needs_(NeedsOf(k)), m_(needs_.matrices) {}
  std::vector<uint32_t> Print();

 private:
  using Word = SpirvModule::Word;

  // Declarations.
  void DeclareFeatures();
  void DeclareViews();
  Word DeclareGlobalView(const View& v, bool aliased);
  Word DeclareVariable(spv::StorageClass s, Word type);
  void DeclareScalars();
  Word DeclareInput(spv::BuiltIn builtin, Word type);
  void DeclareEntryPoint(Word function);
  // Signed and unsigned integers are one type: instructions know which they mean.
  Word TypeOf(const Type& t);
  Word ElementType(DType t);
  Word Pointer(spv::StorageClass s, Word type);
  Word U32(uint32_t v) {
    return m_.DeclareConstant(spv::Op::OpConstant, ElementType(DType::kU32), {v});
  }
  Word Constant(const Type& t, uint64_t bits);

  // Instructions: each gives the id of its result, or 0.
  Word Plain(const Inst& i);  // from the table
  Word Literal(const Inst& i);
  Word LoadScalar(const Inst& i);
  Word LoadBuiltin(const Inst& i);
  Word Convert(const Inst& i);
  Word Bitcast(const Inst& i);
  Word Composite(const Inst& i);
  Word MulHigh(const Inst& i);
  Word Dot4(const Inst& i);
  Word Access(const Inst& i);  // a pointer to the element that a load or store names
  // The operands of a load or store, and what follows them: in Vulkan's memory model only what says
  // so is seen by other invocations after a barrier.
  std::vector<Word> WithMemoryOperands(const Inst& i, std::vector<Word> words);
  Word Load(const Inst& i);
  Word Store(const Inst& i);
  Word Atomic(const Inst& i);
  Word Subgroup(const Inst& i);
  Word MatrixLoad(const Inst& i);
  Word MatrixStore(const Inst& i);
  Word MatrixMulAdd(const Inst& i);
  Word Barrier(const Inst& i);

  // Blocks. Control sets the ids of its results itself.
  void PrintBlock(BlockId b);  // all but what it yields
  Word PrintIf(const Inst& i);
  Word PrintLoop(const Inst& i);
  Word PrintForElements(const Inst& i);
  Word PrintElementFunction(const Inst& i, std::span<const Id> captured);
  void Enter(Word label);  // begins a SPIR-V block
  void Branch(Word to) { Add(spv::Op::OpBranch, {to}); }
  void BranchIf(Word condition, Word yes, Word no) {
    Add(spv::Op::OpBranchConditional, {condition, yes, no});
  }
  void Add(spv::Op op, SpirvModule::Words operands) { m_.Add(SpirvModule::kBody, op, operands); }
  Word Of(Id v) const { return ids_[v]; }
  std::vector<Word> OfAll(std::span<const Id> v) const;
  DType ElemOf(Id v) const { return k_.TypeOf(v).elem; }
  Word TypeOf(Id v) { return TypeOf(k_.TypeOf(v)); }

  const Kernel& k_;
  const Caps& caps_;
  const Needs needs_;
  SpirvModule m_;
  std::vector<Word> ids_;             // of values
  std::vector<Word> views_;           // variables
  absl::flat_hash_set<Word> blocks_;  // struct types that have their decorations
  std::map<Word, Word> inputs_;       // by built-in; in order, so that equal kernels print equally
  Word scalars_ = 0;                  // the push constants' variable
  Word here_ = 0;                     // label of the SPIR-V block that is being filled
};

}  // namespace forge::codegen
