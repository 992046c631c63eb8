// SPDX-License-Identifier: Apache-2.0
// From instructions to operations. A family of opcodes is a function that reads the current
// instruction through the Decoder and emits what executes it; errors are sticky, so families do not
// check after each call.
#pragma once
#include <algorithm>
#include <map>
#include <unordered_map>

#include "tests/ptx/machine/decode/program.h"
#include "tests/ptx/machine/decode/types.h"
#include "tests/ptx/machine/text/syntax.h"

namespace forge::ptx {

using Globals = std::map<std::string_view, std::pair<uint64_t, uint64_t>>;

// Returns the kernel ready to run.  errors: Unimplemented with the line, InvalidArgument
absl::StatusOr<Program> DecodeKernel(const Module& module, const Function& kernel,
                                     const Globals& globals);

class Decoder {
 public:
  Decoder(const Module& module, const Globals& globals) : module_(module), globals_(globals) {}
  absl::StatusOr<Program> Run(const Function& kernel);

  // The current instruction.
  const Instruction& in() const { return *in_; }
  size_t operands() const { return in_->operands.size(); }
  const Operand& operand(size_t i) const;
  // Takes a modifier, if it is there. All that nobody took are an error.
  bool Take(std::string_view modifier);
  // Takes the first modifier that is one of the names and returns its place, or -1.
  int TakeOneOf(std::initializer_list<std::string_view> names);
  // Takes the next modifier that is a type.
  Type TakeType();
  // Takes the next modifier, whatever it is; empty without one.
  std::string_view TakeNext();
  template <class... A>
  void Fail(fmt::format_string<A...> format, A&&... a) {
    FailWith(fmt::format(format, std::forward<A>(a)...));
  }
  bool failed() const { return !status_.ok(); }
  // Fails unless there are that many operands.
  bool Want(size_t n);

  // Operands as offsets into the register file. `bytes`: of the type; a register must have that
  // size.
  int32_t Source(const Operand& o, int bytes);
  int32_t Source(size_t i, int bytes) { return Source(operand(i), bytes); }
  int32_t Destination(const Operand& o, int bytes);
  int32_t Destination(size_t i, int bytes) { return Destination(operand(i), bytes); }
  // Of any size; its bytes are told.
  int32_t AnySource(const Operand& o, int least, int& bytes);
  int32_t AnyDestination(const Operand& o, int& bytes);
  int32_t PredicateSource(const Operand& o);       // negated: see Operand
  int32_t PredicateDestination(const Operand& o);  // a sink is a scratch predicate
  int32_t Predicate(int reg);
  int32_t Constant(uint64_t bits, int bytes);
  int32_t Scratch(int bytes);
  // The register of the carry flags, 2 bytes a lane.
  int32_t CarryFlags();
  int32_t Special(std::string_view name);
  // Appends the registers of a vector, all of `bytes`; returns the first place in Program::lists.
  int32_t List(const Operand& o, int bytes, bool write);
  // Sets a, offset and the flag kAddress32 of `op` for an address in brackets; returns its space,
  // which is `space` unless a variable stands there.
  Space Address(const Operand& o, Space space, Op& op);
  // What a variable's name stands for, in its own space.
  bool ValueOf(const Operand& o, uint64_t& value, Space& space);

  // Adds an operation under the guard of the current instruction.
  Op& Emit(Op op);
  Op& Emit(Handler run, Kind kind = Kind::kOther);
  Program& program() { return program_; }
  // Smaller accesses to shared memory make its shadow finer.
  void NoteSharedAccess(uint32_t bytes) {
    program_.shared_granule = std::min(program_.shared_granule, bytes);
  }
  // Control flow.
  void EmitBranch(const Operand& label);
  void EmitIndexed(const Operand& index, const Operand& targets);
  void EmitReturn();
  void EmitCall();

 private:
  struct Frame {  // of a function that is being inlined
    const Function* function;
    std::vector<int32_t> registers;                         // -1: not met yet
    std::unordered_map<int, uint64_t> variables;            // index -> offset in its space
    std::unordered_map<std::string_view, uint64_t> params;  // of callees: offset in local memory
    std::vector<int> starts;                                // operation of each instruction
    std::vector<int> returns;                               // branches to the end
    struct Fix {
      int op;
      std::string_view label;
      int scope;
      int table;  // index into targets, or -1
    };
    std::vector<Fix> fixes;
  };
  void FailWith(std::string text);
  void Body(Frame& frame);
  void DecodeOne(const Instruction& instruction);
  void Resolve(Frame& frame);
  int FindLabel(const Frame& frame, std::string_view name, int scope);
  int32_t Register(int reg);
  int RegisterBytes(int reg) const;
  uint64_t Place(int variable);
  uint64_t PlaceShared(const Variable& v);
  uint64_t PlaceLocal(uint64_t bytes, uint32_t align);
  uint64_t Immediate(const Operand& o, int bytes);
  bool BindCall(const Function& callee, const Operand* results, const Operand* arguments,
                Frame& frame);

  const Module& module_;
  const Globals& globals_;
  Program program_;
  absl::Status status_;
  const Instruction* in_ = nullptr;
  std::vector<bool> taken_;
  Frame* frame_ = nullptr;
  int depth_ = 0;
  int32_t carry_ = -1;
  const Function* kernel_ = nullptr;
  std::map<std::string_view, uint64_t> module_shared_;
  std::map<std::pair<uint64_t, int>, int32_t> constants_;
};

// Op::flags of operations with an address.
inline constexpr uint8_t kAddress32 = 1;
// Dynamic shared memory lies behind all static variables, whose sum is known last: addresses in it
// are this plus an offset, until the kernel runs.
inline constexpr uint64_t kDynamicShared = uint64_t{1} << 24;

// The families.
void DecodeInteger(Decoder& d);
void DecodeCarry(Decoder& d);
void DecodeDotProduct(Decoder& d);
void DecodeLogic(Decoder& d);
void DecodeShift(Decoder& d);
void DecodeBits(Decoder& d);
void DecodeFloat(Decoder& d);
void DecodeApproximate(Decoder& d);
void DecodeDirected(Decoder& d);
void DecodeHalf(Decoder& d);
void DecodeCompare(Decoder& d);
void DecodeSelect(Decoder& d);
void DecodeConvert(Decoder& d);
void DecodeMove(Decoder& d);
void DecodeAccess(Decoder& d);
void DecodeAsync(Decoder& d);
void DecodeAtomic(Decoder& d);
void DecodeLanes(Decoder& d);
void DecodeMatrix(Decoder& d);
void DecodeGroupMatrix(Decoder& d);
void DecodeMatrixMove(Decoder& d);
void DecodeControl(Decoder& d);
void DecodeBarrier(Decoder& d);

}  // namespace forge::ptx
