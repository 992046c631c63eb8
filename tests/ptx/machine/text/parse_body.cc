// SPDX-License-Identifier: Apache-2.0
// The part of the parser that reads bodies of functions.
#include <bit>

#include "tests/ptx/machine/text/parser.h"

namespace forge::ptx {
namespace {

constexpr size_t kMostRegisters = 1 << 20;
constexpr size_t kMostInstructions = 1 << 22;
constexpr size_t kMostScopes = 64;  // nested

bool AllDigits(std::string_view s) {
  return !s.empty() && s.size() < 8 && s.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

absl::Status Parser::Body() {
  FORGE_RETURN_IF_ERROR(Expect('{'));
  scopes_.clear();
  scopes_.push_back({0, {}, {}, {}});
  while (!scopes_.empty()) {
    if (token_.kind == Token::Kind::kEnd) return Error("the body does not end");
    if (token_.Is('}')) {
      scopes_.pop_back();
      FORGE_RETURN_IF_ERROR(Advance());
    } else if (token_.Is('{')) {
      if (scopes_.size() >= kMostScopes) return Error("too many blocks one in another");
      const int id = static_cast<int>(function_->scope_parent.size());
      function_->scope_parent.push_back(scopes_.back().id);
      scopes_.push_back({id, {}, {}, {}});
      FORGE_RETURN_IF_ERROR(Advance());
    } else {
      FORGE_RETURN_IF_ERROR(Statement());
    }
  }
  return absl::OkStatus();
}

absl::Status Parser::Statement() {
  if (token_.kind == Token::Kind::kDirective) return Declaration();
  if (function_->body.size() >= kMostInstructions) return Error("too many instructions");
  if (!token_.Is('@')) return LabelOrInstruction();
  Instruction instruction;
  FORGE_RETURN_IF_ERROR(Advance());
  FORGE_ASSIGN_OR_RETURN(instruction.guard_negated, Accept('!'));
  FORGE_ASSIGN_OR_RETURN(const std::string_view name, Name());
  instruction.guard = FindRegister(name);
  if (instruction.guard < 0 || function_->register_bits[instruction.guard] != 1)
    return Error("{} is no predicate", name);
  FORGE_ASSIGN_OR_RETURN(instruction.opcode, Name());
  return InstructionAfter(std::move(instruction));
}

absl::Status Parser::Declaration() {
  const std::string_view word = token_.text;
  if (word == "loc" || word == "file") return SkipLine();
  FORGE_RETURN_IF_ERROR(Advance());
  if (word == "pragma") return SkipTo(';');
  if (word == "reg") return Registers();
  Space space = Space::kLocal;
  if (word == "shared")
    space = Space::kShared;
  else if (word == "param")
    space = Space::kParam;
  else if (word == "global")
    space = Space::kGlobal;
  else if (word == "const")
    space = Space::kConst;
  else if (word != "local")
    return Error("the directive .{} is not supported", word);
  FORGE_ASSIGN_OR_RETURN(Variable v, VariableAfter(space, false));
  scopes_.back().variables[v.name] = static_cast<int>(function_->variables.size());
  function_->variables.push_back(std::move(v));
  return Expect(';');
}

absl::Status Parser::Registers() {
  if (token_.kind != Token::Kind::kDirective) return Error("expected the type of a register");
  const int bytes = TypeBytes(token_.text);
  if (bytes < 0) return Error("the register type .{} is not supported", token_.text);
  const int bits = bytes == 0 ? 1 : std::max(bytes, 2) * 8;
  FORGE_RETURN_IF_ERROR(Advance());
  do {
    FORGE_ASSIGN_OR_RETURN(const std::string_view name, Name());
    int64_t count = 1;
    const int first = static_cast<int>(function_->register_bits.size());
    if (token_.Is('<')) {
      FORGE_RETURN_IF_ERROR(Advance());
      FORGE_ASSIGN_OR_RETURN(count, Integer());
      FORGE_RETURN_IF_ERROR(Expect('>'));
      if (count < 0 || count > static_cast<int64_t>(kMostRegisters))
        return Error("too many registers");
      scopes_.back().ranges[name] = {first, static_cast<int>(count)};
    } else {
      scopes_.back().registers[name] = first;
    }
    if (function_->register_bits.size() + count > kMostRegisters)
      return Error("too many registers");
    function_->register_bits.resize(first + count, bits);
    FORGE_ASSIGN_OR_RETURN(const bool more, Accept(','));
    if (!more) break;
  } while (true);
  return Expect(';');
}

absl::Status Parser::LabelOrInstruction() {
  const int line = token_.line;
  if (token_.Is(';')) return Advance();
  FORGE_ASSIGN_OR_RETURN(const std::string_view name, Name());
  if (token_.Is(':')) {
    FORGE_RETURN_IF_ERROR(Advance());
    if (IsDirective("branchtargets")) return BranchTargets(name);
    function_->labels.push_back(
        {name, scopes_.back().id, static_cast<int>(function_->body.size())});
    return absl::OkStatus();
  }
  Instruction instruction;
  instruction.line = line;
  instruction.opcode = name;
  return InstructionAfter(std::move(instruction));
}

absl::Status Parser::BranchTargets(std::string_view label) {
  FORGE_RETURN_IF_ERROR(Advance());
  Function::Targets targets{label, scopes_.back().id, {}};
  while (!token_.Is(';')) {
    FORGE_ASSIGN_OR_RETURN(const std::string_view name, Name());
    targets.labels.push_back(name);
    if (token_.Is(',')) FORGE_RETURN_IF_ERROR(Advance());
  }
  function_->targets.push_back(std::move(targets));
  return Advance();
}

absl::Status Parser::InstructionAfter(Instruction instruction) {
  instruction.line = token_.line;
  while (token_.kind == Token::Kind::kDirective) {
    instruction.modifiers.push_back(token_.text);
    FORGE_RETURN_IF_ERROR(Advance());
  }
  while (!token_.Is(';')) {
    FORGE_ASSIGN_OR_RETURN(Operand operand, ParseOperand(0));
    instruction.operands.push_back(std::move(operand));
    if (!token_.Is(';')) FORGE_RETURN_IF_ERROR(Expect(','));
  }
  function_->body.push_back(std::move(instruction));
  return Advance();
}

absl::StatusOr<Operand> Parser::ParseOperand(int depth) {
  if (depth > 3) return Error("operands lie too deep in another");
  if (token_.Is('{')) return List(Operand::Kind::kVector, '}', depth);
  if (token_.Is('(')) return List(Operand::Kind::kArguments, ')', depth);
  if (token_.Is('[')) return Address(depth);
  if (token_.Is('!')) {
    FORGE_RETURN_IF_ERROR(Advance());
    FORGE_ASSIGN_OR_RETURN(Operand operand, ParseOperand(depth + 1));
    operand.negated = !operand.negated;
    return operand;
  }
  if (token_.kind == Token::Kind::kName) return Named();
  FORGE_ASSIGN_OR_RETURN(const bool negative, Accept('-'));
  return Number(negative);
}

absl::StatusOr<Operand> Parser::List(Operand::Kind kind, char close, int depth) {
  Operand list;
  list.kind = kind;
  FORGE_RETURN_IF_ERROR(Advance());
  while (!token_.Is(close)) {
    FORGE_ASSIGN_OR_RETURN(Operand part, ParseOperand(depth + 1));
    list.parts.push_back(std::move(part));
    if (!token_.Is(close)) FORGE_RETURN_IF_ERROR(Expect(','));
  }
  FORGE_RETURN_IF_ERROR(Advance());
  return list;
}

absl::StatusOr<Operand> Parser::Address(int depth) {
  Operand address;
  address.kind = Operand::Kind::kAddress;
  FORGE_RETURN_IF_ERROR(Advance());
  FORGE_ASSIGN_OR_RETURN(Operand base, ParseOperand(depth + 1));
  FORGE_ASSIGN_OR_RETURN(address.offset, OffsetAfter());
  address.offset += base.offset;
  base.offset = 0;
  address.parts.push_back(std::move(base));
  if (!token_.Is(']')) return Error("this form of address is not supported");
  FORGE_RETURN_IF_ERROR(Advance());
  return address;
}

// "+4", "+-4", "-4" or nothing.
absl::StatusOr<int64_t> Parser::OffsetAfter() {
  if (token_.Is('+')) {
    FORGE_RETURN_IF_ERROR(Advance());
    return Integer();
  }
  return token_.Is('-') ? Integer() : absl::StatusOr<int64_t>(0);
}

absl::StatusOr<Operand> Parser::Named() {
  Operand operand;
  operand.symbol = token_.text;
  FORGE_RETURN_IF_ERROR(Advance());
  if (operand.symbol == "_") return operand;
  operand.reg = FindRegister(operand.symbol);
  if (operand.reg >= 0) {
    operand.kind = Operand::Kind::kRegister;
    if (!token_.Is('|')) return operand;
    FORGE_RETURN_IF_ERROR(Advance());
    FORGE_ASSIGN_OR_RETURN(const std::string_view second, Name());
    operand.second = FindRegister(second);
    if (operand.second < 0 && second != "_") return Error("there is no register {}", second);
    return operand;
  }
  if (operand.symbol[0] == '%' || operand.symbol == "WARP_SZ") {
    operand.kind = Operand::Kind::kSpecial;
    if (token_.kind == Token::Kind::kDirective) {
      const size_t bytes = token_.text.end() - operand.symbol.begin();
      operand.symbol = std::string_view(operand.symbol.data(), bytes);
      FORGE_RETURN_IF_ERROR(Advance());
    }
    return operand;
  }
  operand.kind = Operand::Kind::kReference;
  operand.variable = FindVariable(operand.symbol);
  operand.scope = scopes_.empty() ? 0 : scopes_.back().id;
  FORGE_ASSIGN_OR_RETURN(operand.offset, OffsetAfter());
  return operand;
}

absl::StatusOr<Operand> Parser::Number(bool negative) {
  Operand operand;
  operand.bits = token_.bits;
  if (token_.kind == Token::Kind::kInteger) {
    operand.kind = Operand::Kind::kInteger;
    if (negative) operand.bits = 0 - operand.bits;
  } else if (token_.kind == Token::Kind::kFloat32) {
    operand.kind = Operand::Kind::kFloat32;
    if (negative) operand.bits ^= uint64_t{1} << 31;
  } else if (token_.kind == Token::Kind::kFloat64) {
    operand.kind = Operand::Kind::kFloat64;
    if (negative) operand.bits ^= uint64_t{1} << 63;
  } else {
    return Error("expected an operand, found '{}'", token_.text.substr(0, 40));
  }
  FORGE_RETURN_IF_ERROR(Advance());
  return operand;
}

int Parser::FindRegister(std::string_view name) const {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->registers.find(name); found != scope->registers.end())
      return found->second;
    // A prefix may end with digits itself: all ways to divide the name are tried.
    for (size_t at = digits; at < name.size(); ++at) {
      const auto range = scope->ranges.find(name.substr(0, at));
      if (range == scope->ranges.end() || !AllDigits(name.substr(at))) continue;
      int index = 0;
      for (const char c : name.substr(at)) index = index * 10 + (c - '0');
      if (index < range->second.count) return range->second.first + index;
    }
  }
  return -1;
}

int Parser::FindVariable(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->variables.find(name); found != scope->variables.end())
      return found->second;
  return -1;
}

}  // namespace forge::ptx
