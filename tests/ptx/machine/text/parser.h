// SPDX-License-Identifier: Apache-2.0
// Recursive descent over the tokens of PTX; see ParseModule.
#pragma once
#include <unordered_map>

#include "tests/ptx/machine/text/lexer.h"
#include "tests/ptx/machine/text/syntax.h"

namespace forge::ptx {

class Parser {
 public:
  explicit Parser(Module& module) : module_(module), lexer_(*module.text) {}
  absl::Status Run();

 private:
  struct Range {  // %r<10>
    int first, count;
  };
  struct Scope {
    int id;
    std::unordered_map<std::string_view, int> registers, variables;
    std::unordered_map<std::string_view, Range> ranges;
  };

  // Tokens.
  absl::Status Advance();
  absl::Status Expect(char c);
  absl::StatusOr<bool> Accept(char c);
  absl::StatusOr<std::string_view> Name();
  absl::StatusOr<int64_t> Integer();
  bool IsDirective(std::string_view text) const {
    return token_.kind == Token::Kind::kDirective && token_.text == text;
  }
  absl::Status SkipTo(char c);
  template <class... A>
  absl::Status Error(fmt::format_string<A...> format, A&&... a) const {
    return InvalidArgument("line {}: {}", token_.line, fmt::format(format, std::forward<A>(a)...));
  }

  // Declarations.
  absl::Status Header();
  absl::Status ModuleItem();
  absl::Status SkipLine();
  absl::Status SkipPointee();
  absl::StatusOr<Variable> VariableAfter(Space space, bool external);
  absl::Status Initial(Variable& v, uint64_t element_bytes, bool sized);
  absl::Status InitialValue(Variable& v, uint64_t element_bytes);
  absl::Status FunctionAfter(bool entry);
  absl::Status Parameters(std::vector<Variable>& out);
  absl::Status FunctionDirectives();

  // Bodies.
  absl::Status Body();
  absl::Status Statement();
  absl::Status Declaration();
  absl::Status Registers();
  absl::Status LabelOrInstruction();
  absl::Status BranchTargets(std::string_view label);
  absl::Status InstructionAfter(Instruction instruction);
  absl::StatusOr<Operand> ParseOperand(int depth);
  absl::StatusOr<Operand> List(Operand::Kind kind, char close, int depth);
  absl::StatusOr<Operand> Address(int depth);
  absl::StatusOr<Operand> Named();
  absl::StatusOr<Operand> Number(bool negative);
  absl::StatusOr<int64_t> OffsetAfter();
  int FindRegister(std::string_view name) const;
  int FindVariable(std::string_view name) const;

  Module& module_;
  Lexer lexer_;
  Token token_;
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
};

// Returns the bytes of a fundamental type, 0 for predicates, -1 for what is no type.
int TypeBytes(std::string_view type);

}  // namespace forge::ptx
