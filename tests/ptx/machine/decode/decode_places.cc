// SPDX-License-Identifier: Apache-2.0
// The part of the decoder that knows where variables lie, and the one that inlines calls.
#include <algorithm>

#include "tests/ptx/machine/decode/decoder.h"
#include "tests/ptx/machine/memory.h"
#include "tests/ptx/machine/warp.h"

namespace forge::ptx {
namespace {

constexpr int kMostCallDepth = 16;
constexpr uint64_t kMostLocalBytes = 512 << 10;  // of a thread
constexpr uint64_t kMostStaticBytes = 48 << 10;  // of shared memory, as in ptxas
// Between shared variables: a whole row of banks, so that conflicts stay the same.
constexpr uint64_t kRedZone = 128;

uint64_t Aligned(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

void EndsWithTrap(Warp& w, const Op&, uint32_t lanes) {
  w.Fail(__builtin_ctz(lanes), "an assertion of the kernel fails");
}

}  // namespace

uint64_t Decoder::PlaceLocal(uint64_t bytes, uint32_t align) {
  const uint64_t at = Aligned(program_.local_bytes, std::max(align, 1u));
  if (at + bytes > kMostLocalBytes) {
    Fail("the kernel needs too much local memory");
    return 0;
  }
  program_.local_bytes = Aligned(at + bytes, 16);
  return at;
}

uint64_t Decoder::PlaceShared(const Variable& v) {
  const uint64_t align = std::max(v.align, 1u);
  program_.shared_declared = Aligned(program_.shared_declared, align) + v.bytes;
  if (program_.shared_declared > kMostStaticBytes) {
    Fail("the kernel has {} bytes of static shared memory, more than {}", program_.shared_declared,
         kMostStaticBytes);
    return 0;
  }
  uint64_t start = program_.shared_bytes;
  if (!program_.shared_ranges.empty()) start = Aligned(start, kRedZone) + kRedZone;
  start = Aligned(start, align);
  program_.shared_ranges.push_back({start, start + v.bytes});
  program_.shared_bytes = start + v.bytes;
  return start;
}

uint64_t Decoder::Place(int variable) {
  const auto found = frame_->variables.find(variable);
  if (found != frame_->variables.end()) return found->second;
  const Variable& v = frame_->function->variables[variable];
  uint64_t at = 0;
  if (v.space == Space::kShared)
    at = PlaceShared(v);
  else if (v.space == Space::kLocal || v.space == Space::kParam)
    at = PlaceLocal(v.bytes, v.align);
  else
    Fail("the variable {} of a function is not supported", v.name);
  frame_->variables[variable] = at;
  return at;
}

bool Decoder::ValueOf(const Operand& o, uint64_t& value, Space& space) {
  if (o.variable >= 0) {
    const Variable& v = frame_->function->variables[o.variable];
    space = v.space == Space::kParam ? Space::kLocal : v.space;
    value = Place(o.variable) + o.offset;
    return !failed();
  }
  if (const auto found = frame_->params.find(o.symbol); found != frame_->params.end()) {
    space = frame_->function->entry ? Space::kParam : Space::kLocal;
    value = found->second + o.offset;
    return true;
  }
  for (const Variable& v : module_.variables) {
    if (v.name != o.symbol) continue;
    space = v.space;
    if (v.space != Space::kShared) {
      const auto global = globals_.find(v.name);
      if (global == globals_.end()) break;
      value = global->second.first + o.offset;
      return true;
    }
    const auto [place, added] = module_shared_.try_emplace(v.name, 0);
    if (added && v.dynamic)
      place->second = kDynamicShared + program_.dynamic_skew;
    else if (added)
      place->second = PlaceShared(v);
    value = place->second + o.offset;
    return !failed();
  }
  Fail("there is no variable {}", o.symbol);
  return false;
}

Space Decoder::Address(const Operand& o, Space space, Op& op) {
  if (o.kind != Operand::Kind::kAddress || o.parts.size() != 1) {
    Fail("expected an address");
    return space;
  }
  const Operand& base = o.parts[0];
  op.offset = o.offset;
  uint64_t value = 0;
  if (base.kind == Operand::Kind::kRegister) {
    int bytes = 0;
    op.a = AnySource(base, 4, bytes);
    if (bytes == 4) op.flags |= kAddress32;
    if (bytes != 4 && bytes != 8) Fail("an address has 4 or 8 bytes");
    return space;
  }
  if (base.kind == Operand::Kind::kInteger) {
    op.a = Constant(base.bits, 8);
    return space;
  }
  if (base.kind != Operand::Kind::kReference || !ValueOf(base, value, space)) {
    Fail("this form of address is not supported");
    return space;
  }
  op.a = Constant(value, 8);
  return space;
}

void Decoder::EmitBranch(const Operand& label) {
  if (label.kind != Operand::Kind::kReference) return Fail("expected a label");
  frame_->fixes.push_back({static_cast<int>(program_.ops.size()), label.symbol, label.scope, -1});
  Op op;
  op.control = Control::kBranch;
  op.kind = Kind::kControl;
  Emit(op);
}

void Decoder::EmitIndexed(const Operand& index, const Operand& targets) {
  for (const Function::Targets& t : frame_->function->targets) {
    if (t.name != targets.symbol) continue;
    Op op;
    op.control = Control::kIndexed;
    op.kind = Kind::kControl;
    op.a = Source(index, 4);
    op.target = static_cast<int>(program_.targets.size());
    program_.targets.push_back(static_cast<int>(t.labels.size()));
    for (const std::string_view label : t.labels) {
      const int entry = static_cast<int>(program_.targets.size());
      frame_->fixes.push_back({0, label, t.scope, entry});
      program_.targets.push_back(0);
    }
    Emit(op);
    return;
  }
  Fail("there is no list of targets {}", targets.symbol);
}

void Decoder::EmitReturn() {
  Op op;
  op.kind = Kind::kControl;
  if (depth_ == 0) {
    op.control = Control::kExit;
  } else {
    op.control = Control::kBranch;
    frame_->returns.push_back(static_cast<int>(program_.ops.size()));
  }
  Emit(op);
}

// Parameters of the callee are the caller's variables: both lie in local memory.
bool Decoder::BindCall(const Function& callee, const Operand* results, const Operand* arguments,
                       Frame& frame) {
  const auto bind = [&](const std::vector<Variable>& formal, const Operand* actual) {
    if (formal.size() != (actual == nullptr ? 0 : actual->parts.size())) return false;
    for (size_t i = 0; i < formal.size(); ++i) {
      const Operand& o = actual->parts[i];
      if (o.kind != Operand::Kind::kReference || o.variable < 0) return false;
      if (frame_->function->variables[o.variable].bytes < formal[i].bytes) return false;
      frame.params[formal[i].name] = Place(o.variable);
    }
    return true;
  };
  return bind(callee.results, results) && bind(callee.params, arguments);
}

void Decoder::EmitCall() {
  Take("uni");
  const Operand* results = nullptr;
  const Operand* arguments = nullptr;
  std::string_view name;
  for (const Operand& o : in_->operands) {
    if (o.kind == Operand::Kind::kReference && name.empty())
      name = o.symbol;
    else if (o.kind == Operand::Kind::kArguments)
      (name.empty() ? results : arguments) = &o;
  }
  if (name == "vprintf") return;  // What kernels print is not shown.
  if (name == "__assertfail") {
    Emit(EndsWithTrap);
    return;
  }
  for (const Function& callee : module_.functions) {
    if (callee.name != name || !callee.defined || callee.entry) continue;
    if (depth_ >= kMostCallDepth) return Fail("calls are too deep, or recursive");
    if (in_->guard >= 0) return Fail("a call under a guard is not supported");
    Frame frame;
    frame.function = &callee;
    if (!BindCall(callee, results, arguments, frame))
      return Fail("the arguments do not fit {}", name);
    ++depth_;
    const Instruction* const call = in_;
    const std::vector<bool> taken = taken_;
    Body(frame);
    in_ = call;
    taken_ = taken;
    --depth_;
    return;
  }
  Fail("there is no function {}", name);
}

}  // namespace forge::ptx
