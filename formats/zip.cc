// SPDX-License-Identifier: Apache-2.0
#include "formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "formats/byte_reader.h"

namespace forge {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kLocatorSize = 20,
                   kMaxComment = 65535;

struct Directory {
  uint64_t entries, size, offset;
};

struct Record {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t checksum = 0;
  uint64_t packed = 0, size = 0, local = 0;
};

class Reader {
 public:
  Reader(const Bytes& file, std::string_view where) : file_(file), where_(where) {}
  absl::StatusOr<std::vector<ZipEntry>> Read();

 private:
  template <class T>
  T At(uint64_t offset) const {  // 0 outside, which no signature is
    return ReadAt<T>(file_.span(), offset).value_or(0);
  }
  absl::Status Damaged(std::string_view what, uint64_t offset) const {
    return DataLoss("{}: damaged archive: {} at byte {}", where_, what, offset);
  }
  absl::StatusOr<Directory> FindDirectory() const;
  absl::StatusOr<Directory> ReadEnd64(uint64_t end) const;
  absl::StatusOr<Record> ReadRecord(uint64_t& at, uint64_t end) const;
  absl::Status WidenSizes(Record& r, uint64_t extra, uint64_t end) const;
  absl::StatusOr<Bytes> Content(const Record& r);
  absl::StatusOr<Bytes> Inflate(const Record& r, std::span<const uint8_t> packed) const;

  const Bytes& file_;
  std::string_view where_;
  uint64_t packed_total_ = 0;
};

absl::StatusOr<Directory> Reader::FindDirectory() const {
  if (file_.size() < kEndSize) return Damaged("no end record", file_.size());
  const uint64_t last = file_.size() - kEndSize;
  const uint64_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    if (At<uint32_t>(at) != kEnd || At<uint16_t>(at + 20) > file_.size() - at - kEndSize) continue;
    const Directory d{At<uint16_t>(at + 10), At<uint32_t>(at + 12), At<uint32_t>(at + 16)};
    if (d.entries == UINT16_MAX || d.size == UINT32_MAX || d.offset == UINT32_MAX)
      return ReadEnd64(at);
    if (At<uint16_t>(at + 4) != 0 || At<uint16_t>(at + 8) != d.entries)
      return Damaged("split over several files", at);
    if (!Inside(d.offset, d.size, at)) return Damaged("directory outside the file", at);
    return d;
  }
  return Damaged("no end record", file_.size());
}

absl::StatusOr<Directory> Reader::ReadEnd64(uint64_t end) const {
  if (end < kLocatorSize || At<uint32_t>(end - kLocatorSize) != kEnd64Locator)
    return Damaged("no ZIP64 locator", end);
  const uint64_t at = At<uint64_t>(end - kLocatorSize + 8);
  if (!Inside(at, 56, end) || At<uint32_t>(at) != kEnd64) return Damaged("no ZIP64 end record", at);
  const Directory d{At<uint64_t>(at + 32), At<uint64_t>(at + 40), At<uint64_t>(at + 48)};
  if (At<uint32_t>(at + 16) != 0 || At<uint64_t>(at + 24) != d.entries)
    return Damaged("split over several files", at);
  if (!Inside(d.offset, d.size, at)) return Damaged("directory outside the file", at);
  return d;
}

