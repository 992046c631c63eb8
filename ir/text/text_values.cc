// SPDX-License-Identifier: Apache-2.0
#include "ir/text/text_values.h"

#include "ir/op/attributes.h"
#include "ir/text/parts.h"
#include "ir/type/encodings.h"
#include "ir/type/host_value.h"

namespace forge::ir {
namespace {

constexpr int kMaxParsedDepth = 300;  // deeper than any Dim can be

template <class T>
absl::Status SetIn(const Field& f, void* record, absl::StatusOr<T> value) {
  if (!value.ok()) return value.status();
  return SetAttribute(f, record, Attribute(*std::move(value)));
}

template <class T, class Parse>
absl::StatusOr<std::vector<T>> ParseList(Lexer& lexer, Parse parse) {
  FORGE_RETURN_IF_ERROR(lexer.Expect("["));
  std::vector<T> out;
  while (!lexer.TakeIf("]")) {
    if (!out.empty()) FORGE_RETURN_IF_ERROR(lexer.Expect(","));
    FORGE_ASSIGN_OR_RETURN(T v, parse());
    out.push_back(std::move(v));
  }
  return out;
}

absl::StatusOr<bool> ParseBool(Lexer& lexer) {
  if (lexer.TakeIf("true")) return true;
  if (lexer.TakeIf("false")) return false;
  return lexer.Expected("true or false");
}

absl::StatusOr<DType> ParseDTypeWord(Lexer& lexer) {
  const auto dtype = ParseDType(lexer.next().text);
  if (!dtype || lexer.next().kind != Token::kWord) return lexer.Expected("a dtype");
  lexer.Take();
  return *dtype;
}

}  // namespace

absl::Status ValueParser::Enter() {
  return ++depth_ <= kMaxParsedDepth ? absl::OkStatus() : lexer_.Error("nested too deeply");
}

absl::StatusOr<Dim> ValueParser::ParseDim() {
  FORGE_RETURN_IF_ERROR(Enter());
  FORGE_ASSIGN_OR_RETURN(Dim sum, ParseProduct(lexer_.TakeIf("-")));
  while (lexer_.At("+") || lexer_.At("-")) {
    const bool negative = lexer_.Take().text == "-";
    FORGE_ASSIGN_OR_RETURN(const Dim product, ParseProduct(negative));
    sum = sum + product;
  }
  Leave();
  return sum;
}

absl::StatusOr<Dim> ValueParser::ParseProduct(bool negative) {
  Dim product = negative ? -1 : 1;
  if (negative && lexer_.next().kind == Token::kNumber) {
    // The sign belongs to the number: -2^63 has no positive counterpart.
    FORGE_ASSIGN_OR_RETURN(product, lexer_.TakeInt(true));
  } else {
    FORGE_ASSIGN_OR_RETURN(const Dim first, ParseFactor());
    product = product * first;
  }
  while (lexer_.TakeIf("*")) {
    FORGE_ASSIGN_OR_RETURN(const Dim factor, ParseFactor());
    product = product * factor;
  }
  return product;
}

absl::StatusOr<Dim> ValueParser::ParseFactor() {
  if (lexer_.next().kind == Token::kNumber || lexer_.At("-")) {
    FORGE_ASSIGN_OR_RETURN(const int64_t c, lexer_.TakeInt());
    return Dim(c);
  }
  if (lexer_.TakeIf("(")) {
    FORGE_ASSIGN_OR_RETURN(Dim inside, ParseDim());
    FORGE_RETURN_IF_ERROR(lexer_.Expect(")"));
    return inside;
  }
  const Token at = lexer_.next();
  FORGE_ASSIGN_OR_RETURN(const std::string name, lexer_.TakeName("a dimension"));
  if (at.kind == Token::kWord && lexer_.At("(")) return ParseCall(at);
  if (name.empty()) return Lexer::ErrorAt(at, "the symbol has no name");
  return Dim(module_.SymbolNamed(name));
}

absl::StatusOr<Dim> ValueParser::ParseCall(const Token& function) {
  FORGE_RETURN_IF_ERROR(lexer_.Expect("("));
  FORGE_ASSIGN_OR_RETURN(const Dim a, ParseDim());
  FORGE_RETURN_IF_ERROR(lexer_.Expect(","));
  FORGE_ASSIGN_OR_RETURN(const Dim b, ParseDim());
  FORGE_RETURN_IF_ERROR(lexer_.Expect(")"));
  if (function.text == "floordiv") return FloorDiv(a, b);
  if (function.text == "mod") return Mod(a, b);
  if (function.text == "min") return Min(a, b);
  if (function.text == "max") return Max(a, b);
  return Lexer::ErrorAt(function, fmt::format("'{}' is no function of dimensions", function.text));
}

absl::StatusOr<Dims> ValueParser::ParseDims() {
  return ParseList<Dim>(lexer_, [this] { return ParseDim(); });
}

absl::StatusOr<Type> ValueParser::ParseType() {
  if (lexer_.TakeIf("none")) return Type();
  if (lexer_.TakeIf("unknown")) return Type::Unknown();
  const bool sequence = lexer_.At("sequence");
  if (!sequence && !lexer_.At("optional")) return ParseTensor();
  lexer_.Take();
  FORGE_RETURN_IF_ERROR(Enter());
  FORGE_RETURN_IF_ERROR(lexer_.Expect("<"));
  FORGE_ASSIGN_OR_RETURN(Type element, ParseType());
  FORGE_RETURN_IF_ERROR(lexer_.Expect(">"));
  Leave();
  return sequence ? Type::Sequence(std::move(element)) : Type::Optional(std::move(element));
}

absl::StatusOr<Type> ValueParser::ParseTensor() {
  FORGE_ASSIGN_OR_RETURN(const DType dtype, ParseDTypeWord(lexer_));
  Lexer ahead = lexer_;
  if (ahead.TakeIf("[") && ahead.TakeIf("*")) {
    lexer_ = ahead;
    FORGE_RETURN_IF_ERROR(lexer_.Expect("]"));
    return Type::Unranked(dtype);
  }
  FORGE_ASSIGN_OR_RETURN(Dims shape, ParseDims());
  if (!lexer_.TakeIf("as")) return Type::Tensor(dtype, std::move(shape));
  const Token at = lexer_.next();
  FORGE_ASSIGN_OR_RETURN(const std::string name, lexer_.TakeName("an encoding"));
  auto encoding = EncodingNamed(name);
  if (!encoding.ok()) return Lexer::ErrorAt(at, Message(encoding.status()));
  return Type::Tensor(dtype, std::move(shape), *std::move(encoding));
}

absl::Status ValueParser::ParseAttribute(const Field& field, void* record, Body body) {
  switch (field.kind) {
    case FieldKind::kBool:
      return SetIn(field, record, ParseBool(lexer_));
    case FieldKind::kInt:
      return SetIn(field, record, lexer_.TakeInt());
    case FieldKind::kFloat:
      return SetIn(field, record, lexer_.TakeDouble());
    case FieldKind::kString:
      return SetIn(field, record, lexer_.TakeString("a string"));
    case FieldKind::kInts:
      return SetIn(field, record, ParseList<int64_t>(lexer_, [this] { return lexer_.TakeInt(); }));
    case FieldKind::kFloats:
      return SetIn(field, record,
                   ParseList<double>(lexer_, [this] { return lexer_.TakeDouble(); }));
    case FieldKind::kDType:
      return SetIn(field, record, ParseDTypeWord(lexer_));
    case FieldKind::kEnum:
      return SetIn(field, record, lexer_.TakeName("a choice"));
    case FieldKind::kDim:
      return SetIn(field, record, ParseDim());
    case FieldKind::kDims:
      return SetIn(field, record, ParseDims());
    case FieldKind::kType:
      return SetIn(field, record, ParseType());
    case FieldKind::kNumber:
      return SetIn(field, record, lexer_.TakeNumber());
    case FieldKind::kFunction:
      break;
  }
  FORGE_RETURN_IF_ERROR(lexer_.Expect("@"));
  FORGE_ASSIGN_OR_RETURN(const std::string name, lexer_.TakeName("the name of a function"));
  return SetIn(field, record, body(name));
}

absl::Status ValueParser::ParseAttributes(const OpDef& def, void* self, std::string_view end,
                                          Body body, Taken taken) {
  const auto ended = [&] {
    return end.empty() ? lexer_.next().kind == Token::kEnd : lexer_.TakeIf(end);
  };
  std::vector<bool> seen(def.fields.size());
  for (bool first = true; !ended(); first = false) {
    if (!first) FORGE_RETURN_IF_ERROR(lexer_.Expect(","));
    const Token at = lexer_.next();
    FORGE_ASSIGN_OR_RETURN(const std::string name, lexer_.TakeName("an attribute"));
    const Field* field = FindField(def.fields, name);
    if (field == nullptr)
      return Lexer::ErrorAt(at, fmt::format("{} has no attribute '{}'", def.info.name, name));
    const auto index = static_cast<size_t>(field - def.fields.data());
    if (seen[index]) return Lexer::ErrorAt(at, fmt::format("'{}' stands twice", name));
    seen[index] = true;
    FORGE_RETURN_IF_ERROR(lexer_.Expect("="));
    FORGE_ASSIGN_OR_RETURN(const bool done, taken(*field));
    if (!done) FORGE_RETURN_IF_ERROR(ParseAttribute(*field, self, body));
  }
  return absl::OkStatus();
}

absl::StatusOr<Type> ParseType(std::string_view text, Module& module) {
  Lexer lexer(text);
  FORGE_ASSIGN_OR_RETURN(Type type, ValueParser(lexer, module).ParseType());
  if (lexer.next().kind != Token::kEnd) return lexer.Expected("the end of the type");
  return type;
}

absl::StatusOr<AnyOp> ParseOp(std::string_view name, std::string_view attributes, Module& module) {
  const OpDef* def = FindOp(name);
  if (def == nullptr) return InvalidArgument("'{}' is no op", name);
  std::shared_ptr<void> self = def->make != nullptr ? def->make(nullptr) : nullptr;
  Lexer lexer(attributes);
  const auto body = [&](const std::string& f) -> absl::StatusOr<Function*> {
    if (Function* found = module.Find(f)) return found;
    return lexer.Error(fmt::format("no function '{}'", f));
  };
  const auto nothing = [](const Field&) -> absl::StatusOr<bool> { return false; };
  FORGE_RETURN_IF_ERROR(
      ValueParser(lexer, module).ParseAttributes(*def, self.get(), "", body, nothing));
  return AnyOp(*def, std::move(self));
}

}  // namespace forge::ir
