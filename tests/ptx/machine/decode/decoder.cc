// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/decode/decoder.h"

#include <algorithm>
#include <bit>

#include "tests/ptx/machine/memory.h"

namespace forge::ptx {
namespace {

constexpr uint32_t kMostDynamicAlign = 1024;  // bytes that a kernel may ask for
constexpr size_t kMostOps = 1 << 22;
constexpr size_t kMostRegisterBytes = size_t{1} << 24;  // of a warp

uint64_t Align(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

}  // namespace

absl::StatusOr<Program> DecodeKernel(const Module& module, const Function& kernel,
                                     const Globals& globals) {
  return Decoder(module, globals).Run(kernel);
}

absl::StatusOr<Program> Decoder::Run(const Function& kernel) {
  if (!kernel.defined) return InvalidArgument("the kernel {} has no body", kernel.name);
  kernel_ = &kernel;
  program_.name = kernel.name;
  program_.text = module_.text;
  program_.max_threads = kernel.max_threads;
  uint32_t dynamic_align = 0;  // that the module's dynamic shared variables ask for
  for (const Variable& v : module_.variables)
    if (v.dynamic) dynamic_align = std::max(dynamic_align, v.align);
  if (dynamic_align < kMostDynamicAlign) program_.dynamic_skew = dynamic_align;
  Frame frame;
  frame.function = &kernel;
  for (const Variable& p : kernel.params) {
    program_.param_bytes = Align(program_.param_bytes, p.align);
    frame.params[p.name] = program_.param_bytes;
    program_.params.push_back({program_.param_bytes, p.bytes});
    program_.param_bytes += p.bytes;
  }
  Body(frame);
  FORGE_RETURN_IF_ERROR(status_);
  program_.ops.push_back({.control = Control::kExit, .line = kernel.line});
  // The dynamic part lies behind all others, whose sizes are known only now.
  if (dynamic_align > 0)
    program_.shared_bytes =
        Align(program_.shared_bytes, std::max(dynamic_align, kMostDynamicAlign));
  return std::move(program_);
}

void Decoder::FailWith(std::string text) {
  if (!status_.ok()) return;
  const int line = in_ == nullptr ? 0 : in_->line;
  status_ = absl::UnimplementedError(
      fmt::format("{}, line {}: {}: {}", kernel_->name, line, program_.Line(line), text));
}

void Decoder::Body(Frame& frame) {
  Frame* const outer = std::exchange(frame_, &frame);
  frame.registers.assign(frame.function->register_bits.size(), -1);
  for (const Instruction& instruction : frame.function->body) {
    frame.starts.push_back(static_cast<int>(program_.ops.size()));
    if (program_.ops.size() > kMostOps) Fail("the kernel has too many instructions");
    if (program_.register_bytes > kMostRegisterBytes) Fail("the kernel has too many registers");
    if (failed()) break;
    DecodeOne(instruction);
  }
  frame.starts.push_back(static_cast<int>(program_.ops.size()));
  if (!failed()) Resolve(frame);
  frame_ = outer;
}

void Decoder::Resolve(Frame& frame) {
  const int end = static_cast<int>(program_.ops.size());
  for (const int op : frame.returns) program_.ops[op].target = end;
  for (const Frame::Fix& fix : frame.fixes) {
    const int target = FindLabel(frame, fix.label, fix.scope);
    if (target < 0) return Fail("there is no label {}", fix.label);
    if (fix.table >= 0)
      program_.targets[fix.table] = target;
    else
      program_.ops[fix.op].target = target;
  }
}

int Decoder::FindLabel(const Frame& frame, std::string_view name, int scope) {
  for (; scope >= 0; scope = frame.function->scope_parent[scope])
    for (const Label& label : frame.function->labels)
      if (label.scope == scope && label.name == name) return frame.starts[label.target];
  return -1;
}

const Operand& Decoder::operand(size_t i) const {
  static const Operand none;
  return i < in_->operands.size() ? in_->operands[i] : none;
}

bool Decoder::Want(size_t n) {
  if (operands() != n) Fail("expected {} operands, found {}", n, operands());
  return operands() == n;
}

bool Decoder::Take(std::string_view modifier) { return TakeOneOf({modifier}) == 0; }

int Decoder::TakeOneOf(std::initializer_list<std::string_view> names) {
  for (size_t i = 0; i < in_->modifiers.size(); ++i) {
    const auto* const found = std::find(names.begin(), names.end(), in_->modifiers[i]);
    if (taken_[i] || found == names.end()) continue;
    taken_[i] = true;
    return static_cast<int>(found - names.begin());
  }
  return -1;
}

Type Decoder::TakeType() {
  for (size_t i = 0; i < in_->modifiers.size(); ++i) {
    const Type type = ParseType(in_->modifiers[i]);
    if (taken_[i] || type == Type::kNone) continue;
    taken_[i] = true;
    return type;
  }
  return Type::kNone;
}

std::string_view Decoder::TakeNext() {
  for (size_t i = 0; i < in_->modifiers.size(); ++i) {
    if (taken_[i]) continue;
    taken_[i] = true;
    return in_->modifiers[i];
  }
  return {};
}

int Decoder::RegisterBytes(int reg) const { return frame_->function->register_bits[reg] / 8; }

int32_t Decoder::Register(int reg) {
  int32_t& at = frame_->registers[reg];
  if (at < 0)
    at = RegisterBytes(reg) == 0 ? static_cast<int32_t>(program_.predicates++)
                                 : Scratch(RegisterBytes(reg));
  return at;
}

int32_t Decoder::Scratch(int bytes) {
  const auto at = static_cast<int32_t>(program_.register_bytes);
  program_.register_bytes += Align(bytes * kLanes, 64);
  return at;
}

int32_t Decoder::CarryFlags() {
  if (carry_ < 0) carry_ = Scratch(2);
  return carry_;
}

int32_t Decoder::Constant(uint64_t bits, int bytes) {
  if (bytes < 8) bits &= (uint64_t{1} << (8 * bytes)) - 1;
  const auto [found, added] = constants_.try_emplace({bits, bytes}, 0);
  if (added) {
    std::vector<uint8_t>& pool = program_.constants.bytes;
    pool.resize(Align(pool.size(), 16));
    found->second = ~static_cast<int32_t>(pool.size());
    for (int lane = 0; lane < kLanes; ++lane)
      for (int i = 0; i < bytes; ++i)
        pool.push_back(i < 8 ? static_cast<uint8_t>(bits >> (8 * i)) : 0);
  }
  return found->second;
}

int32_t Decoder::Special(std::string_view name) {
  for (const SpecialSlot& slot : program_.specials)
    if (slot.name == name) return slot.at;
  static constexpr std::string_view kKnown[] = {"%tid.x",
                                                "%tid.y",
                                                "%tid.z",
                                                "%ntid.x",
                                                "%ntid.y",
                                                "%ntid.z",
                                                "%ctaid.x",
                                                "%ctaid.y",
                                                "%ctaid.z",
                                                "%nctaid.x",
                                                "%nctaid.y",
                                                "%nctaid.z",
                                                "%laneid",
                                                "%warpid",
                                                "%nwarpid",
                                                "%smid",
                                                "%nsmid",
                                                "%lanemask_eq",
                                                "%lanemask_lt",
                                                "%lanemask_le",
                                                "%lanemask_ge",
                                                "%lanemask_gt",
                                                "%dynamic_smem_size",
                                                "%total_smem_size",
                                                "WARP_SZ"};
  if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) {
    Fail("the special register {} is not supported", name);
    return 0;
  }
  const int32_t at = Scratch(4);
  program_.specials.push_back({std::string(name), at});
  return at;
}

uint64_t Decoder::Immediate(const Operand& o, int bytes) {
  if (o.kind == Operand::Kind::kFloat64 && bytes == 4)
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(o.bits)));
  if (o.kind == Operand::Kind::kFloat32 && bytes == 8)
    return std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(o.bits))));
  return o.bits;
}

