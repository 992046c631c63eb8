// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs: what work waits for. Schedule changes them.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "tests/cuda/driver/types.h"

namespace forge::emulated {

struct Task {
  std::function<CUresult()> run;  // may be empty
  std::vector<std::shared_ptr<Task>> waits;
  bool done = false;
  std::chrono::steady_clock::time_point finished;
};
using TaskRef = std::shared_ptr<Task>;

struct GraphNode {
  enum class Type { kKernel = 0, kCopy = 1, kSet = 2, kHost = 3, kEmpty = 5 };
  Type type = Type::kEmpty;
  std::function<CUresult()> run;
  std::vector<size_t> waits;  // earlier nodes
  // Of kernels:
  CUDA_KERNEL_NODE_PARAMS kernel{};
  std::vector<std::vector<uint8_t>> arguments;
  std::vector<void*> pointers;  // to `arguments`, for who asks
  size_t index = 0;             // in its graph
};

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;
};

struct GraphExec {
  std::vector<std::unique_ptr<GraphNode>> nodes;
};

struct Stream {
  bool blocking = true;  // synchronises with the null stream
  int priority = 0;
  TaskRef last;
  // While it is captured:
  std::shared_ptr<Graph> capture;
  bool origin = false;
  std::vector<size_t> capture_tail;
};

struct Event {
  bool timing = true;
  TaskRef recorded;
  std::shared_ptr<Graph> capture;
  std::vector<size_t> capture_tail;
};

}  // namespace forge::emulated
