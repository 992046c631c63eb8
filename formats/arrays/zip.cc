// SPDX-License-Identifier: Apache-2.0
#include "formats/arrays/zip.h"

#include <zip.h>

#include <algorithm>
#include <memory>

#include "formats/untrusted/byte_reader.h"

namespace forge {
namespace {

constexpr zip_uint64_t kFirstRead = 1 << 20;  // bytes

using Archive = std::unique_ptr<zip_t, decltype(&zip_discard)>;

absl::StatusOr<Archive> OpenArchive(const Bytes& file, std::string_view where) {
  // The library takes an empty file for an archive without entries.
  if (file.size() == 0) return DataLoss("{}: damaged archive: the file is empty", where);
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(file.data(), file.size(), 0, &error);
  zip_t* archive = source == nullptr
                       ? nullptr
                       : zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
  const std::string message = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (archive != nullptr) return Archive(archive, &zip_discard);
  zip_source_free(source);  // which an open archive owns
  return DataLoss("{}: damaged archive: {}", where, message);
}

// Refuses what is not read before anything is unpacked.
absl::Status CheckEntry(const zip_stat_t& entry, std::string_view where) {
  constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                   ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((entry.valid & kNeeded) != kNeeded)
    return DataLoss("{}: damaged archive: an entry without name or size", where);
  if (entry.encryption_method != ZIP_EM_NONE)
    return DataLoss("{}: entry '{}' is encrypted", where, entry.name);
  if (entry.comp_method != ZIP_CM_STORE && entry.comp_method != ZIP_CM_DEFLATE)
    return DataLoss("{}: entry '{}' is compressed by method {}, not deflate", where, entry.name,
                    entry.comp_method);
  if (entry.size / kMaxExpansion > entry.comp_size)
    return DataLoss("{}: entry '{}' declares {} bytes, more than {} compressed bytes can hold",
                    where, entry.name, entry.size, entry.comp_size);
  return absl::OkStatus();
}

absl::StatusOr<Bytes> ReadEntry(zip_t* archive, zip_uint64_t index, const zip_stat_t& entry,
                                std::string_view where) {
  const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> in(zip_fopen_index(archive, index, 0),
                                                              &zip_fclose);
  if (in == nullptr)
    return DataLoss("{}: entry '{}' is damaged: {}", where, entry.name, zip_strerror(archive));
  std::vector<uint8_t> out;
  zip_uint64_t filled = 0;
  for (;;) {
    // One byte more than the entry claims, so that the library reaches its end and its checksum.
    if (filled == out.size()) out.resize(std::min(entry.size + 1, 2 * filled + kFirstRead));
    const zip_int64_t got = zip_fread(in.get(), out.data() + filled, out.size() - filled);
    if (got < 0)
      return DataLoss("{}: entry '{}' is damaged at its byte {}: {}", where, entry.name, filled,
                      zip_file_strerror(in.get()));
    if (got == 0) break;
    filled += static_cast<zip_uint64_t>(got);
    if (filled > entry.size) break;
  }
  if (filled != entry.size)
    return DataLoss("{}: entry '{}' is damaged: it has {} bytes or more, not {}", where, entry.name,
                    filled, entry.size);
  out.resize(filled);
  return Bytes(std::move(out));
}

}  // namespace

absl::StatusOr<std::vector<ZipEntry>> ReadZip(const Bytes& file, std::string_view where) {
  FORGE_ASSIGN_OR_RETURN(const Archive archive, OpenArchive(file, where));
  const auto entries = static_cast<zip_uint64_t>(zip_get_num_entries(archive.get(), 0));
  std::vector<ZipEntry> out;
  uint64_t packed = 0;
  for (zip_uint64_t i = 0; i < entries; ++i) {
    zip_stat_t entry;
    if (zip_stat_index(archive.get(), i, 0, &entry) != 0)
      return DataLoss("{}: damaged archive: {}", where, zip_strerror(archive.get()));
    FORGE_RETURN_IF_ERROR(CheckEntry(entry, where));
    if (std::string_view(entry.name).ends_with('/')) continue;
    // Entries that overlap could claim more than the file holds.
    if (entry.comp_size > file.size() - packed)
      return DataLoss("{}: entry '{}' lies outside the file or inside another", where, entry.name);
    packed += entry.comp_size;
    FORGE_ASSIGN_OR_RETURN(Bytes content, ReadEntry(archive.get(), i, entry, where));
    out.push_back({entry.name, std::move(content)});
  }
  return out;
}

}  // namespace forge