// Sizes that do not fit 32 bits stand in the extra field of kind 1, in this order.
absl::Status Reader::WidenSizes(Record& r, uint64_t extra, uint64_t end) const {
  while (extra + 4 <= end) {
    const uint64_t kind = At<uint16_t>(extra), size = At<uint16_t>(extra + 2);
    if (size > end - extra - 4) return Damaged("extra field outside its record", extra);
    uint64_t at = extra + 4;
    extra = at + size;
    if (kind != 1) continue;
    for (uint64_t* field : {&r.size, &r.packed, &r.local}) {
      if (*field != UINT32_MAX) continue;
      if (at + 8 > extra) return Damaged("short ZIP64 field", at);
      *field = At<uint64_t>(at);
      at += 8;
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::StatusOr<Record> Reader::ReadRecord(uint64_t& at, uint64_t end) const {
  if (end - at < kCentralSize || At<uint32_t>(at) != kCentralHeader)
    return Damaged("no directory record", at);
  Record r;
  r.flags = At<uint16_t>(at + 8);
  r.method = At<uint16_t>(at + 10);
  r.checksum = At<uint32_t>(at + 16);
  r.packed = At<uint32_t>(at + 20);
  r.size = At<uint32_t>(at + 24);
  r.local = At<uint32_t>(at + 42);
  const uint64_t name = At<uint16_t>(at + 28), extra = At<uint16_t>(at + 30),
                 comment = At<uint16_t>(at + 32);
  if (name + extra + comment > end - at - kCentralSize)
    return Damaged("directory record too long", at);
  const uint64_t begin = at + kCentralSize;
  r.name.assign(reinterpret_cast<const char*>(file_.data()) + begin, name);
  FORGE_RETURN_IF_ERROR(WidenSizes(r, begin + name, begin + name + extra));
  at = begin + name + extra + comment;
  return r;
}

absl::StatusOr<Bytes> Reader::Inflate(const Record& r, std::span<const uint8_t> packed) const {
  if (r.size / kMaxExpansion > packed.size())
    return DataLoss("{}: entry '{}' claims {} bytes out of {}", where_, r.name, r.size,
                    packed.size());
  std::vector<uint8_t> out;
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return ResourceExhausted("{}: zlib has no memory", where_);
  // zlib counts in 32 bits: longer entries go through in pieces.
  constexpr uint64_t kPiece = std::numeric_limits<uInt>::max();
  uint64_t read = 0, written = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    // Grown as it fills, so that memory follows what is there and not what is claimed.
    if (written == out.size()) out.resize(std::min(r.size, 2 * written + (1 << 20)));
    stream.next_in = const_cast<Bytef*>(packed.data() + read);
    stream.avail_in = static_cast<uInt>(std::min(kPiece, packed.size() - read));
    stream.next_out = out.data() + written;
    stream.avail_out = static_cast<uInt>(std::min(kPiece, out.size() - written));
    result = inflate(&stream, Z_NO_FLUSH);
    read = static_cast<uint64_t>(stream.next_in - packed.data());
    written = static_cast<uint64_t>(stream.next_out - out.data());
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END || written != r.size || read != packed.size())
    return DataLoss("{}: entry '{}' is damaged at its byte {}", where_, r.name, read);
  return Bytes(std::move(out));
}

absl::StatusOr<Bytes> Reader::Content(const Record& r) {
  if ((r.flags & 1) != 0) return DataLoss("{}: entry '{}' is encrypted", where_, r.name);
  if (r.method != 0 && r.method != Z_DEFLATED)
    return DataLoss("{}: entry '{}' is compressed by method {}, not deflate", where_, r.name,
                    r.method);
  if (!Inside(r.local, kLocalSize, file_.size()) || At<uint32_t>(r.local) != kLocalHeader)
    return Damaged("no entry header", r.local);
  const uint64_t begin =
      r.local + kLocalSize + At<uint16_t>(r.local + 26) + At<uint16_t>(r.local + 28);
  // Entries that overlap could claim more than the file holds.
  if (!Inside(begin, r.packed, file_.size()) || r.packed > file_.size() - packed_total_)
    return Damaged("entry outside the file", r.local);
  packed_total_ += r.packed;
  Bytes content = file_.Part(begin, r.packed);
  if (r.method == Z_DEFLATED) {
    FORGE_ASSIGN_OR_RETURN(content, Inflate(r, content.span()));
  } else if (r.size != r.packed) {
    return Damaged("stored entry of two sizes", r.local);
  }
  if (crc32_z(0, content.data(), content.size()) != r.checksum)
    return DataLoss("{}: entry '{}' does not match its checksum", where_, r.name);
  return content;
}

absl::StatusOr<std::vector<ZipEntry>> Reader::Read() {
  FORGE_ASSIGN_OR_RETURN(const Directory d, FindDirectory());
  if (d.entries > d.size / kCentralSize) return Damaged("too many entries", d.offset);
  std::vector<ZipEntry> out;
  uint64_t at = d.offset;
  for (uint64_t i = 0; i < d.entries; ++i) {
    FORGE_ASSIGN_OR_RETURN(const Record r, ReadRecord(at, d.offset + d.size));
    if (r.name.ends_with('/')) continue;
    FORGE_ASSIGN_OR_RETURN(Bytes content, Content(r));
    out.push_back({r.name, std::move(content)});
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<ZipEntry>> ReadZip(const Bytes& file, std::string_view where) {
  return Reader(file, where).Read();
}

}  // namespace forge
