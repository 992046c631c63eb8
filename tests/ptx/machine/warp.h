// SPDX-License-Identifier: Apache-2.0
// 32 lanes that execute together: registers, lanes by program counter, and what they wait for.
#pragma once
#include <cstring>
#include <string>

#include "tests/ptx/machine/decode/program.h"
#include "tests/ptx/machine/statistics.h"

namespace forge::ptx {

struct Block;

// A copy by cp.async that has not landed.
struct PendingCopy {
  int lane;
  uint32_t group;
  uint32_t at;  // in shared memory
  uint32_t bytes;
  uint8_t data[16];
};

// A product by wgmma that was not waited for.
struct PendingProduct {
  const Op* op;
  uint32_t group;
  uint64_t tiles[2][3];  // of A and B: start and strides
  uint64_t digests[2] = {};
};

// Lanes of a warp at the same operation.
struct Group {
  int pc;
  uint32_t lanes;
  bool waiting;  // for other lanes, at a kWarpSync or kBarrier
};

struct Warp {
  enum class State { kReady, kAtBarrier, kDone };

  Block* block = nullptr;
  const Program* program = nullptr;
  uint8_t* registers = nullptr;
  const uint8_t* constants = nullptr;
  std::vector<uint32_t> predicates;
  std::vector<uint8_t> local;  // of lane i: from i * local_bytes on
  int index = 0;
  State state = State::kReady;
  uint32_t existing = 0, live = 0;  // lanes of the block; those that have not ended
  uint32_t active = 0;              // lanes that execute now, at pc
  int pc = 0;
  bool active_waiting = false;
  std::vector<Group> others;
  int nearest = 0;  // lowest pc of `others` that may run

  // Order of accesses to shared memory; see shadow.h.
  uint32_t now = 1, lane_floor = 0;
  uint32_t lane_sync[kLanes][kLanes] = {};
  uint32_t warp_sync[kLanes] = {};

  std::vector<PendingCopy> copies;
  uint32_t copy_group[kLanes] = {};
  std::vector<PendingProduct> products;
  uint32_t product_group = 0;
  bool products_fenced = false;
  // What lanes wrote to shared memory since their last fence.proxy.async: lane, first byte, bytes.
  struct Unfenced {
    int lane;
    uint64_t at;
    uint32_t bytes;
  };
  std::vector<Unfenced> unfenced;
  int barrier = 0, barrier_threads = 0;  // while kAtBarrier
  const Op* barrier_op = nullptr;
  uint32_t starved = 0;  // steps since lanes that could run did not
  bool failed = false;

  template <class T>
  const T* In(int32_t at) const {
    return reinterpret_cast<const T*>(at < 0 ? constants + ~at : registers + at);
  }
  template <class T>
  T* Register(int32_t at) {
    return reinterpret_cast<T*>(registers + at);
  }
  // Stores the values of the lanes. T has the size of the register.
  template <class T>
  void Out(int32_t at, const T* values, uint32_t lanes) {
    T* const to = Register<T>(at);
    if (lanes == kAllLanes) {
      std::memcpy(to, values, kLanes * sizeof(T));
      return;
    }
    for (int i = 0; i < kLanes; ++i) to[i] = (lanes >> i & 1) != 0 ? values[i] : to[i];
  }
  void OutPredicate(int32_t at, uint32_t values, uint32_t lanes) {
    predicates[at] = (predicates[at] & ~lanes) | (values & lanes);
  }
  // Ends the launch with a finding about `lane`. The first one counts.
  void Fail(int lane, std::string what);
  // Orders what the lanes have done before what they do from here on.
  void SyncLanes(uint32_t lanes);
  // Runs until all lanes have ended, wait at a barrier, or `steps` are done. Returns false after a
  // finding.
  bool Run(uint64_t steps);

 private:
  bool Step(const Op& op, uint32_t lanes);
  void Branch(const Op& op, uint32_t taken);
  void BranchIndexed(const Op& op, uint32_t lanes);
  void Exit(uint32_t lanes);
  bool CheckNobodyWaitsFor(uint32_t lanes);
  bool SyncWarp(const Op& op, uint32_t lanes);
  bool Arrive(const Op& op, uint32_t lanes);
  void Suspend(int at, uint32_t lanes, bool waiting);
  bool Select();  // the next group; false if none may run
  void FindNearest();
  void ReportDeadlock();
};

// Calls f(lane) for each lane of the mask, from the lowest on.
template <class F>
void ForLanes(uint32_t lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(__builtin_ctz(lanes));
}

}  // namespace forge::ptx
