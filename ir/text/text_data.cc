// SPDX-License-Identifier: Apache-2.0
#include "ir/text/text_data.h"

#include <algorithm>

#include "base/narrow_float.h"
#include "ir/type/host_value.h"

namespace forge::ir {
namespace {

constexpr int64_t kMaxTextElements = int64_t{1} << 20;  // more belong into a blob

// Numbers of a tensor; a complex one counts twice.
struct Numbers {
  DType dtype;
  int64_t count;
};

Numbers NumbersOf(DType dtype, int64_t elements) {
  if (dtype == DType::kC64) return {DType::kF32, elements * 2};
  if (dtype == DType::kC128) return {DType::kF64, elements * 2};
  return {dtype, elements};
}

std::string NumberText(const HostValue& v, int64_t i) {
  if (v.dtype() == DType::kBool) return v.i64(i) != 0 ? "true" : "false";
  if (v.dtype() == DType::kF64) return fmt::format("{}", v.f64(i));
  if (v.dtype() == DType::kF32 || IsNarrowFloat(v.dtype()))
    return fmt::format("{}", static_cast<float>(v.f64(i)));
  return fmt::format("{}", v.i64(i));
}

absl::Status ParseNumber(Lexer& lexer, HostValue& v, int64_t i) {
  const Token at = lexer.next();
  if (v.dtype() == DType::kBool) {
    if (!lexer.At("true") && !lexer.At("false")) return lexer.Expected("true or false");
    v.SetI64(i, lexer.Take().text == "true");
  } else if (v.dtype() == DType::kF64) {
    FORGE_ASSIGN_OR_RETURN(const double x, lexer.TakeDouble());
    v.Set(i, x);
  } else if (v.dtype() == DType::kF32 || IsNarrowFloat(v.dtype())) {
    FORGE_ASSIGN_OR_RETURN(const float x, lexer.TakeFloat());
    v.Set(i, x);
  } else {
    FORGE_ASSIGN_OR_RETURN(const int64_t x, lexer.TakeInt());
    v.SetI64(i, x);
    if (v.i64(i) != x || (v.dtype() == DType::kU64 && x < 0))
      return Lexer::ErrorAt(at, fmt::format("{} does not fit {}", x, Name(v.dtype())));
  }
  return absl::OkStatus();
}

absl::StatusOr<Bytes> ParseNumbers(Lexer& lexer, Numbers n) {
  const int64_t shape[] = {n.count};
  FORGE_ASSIGN_OR_RETURN(HostValue v, HostValue::Zeros(n.dtype, shape));
  FORGE_RETURN_IF_ERROR(lexer.Expect("["));
  for (int64_t i = 0; i < n.count; ++i) {
    if (i > 0) FORGE_RETURN_IF_ERROR(lexer.Expect(","));
    FORGE_RETURN_IF_ERROR(ParseNumber(lexer, v, i));
  }
  FORGE_RETURN_IF_ERROR(lexer.Expect("]"));
  return v.shared_bytes();
}

absl::StatusOr<Bytes> ParseHex(Lexer& lexer, uint64_t size) {
  const Token at = lexer.next();
  FORGE_ASSIGN_OR_RETURN(const std::string digits, lexer.TakeString("hexadecimal digits"));
  if (digits.size() != size * 2)
    return Lexer::ErrorAt(at, fmt::format("expected {} bytes, found {}", size, digits.size() / 2));
  std::vector<uint8_t> out;
  for (size_t i = 0; i < digits.size(); i += 2) {
    const auto high = HexDigit(digits[i]), low = HexDigit(digits[i + 1]);
    if (!high || !low) return Lexer::ErrorAt(at, "expected hexadecimal digits");
    out.push_back(static_cast<uint8_t>(*high * 16 + *low));
  }
  return Bytes(std::move(out));
}

}  // namespace

std::string DataText(const Type& type, const Bytes& bytes) {
  const Numbers n = NumbersOf(type.dtype(), type.elements().constant());
  const int64_t shape[] = {n.count};
  const auto v = HostValue::Of(n.dtype, shape, bytes);
  FORGE_CHECK(v.ok());
  std::string list = "[";
  for (int64_t i = 0; i < n.count; ++i) list += (i > 0 ? ", " : "") + NumberText(*v, i);
  list += "]";
  Lexer lexer(list);
  const auto back = ParseNumbers(lexer, n);
  const auto was = bytes.span();
  if (back.ok() && std::equal(was.begin(), was.end(), back->span().begin())) return list;
  std::string hex = "x\"";
  for (uint8_t b : was) hex += fmt::format("{:02x}", b);
  return hex + "\"";
}

absl::StatusOr<Bytes> ParseData(Lexer& lexer, const Type& type) {
  if (!type.is_constant() || type.encoding() != nullptr)
    return lexer.Error(fmt::format("{} takes no list of elements", type.ToText()));
  const Dim elements = type.elements();
  if (!elements.is_constant() || elements.constant() < 0 || elements.constant() > kMaxTextElements)
    return lexer.Error(fmt::format("{} is too large for a list of elements", type.ToText()));
  const auto bytes = BytesOf(type.dtype(), static_cast<uint64_t>(elements.constant()));
  if (!bytes) return lexer.Error("strings cannot be listed");
  if (lexer.TakeIf("x")) return ParseHex(lexer, *bytes);
  return ParseNumbers(lexer, NumbersOf(type.dtype(), elements.constant()));
}

}  // namespace forge::ir
