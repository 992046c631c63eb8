// SPDX-License-Identifier: Apache-2.0
#include "codegen/spirv/module.h"

#include "base/status.h"

namespace forge::codegen {
namespace {

using Word = SpirvModule::Word;

constexpr Word kVersion = 0x00010300;
constexpr size_t kMostWords = 0xffff;  // of one instruction

// `words`, then the bytes of a string and its terminating zero, four a word, first byte lowest.
std::vector<Word> WithString(SpirvModule::Words words, std::string_view s) {
  std::vector<Word> out(words.begin(), words.end());
  out.resize(words.size() + s.size() / 4 + 1);
  for (size_t n = 0; n < s.size(); ++n)
    out[words.size() + n / 4] |= static_cast<Word>(static_cast<uint8_t>(s[n])) << (n % 4 * 8);
  return out;
}

std::vector<Word> KeyOf(spv::Op op, Word type, SpirvModule::Words operands) {
  std::vector<Word> key{static_cast<Word>(op), type};
  key.insert(key.end(), operands.begin(), operands.end());
  return key;
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

void SpirvModule::Add(Section s, spv::Op op, Words operands, Words more) {
  const size_t words = 1 + operands.size() + more.size();
  FORGE_CHECK(words <= kMostWords);
  std::vector<Word>& out = sections_[s];
  out.push_back(static_cast<Word>(words) << 16 | static_cast<Word>(op));
  out.insert(out.end(), operands.begin(), operands.end());
  out.insert(out.end(), more.begin(), more.end());
}

Word SpirvModule::AddValue(spv::Op op, Word type, Words operands) {
  const Word result = NewId();
  Add(kBody, op, {type, result}, operands);
  return result;
}

Word SpirvModule::AddExtended(GLSLstd450 op, Word type, Words operands) {
  if (extended_ == 0) {
    extended_ = NewId();
    Add(kImports, spv::Op::OpExtInstImport, WithString({extended_}, "GLSL.std.450"));
  }
  const Word result = NewId();
  Add(kBody, spv::Op::OpExtInst, {type, result, extended_, static_cast<Word>(op)}, operands);
  return result;
}

// Types have their result first, constants their type and then their result.
Word SpirvModule::DeclareConstant(spv::Op op, Word type, Words operands) {
  const auto [it, added] = declared_.try_emplace(KeyOf(op, type, operands), next_);
  if (!added) return it->second;
  const Word front[] = {type, NewId()};
  Add(kGlobals, op, Words(front).subspan(type == kNoType ? 1 : 0), operands);
  return it->second;
}

void SpirvModule::AddOnce(Section s, spv::Op op, Words operands) {
  if (declared_.try_emplace(KeyOf(op, kNoType, operands), 0).second) Add(s, op, operands);
}

void SpirvModule::Capability(spv::Capability c) {
  AddOnce(kCapabilities, spv::Op::OpCapability, {static_cast<Word>(c)});
}

void SpirvModule::Extension(std::string_view name) {
  AddOnce(kExtensions, spv::Op::OpExtension, WithString({}, name));
}

void SpirvModule::Decorate(Word id, spv::Decoration d, Words literals) {
  Add(kDecorations, spv::Op::OpDecorate, {id, static_cast<Word>(d)}, literals);
}

void SpirvModule::PlaceMember(Word block, Word member, Word offset) {
  Add(kDecorations, spv::Op::OpMemberDecorate,
      {block, member, static_cast<Word>(spv::Decoration::Offset), offset});
}

void SpirvModule::Name(Word id, std::string_view name) {
  Add(kNames, spv::Op::OpName, WithString({id}, name.substr(0, 1024)));
}

void SpirvModule::EntryPoint(Word function, std::string_view name, Words interface) {
  const Word model = static_cast<Word>(spv::ExecutionModel::GLCompute);
  Add(kEntryPoints, spv::Op::OpEntryPoint, WithString({model, function}, name), interface);
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
