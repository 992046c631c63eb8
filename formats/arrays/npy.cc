// SPDX-License-Identifier: Apache-2.0
#include "formats/arrays/npy.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/platform.h"
#include "formats/arrays/npy_text.h"
#include "formats/arrays/zip.h"
#include "formats/untrusted/byte_reader.h"

namespace forge {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kMaxHeader = 1 << 16;  // NumPy itself stops at 10,000
constexpr size_t kMaxRank = 64;           // as NumPy 2

struct NpyType {
  std::string_view code;  // kind and bytes, as in 'descr' after the byte order
  DType dtype;
};
constexpr NpyType kTypes[] = {{"b1", DType::kBool}, {"u1", DType::kU8},   {"u2", DType::kU16},
                              {"u4", DType::kU32},  {"u8", DType::kU64},  {"i1", DType::kI8},
                              {"i2", DType::kI16},  {"i4", DType::kI32},  {"i8", DType::kI64},
                              {"f2", DType::kF16},  {"f4", DType::kF32},  {"f8", DType::kF64},
                              {"c8", DType::kC64},  {"c16", DType::kC128}};

struct Header {
  DType dtype = DType::kF32;
  bool big_endian = false, fortran = false;
  uint64_t characters = 0;  // of a string
  std::vector<int64_t> shape;
};

// The header is a Python dictionary literal of three keys; nothing else of Python is read.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, uint64_t begin, std::string_view where)
      : text_(text), begin_(begin), where_(where) {}

  absl::StatusOr<Header> Parse() {
    Header h;
    FORGE_RETURN_IF_ERROR(Expect('{'));
    while (!Take('}')) {
      FORGE_ASSIGN_OR_RETURN(const std::string_view key, Quoted());
      FORGE_RETURN_IF_ERROR(Expect(':'));
      FORGE_RETURN_IF_ERROR(ParseEntry(key, h));
      if (!Take(',')) {
        FORGE_RETURN_IF_ERROR(Expect('}'));
        break;
      }
    }
    if (found_ != 7) return Bad("descr, fortran_order or shape is missing");
    return h;
  }

 private:
  absl::Status Bad(std::string_view what) const {
    return DataLoss("{}: .npy header at byte {}: {}", where_, begin_ + at_, what);
  }
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  absl::Status Expect(char c) {
    return Take(c) ? absl::OkStatus() : Bad(fmt::format("expected '{}'", c));
  }
  bool TakeWord(std::string_view word) {
    SkipSpace();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  absl::StatusOr<std::string_view> Quoted() {
    const char quote = Take('\'') ? '\'' : Take('"') ? '"' : '\0';
    if (quote == '\0') return Bad("expected a string");
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) return Bad("string without end");
    const std::string_view out = text_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  absl::Status ParseEntry(std::string_view key, Header& h) {
    const unsigned bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
    if (bit == 0 || (found_ & bit) != 0) return Bad(fmt::format("unexpected key '{}'", key));
    found_ |= bit;
    if (bit == 1) return ParseType(h);
    if (bit == 4) return ParseShape(h);
    h.fortran = TakeWord("True");
    return h.fortran || TakeWord("False") ? absl::OkStatus() : Bad("expected True or False");
  }

  absl::Status ParseType(Header& h) {
    SkipSpace();
    if (text_.substr(at_).starts_with('[')) return Bad("structured arrays are not read");
    FORGE_ASSIGN_OR_RETURN(std::string_view descr, Quoted());
    const std::string_view whole = descr;
    if (!descr.empty() && std::string_view("<>=|").find(descr[0]) != std::string_view::npos) {
      h.big_endian = descr[0] == '>';
      descr.remove_prefix(1);
    }
    if (descr.starts_with('U')) {
      constexpr uint64_t kMost = uint64_t{1} << 24;
      const auto [end, error] =
          std::from_chars(descr.data() + 1, descr.data() + descr.size(), h.characters);
      h.dtype = DType::kString;
      if (error == std::errc() && end == descr.data() + descr.size() && h.characters <= kMost)
        return absl::OkStatus();
    }
    const auto* type = std::ranges::find(kTypes, descr, &NpyType::code);
    if (type == std::end(kTypes)) return Bad(fmt::format("element type '{}' is not read", whole));
    h.dtype = type->dtype;
    return absl::OkStatus();
  }

  absl::Status ParseShape(Header& h) {
    FORGE_RETURN_IF_ERROR(Expect('('));
    while (!Take(')')) {
      FORGE_ASSIGN_OR_RETURN(const int64_t extent, Number());
      if (h.shape.size() == kMaxRank) return Bad("more than 64 dimensions");
      h.shape.push_back(extent);
      if (Take(',')) continue;
      FORGE_RETURN_IF_ERROR(Expect(')'));
      break;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Number() {
    SkipSpace();
    int64_t value = 0;
    const size_t begin = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value))
        return Bad("dimension exceeds 64 bits");
    }
    if (at_ == begin) return Bad("expected a dimension");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote longs so
    return value;
  }