int32_t Decoder::AnySource(const Operand& o, int least, int& bytes) {
  bytes = std::max(least, 2);
  switch (o.kind) {
    case Operand::Kind::kRegister:
      if (RegisterBytes(o.reg) < least || RegisterBytes(o.reg) == 0 || o.negated) break;
      bytes = RegisterBytes(o.reg);
      return Register(o.reg);
    case Operand::Kind::kInteger:
    case Operand::Kind::kFloat32:
    case Operand::Kind::kFloat64:
      return Constant(Immediate(o, bytes), bytes);
    case Operand::Kind::kSpecial:
      if (bytes != 4) break;
      return Special(o.symbol);
    case Operand::Kind::kReference: {
      uint64_t value = 0;
      Space space{};
      if (!ValueOf(o, value, space)) return 0;
      return Constant(value, bytes);
    }
    default:
      break;
  }
  Fail("the operand {} does not fit an instruction of {} bytes", o.symbol, least);
  return 0;
}

int32_t Decoder::Source(const Operand& o, int bytes) {
  int actual = 0;
  const int32_t at = AnySource(o, bytes, actual);
  if (!failed() && actual != bytes)
    Fail("the operand {} has {} bytes, the instruction {}", o.symbol, actual, bytes);
  return at;
}

int32_t Decoder::AnyDestination(const Operand& o, int& bytes) {
  if (o.kind == Operand::Kind::kSink) return Scratch(bytes);
  if (o.kind != Operand::Kind::kRegister || RegisterBytes(o.reg) == 0) {
    Fail("the destination is no register");
    return 0;
  }
  bytes = RegisterBytes(o.reg);
  return Register(o.reg);
}

