// SPDX-License-Identifier: Apache-2.0
// PTX as parsed: names resolved to registers and variables, opcodes still as text.
// Source: PTX ISA 9.5, "Syntax", "State Spaces, Types, and Variables".
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace forge::ptx {

struct Operand {
  enum class Kind {
    kRegister,   // reg; `second` is the register after '|'
    kSpecial,    // symbol: "%tid.x"
    kInteger,    // bits
    kFloat32,    // bits of an f32
    kFloat64,    // bits of an f64
    kReference,  // a variable, a function or a label, plus an offset
    kAddress,    // in brackets: parts[0] is the base (register, reference or integer), plus offset
    kVector,     // in braces: parts
    kArguments,  // in parentheses: parts
    kSink,       // "_"
  };
  Kind kind = Kind::kSink;
  bool negated = false;  // '!' before a predicate
  int reg = -1;
  int second = -1;
  int variable = -1;        // of the function, for kReference; else look for `symbol`
  int scope = 0;            // where the reference stands, for labels
  std::string_view symbol;  // a view of Module::text
  uint64_t bits = 0;
  int64_t offset = 0;
  std::vector<Operand> parts;
};

struct Instruction {
  int line = 0;
  int guard = -1;  // register
  bool guard_negated = false;
  std::string_view opcode;                  // "ld"
  std::vector<std::string_view> modifiers;  // "global", "v4", "f32"
  std::vector<Operand> operands;
};

enum class Space { kGeneric, kGlobal, kConst, kShared, kLocal, kParam };

struct Variable {
  Space space = Space::kGlobal;
  std::string_view name;
  uint64_t bytes = 0;
  uint32_t align = 1;
  bool dynamic = false;  // extern .shared without a size
  std::vector<uint8_t> initial;
  struct Address {
    uint64_t at;  // bytes into `initial`
    std::string_view symbol;
    int64_t offset;
    bool generic;
  };
  std::vector<Address> addresses;
};

struct Label {
  std::string_view name;
  int scope = 0;
  int target = 0;  // index of an instruction
};

struct Function {
  std::string_view name;
  bool entry = false;
  bool defined = false;
  int line = 0;
  std::vector<Variable> params, results;
  std::vector<int> register_bits;   // 1 for predicates
  std::vector<Variable> variables;  // .local, .shared, .param of calls
  std::vector<Instruction> body;
  std::vector<int> scope_parent = {-1};
  std::vector<Label> labels;
  struct Targets {  // of brx.idx
    std::string_view name;
    int scope;
    std::vector<std::string_view> labels;
  };
  std::vector<Targets> targets;
  int max_threads = 0;  // .maxntid or .reqntid; 0: not said
};

struct Module {
  std::shared_ptr<const std::string> text;
  std::string_view version, target;
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

// Returns the module that `text` holds.
//   errors: InvalidArgument with the line, for text that is not PTX or exceeds a limit
absl::StatusOr<Module> ParseModule(std::string text);

}  // namespace forge::ptx
