// SPDX-License-Identifier: Apache-2.0
#include "formats/arrays/npy_text.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace forge {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 32;

bool IsCharacter(uint32_t c) { return c < 0x110000 && (c < 0xd800 || c > 0xdfff); }

void AppendUtf8(std::string& out, uint32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    tail(12), tail(6), tail(0);
  }
}

// The characters of UTF-8; nullopt where it is none.
std::optional<std::vector<uint32_t>> Characters(std::string_view text) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || more >= text.size() - i)
      return std::nullopt;
    uint32_t c = more == 0 ? lead : lead & (0x3fU >> more);
    for (size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<uint8_t>(text[i + k]);
      if ((next & 0xc0) != 0x80) return std::nullopt;
      c = c << 6 | (next & 0x3fU);
    }
    const bool overlong = (more == 2 && c < 0x800) || (more == 3 && c < 0x10000);
    if (overlong || !IsCharacter(c)) return std::nullopt;
    out.push_back(c);
    i += more + 1;
  }
  return out;
}

}  // namespace

absl::StatusOr<ir::HostValue> StringsOfUtf32(std::span<const uint8_t> words, uint64_t characters,
                                             std::span<const int64_t> shape,
                                             std::string_view where) {
  std::vector<std::string> all;
  const uint64_t each = characters * sizeof(uint32_t);
  for (uint64_t at = 0; each != 0 && at + each <= words.size(); at += each) {
    std::string& s = all.emplace_back();
    size_t end = 0;
    for (uint64_t k = 0; k < characters; ++k) {
      uint32_t c = 0;
      std::memcpy(&c, words.data() + at + k * sizeof(c), sizeof(c));
      if (!IsCharacter(c))
        return DataLoss("{}: element {} has {:#x}, no character", where, all.size() - 1, c);
      AppendUtf8(s, c);
      if (c != 0) end = s.size();
    }
    s.resize(end);
  }
  absl::StatusOr<ir::HostValue> value = ir::HostValue::Strings(shape, all);
  if (!value.ok()) return DataLoss("{}: {}", where, Message(value.status()));
  return value;
}

absl::StatusOr<Utf32> Utf32Of(const ir::HostValue& strings) {
  Utf32 out;
  std::vector<std::vector<uint32_t>> all;
  for (int64_t i = 0; i < strings.elements(); ++i) {
    std::optional<std::vector<uint32_t>> text = Characters(strings.string(i));
    if (!text) return InvalidArgument("string {} is no UTF-8", i);
    out.characters = std::max<uint64_t>(out.characters, text->size());
    all.push_back(*std::move(text));
  }
  const uint64_t each = out.characters * sizeof(uint32_t);
  if (all.size() > kMaxBytes / each)
    return ResourceExhausted("{} strings of up to {} characters", all.size(), out.characters);
  out.bytes.resize(all.size() * each);
  for (size_t i = 0; i < all.size(); ++i)
    if (!all[i].empty())
      std::memcpy(out.bytes.data() + i * each, all[i].data(), all[i].size() * sizeof(uint32_t));
  return out;
}

}  // namespace forge
