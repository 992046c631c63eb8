// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/machine/block.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "tests/ptx/machine/barrier.h"

namespace forge::ptx {
namespace {

constexpr uint64_t kQuantum = 1 << 14;  // steps of a warp before the next has its turn
constexpr size_t kRegisterAlign = 64;

}  // namespace

Block::Block(const Launch& l, std::shared_ptr<const AllocationTable> t)
    : launch(l), table(std::move(t)) {
  const auto threads = static_cast<uint32_t>(launch.threads.count());
  warps.resize((threads + kLanes - 1) / kLanes);
  const size_t bytes =
      (launch.program->register_bytes + kRegisterAlign - 1) / kRegisterAlign * kRegisterAlign;
  registers.assign(bytes * warps.size() + kRegisterAlign, 0);
  uint8_t* base = registers.data();
  base += (kRegisterAlign - reinterpret_cast<uintptr_t>(base) % kRegisterAlign) % kRegisterAlign;
  for (size_t i = 0; i < warps.size(); ++i) {
    Warp& w = warps[i];
    w.block = this;
    w.program = launch.program;
    w.index = static_cast<int>(i);
    w.registers = base + i * bytes;
    w.constants = launch.program->constants.bytes.data();
    const uint32_t lanes = std::min<uint32_t>(threads - i * kLanes, kLanes);
    w.existing = lanes == kLanes ? kAllLanes : (uint32_t{1} << lanes) - 1;
  }
}

void Block::Prepare(Warp& w) {
  w.predicates.assign(launch.program->predicates, 0);
  w.predicates[0] = kAllLanes;
  w.local.assign(launch.program->local_bytes * kLanes, 0xff);
  w.state = Warp::State::kReady;
  w.live = w.active = w.existing;
  w.pc = 0;
  w.active_waiting = false;
  w.others.clear();
  w.copies.clear();
  w.now = 1;
  w.lane_floor = w.starved = 0;
  std::memset(w.lane_sync, 0, sizeof(w.lane_sync));
  std::memset(w.warp_sync, 0, sizeof(w.warp_sync));
  std::memset(w.copy_group, 0, sizeof(w.copy_group));
  FillSpecials(w);
}

void Block::FillSpecials(Warp& w) {
  const Dim3 n = launch.threads;
  for (const SpecialSlot& slot : launch.program->specials) {
    auto* const to = w.Register<uint32_t>(slot.at);
    for (int i = 0; i < kLanes; ++i) {
      const uint32_t thread = w.index * kLanes + i;
      const std::pair<std::string_view, uint32_t> values[] = {
          {"%tid.x", thread % n.x},
          {"%tid.y", thread / n.x % n.y},
          {"%tid.z", thread / n.x / n.y},
          {"%ntid.x", n.x},
          {"%ntid.y", n.y},
          {"%ntid.z", n.z},
          {"%ctaid.x", id.x},
          {"%ctaid.y", id.y},
          {"%ctaid.z", id.z},
          {"%nctaid.x", launch.grid.x},
          {"%nctaid.y", launch.grid.y},
          {"%nctaid.z", launch.grid.z},
          {"%laneid", i},
          {"%warpid", w.index},
          {"%nwarpid", 64},
          {"%smid", 0},
          {"%nsmid", 1},
          {"%lanemask_eq", uint32_t{1} << i},
          {"%lanemask_lt", (uint32_t{1} << i) - 1},
          {"%lanemask_le", ((uint32_t{1} << i) - 1) | uint32_t{1} << i},
          {"%lanemask_ge", ~((uint32_t{1} << i) - 1)},
          {"%lanemask_gt", ~(((uint32_t{1} << i) - 1) | uint32_t{1} << i)},
          {"%dynamic_smem_size", launch.dynamic_shared},
          {"%total_smem_size",
           static_cast<uint32_t>(launch.program->shared_declared + launch.dynamic_shared)},
          {"WARP_SZ", kLanes},
      };
      for (const auto& [name, value] : values)
        if (name == slot.name) to[i] = value;
    }
  }
}

uint32_t Block::live_threads() const {
  uint32_t n = 0;
  for (const Warp& w : warps) n += std::popcount(w.live);
  return n;
}

bool Block::Release(int barrier, const std::vector<Warp*>& arrived) {
  uint32_t latest[kLanes] = {};
  for (Warp* w : arrived) {
    w->SyncLanes(w->existing);
    for (int q = 0; q < kLanes; ++q) latest[q] = std::max(latest[q], w->warp_sync[q]);
  }
  for (const Warp* w : arrived) latest[w->index] = w->now;
  ReduceAtBarrier(arrived);
  for (Warp* w : arrived) {
    std::copy(latest, latest + kLanes, w->warp_sync);
    w->state = Warp::State::kReady;
  }
  statistics.barriers += arrived.size();
  (void)barrier;
  return true;
}

// Releases each barrier that all its threads have reached. Returns whether there was one.
bool Block::ReleaseBarriers() {
  bool released = false;
  for (int barrier = 0; barrier < kBarriers; ++barrier) {
    std::vector<Warp*> arrived;
    uint32_t threads = 0, expected = 0;
    for (Warp& w : warps) {
      if (w.state != Warp::State::kAtBarrier || w.barrier != barrier) continue;
      arrived.push_back(&w);
      threads += kLanes;
      expected = w.barrier_threads != 0 ? static_cast<uint32_t>(w.barrier_threads)
                                        : static_cast<uint32_t>(warps.size()) * kLanes;
    }
    if (arrived.empty() || threads < expected) continue;
    released = Release(barrier, arrived);
  }
  return released;
}

absl::Status Block::Run(Dim3 block_id) {
  id = block_id;
  const Program& p = *launch.program;
  const uint64_t dynamic_start = p.shared_bytes + p.dynamic_skew;
  const uint64_t bytes = dynamic_start + launch.dynamic_shared;
  shared.assign(bytes, 0xff);
  auto ranges = p.shared_ranges;
  ranges.push_back({dynamic_start, bytes});
  shadow.Reset(bytes, p.shared_granule, ranges, launch.races);
  const uint64_t number = id.x + uint64_t{launch.grid.x} * (id.y + uint64_t{launch.grid.y} * id.z);
  random.seed(launch.seed ^ (number * 0x9e3779b97f4a7c15u));
  std::vector<Warp*> order;
  for (Warp& w : warps) {
    Prepare(w);
    order.push_back(&w);
  }
  if (launch.order == Order::kReversed) std::reverse(order.begin(), order.end());
  const uint64_t limit = statistics.instructions + launch.most_steps;
  while (true) {
    if (launch.order == Order::kRandom) std::shuffle(order.begin(), order.end(), random);
    bool ran = false, done = true;
    for (Warp* w : order) {
      done &= w->state == Warp::State::kDone;
      if (w->state != Warp::State::kReady) continue;
      ran = true;
      const uint64_t steps =
          launch.order == Order::kRandom ? 1 + random() % (kQuantum / 8) : kQuantum;
      if (!w->Run(steps)) return absl::AbortedError(finding);
    }
    if (done) return absl::OkStatus();
    if (!ran && !ReleaseBarriers()) {
      for (Warp* w : order)
        if (w->state == Warp::State::kAtBarrier) {
          --w->pc;
          w->Fail(0,
                  "a barrier that not all threads of the block reach: the others have ended or "
                  "wait elsewhere");
        }
      return absl::AbortedError(finding);
    }
    if (statistics.instructions > limit) {
      order.front()->Fail(
          0, fmt::format("the block runs for more than {} instructions", launch.most_steps));
      return absl::AbortedError(finding);
    }
  }
}

}  // namespace forge::ptx
