// SPDX-License-Identifier: Apache-2.0
#include "codegen/spirv_module.h"

#include "base/status.h"

namespace forge::codegen {
namespace {

using Word = SpirvModule::Word;

constexpr Word kVersion = 0x00010300;
constexpr size_t kMostWords = 0xffff;  // of one instruction

// Bytes of a string and its terminating zero, four a word, first byte lowest.
void AppendString(std::vector<Word>& out, std::string_view s) {
  const size_t at = out.size();
  out.resize(at + s.size() / 4 + 1);
  for (size_t n = 0; n < s.size(); ++n)
    out[at + n / 4] |= static_cast<Word>(static_cast<uint8_t>(s[n])) << (n % 4 * 8);
}

std::vector<Word> WithString(std::initializer_list<Word> words, std::string_view s) {
  std::vector<Word> out(words);
  AppendString(out, s);
  return out;
}

}  // namespace

SpirvModule::SpirvModule(bool vulkan_memory) {
  Capability(spv::Capability::Shader);
  if (vulkan_memory) {
    Capability(spv::Capability::VulkanMemoryModel);
    Extension("SPV_KHR_vulkan_memory_model");
  }
  Add(kMemoryModel, spv::Op::OpMemoryModel,
      {static_cast<Word>(spv::AddressingModel::Logical),
       static_cast<Word>(vulkan_memory ? spv::MemoryModel::Vulkan : spv::MemoryModel::GLSL450)});
}

void SpirvModule::Add(Section s, spv::Op op, Words operands) {
  FORGE_CHECK(operands.size() < kMostWords);
  sections_[s].push_back(static_cast<Word>(operands.size() + 1) << 16 | static_cast<Word>(op));
  sections_[s].insert(sections_[s].end(), operands.begin(), operands.end());
}

Word SpirvModule::AddValue(spv::Op op, Word type, Words operands) {
  const Word result = NewId();
  std::vector<Word> words{type, result};
  words.insert(words.end(), operands.begin(), operands.end());
  Add(kBody, op, words);
  return result;
}

Word SpirvModule::AddExtended(GLSLstd450 op, Word type, Words operands) {
  if (extended_ == 0) {
    extended_ = NewId();
    Add(kImports, spv::Op::OpExtInstImport, WithString({extended_}, "GLSL.std.450"));
  }
  std::vector<Word> words{extended_, static_cast<Word>(op)};
  words.insert(words.end(), operands.begin(), operands.end());
  return AddValue(spv::Op::OpExtInst, type, words);
}

Word SpirvModule::Declared(spv::Op op, Words operands, size_t result_at) {
  std::vector<Word> key{static_cast<Word>(op)};
  key.insert(key.end(), operands.begin(), operands.end());
  const auto [it, added] = declared_.try_emplace(std::move(key), next_);
  if (!added) return it->second;
  std::vector<Word> words(operands.begin(), operands.end());
  words.insert(words.begin() + static_cast<ptrdiff_t>(result_at), NewId());
  Add(kGlobals, op, words);
  return it->second;
}

Word SpirvModule::DeclareType(spv::Op op, Words operands) { return Declared(op, operands, 0); }

Word SpirvModule::DeclareConstant(spv::Op op, Word type, Words operands) {
  std::vector<Word> words{type};
  words.insert(words.end(), operands.begin(), operands.end());
  return Declared(op, words, 1);
}

Word SpirvModule::DeclareConstant(Word u32_type, Word value) {
  return DeclareConstant(spv::Op::OpConstant, u32_type, Words(&value, 1));
}

void SpirvModule::Capability(spv::Capability c) {
  if (declared_.try_emplace({static_cast<Word>(spv::Op::OpCapability), static_cast<Word>(c)}, 0)
          .second)
    Add(kCapabilities, spv::Op::OpCapability, {static_cast<Word>(c)});
}

void SpirvModule::Extension(std::string_view name) {
  const std::vector<Word> words = WithString({}, name);
  std::vector<Word> key{static_cast<Word>(spv::Op::OpExtension)};
  key.insert(key.end(), words.begin(), words.end());
  if (declared_.try_emplace(std::move(key), 0).second)
    Add(kExtensions, spv::Op::OpExtension, words);
}

void SpirvModule::Decorate(Word id, spv::Decoration d, std::initializer_list<Word> literals) {
  std::vector<Word> words{id, static_cast<Word>(d)};
  words.insert(words.end(), literals.begin(), literals.end());
  Add(kDecorations, spv::Op::OpDecorate, words);
}

void SpirvModule::DecorateMember(Word id, Word member, spv::Decoration d,
                                 std::initializer_list<Word> literals) {
  std::vector<Word> words{id, member, static_cast<Word>(d)};
  words.insert(words.end(), literals.begin(), literals.end());
  Add(kDecorations, spv::Op::OpMemberDecorate, words);
}

void SpirvModule::Name(Word id, std::string_view name) {
  Add(kNames, spv::Op::OpName, WithString({id}, name.substr(0, 1024)));
}

void SpirvModule::EntryPoint(Word function, std::string_view name, Words interface) {
  std::vector<Word> words =
      WithString({static_cast<Word>(spv::ExecutionModel::GLCompute), function}, name);
  words.insert(words.end(), interface.begin(), interface.end());
  Add(kEntryPoints, spv::Op::OpEntryPoint, words);
}

void SpirvModule::AddFunction(absl::FunctionRef<void()> fill) {
  std::vector<Word> caller = std::exchange(sections_[kBody], {});
  fill();
  Add(kBody, spv::Op::OpFunctionEnd, {});
  std::vector<Word>& all = sections_[kFunctions];
  all.insert(all.end(), sections_[kBody].begin(), sections_[kBody].end());
  sections_[kBody] = std::move(caller);
}

std::vector<Word> SpirvModule::Finish() const {
  std::vector<Word> out{static_cast<Word>(spv::MagicNumber), kVersion, 0, next_, 0};
  for (size_t s = 0; s < kSections; ++s) {
    out.insert(out.end(), sections_[s].begin(), sections_[s].end());
    if (s == kBody) out.push_back(1u << 16 | static_cast<Word>(spv::Op::OpFunctionEnd));
  }
  return out;
}

}  // namespace forge::codegen