int32_t Decoder::Destination(const Operand& o, int bytes) {
  int actual = bytes;
  const int32_t at = AnyDestination(o, actual);
  if (!failed() && actual != bytes)
    Fail("the register {} has {} bytes, the instruction {}", o.symbol, actual, bytes);
  return at;
}

int32_t Decoder::Predicate(int reg) {
  if (reg < 0) return static_cast<int32_t>(program_.predicates++);
  if (RegisterBytes(reg) != 0) Fail("expected a predicate");
  return failed() ? 0 : Register(reg);
}

int32_t Decoder::PredicateSource(const Operand& o) {
  if (o.kind == Operand::Kind::kInteger) return o.bits != 0 ? 0 : 1;
  if (o.kind == Operand::Kind::kRegister) return Predicate(o.reg);
  Fail("expected a predicate");
  return 0;
}

int32_t Decoder::PredicateDestination(const Operand& o) {
  if (o.kind == Operand::Kind::kSink || o.kind == Operand::Kind::kRegister) return Predicate(o.reg);
  Fail("expected a predicate");
  return 0;
}

int32_t Decoder::List(const Operand& o, int bytes, bool write) {
  const auto first = static_cast<int32_t>(program_.lists.size());
  std::vector<int32_t> places;
  if (o.kind != Operand::Kind::kVector) {
    places.push_back(write ? Destination(o, bytes) : Source(o, bytes));
  } else {
    for (const Operand& part : o.parts)
      places.push_back(write ? Destination(part, bytes) : Source(part, bytes));
  }
  program_.lists.insert(program_.lists.end(), places.begin(), places.end());
  return first;
}

Op& Decoder::Emit(Op op) {
  op.line = in_->line;
  if (in_->guard >= 0) {
    op.guard = Predicate(in_->guard);
    op.guard_negated = in_->guard_negated;
  }
  program_.ops.push_back(op);
  return program_.ops.back();
}

Op& Decoder::Emit(Handler run, Kind kind) {
  Op op;
  op.run = run;
  op.kind = kind;
  if (run == nullptr) Fail("this form of the instruction is not supported");
  return Emit(op);
}

}  // namespace forge::ptx
