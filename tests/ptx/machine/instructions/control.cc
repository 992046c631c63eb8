// SPDX-License-Identifier: Apache-2.0
// Branches, barriers, fences. Source: PTX ISA 9.5, "Control Flow Instructions", "Parallel
// Synchronization and Communication Instructions".
#include <algorithm>
#include <bit>

#include "tests/ptx/machine/access.h"
#include "tests/ptx/machine/barrier.h"

namespace forge::ptx {
namespace {

void RunTrap(Warp& w, const Op&, uint32_t lanes) {
  w.Fail(std::countr_zero(lanes), "the kernel traps");
}

void RunSyncWarp(Warp& w, const Op&, uint32_t lanes) { w.SyncLanes(lanes); }

// Notes which barrier the warp waits at; Block releases it.
void RunBarrier(Warp& w, const Op& op, uint32_t lanes) {
  const uint32_t number = w.In<uint32_t>(op.a)[std::countr_zero(lanes)];
  const uint32_t threads = op.b != INT32_MAX ? w.In<uint32_t>(op.b)[std::countr_zero(lanes)] : 0;
  const int lane = std::countr_zero(lanes);
  if (number >= static_cast<uint32_t>(kBarriers))
    return w.Fail(lane, fmt::format("there is no barrier {}", number));
  if (threads % kLanes != 0 || threads > w.block->warps.size() * kLanes)
    return w.Fail(lane, fmt::format("a barrier of {} threads in a block of {} warps", threads,
                                    w.block->warps.size()));
  w.barrier = static_cast<int>(number);
  w.barrier_threads = static_cast<int>(threads);
}

void EmitWarpBarrier(Decoder& d) {
  d.Take("sync");
  Op op;
  op.run = RunSyncWarp;
  op.control = Control::kWarpSync;
  op.kind = Kind::kSync;
  op.mask = d.Source(0, 4);
  d.Emit(op);
}

}  // namespace

void ReduceAtBarrier(const std::vector<Warp*>& arrived) {
  const auto how = static_cast<Reduction>(arrived.front()->barrier_op->flags & 3);
  if (how == Reduction::kNone) return;
  uint32_t count = 0, threads = 0;
  for (const Warp* w : arrived) {
    const Op& op = *w->barrier_op;
    const uint32_t p = op.offset != 0 ? ~w->predicates[op.c] : w->predicates[op.c];
    count += std::popcount(p & w->existing);
    threads += std::popcount(w->existing);
  }
  for (Warp* w : arrived) {
    const Op& op = *w->barrier_op;
    if (how == Reduction::kPopc) {
      uint32_t r[kLanes];
      std::fill(r, r + kLanes, count);
      w->Out(op.d, r, w->existing);
    } else {
      const bool holds = how == Reduction::kAnd ? count == threads : count != 0;
      w->OutPredicate(op.d, holds ? kAllLanes : 0, w->existing);
    }
  }
}

void DecodeBarrier(Decoder& d) {
  if (d.Take("warp")) return EmitWarpBarrier(d);
  d.Take("cta");
  const int how = d.TakeOneOf({"sync", "red"});
  d.Take("aligned");
  if (how < 0) return d.Fail("this barrier is not supported");
  Op op;
  op.run = RunBarrier;
  op.control = Control::kBarrier;
  op.kind = Kind::kSync;
  size_t at = 0;
  if (how == 1) {
    const int reduction = d.TakeOneOf({"popc", "and", "or"});
    d.TakeType();
    if (reduction < 0 || d.operands() < 3) return d.Fail("this barrier is not supported");
    op.flags = static_cast<uint8_t>(reduction + 1);
    op.d = reduction == 0 ? d.Destination(0, 4) : d.PredicateDestination(d.operand(0));
    const Operand& p = d.operand(d.operands() - 1);
    op.c = d.PredicateSource(p);
    op.offset = p.negated ? 1 : 0;
    at = 1;
  }
  op.a = d.Source(at, 4);
  const size_t last = d.operands() - (how == 1 ? 1 : 0);
  op.b = at + 1 < last ? d.Source(at + 1, 4) : INT32_MAX;
  d.Emit(op);
}

void DecodeControl(Decoder& d) {
  const std::string_view name = d.in().opcode;
  if (name == "call") return d.EmitCall();
  d.Take("uni");
  if (name == "bra") return d.EmitBranch(d.operand(0));
  if (name == "ret") return d.EmitReturn();
  if (name == "brx") {
    d.Take("idx");
    return d.EmitIndexed(d.operand(0), d.operand(1));
  }
  if (name == "exit") {
    Op op;
    op.control = Control::kExit;
    op.kind = Kind::kControl;
    d.Emit(op);
    return;
  }
  if (name == "trap" || name == "brkpt") {
    d.Emit(RunTrap, Kind::kControl);
    return;
  }
  if (name == "fence" && d.Take("proxy") && d.Take("async")) {
    d.TakeOneOf({"shared::cta", "global"});
    d.Emit([](Warp& w, const Op&, uint32_t lanes) { w.block->shadow.FenceProxy(w, lanes); },
           Kind::kSync);
    return;
  }
  // membar, other fences, nanosleep and griddepcontrol change nothing here: memory is sequentially
  // consistent.
  while (!d.TakeNext().empty()) {
  }
}

}  // namespace forge::ptx
