// SPDX-License-Identifier: Apache-2.0
// A SPIR-V module as words, in sections. `Declare...` returns the same id for equal declarations;
// `Add...` always appends an instruction. Independent of the kernel IR.
#pragma once
#include <spirv/unified1/GLSL.std.450.h>

#include <array>
#include <spirv/unified1/spirv.hpp11>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace forge::codegen {

class SpirvModule {
 public:
  using Word = uint32_t;
  using Words = absl::Span<const Word>;
  // In the order of the SPIR-V specification, 2.4 "Logical Layout of a Module".
  enum Section : uint8_t {
    kCapabilities,
    kExtensions,
    kImports,
    kMemoryModel,
    kEntryPoints,
    kModes,
    kNames,
    kDecorations,
    kGlobals,
    kFunction,   // OpFunction and the label of the first block
    kVariables,  // of the function
    kBody,
    kFunctions,  // called by the body; complete
    kSections
  };

  // The memory model is GLSL450's, or Vulkan's where `vulkan_memory`.
  explicit SpirvModule(bool vulkan_memory);
  Word NewId() { return next_++; }

  void Add(Section s, spv::Op op, Words operands, Words more = {});
  // Appends an instruction with a result to the body and returns the id of the result.
  Word AddValue(spv::Op op, Word type, Words operands);
  Word AddExtended(GLSLstd450 op, Word type, Words operands);

  Word DeclareType(spv::Op op, Words operands) { return DeclareConstant(op, kNoType, operands); }
  Word DeclareConstant(spv::Op op, Word type, Words operands);
  void Capability(spv::Capability c);
  void Extension(std::string_view name);
  void Decorate(Word id, spv::Decoration d, Words literals = {});
  void PlaceMember(Word block, Word member, Word offset);  // bytes
  void Name(Word id, std::string_view name);
  void EntryPoint(Word function, std::string_view name, Words interface);

  // For phis, whose later operands are unknown when they are added.
  size_t body_size() const { return sections_[kBody].size(); }
  void Patch(size_t at, Word word) { sections_[kBody][at] = word; }

  // Moves what `fill` adds to the body, from OpFunction to the last block, to kFunctions.
  void AddFunction(absl::FunctionRef<void()> fill);

  // The whole module, SPIR-V 1.3.
  std::vector<Word> Finish() const;

 private:
  static constexpr Word kNoType = 0;
  void AddOnce(Section s, spv::Op op, Words operands);
  Word extended_ = 0;  // the imported instruction set, at its first use
  Word next_ = 1;
  std::array<std::vector<Word>, kSections> sections_;
  absl::flat_hash_map<std::vector<Word>, Word> declared_;
};

}  // namespace forge::codegen
