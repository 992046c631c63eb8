// SPDX-License-Identifier: Apache-2.0
#include "vk_runtime/pipelines/spirv_file.h"

#include <xxhash.h>

#include <algorithm>

#include "base/hash.h"
#include "base/platform.h"
#include "codegen/kernel/kernel_ir.h"

namespace forge::vk {
namespace {

// Of one file: about a thousand kernels. A file that grows beyond it is cut to half of it.
constexpr size_t kMostBytes = 16 << 20;

// What an entry begins with; its words follow. After the title line, a file has a number that says
// when it was written anew, then entries.
struct EntryHead {
  uint64_t hash, words, checksum;
};

uint64_t HashOfDevice(const Context& context) {
  uint64_t h = 0;
  for (const Feature& f : context.features()) h = HashMix(HashText(f.name, h), f.present);
  for (const Field& f : codegen::Caps::kFields)
    if (f.kind == FieldKind::kInt)
      h = HashMix(h, *static_cast<const uint64_t*>(f.at_const(&context.caps())));
  return h;
}

uint64_t ChecksumOf(uint64_t generation, uint64_t hash, std::span<const uint32_t> words) {
  return XXH64(words.data(), words.size_bytes(), HashMix(generation, hash));
}

void AppendEntry(std::string& to, uint64_t generation, uint64_t hash,
                 std::span<const uint32_t> words) {
  const EntryHead head = {hash, words.size(), ChecksumOf(generation, hash, words)};
  to.append(reinterpret_cast<const char*>(&head), sizeof(head));
  to.append(reinterpret_cast<const char*>(words.data()), words.size_bytes());
}

// Reads values at a place of a file; false: they would end beyond it.
template <class T>
bool ReadAt(std::span<const uint8_t> file, size_t at, T* to, size_t n) {
  if (at > file.size() || (file.size() - at) / sizeof(T) < n) return false;
  std::copy_n(file.data() + at, n * sizeof(T), reinterpret_cast<uint8_t*>(to));  // `to` may be null
  return true;
}

}  // namespace

SpirvFile::SpirvFile(const Context& context, bool use_file)
    : path_(use_file ? CacheFile(context.queries(), ".spirv") : ""),
      title_(fmt::format("{}, generator {}\n", CacheTitle(context.queries(), "spirv 2"),
                         codegen::Revision())),
      device_(HashOfDevice(context)) {
  Load();
}

void SpirvFile::Load() {
  whole_ = false;
  const absl::StatusOr<Bytes> mapped = path_.empty() ? Bytes() : MapFile(path_);
  if (!mapped.ok()) return;
  const std::span file(mapped->data(), mapped->size());
  uint64_t generation = 0;
  if (!std::ranges::equal(title_, file.first(std::min(title_.size(), file.size()))) ||
      !ReadAt(file, title_.size(), &generation, 1))
    return;
  if (read_ == 0 || generation != generation_) read_ = title_.size() + sizeof(generation);
  generation_ = generation;
  EntryHead head{};
  while (ReadAt(file, read_, &head, 1) && head.words <= file.size() / sizeof(uint32_t)) {
    std::vector<uint32_t> words(head.words);
    if (!ReadAt(file, read_ + sizeof(head), words.data(), words.size())) break;
    if (head.checksum != ChecksumOf(generation, head.hash, words)) break;
    read_ += sizeof(head) + words.size() * sizeof(uint32_t);
    entries_.try_emplace(head.hash, Entry{std::move(words)});
  }
  whole_ = read_ == file.size();
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
  const uint64_t key = HashMix(device_, hash);
  entries_.insert_or_assign(key, Entry{{words.begin(), words.end()}, true});
  unsaved_.push_back(key);
}

absl::Status SpirvFile::Save() {
  const std::lock_guard lock(mutex_);
  if (unsaved_.empty()) return absl::OkStatus();
  const FolderLock alone(path_.parent_path());
  Load();
  std::string added;
  for (const uint64_t hash : unsaved_)
    AppendEntry(added, generation_, hash, entries_.at(hash).words);
  if (whole_ && read_ + added.size() <= kMostBytes) {
    FORGE_RETURN_IF_ERROR(AppendToFile(path_, AsBytes(added)));
    read_ += added.size();
  } else {
    FORGE_RETURN_IF_ERROR(Rewrite());
  }
  unsaved_.clear();
  return absl::OkStatus();
}

absl::Status SpirvFile::Rewrite() {
  const auto generation = static_cast<uint64_t>(NowNanoseconds());
  std::string file = title_;
  file.append(reinterpret_cast<const char*>(&generation), sizeof(generation));
  for (const bool used : {true, false})
    for (const auto& [hash, entry] : entries_) {
      const size_t bytes = sizeof(EntryHead) + entry.words.size() * sizeof(uint32_t);
      if (entry.used == used && file.size() + bytes <= kMostBytes / 2)
        AppendEntry(file, generation, hash, entry.words);
    }
  FORGE_RETURN_IF_ERROR(WriteCacheFile(path_, file));
  generation_ = generation;
  read_ = file.size();
  return absl::OkStatus();
}

}  // namespace forge::vk