  std::string_view text_;
  uint64_t begin_;
  std::string_view where_;
  size_t at_ = 0;
  unsigned found_ = 0;
};

// Bytes of one number, complex halves and characters apart: the unit of byte order.
uint64_t NumberBytes(DType t) {
  if (t == DType::kString) return sizeof(uint32_t);
  const auto bytes = static_cast<uint64_t>(BitWidth(t) / 8);
  return Has(kComplexTypes, t) ? bytes / 2 : bytes;
}

std::vector<uint8_t> SwappedBytes(std::span<const uint8_t> in, uint64_t number) {
  std::vector<uint8_t> out(in.size());
  for (uint64_t i = 0; i < in.size(); i += number)
    std::reverse_copy(in.begin() + i, in.begin() + i + number, out.begin() + i);
  return out;
}

// Elements of the reversed shape in row-major order, put into row-major order of `shape`.
std::vector<uint8_t> RowMajorOfFortran(std::span<const uint8_t> in, std::span<const int64_t> shape,
                                       uint64_t element) {
  std::vector<uint8_t> out(in.size());
  std::vector<uint64_t> stride(shape.size()), index(shape.size());
  for (uint64_t axis = 0, step = element; axis < shape.size(); ++axis) {
    stride[axis] = step;
    step *= static_cast<uint64_t>(shape[axis]);
  }
  uint64_t from = 0;
  for (uint64_t to = 0; to < out.size(); to += element) {
    std::copy_n(in.begin() + from, element, out.begin() + to);
    for (size_t axis = shape.size(); axis-- > 0;) {
      from += stride[axis];
      if (++index[axis] < static_cast<uint64_t>(shape[axis])) break;
      from -= stride[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return out;
}

absl::StatusOr<uint64_t> ElementCount(std::span<const int64_t> shape, std::string_view where) {
  uint64_t n = 1;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(n, static_cast<uint64_t>(extent), &n))
      return DataLoss("{}: the product of its dimensions exceeds 64 bits", where);
  return n;
}

std::optional<uint64_t> SizeOf(uint64_t element, uint64_t elements) {
  uint64_t size = 0;
  if (__builtin_mul_overflow(element, elements, &size)) return std::nullopt;
  return size;
}

struct HeaderAt {
  std::string_view text;
  uint64_t begin, data;
};

absl::StatusOr<HeaderAt> LocateHeader(const Bytes& file, std::string_view where) {
  const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
  if (!all.starts_with(kMagic)) return DataLoss("{}: not a .npy file: wrong magic", where);
  const std::optional<uint8_t> major = ReadAt<uint8_t>(file.span(), 6);
  if (!major || *major < 1 || *major > 3)
    return DataLoss("{}: .npy version {} is not 1, 2 or 3", where, major.value_or(0));
  const bool wide = *major > 1;
  std::optional<uint32_t> size = ReadAt<uint16_t>(file.span(), 8);
  if (wide) size = ReadAt<uint32_t>(file.span(), 8);
  const uint64_t begin = wide ? 12 : 10;
  if (!size || *size > kMaxHeader || !Inside(begin, *size, file.size()))
    return DataLoss("{}: the .npy header at byte {} is too long or truncated", where, begin);
  return HeaderAt{all.substr(begin, *size), begin, begin + *size};
}

absl::Status CheckBools(std::span<const uint8_t> bytes, std::string_view where) {
  const auto bad = std::ranges::find_if(bytes, [](uint8_t b) { return b > 1; });
  if (bad == bytes.end()) return absl::OkStatus();
  return DataLoss("{}: element {} is {}, not a bool", where, bad - bytes.begin(), *bad);
}

// The unsigned type of one element in the file of a type that NumPy lacks; nothing for the others.
std::optional<DType> CarrierOf(DType t) {
  if (std::ranges::find(kTypes, t, &NpyType::dtype) != std::end(kTypes)) return std::nullopt;
  return BitWidth(t) > 8 ? DType::kU16 : DType::kU8;
}

// Sub-byte elements: the first in the low bits.
std::vector<uint8_t> Unpack(std::span<const uint8_t> packed, int64_t elements, int bits) {
  std::vector<uint8_t> out(static_cast<size_t>(elements));
  const size_t per_byte = static_cast<size_t>(8 / bits);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = (packed[i / per_byte] >> (i % per_byte * bits)) & ((1 << bits) - 1);
  return out;
}

absl::StatusOr<std::vector<uint8_t>> Pack(std::span<const uint8_t> in, int bits,
                                          std::string_view where) {
  const size_t per_byte = static_cast<size_t>(8 / bits);
  std::vector<uint8_t> out((in.size() + per_byte - 1) / per_byte);
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] >> bits != 0)
      return DataLoss("{}: element {} is {}, which exceeds {} bits", where, i, in[i], bits);
    out[i / per_byte] |= in[i] << (i % per_byte * bits);
  }
  return out;
}

