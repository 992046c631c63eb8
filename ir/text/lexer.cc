// SPDX-License-Identifier: Apache-2.0
#include "ir/text/lexer.h"

#include <charconv>
#include <limits>

#include "absl/strings/ascii.h"
#include "base/quote.h"

namespace forge::ir {
namespace {

bool IsWordPart(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// What a bad token looks like in a message.
std::string Shown(const Token& t) {
  constexpr size_t kMost = 40;
  if (t.kind == Token::kEnd) return "the end";
  return t.text.size() <= kMost ? fmt::format("'{}'", t.text)
                                : fmt::format("'{}...'", t.text.substr(0, kMost));
}

// The inside of a string literal without its escapes; nullopt when an escape is unknown.
std::optional<std::string> Unescape(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] != '\\') {
      out += s[i];
      continue;
    }
    if (++i == s.size()) return std::nullopt;
    if (s[i] == '"' || s[i] == '\\') {
      out += s[i];
    } else if (s[i] == 'n') {
      out += '\n';
    } else if (s[i] == 't') {
      out += '\t';
    } else if (s[i] == 'x' && s.size() - i > 2 && HexDigit(s[i + 1]) && HexDigit(s[i + 2])) {
      out += static_cast<char>(*HexDigit(s[i + 1]) * 16 + *HexDigit(s[i + 2]));
      i += 2;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace

std::optional<uint8_t> HexDigit(char c) {
  if (absl::ascii_isdigit(c)) return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

void Lexer::Step() {
  if (source_[at_] == '\n') {
    ++line_;
    column_ = 1;
  } else {
    ++column_;
  }
  ++at_;
}

void Lexer::SkipSpace() {
  while (at_ < source_.size()) {
    const char c = source_[at_];
    if (c == '/' && source_.substr(at_, 2) == "//") {
      while (at_ < source_.size() && source_[at_] != '\n') Step();
    } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      Step();
    } else {
      return;
    }
  }
}

size_t Lexer::EndOfNumber() const {
  size_t end = at_;
  const auto digits = [&] {
    while (end < source_.size() && absl::ascii_isdigit(source_[end])) ++end;
  };
  digits();
  if (end + 1 < source_.size() && source_[end] == '.' && absl::ascii_isdigit(source_[end + 1])) {
    ++end;
    digits();
  }
  if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
    size_t exponent = end + 1;
    if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-'))
      ++exponent;
    if (exponent < source_.size() && absl::ascii_isdigit(source_[exponent])) {
      end = exponent;
      digits();
    }
  }
  return end;
}

// Past the closing quote, or at the end of the line or source when there is none.
size_t Lexer::EndOfString() const {
  for (size_t end = at_ + 1; end < source_.size(); ++end) {
    if (source_[end] == '\n') return end;
    if (source_[end] == '"') return end + 1;
    if (source_[end] == '\\') ++end;
  }
  return source_.size();
}

void Lexer::Advance() {
  SkipSpace();
  next_ = Token{Token::kEnd, {}, line_, column_};
  if (at_ == source_.size()) return;
  size_t end = at_ + 1;
  if (absl::ascii_isdigit(source_[at_])) {
    next_.kind = Token::kNumber;
    end = EndOfNumber();
  } else if (IsWordPart(source_[at_])) {
    next_.kind = Token::kWord;
    while (end < source_.size() && IsWordPart(source_[end])) ++end;
  } else if (source_[at_] == '"') {
    next_.kind = Token::kString;
    end = EndOfString();
  } else {
    next_.kind = Token::kMark;
    if (source_.substr(at_, 2) == "..") ++end;
  }
  next_.text = source_.substr(at_, end - at_);
  column_ += static_cast<uint32_t>(end - at_);
  at_ = end;
}

Token Lexer::Take() {
  const Token t = next_;
  Advance();
  return t;
}

bool Lexer::At(std::string_view text) const {
  return (next_.kind == Token::kWord || next_.kind == Token::kMark) && next_.text == text;
}

bool Lexer::TakeIf(std::string_view text) {
  if (!At(text)) return false;
  Advance();
  return true;
}

absl::Status Lexer::ErrorAt(const Token& at, std::string_view what) {
  return InvalidArgument("{}:{}: {}", at.line, at.column, what);
}

absl::Status Lexer::Expected(std::string_view what) const {
  return Error(fmt::format("expected {}, found {}", what, Shown(next_)));
}

absl::Status Lexer::Expect(std::string_view text) {
  return TakeIf(text) ? absl::OkStatus() : Expected(fmt::format("'{}'", text));
}

absl::StatusOr<std::string> Lexer::TakeName(std::string_view what) {
  if (next_.kind == Token::kWord) return std::string(Take().text);
  return TakeString(what);
}

absl::StatusOr<std::string> Lexer::TakeString(std::string_view what) {
  if (next_.kind != Token::kString) return Expected(what);
  const std::string_view text = next_.text;
  if (text.size() < 2 || text.back() != '"') return Error("the string has no end on its line");
  auto out = Unescape(text.substr(1, text.size() - 2));
  if (!out) return Error("the string has an unknown escape");
  Advance();
  return *std::move(out);
}

absl::StatusOr<int64_t> Lexer::TakeInt(bool negated) {
  const Token first = next_;
  const std::string sign = negated || TakeIf("-") ? "-" : "";
  if (next_.kind != Token::kNumber) return Expected("an integer");
  const std::string digits = sign + std::string(next_.text);
  int64_t v = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, v);
  if (error == std::errc::result_out_of_range)
    return ErrorAt(first, fmt::format("{} does not fit 64 bits", digits));
  if (error != std::errc() || rest != end) return Expected("an integer");
  Advance();
  return v;
}

template <class T>
absl::StatusOr<T> Lexer::TakeReal() {
  const T sign = TakeIf("-") ? T(-1) : T(1);
  if (TakeIf("inf")) return sign * std::numeric_limits<T>::infinity();
  if (TakeIf("nan")) return sign * std::numeric_limits<T>::quiet_NaN();
  if (next_.kind != Token::kNumber) return Expected("a number");
  T v = 0;
  const char* end = next_.text.data() + next_.text.size();
  const auto [rest, error] = std::from_chars(next_.text.data(), end, v);
  if (error != std::errc() || rest != end) return Error("the number is out of range");
  Advance();
  return sign * v;
}

absl::StatusOr<double> Lexer::TakeDouble() { return TakeReal<double>(); }
absl::StatusOr<float> Lexer::TakeFloat() { return TakeReal<float>(); }

absl::StatusOr<Number> Lexer::TakeNumber() {
  if (TakeIf("(")) {
    FORGE_ASSIGN_OR_RETURN(const double real, TakeDouble());
    FORGE_RETURN_IF_ERROR(Expect(","));
    FORGE_ASSIGN_OR_RETURN(const double imaginary, TakeDouble());
    FORGE_RETURN_IF_ERROR(Expect(")"));
    return Number(std::complex(real, imaginary));
  }
  Lexer ahead = *this;
  const bool negative = ahead.TakeIf("-");
  const std::string_view digits = ahead.next().text;
  const char* end = digits.data() + digits.size();
  uint64_t magnitude = 0;
  const auto [rest, error] = std::from_chars(digits.data(), end, magnitude);
  constexpr uint64_t kMostNegative = uint64_t{1} << 63;
  const bool exact = error == std::errc() && rest == end &&
                     (!negative || (magnitude != 0 && magnitude <= kMostNegative));
  if (ahead.next().kind != Token::kNumber || !exact) return TakeDouble();
  ahead.Advance();
  *this = ahead;
  return negative ? Number(static_cast<int64_t>(0 - magnitude)) : Number(magnitude);
}

}  // namespace forge::ir
