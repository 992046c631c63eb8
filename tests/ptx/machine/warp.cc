// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/warp.h"

#include <algorithm>
#include <bit>
#include <climits>

#include "tests/ptx/machine/block.h"

namespace forge::ptx {
namespace {

// Steps after which lanes that wait for the lowest program counter have their turn: what they spin
// on may be theirs.
constexpr uint32_t kMostStarved = 20000;

}  // namespace

void Warp::Fail(int lane, std::string what) {
  if (failed) return;
  failed = true;
  const Op& op = program->ops[pc];
  const Dim3& size = block->launch.threads;
  const uint32_t thread = index * kLanes + lane;
  block->finding = fmt::format(
      "kernel {}, block ({}, {}, {}), thread ({}, {}, {}), line {} \"{}\": {}", program->name,
      block->id.x, block->id.y, block->id.z, thread % size.x, thread / size.x % size.y,
      thread / size.x / size.y, op.line, program->Line(op.line), what);
}

void Warp::SyncLanes(uint32_t lanes) {
  ++now;
  if (lanes == existing) {
    lane_floor = now;
    return;
  }
  uint32_t latest[kLanes] = {};
  ForLanes(lanes, [&](int i) {
    for (int k = 0; k < kLanes; ++k) latest[k] = std::max(latest[k], lane_sync[i][k]);
  });
  ForLanes(lanes, [&](int j) { latest[j] = now; });
  ForLanes(lanes, [&](int i) { std::copy(latest, latest + kLanes, lane_sync[i]); });
}

void Warp::FindNearest() {
  nearest = INT_MAX;
  for (const Group& g : others)
    if (!g.waiting) nearest = std::min(nearest, g.pc);
}

void Warp::Suspend(int at, uint32_t lanes, bool waiting) {
  if (lanes == 0) return;
  for (Group& g : others) {
    if (g.pc != at) continue;
    g.lanes |= lanes;
    g.waiting = false;  // What it waits for may have come.
    FindNearest();
    return;
  }
  others.push_back({at, lanes, waiting});
  FindNearest();
}

// Puts the active lanes with the others and takes the group that is the furthest behind.
bool Warp::Select() {
  Suspend(pc, active, active_waiting);
  active = 0;
  active_waiting = false;
  const bool turn = starved > kMostStarved;
  auto best = others.end();
  for (auto g = others.begin(); g != others.end(); ++g) {
    if (g->waiting) continue;
    if (best == others.end() || (turn ? g->pc > best->pc : g->pc < best->pc)) best = g;
  }
  if (best == others.end()) return false;
  pc = best->pc;
  active = best->lanes;
  others.erase(best);
  FindNearest();
  if (turn) starved = 0, nearest = INT_MAX;
  return true;
}

bool Warp::Run(uint64_t steps) {
  Statistics& s = block->statistics;
  for (; steps > 0 && state == State::kReady; --steps) {
    if (!others.empty() && ++starved > kMostStarved) active_waiting = false;
    if (active == 0 || active_waiting ||
        (!others.empty() && (pc >= nearest || starved > kMostStarved))) {
      if (!Select()) {
        ReportDeadlock();
        return false;
      }
    }
    const Op& op = program->ops[pc];
    uint32_t lanes = active;
    if (op.guard >= 0) lanes &= op.guard_negated ? ~predicates[op.guard] : predicates[op.guard];
    ++s.instructions;
    s.lanes += std::popcount(lanes);
    s.divergent += lanes != existing;
    s.matrix += op.kind == Kind::kMatrix;
    if (op.control == Control::kPlain) {
      if (lanes != 0) op.run(*this, op, lanes);
      if (failed) return false;
      ++pc;
    } else if (!Step(op, lanes)) {
      return false;
    }
  }
  return true;
}

bool Warp::Step(const Op& op, uint32_t lanes) {
  switch (op.control) {
    case Control::kBranch:
      Branch(op, lanes);
      return true;
    case Control::kIndexed:
      BranchIndexed(op, lanes);
      return !failed;
    case Control::kExit:
      Exit(lanes);
      return !failed;
    case Control::kWarpSync:
      return SyncWarp(op, lanes);
    case Control::kBarrier:
      return Arrive(op, lanes);
    case Control::kPlain:
      break;
  }
  return true;
}

void Warp::Branch(const Op& op, uint32_t taken) {
  if (taken == 0) {
    ++pc;
  } else if (taken == active) {
    pc = op.target;
  } else {
    Suspend(op.target, taken, false);
    active &= ~taken;
    ++pc;
  }
}

void Warp::BranchIndexed(const Op& op, uint32_t lanes) {
  const auto* const index = In<uint32_t>(op.a);
  const uint32_t count = program->targets[op.target];
  active &= ~lanes;
  ForLanes(lanes, [&](int i) {
    if (failed) return;
    if (index[i] >= count) return Fail(i, fmt::format("index {} of {} targets", index[i], count));
    Suspend(program->targets[op.target + 1 + index[i]], uint32_t{1} << i, false);
  });
  ++pc;
}

// Lanes that a waiting shuffle or vote names must execute it, too.
bool Warp::CheckNobodyWaitsFor(uint32_t lanes) {
  for (const Group& g : others) {
    const Op& op = program->ops[g.pc];
    if (op.control != Control::kWarpSync) continue;
    uint32_t missed = 0;
    ForLanes(g.lanes, [&](int i) { missed |= In<uint32_t>(op.mask)[i] & lanes; });
    if (missed == 0) continue;
    pc = g.pc;
    Fail(std::countr_zero(g.lanes),
         fmt::format("lanes {:#010x} end without it, which the mask names", missed));
    return false;
  }
  return true;
}

void Warp::Exit(uint32_t lanes) {
  if (lanes != 0) {
    if (!CheckNobodyWaitsFor(lanes)) return;
    live &= ~lanes;
    active &= ~lanes;
    // Masks that name the lanes are asked of the others only, from now on.
    for (Group& g : others) g.waiting = false;
    FindNearest();
  }
  ++pc;
  if (live == 0) state = State::kDone;
}

// The lanes whose masks are complete go on; the others wait.
bool Warp::SyncWarp(const Op& op, uint32_t lanes) {
  const auto* const masks = In<uint32_t>(op.mask);
  uint32_t complete = 0;
  ForLanes(lanes, [&](int i) {
    if (failed) return;
    if ((masks[i] >> i & 1) == 0)
      return Fail(i, fmt::format("the mask {:#010x} lacks lane {} itself", masks[i], i));
    if (((masks[i] & live) & ~lanes) == 0) complete |= uint32_t{1} << i;
  });
  if (failed) return false;
  if (complete != 0) op.run(*this, op, complete);
  if (failed) return false;
  const uint32_t waiting = lanes & ~complete;
  if (waiting == 0) {
    ++pc;
    return true;
  }
  active &= ~waiting;
  // New lanes that meet the waiting ones must be looked at together, so they go through Suspend.
  Suspend(pc, waiting, true);
  ++pc;
  return true;
}

bool Warp::Arrive(const Op& op, uint32_t lanes) {
  if (lanes == 0) {
    ++pc;
    return true;
  }
  if (lanes != live) {
    active &= ~lanes;
    Suspend(pc, lanes, true);
    ++pc;
    return true;
  }
  if (live != existing) {
    Fail(std::countr_zero(lanes),
         fmt::format("a barrier that lanes {:#010x} of the warp never reach: they have ended",
                     existing & ~live));
    return false;
  }
  op.run(*this, op, lanes);
  if (failed) return false;
  state = State::kAtBarrier;
  barrier_op = &op;
  ++pc;
  return true;
}

void Warp::ReportDeadlock() {
  std::string where;
  for (const Group& g : others) {
    const int line = program->ops[g.pc].line;
    where += fmt::format("; lanes {:#010x} at line {} \"{}\"", g.lanes, line, program->Line(line));
  }
  if (others.empty())
    where = "; no lane is left";
  else
    pc = others.front().pc;
  const int lane = others.empty() ? 0 : std::countr_zero(others.front().lanes);
  Fail(lane, "divergence: lanes of the warp wait for each other for ever" + where);
}

}  // namespace forge::ptx