std::filesystem::path DescriptionOf(std::filesystem::path npy) {
  return npy.replace_extension(".json");
}

// The element type that the file beside a .npy names; nothing when there is no such file or it is
// about something else.
absl::StatusOr<std::optional<DType>> DescribedType(const std::filesystem::path& npy) {
  const std::filesystem::path path = DescriptionOf(npy);
  absl::StatusOr<Bytes> file = MapFile(path);
  if (!file.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(file->data(), file->data() + file->size(), nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string())
    return std::nullopt;
  const auto name = json["dtype"].get<std::string>();
  const std::optional<DType> dtype = ParseDType(name);
  if (!dtype || !CarrierOf(*dtype) || BitWidth(*dtype) == 0)
    return DataLoss("{}: dtype '{}' cannot be stored as raw elements", path.string(), name);
  return dtype;
}

absl::StatusOr<ir::HostValue> Reinterpret(const ir::HostValue& raw, DType dtype,
                                          std::string_view where) {
  if (CarrierOf(dtype) != raw.dtype())
    return DataLoss("{}: elements of {} cannot represent raw {}", where, Name(raw.dtype()),
                    Name(dtype));
  Bytes bytes = raw.shared_bytes();
  if (const int bits = BitWidth(dtype); bits < 8) {
    FORGE_ASSIGN_OR_RETURN(std::vector<uint8_t> packed, Pack(raw.bytes(), bits, where));
    bytes = Bytes(std::move(packed));
  }
  return ir::HostValue::Of(dtype, raw.shape(), std::move(bytes));
}

std::string CodeOf(DType dtype) {
  const auto* type = std::ranges::find(kTypes, dtype, &NpyType::dtype);
  return fmt::format("{}{}", NumberBytes(dtype) > 1 ? '<' : '|', type->code);
}

// code: "<f4"
std::string HeaderText(std::string_view code, std::span<const int64_t> shape) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", code);
  for (int64_t extent : shape) text += fmt::format("{}, ", extent);
  if (shape.size() > 1) text.resize(text.size() - 2);
  if (shape.size() == 1) text.resize(text.size() - 1);
  text += "), }";
  // The data begins at a multiple of 64 bytes, after a line end.
  text.append(63 - (10 + text.size()) % 64, ' ');
  return text + '\n';
}

std::string DescriptionText(DType dtype) {
  return nlohmann::json{{"dtype", Name(dtype)}}.dump() + '\n';
}

// Removes what an earlier value of a narrow type left beside the file.
absl::Status RemoveDescription(const std::filesystem::path& npy) {
  const absl::StatusOr<std::optional<DType>> stale = DescribedType(npy);
  if (!stale.ok() || !stale->has_value()) return absl::OkStatus();
  const std::filesystem::path path = DescriptionOf(npy);
  std::error_code error;
  std::filesystem::remove(path, error);
  return error ? Internal("{}: cannot remove: {}", path.string(), error.message())
               : absl::OkStatus();
}

}  // namespace

