// SPDX-License-Identifier: Apache-2.0
// The printer from kernel IR to SPIR-V. Private to its sources: declarations (spirv_declare.cc),
// instructions (spirv_instructions.cc), blocks (spirv_print.cc).
#pragma once
#include <map>

#include "absl/container/flat_hash_set.h"
#include "codegen/kernel/analysis.h"
#include "codegen/spirv/module.h"

namespace forge::codegen {

using spv::Op;
using Word = SpirvModule::Word;

inline constexpr uint32_t kSubgroupScope = 3;
// SPV_KHR_cooperative_matrix: newer than the headers that Forge builds with.
inline constexpr auto kCooperativeMatrix = spv::Capability{6022};
inline constexpr auto kOpTypeMatrix = Op{4456}, kOpMatrixLoad = Op{4457}, kOpMatrixStore = Op{4458},
                      kOpMatrixMulAdd = Op{4459};
// SPV_NV_cooperative_matrix2.
inline constexpr auto kMatrixElements = spv::Capability{5432};
inline constexpr auto kOpMatrixPerElement = Op{5369};

constexpr spv::StorageClass StorageOf(Space s) {
  return s == Space::kGlobal   ? spv::StorageClass::StorageBuffer
         : s == Space::kShared ? spv::StorageClass::Workgroup
                               : spv::StorageClass::Function;
}

struct SpirvPrinter {
  SpirvPrinter(const Kernel& kernel, const Caps& of_device)
      : k(kernel), caps(of_device), needs(NeedsOf(k)), m(needs.memory_model) {}
  std::vector<uint32_t> Print();

  // Declarations.
  void DeclareFeatures();
  bool ReliesOnReconvergence() const {
    return caps.subgroup_uniform_control_flow && JoinsSubgroupsBehindLoops(k);
  }
  void DeclareViews();
  Word DeclareGlobalView(const View& v, bool aliased);
  Word DeclareVariable(spv::StorageClass s, Word type);
  void DeclareScalars();
  spv::StorageClass ScalarStorage() const {
    return ReadsStepValues(k) ? spv::StorageClass::Uniform : spv::StorageClass::PushConstant;
  }
  Word DeclareInput(spv::BuiltIn builtin, Word type);
  void DeclareEntryPoint(Word function);
  // Signed and unsigned integers have the same type; instructions determine signedness.
  Word TypeOf(const Type& t);
  Word ElementType(DType t);
  Word Pointer(spv::StorageClass s, Word type);
  Word U32(uint32_t v) { return m.DeclareConstant(Op::OpConstant, ElementType(DType::kU32), {v}); }
  Word Constant(const Type& t, uint64_t bits);

  // Prints an instruction other than control flow; returns the id of the result, or 0.
  Word PrintInst(const Inst& i);

  // Blocks. Control flow sets the ids of its results.
  void PrintBlock(BlockId b);  // without its Yield
  void PrintIf(const Inst& i);
  void PrintLoop(const Inst& i);
  void PrintForElements(const Inst& i);
  void Enter(Word label);  // begins a SPIR-V block
  void Branch(Word to) { Add(Op::OpBranch, {to}); }
  void BranchIf(Word condition, Word yes, Word no) {
    Add(Op::OpBranchConditional, {condition, yes, no});
  }
  void Add(Op op, SpirvModule::Words operands) { m.Add(SpirvModule::kBody, op, operands); }
  Word Of(Id v) const { return ids[v]; }
  Word Arg(const Inst& i, size_t n) const { return Of(k.ArgsOf(i)[n]); }
  std::vector<Word> OfAll(std::span<const Id> v) const;
  DType ElemOf(Id v) const { return k.TypeOf(v).elem; }
  Word TypeOf(Id v) { return TypeOf(k.TypeOf(v)); }

  const Kernel& k;
  const Caps& caps;
  const Needs needs;
  SpirvModule m;
  std::vector<Word> ids;             // of values
  std::vector<Word> views;           // variables
  absl::flat_hash_set<Word> blocks;  // struct types already decorated
  std::map<Word, Word> inputs;       // by built-in; ordered, so that printing is deterministic
  Word scalars = 0;                  // the push constants' variable
  Word here = 0;                     // label of the current SPIR-V block
};

}  // namespace forge::codegen
