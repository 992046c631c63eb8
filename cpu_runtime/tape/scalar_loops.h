// SPDX-License-Identifier: Apache-2.0
// One loop over dense elements for each element-wise entry and element type.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>

#include "base/narrow_float.h"
#include "ir/ops/elementwise/elementwise.h"

namespace forge::cpu {

// Elements as loops hold them: narrower floats as f32, bool as bytes 0 and 1, all others as stored.
constexpr DType HeldAs(DType t) {
  constexpr DTypes kNarrow = Bit(DType::kF16) | Bit(DType::kBF16) | kFloat8Types;
  return Has(kNarrow, t) ? DType::kF32 : t;
}

// Applies an entry to n elements of each operand; `out` may be one of the operands.
using ScalarLoop = void (*)(const void* self, const void* const* in, void* out, size_t n);

// The loop of an entry whose last operand is held as `domain`; null where the entry takes none
// such, and for casts, which ConvertLoop() does.
ScalarLoop FindScalarLoop(const ir::ScalarDef& def, DType domain);

// The same by instruction set: vector code for f32, plain loops for the other types.
ScalarLoop VectorLoopF32(int index);
ScalarLoop PlainLoop(int index, DType domain);

// The dtype word of operand k of a signature, references resolved: "a: number; b: =a" gives number.
constexpr std::string_view OperandWord(std::string_view signature, int k) {
  for (; k > 0; --k) signature.remove_prefix(signature.find(';') + 2);
  signature = signature.substr(signature.find(':') + 2);
  return signature.substr(0, signature.find(';'));
}
constexpr std::string_view ResolvedWord(std::string_view signature, int k) {
  const std::string_view word = OperandWord(signature, k);
  if (word[0] != '=') return word;
  for (int i = 0; i < k; ++i) {
    std::string_view rest = signature;
    for (int j = i; j > 0; --j) rest.remove_prefix(rest.find(';') + 2);
    if (rest.substr(0, rest.find(':')) == word.substr(1)) return ResolvedWord(signature, i);
  }
  return {};
}

// What the last operand of an entry may be; it decides how the entry computes.
template <class T>
constexpr std::string_view DomainWord() {
  return ResolvedWord(T::kInfo.inputs, T::kInfo.arity() - 1);
}
// Is `choice` one of the words that a dtype word such as "number|bool" joins?
constexpr bool Offers(std::string_view word, std::string_view choice) {
  for (size_t at = 0; at < word.size();) {
    const size_t end = std::min(word.find('|', at), word.size());
    if (word.substr(at, end - at) == choice) return true;
    at = end + 1;
  }
  return false;
}
template <class T>
constexpr bool TakesFloats() {
  constexpr std::string_view word = DomainWord<T>();
  return Offers(word, "float") || Offers(word, "number") || Offers(word, "any");
}
template <class T>
constexpr bool TakesInts() {
  constexpr std::string_view word = DomainWord<T>();
  return Offers(word, "int") || Offers(word, "number") || Offers(word, "any");
}
template <class T>
constexpr bool TakesBools() {
  constexpr std::string_view word = DomainWord<T>();
  return Offers(word, "bool") || Offers(word, "any");
}
// Is operand k a truth value whatever the domain?
template <class T>
constexpr bool IsTruth(int k) {
  return ResolvedWord(T::kInfo.inputs, k) == "bool";
}
template <class T>
constexpr bool IsCast() {
  return T::kInfo.result == ir::ResultType::kAttribute;
}

}  // namespace forge::cpu
