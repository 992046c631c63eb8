// SPDX-License-Identifier: Apache-2.0
// The tokens of PTX.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace forge::ptx {

struct Token {
  enum class Kind { kEnd, kName, kDirective, kInteger, kFloat32, kFloat64, kString, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string_view text;  // of a directive: without its dot
  uint64_t bits = 0;      // of a number
  int line = 0;
  bool Is(char c) const { return kind == Kind::kPunctuation && text[0] == c; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  // Returns the next token; kEnd from the end on.
  absl::StatusOr<Token> Next();

 private:
  char At(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  absl::Status SkipSpace();
  absl::StatusOr<Token> Number();
  absl::StatusOr<Token> Decimal(Token t);
  Token Take(Token::Kind kind, size_t bytes);

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace forge::ptx
