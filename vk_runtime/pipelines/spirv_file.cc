// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/pipelines/spirv_file.h"

#include <xxhash.h>

#include <cstring>

#include "base/hash.h"
#include "base/platform.h"
#include "codegen/kernel/kernel_ir.h"

namespace forge::vk {
namespace {

constexpr size_t kMostBytes = 8 << 20;  // of one file: some hundreds of kernels

// What an entry begins with; its words follow.
struct EntryHead {
  uint64_t hash, words;
};

uint64_t HashOfDevice(const Context& context) {
  uint64_t h = 0;
  for (const Feature& f : context.features()) h = HashMix(HashText(f.name, h), f.present);
  for (const Field& f : codegen::Caps::kFields)
    if (f.kind == FieldKind::kInt)
      h = HashMix(h, *static_cast<const uint64_t*>(f.at_const(&context.caps())));
  return h;
}

uint64_t ChecksumOf(std::string_view content) { return XXH64(content.data(), content.size(), 0); }

template <class T>
void Append(std::string& to, const T* values, size_t n) {
  to.append(reinterpret_cast<const char*>(values), n * sizeof(T));
}

// Takes a value off the front; false: there is none.
template <class T>
bool Take(std::string_view& from, T* to, size_t n) {
  if (from.size() / sizeof(T) < n) return false;
  std::memcpy(to, from.data(), n * sizeof(T));
  from.remove_prefix(n * sizeof(T));
  return true;
}

}  // namespace

SpirvFile::SpirvFile(const Context& context, bool use_file)
    : path_(use_file ? CacheFile(context.queries(), ".spirv") : ""),
      title_(fmt::format("{}, generator {}\n", CacheTitle(context.queries(), "spirv 1"),
                         codegen::Revision())),
      device_(HashOfDevice(context)) {
  Load();
}

void SpirvFile::Load() {
  const std::string content = ReadCacheFile(path_);
  if (!content.starts_with(title_)) return;
  std::string_view rest = std::string_view(content).substr(title_.size());
  uint64_t checksum = 0;
  if (!Take(rest, &checksum, 1) || checksum != ChecksumOf(rest)) return;
  for (EntryHead head{}; Take(rest, &head, 1);) {
    if (head.words > rest.size() / sizeof(uint32_t)) return;
    std::vector<uint32_t> words(head.words);
    Take(rest, words.data(), words.size());
    entries_.try_emplace(head.hash, Entry{std::move(words)});
  }
}

std::optional<std::vector<uint32_t>> SpirvFile::Find(uint64_t hash) {
  const std::lock_guard lock(mutex_);
  const auto at = entries_.find(HashMix(device_, hash));
  if (at == entries_.end()) return std::nullopt;
  at->second.used = true;
  return at->second.words;
}

void SpirvFile::Put(uint64_t hash, std::span<const uint32_t> words) {
  ++printed_;
  if (path_.empty()) return;
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign(HashMix(device_, hash), Entry{{words.begin(), words.end()}, true});
  dirty_ = true;
}

absl::Status SpirvFile::Save() {
  const std::lock_guard lock(mutex_);
  if (!dirty_) return absl::OkStatus();
  const FolderLock alone(path_.parent_path());
  Load();
  std::string content;
  for (const bool used : {true, false})
    for (const auto& [hash, entry] : entries_) {
      const EntryHead head = {.hash = hash, .words = entry.words.size()};
      const size_t bytes = sizeof(head) + entry.words.size() * sizeof(uint32_t);
      if (entry.used != used || content.size() + bytes > kMostBytes) continue;
      Append(content, &head, 1);
      Append(content, entry.words.data(), entry.words.size());
    }
  const uint64_t checksum = ChecksumOf(content);
  std::string file = title_;
  Append(file, &checksum, 1);
  FORGE_RETURN_IF_ERROR(WriteCacheFile(path_, file + content));
  dirty_ = false;
  return absl::OkStatus();
}

}  // namespace forge::vk
