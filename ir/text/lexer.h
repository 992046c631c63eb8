// SPDX-License-Identifier: Apache-2.0
// Tokens of the text form.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/number.h"
#include "base/status.h"

namespace forge::ir {

// The value of a hexadecimal digit in either case.
std::optional<uint8_t> HexDigit(char c);

struct Token {
  enum Kind : uint8_t { kEnd, kWord, kNumber, kString, kMark } kind = kEnd;
  std::string_view text;  // as in the source; strings include the quotes
  uint32_t line = 1, column = 1;
};

// A lexer with one token of lookahead. White space and comments ("//" to the end of the line)
// separate tokens. Numbers are digits with an optional fraction and exponent; signs and ".." are
// separate marks. A copy continues at the same place.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) { Advance(); }
  const Token& next() const { return next_; }
  Token Take();
  bool At(std::string_view text) const;  // a word or mark, never a string
  bool TakeIf(std::string_view text);
  // errors: InvalidArgument "3:14: expected ')', found 'foo'"
  absl::Status Expect(std::string_view text);
  absl::Status Error(std::string_view what) const { return ErrorAt(next_, what); }
  static absl::Status ErrorAt(const Token& at, std::string_view what);
  absl::Status Expected(std::string_view what) const;  // "expected WHAT, found 'foo'"

  // Takes a word, or a quoted string, and returns it without quotes and escapes.
  absl::StatusOr<std::string> TakeName(std::string_view what);
  absl::StatusOr<std::string> TakeString(std::string_view what);
  // Takes an integer with an optional sign. negated: a minus sign was already taken
  absl::StatusOr<int64_t> TakeInt(bool negated = false);
  absl::StatusOr<double> TakeDouble();  // also inf and nan
  absl::StatusOr<float> TakeFloat();
  // Takes a 64-bit integer, a double, or a complex number (1.5, -2).
  absl::StatusOr<Number> TakeNumber();

 private:
  void Advance();
  void SkipSpace();
  void Step();  // one character, counting lines
  size_t EndOfNumber() const;
  size_t EndOfString() const;
  template <class T>
  absl::StatusOr<T> TakeReal();

  std::string_view source_;
  size_t at_ = 0;
  uint32_t line_ = 1, column_ = 1;
  Token next_;
};

}  // namespace forge::ir