absl::StatusOr<ir::HostValue> ParseNpy(const Bytes& file, std::string_view where) {
  FORGE_ASSIGN_OR_RETURN(const HeaderAt at, LocateHeader(file, where));
  FORGE_ASSIGN_OR_RETURN(const Header h, HeaderParser(at.text, at.begin, where).Parse());
  FORGE_ASSIGN_OR_RETURN(const uint64_t elements, ElementCount(h.shape, where));
  const bool text = h.dtype == DType::kString;
  const uint64_t element = text ? h.characters * NumberBytes(h.dtype) : BitWidth(h.dtype) / 8;
  const std::optional<uint64_t> size = SizeOf(element, elements);
  if (!size || *size != file.size() - at.data)
    return DataLoss("{}: {} elements of {} do not match the {} bytes from byte {}", where, elements,
                    Name(h.dtype), file.size() - at.data, at.data);
  Bytes bytes = file.Part(at.data, *size);
  if (h.dtype == DType::kBool) FORGE_RETURN_IF_ERROR(CheckBools(bytes.span(), where));
  const uint64_t number = NumberBytes(h.dtype);
  if (h.big_endian && number > 1) bytes = Bytes(SwappedBytes(bytes.span(), number));
  if (h.fortran && h.shape.size() > 1)
    bytes = Bytes(RowMajorOfFortran(bytes.span(), h.shape, std::max<uint64_t>(element, 1)));
  if (text) return StringsOfUtf32(bytes.span(), h.characters, h.shape, where);
  return ir::HostValue::Of(h.dtype, h.shape, std::move(bytes));
}

absl::StatusOr<ir::HostValue> ReadNpy(const std::filesystem::path& path) {
  FORGE_ASSIGN_OR_RETURN(const Bytes file, MapFile(path));
  const std::string where = path.string();
  FORGE_ASSIGN_OR_RETURN(ir::HostValue value, ParseNpy(file, where));
  if (value.dtype() != DType::kU8 && value.dtype() != DType::kU16) return value;
  FORGE_ASSIGN_OR_RETURN(const std::optional<DType> described, DescribedType(path));
  if (!described) return value;
  return Reinterpret(value, *described, where);
}

absl::Status WriteNpy(const std::filesystem::path& path, const ir::HostValue& value) {
  if (!value.is_tensor())
    return InvalidArgument("{}: {} cannot be written as .npy", path.string(),
                           value.type().ToText());
  std::vector<uint8_t> converted;
  std::string code;
  if (value.dtype() == DType::kString) {
    absl::StatusOr<Utf32> words = Utf32Of(value);
    if (!words.ok()) return Annotate(words.status(), path.string());
    converted = std::move(words->bytes);
    code = fmt::format("<U{}", words->characters);
  } else {
    const int bits = BitWidth(value.dtype());
    if (bits < 8) converted = Unpack(value.bytes(), value.elements(), bits);
    code = CodeOf(CarrierOf(value.dtype()).value_or(value.dtype()));
  }
  const std::string text = HeaderText(code, value.shape());
  std::vector<uint8_t> header(kMagic.begin(), kMagic.end());
  header.insert(header.end(),
                {1, 0, static_cast<uint8_t>(text.size()), static_cast<uint8_t>(text.size() >> 8)});
  header.insert(header.end(), text.begin(), text.end());
  const bool as_is = converted.empty() && value.dtype() != DType::kString;
  std::vector<FileContent> files = {
      {path, {header, as_is ? value.bytes() : std::span<const uint8_t>(converted)}}};
  const std::string description = DescriptionText(value.dtype());
  if (value.dtype() != DType::kString && CarrierOf(value.dtype())) {
    files.push_back({DescriptionOf(path), {AsBytes(description)}});
  } else {
    FORGE_RETURN_IF_ERROR(RemoveDescription(path));
  }
  return WriteFiles(files);
}

absl::StatusOr<NamedValues> ParseNpz(const Bytes& file, std::string_view where) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<ZipEntry> entries, ReadZip(file, where));
  NamedValues out;
  for (const ZipEntry& entry : entries) {
    const std::string place = fmt::format("{}: entry '{}'", where, entry.name);
    FORGE_ASSIGN_OR_RETURN(ir::HostValue value, ParseNpy(entry.content, place));
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    out.emplace_back(std::move(name), std::move(value));
  }
  return out;
}

absl::StatusOr<NamedValues> ReadNpz(const std::filesystem::path& path) {
  FORGE_ASSIGN_OR_RETURN(const Bytes file, MapFile(path));
  return ParseNpz(file, path.string());
}

}  // namespace forge
