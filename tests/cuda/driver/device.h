// SPDX-License-Identifier: Apache-2.0
// The emulated device: what it says of itself, and what the environment makes it do.
//
//   FORGE_EMULATED_CUDA_CAPABILITY  compute capability (default 8.0)
//   FORGE_EMULATED_CUDA_MEMORY      bytes of device memory (default 8 GiB)
//   FORGE_EMULATED_CUDA_SEED        order of streams, warps and blocks (default 1)
//   FORGE_EMULATED_CUDA_ORDER       forward, reversed or random: warps and blocks (default forward)
//   FORGE_EMULATED_CUDA_RACES       0: does not look for races in shared memory (faster)
//   FORGE_EMULATED_CUDA_FAIL        NAME:N[=CODE],...: the N-th call of NAME, or of any (*), fails
//   FORGE_EMULATED_CUDA_STATISTICS  a file that a line for each launch is added to
//   FORGE_EMULATED_CUDA_DEVICES     how many devices there are (default 1)
#pragma once
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>

#include "tests/cuda/driver/handles.h"
#include "tests/cuda/driver/work.h"
#include "tests/ptx/machine/machine.h"

namespace forge::emulated {

struct Settings {
  int major = 8, minor = 0, devices = 1;
  uint64_t memory = uint64_t{8} << 30;
  uint64_t seed = 1;
  ptx::Order order = ptx::Order::kForward;
  bool races = true;
  std::string statistics;
  struct Failure {
    std::string name;
    int64_t call;
    CUresult code;
  };
  std::vector<Failure> failures;
};

// Reads the environment. Malformed values are reported on stderr, and ignored.
Settings ReadSettings();

struct Kernel {
  const ptx::Program* program = nullptr;
  Module* module = nullptr;
  int max_dynamic_shared = 48 << 10;
};

struct Module {
  std::unique_ptr<ptx::LoadedModule> loaded;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};

struct Context {
  int device = 0, retained = 0;
};

struct Pool {
  uint64_t threshold = 0, used = 0;
};

class Device {
 public:
  // The one of the process. Never destroyed: calls may come while the process ends.
  static Device& Get();

  const Settings& settings() const { return settings_; }
  ptx::Memory& memory() { return memory_; }
  int SharedOptin() const;  // bytes of a block, at most
  // The value of a CUdevice_attribute; 0 for those not known.
  int Attribute(int attribute) const;
  // Counts the call and returns the code it fails with, or success.
  CUresult Enter(const char* name);
  // A finding: every later call fails with the code, until the context is reset.
  void SetLost(CUresult code, const std::string& finding);
  CUresult lost() const;
  void ResetLost();

  Handles<Module> modules;
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Graph> graphs;
  Handles<GraphExec> graph_execs;
  Pool pool;
  bool initialised = false;
  Context context[8];

  // Host memory that the device may access: base -> bytes. Own: allocated by the driver.
  struct Pinned {
    size_t bytes;
    bool own;
  };
  std::mutex pinned_mutex;
  std::map<uint8_t*, Pinned> pinned;
  bool IsPinned(const void* p, size_t bytes);

 private:
  Device() : settings_(ReadSettings()), memory_(settings_.memory) {}
  const Settings settings_;
  ptx::Memory memory_;
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> calls_;
  int64_t all_calls_ = 0;
  CUresult lost_ = CUDA_SUCCESS;
};

// The contexts that a thread has pushed. It has no destructor: at the end of a process, calls come
// behind those of the thread's objects.
class ContextStack {
 public:
  bool empty() const { return size_ == 0; }
  Context* back() const { return all_[size_ - 1]; }
  void set_back(Context* c) { all_[size_ - 1] = c; }
  bool full() const { return size_ == all_.size(); }
  void push_back(Context* c) { all_[size_++] = c; }
  void pop_back() { --size_; }

 private:
  std::array<Context*, 64> all_;
  size_t size_;
};

// Of this thread; cuCtxPushCurrent and its like change it.
ContextStack& CurrentContexts();

}  // namespace forge::emulated
