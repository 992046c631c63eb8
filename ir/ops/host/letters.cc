// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/host/letters.h"

namespace forge::ir {
namespace {

// Upper-case letters first .. last whose lower case lies `distance` behind; with a step of 2 each
// second character is one.
struct Letters {
  uint32_t first, last, distance, step;
};
constexpr Letters kLetters[] = {
    {0x41, 0x5a, 32, 1},   {0xc0, 0xd6, 32, 1},   {0xd8, 0xde, 32, 1},   {0x100, 0x12e, 1, 2},
    {0x132, 0x136, 1, 2},  {0x139, 0x147, 1, 2},  {0x14a, 0x176, 1, 2},  {0x179, 0x17d, 1, 2},
    {0x391, 0x3a1, 32, 1}, {0x3a3, 0x3a9, 32, 1}, {0x400, 0x40f, 80, 1}, {0x410, 0x42f, 32, 1},
    {0x460, 0x480, 1, 2},  {0x48a, 0x4be, 1, 2},  {0x4d0, 0x52e, 1, 2},
};

uint32_t Mapped(uint32_t c, LetterCase to) {
  constexpr uint32_t kFinalSigma = 0x3c2, kSigma = 0x3a3, kUpperY = 0x178, kLowerY = 0xff;
  if (to == LetterCase::kUpper && c == kFinalSigma) return kSigma;
  if (c == kUpperY && to == LetterCase::kLower) return kLowerY;
  if (c == kLowerY && to == LetterCase::kUpper) return kUpperY;
  for (const Letters& l : kLetters) {
    const uint32_t upper = to == LetterCase::kLower ? c : c - l.distance;
    if (upper < l.first || upper > l.last || (upper - l.first) % l.step != 0) continue;
    return to == LetterCase::kLower ? c + l.distance : upper;
  }
  return c;
}

// All letters that have a case take one byte or two.
void Append(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  out += static_cast<char>(0xc0 | (c >> 6));
  out += static_cast<char>(0x80 | (c & 0x3f));
}

}  // namespace

std::string WithLetters(std::string_view text, LetterCase to) {
  if (to == LetterCase::kAsIs) return std::string(text);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<uint8_t>(text[i + 1]) : 0;
    if (byte < 0x80) {
      Append(out, Mapped(byte, to));
    } else if (byte >= 0xc2 && byte < 0xe0 && (next & 0xc0) == 0x80) {
      Append(out, Mapped((byte & 0x1fU) << 6 | (next & 0x3fU), to));
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace forge::ir
