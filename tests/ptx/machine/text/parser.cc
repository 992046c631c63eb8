// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/text/parser.h"

namespace forge::ptx {
namespace {

constexpr uint64_t kMostTextBytes = uint64_t{64} << 20;
constexpr uint64_t kMostVariableBytes = uint64_t{256} << 20;
constexpr uint64_t kMostAlign = 1 << 16;

}  // namespace

int TypeBytes(std::string_view type) {
  if (type == "pred") return 0;
  if (type == "b8" || type == "u8" || type == "s8") return 1;
  if (type == "b16" || type == "u16" || type == "s16" || type == "f16" || type == "bf16") return 2;
  if (type == "b32" || type == "u32" || type == "s32" || type == "f32" || type == "f16x2" ||
      type == "bf16x2")
    return 4;
  if (type == "b64" || type == "u64" || type == "s64" || type == "f64" || type == "f32x2") return 8;
  return type == "b128" ? 16 : -1;
}

absl::StatusOr<Module> ParseModule(std::string text) {
  if (text.size() > kMostTextBytes)
    return InvalidArgument("PTX of {} bytes is larger than the limit", text.size());
  Module module;
  module.text = std::make_shared<const std::string>(std::move(text));
  FORGE_RETURN_IF_ERROR(Parser(module).Run());
  return module;
}

absl::Status Parser::Advance() {
  FORGE_ASSIGN_OR_RETURN(token_, lexer_.Next());
  return absl::OkStatus();
}

absl::Status Parser::Expect(char c) {
  if (!token_.Is(c)) return Error("expected '{}', found '{}'", c, token_.text.substr(0, 40));
  return Advance();
}

absl::StatusOr<bool> Parser::Accept(char c) {
  if (!token_.Is(c)) return false;
  FORGE_RETURN_IF_ERROR(Advance());
  return true;
}

absl::StatusOr<std::string_view> Parser::Name() {
  if (token_.kind != Token::Kind::kName)
    return Error("expected a name, found '{}'", token_.text.substr(0, 40));
  const std::string_view name = token_.text;
  FORGE_RETURN_IF_ERROR(Advance());
  return name;
}

absl::StatusOr<int64_t> Parser::Integer() {
  FORGE_ASSIGN_OR_RETURN(const bool negative, Accept('-'));
  if (token_.kind != Token::Kind::kInteger)
    return Error("expected an integer, found '{}'", token_.text.substr(0, 40));
  const uint64_t bits = negative ? 0 - token_.bits : token_.bits;
  FORGE_RETURN_IF_ERROR(Advance());
  return static_cast<int64_t>(bits);
}

absl::Status Parser::SkipTo(char c) {
  while (!token_.Is(c)) {
    if (token_.kind == Token::Kind::kEnd) return Error("the text ends before '{}'", c);
    FORGE_RETURN_IF_ERROR(Advance());
  }
  return Advance();
}

absl::Status Parser::SkipLine() {
  const int line = token_.line;
  while (token_.line == line && token_.kind != Token::Kind::kEnd) FORGE_RETURN_IF_ERROR(Advance());
  return absl::OkStatus();
}

absl::Status Parser::Run() {
  FORGE_RETURN_IF_ERROR(Advance());
  FORGE_RETURN_IF_ERROR(Header());
  while (token_.kind != Token::Kind::kEnd) FORGE_RETURN_IF_ERROR(ModuleItem());
  return absl::OkStatus();
}

absl::Status Parser::Header() {
  if (!IsDirective("version")) return Error("PTX begins with .version");
  FORGE_RETURN_IF_ERROR(Advance());
  module_.version = token_.text;
  FORGE_RETURN_IF_ERROR(Advance());
  if (!IsDirective("target")) return Error("expected .target");
  FORGE_RETURN_IF_ERROR(Advance());
  FORGE_ASSIGN_OR_RETURN(module_.target, Name());
  while (token_.Is(',')) {
    FORGE_RETURN_IF_ERROR(Advance());
    FORGE_RETURN_IF_ERROR(Name().status());
  }
  if (!IsDirective("address_size")) return absl::OkStatus();
  FORGE_RETURN_IF_ERROR(Advance());
  FORGE_ASSIGN_OR_RETURN(const int64_t size, Integer());
  return size == 64 ? absl::OkStatus() : Error("addresses of {} bits are not supported", size);
}

absl::Status Parser::ModuleItem() {
  if (token_.kind != Token::Kind::kDirective)
    return Error("expected a directive, found '{}'", token_.text.substr(0, 40));
  const std::string_view what = token_.text;
  if (what == "file" || what == "pragma" || what == "loc") return SkipLine();
  if (what == "section") return SkipTo('}');
  FORGE_RETURN_IF_ERROR(Advance());
  bool external = false;
  std::string_view kind = what;
  while (kind == "visible" || kind == "extern" || kind == "weak" || kind == "common") {
    external |= kind == "extern";
    if (token_.kind != Token::Kind::kDirective) return Error("expected a directive");
    kind = token_.text;
    FORGE_RETURN_IF_ERROR(Advance());
  }
  if (kind == "entry" || kind == "func") return FunctionAfter(kind == "entry");
  if (kind == "alias") return SkipTo(';');
  Space space = Space::kGlobal;
  if (kind == "const")
    space = Space::kConst;
  else if (kind == "shared")
    space = Space::kShared;
  else if (kind != "global")
    return Error("the directive .{} is not supported", kind);
  FORGE_ASSIGN_OR_RETURN(Variable v, VariableAfter(space, external));
  module_.variables.push_back(std::move(v));
  return Expect(';');
}

// What a pointer points to, with an alignment that is not the parameter's.
absl::Status Parser::SkipPointee() {
  while (token_.kind == Token::Kind::kDirective) {
    FORGE_RETURN_IF_ERROR(Advance());
    if (token_.kind == Token::Kind::kInteger) FORGE_RETURN_IF_ERROR(Advance());
  }
  return absl::OkStatus();
}

// After the state space: ".align 4 .b8 name[16] = {...}".
absl::StatusOr<Variable> Parser::VariableAfter(Space space, bool external) {
  Variable v;
  v.space = space;
  int64_t element = -1, vector = 1;
  uint32_t align = 0;
  while (token_.kind == Token::Kind::kDirective) {
    const std::string_view word = token_.text;
    FORGE_RETURN_IF_ERROR(Advance());
    if (word == "align") {
      FORGE_ASSIGN_OR_RETURN(const int64_t n, Integer());
      if (n <= 0 || n > static_cast<int64_t>(kMostAlign) || (n & (n - 1)) != 0)
        return Error("an alignment of {} is not possible", n);
      align = static_cast<uint32_t>(n);
    } else if (word == "v2" || word == "v4") {
      vector = word[1] - '0';
    } else if (TypeBytes(word) > 0) {
      element = TypeBytes(word);
    } else if (word == "ptr") {
      FORGE_RETURN_IF_ERROR(SkipPointee());
    } else if (word == "attribute") {
      FORGE_RETURN_IF_ERROR(SkipTo(')'));
    } else {
      return Error("the type .{} is not supported here", word);
    }
  }
  if (element < 0) return Error("the variable has no type");
  FORGE_ASSIGN_OR_RETURN(v.name, Name());
  element *= vector;
  v.align = align != 0 ? align : static_cast<uint32_t>(element);
  v.bytes = element;
  bool sized = true;
  while (token_.Is('[')) {
    FORGE_RETURN_IF_ERROR(Advance());
    FORGE_ASSIGN_OR_RETURN(const bool open, Accept(']'));
    if (open) {
      sized = false, v.bytes = 0;
      continue;
    }
    FORGE_ASSIGN_OR_RETURN(const int64_t n, Integer());
    if (n < 0 || (n > 0 && v.bytes > kMostVariableBytes / n))
      return Error("{} is larger than the limit", v.name);
    v.bytes *= n;
    FORGE_RETURN_IF_ERROR(Expect(']'));
  }
  v.dynamic = external && !sized;
  if (token_.Is('=')) FORGE_RETURN_IF_ERROR(Initial(v, element / vector, sized));
  return v;
}

absl::Status Parser::Initial(Variable& v, uint64_t element_bytes, bool sized) {
  FORGE_RETURN_IF_ERROR(Advance());
  int depth = 0;
  do {
    while (token_.Is('{')) {
      ++depth;
      FORGE_RETURN_IF_ERROR(Advance());
    }
    if (!token_.Is('}')) FORGE_RETURN_IF_ERROR(InitialValue(v, element_bytes));
    while (depth > 0 && token_.Is('}')) {
      --depth;
      FORGE_RETURN_IF_ERROR(Advance());
    }
    if (depth == 0) break;
  } while (Expect(',').ok());
  if (depth != 0) return Error("the initial values of {} do not end", v.name);
  if (!sized) v.bytes = v.initial.size();
  if (v.initial.size() > v.bytes) return Error("{} has too many initial values", v.name);
  return absl::OkStatus();
}

absl::Status Parser::InitialValue(Variable& v, uint64_t element_bytes) {
  uint64_t bits = 0;
  if (v.initial.size() + element_bytes > kMostVariableBytes)
    return Error("too many initial values");
  if (token_.kind == Token::Kind::kName) {
    FORGE_ASSIGN_OR_RETURN(std::string_view symbol, Name());
    const bool generic = symbol == "generic";
    if (generic) {
      FORGE_RETURN_IF_ERROR(Expect('('));
      FORGE_ASSIGN_OR_RETURN(symbol, Name());
      FORGE_RETURN_IF_ERROR(Expect(')'));
    }
    FORGE_ASSIGN_OR_RETURN(const int64_t offset, OffsetAfter());
    if (element_bytes != 8) return Error("an address needs 8 bytes");
    v.addresses.push_back({v.initial.size(), symbol, offset, generic});
  } else {
    FORGE_ASSIGN_OR_RETURN(const bool negative, Accept('-'));
    FORGE_ASSIGN_OR_RETURN(const Operand number, Number(negative));
    bits = number.bits;
  }
  for (uint64_t i = 0; i < element_bytes; ++i)
    v.initial.push_back(static_cast<uint8_t>(bits >> (8 * i)));
  return absl::OkStatus();
}

absl::Status Parser::Parameters(std::vector<Variable>& out) {
  FORGE_RETURN_IF_ERROR(Expect('('));
  while (!token_.Is(')')) {
    if (!IsDirective("param") && !IsDirective("reg")) return Error("expected .param");
    FORGE_RETURN_IF_ERROR(Advance());
    FORGE_ASSIGN_OR_RETURN(Variable v, VariableAfter(Space::kParam, false));
    out.push_back(std::move(v));
    if (!token_.Is(')')) FORGE_RETURN_IF_ERROR(Expect(','));
  }
  return Advance();
}

absl::Status Parser::FunctionAfter(bool entry) {
  Function f;
  f.entry = entry;
  f.line = token_.line;
  if (!entry && token_.Is('(')) FORGE_RETURN_IF_ERROR(Parameters(f.results));
  FORGE_ASSIGN_OR_RETURN(f.name, Name());
  if (token_.Is('(')) FORGE_RETURN_IF_ERROR(Parameters(f.params));
  function_ = &f;
  FORGE_RETURN_IF_ERROR(FunctionDirectives());
  if (token_.Is(';')) {
    FORGE_RETURN_IF_ERROR(Advance());
  } else {
    f.defined = true;
    FORGE_RETURN_IF_ERROR(Body());
  }
  function_ = nullptr;
  // A definition takes the place of its declaration.
  for (Function& known : module_.functions) {
    if (known.name != f.name) continue;
    if (known.defined && f.defined) return Error("{} is defined twice", f.name);
    if (f.defined) known = std::move(f);
    return absl::OkStatus();
  }
  module_.functions.push_back(std::move(f));
  return absl::OkStatus();
}

absl::Status Parser::FunctionDirectives() {
  while (token_.kind == Token::Kind::kDirective) {
    const std::string_view word = token_.text;
    FORGE_RETURN_IF_ERROR(Advance());
    if (word == "noreturn" || word == "explicitcluster") continue;
    if (word == "pragma") {
      FORGE_RETURN_IF_ERROR(SkipTo(';'));
      continue;
    }
    if (word != "maxntid" && word != "reqntid" && word != "minnctapersm" && word != "maxnreg" &&
        word != "maxnctapersm")
      return Error("the directive .{} is not supported", word);
    int64_t product = 1;
    do {
      FORGE_ASSIGN_OR_RETURN(const int64_t n, Integer());
      if (n <= 0 || n > (1 << 20)) return Error(".{} {} is out of range", word, n);
      product = std::min<int64_t>(product * n, 1 << 20);
      if (!token_.Is(',')) break;
      FORGE_RETURN_IF_ERROR(Advance());
    } while (true);
    if (word == "maxntid" || word == "reqntid") function_->max_threads = static_cast<int>(product);
  }
  return absl::OkStatus();
}

}  // namespace forge::ptx
