// SPDX-License-Identifier: Apache-2.0
// What this device can run: one kernel for each kind of anchor, and one for regions without.
#pragma once
#include "cpu_runtime/program.h"
#include "ir/graph/target.h"

namespace forge::cpu {

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Is this what the task's anchor, or its lack of one, asks for?
  virtual bool Knows(const Task& task) const = 0;
  // Can it run the region whatever its symbols are bound to?
  virtual Verdict Takes(const Task& task) const = 0;
  // Layouts worth having, best first; types are bound.
  virtual std::vector<ir::EncodingChoice> Encodings(const Task& task,
                                                    const Settings& settings) const = 0;
  virtual absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const = 0;
};

template <class T>
bool IsAnchoredBy(const Task& task) {
  return task.anchor() != nullptr && task.anchor()->op.Is<T>();
}

const Kernel& PackKernel();
const Kernel& ElementWiseKernel();
const Kernel& ConvolutionKernel();
const Kernel& ConvolutionTransposeKernel();
const Kernel& MatMulKernel();
const Kernel& PoolKernel();
const Kernel& ReduceKernel();
const Kernel& LayerNormKernel();
const Kernel& SoftmaxKernel();
const Kernel& ShapeKernel();
std::span<const Kernel* const> AllKernels();

// The first kernel that knows the task; null when there is none.
const Kernel* FindKernel(const Task& task);

// Is everything after the anchor element-wise and of the anchor's shape, and everything before it
// an operand?
Verdict TakesEpilogue(const Task& task);

// Channels last for every operand and result that may have them and in which the order of axes
// matters, dense for the others; nullopt where dense does as well.
std::optional<ir::EncodingChoice> ChannelsLastChoice(const Task& task);

// Dense, and channels last where it differs: for kernels that do equally well with both.
std::vector<ir::EncodingChoice> BothLayouts(const Task& task, const Settings& settings);

// Estimated seconds of a task: what it computes and what it moves.
double EstimateSeconds(const Task& task, const Settings& settings);

// Calls f with a value of the C++ type of an element of a number type as it is computed with.
template <class F>
auto WithNumberType(DType t, F f) {
  switch (t) {
    case DType::kU8:
      return f(uint8_t{});
    case DType::kU16:
      return f(uint16_t{});
    case DType::kU32:
      return f(uint32_t{});
    case DType::kU64:
      return f(uint64_t{});
    case DType::kI8:
      return f(int8_t{});
    case DType::kI16:
      return f(int16_t{});
    case DType::kI32:
      return f(int32_t{});
    case DType::kI64:
      return f(int64_t{});
    case DType::kF64:
      return f(double{});
    default:
      FORGE_CHECK(t == DType::kF32);
      return f(float{});
  }
}

}  // namespace forge::cpu
