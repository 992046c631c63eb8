// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/text/lexer.h"

#include <bit>
#include <charconv>

namespace forge::ptx {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsName(char c) { return IsAlpha(c) || IsDigit(c) || c == '_' || c == '$'; }

}  // namespace

absl::Status Lexer::SkipSpace() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      ++at_;
    } else if (c == '/' && At(at_ + 1) == '/') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '/' && At(at_ + 1) == '*') {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos)
        return InvalidArgument("line {}: the comment does not end", line_);
      for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
    } else {
      break;
    }
  }
  return absl::OkStatus();
}

Token Lexer::Take(Token::Kind kind, size_t bytes) {
  Token t{.kind = kind, .text = text_.substr(at_, bytes), .bits = 0, .line = line_};
  at_ += bytes;
  return t;
}

absl::StatusOr<Token> Lexer::Decimal(Token t) {
  size_t end = at_;
  while (IsDigit(At(end)) || At(end) == '.' || At(end) == 'e' || At(end) == 'E' ||
         ((At(end) == '+' || At(end) == '-') && (At(end - 1) == 'e' || At(end - 1) == 'E')))
    ++end;
  double value = 0;
  const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + end, value);
  if (error != std::errc() || stop != text_.data() + end)
    return InvalidArgument("line {}: {} is no number", line_, text_.substr(at_, end - at_));
  t = Take(Token::Kind::kFloat64, end - at_);
  t.bits = std::bit_cast<uint64_t>(value);
  return t;
}

absl::StatusOr<Token> Lexer::Number() {
  const char second = At(at_ + 1);
  const bool zero = text_[at_] == '0';
  int base = 10;
  size_t start = at_;
  Token::Kind kind = Token::Kind::kInteger;
  if (zero && (second == 'x' || second == 'X')) base = 16, start += 2;
  if (zero && (second == 'f' || second == 'F')) base = 16, start += 2, kind = Token::Kind::kFloat32;
  if (zero && (second == 'd' || second == 'D')) base = 16, start += 2, kind = Token::Kind::kFloat64;
  if (zero && (second == 'b' || second == 'B')) base = 2, start += 2;
  if (base == 10) {
    size_t end = at_;
    while (IsDigit(At(end))) ++end;
    if (At(end) == '.' || At(end) == 'e' || At(end) == 'E') return Decimal({});
    if (zero && end > at_ + 1) base = 8;
  }
  uint64_t bits = 0;
  const auto [stop, error] =
      std::from_chars(text_.data() + start, text_.data() + text_.size(), bits, base);
  const size_t digits = stop - text_.data() - start;
  const bool whole =
      kind == Token::Kind::kInteger || digits == (kind == Token::Kind::kFloat32 ? 8u : 16u);
  if (error != std::errc() || !whole)
    return InvalidArgument("line {}: a number is malformed or too large", line_);
  Token t = Take(kind, start + digits - at_);
  t.bits = bits;
  if (kind == Token::Kind::kInteger && At(at_) == 'U') ++at_;
  return t;
}

absl::StatusOr<Token> Lexer::Next() {
  FORGE_RETURN_IF_ERROR(SkipSpace());
  if (at_ >= text_.size()) return Token{.kind = Token::Kind::kEnd, .text = "", .line = line_};
  const char c = text_[at_];
  if (IsDigit(c)) return Number();
  if (c == '"') {
    const size_t end = text_.find_first_of("\"\n", at_ + 1);
    if (end == std::string_view::npos || text_[end] == '\n')
      return InvalidArgument("line {}: the string does not end", line_);
    return Take(Token::Kind::kString, end + 1 - at_);
  }
  size_t end = at_ + 1;
  if (c == '.' && IsName(At(end))) {
    while (IsName(At(end)) || (At(end) == ':' && At(end + 1) == ':' && IsName(At(end + 2)))) {
      end += At(end) == ':' ? 2 : 1;
    }
    Token t = Take(Token::Kind::kDirective, end - at_);
    t.text.remove_prefix(1);
    return t;
  }
  if (IsAlpha(c) || c == '_' || c == '$' || (c == '%' && IsName(At(end)))) {
    while (IsName(At(end))) ++end;
    return Take(Token::Kind::kName, end - at_);
  }
  return Take(Token::Kind::kPunctuation, 1);
}

}  // namespace forge::ptx
