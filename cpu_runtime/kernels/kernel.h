// SPDX-License-Identifier: Apache-2.0
// The kernels of the CPU: one for each kind of anchor, and one for regions without an anchor.
#pragma once
#include "cpu_runtime/program.h"
#include "ir/graph/target.h"

namespace forge::cpu {

// A kernel for one kind of anchor. Stateless.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Returns true when the kernel is the one for the anchor of the task, or for its lack of one.
  virtual bool Knows(const Task& task) const = 0;
  // Returns whether the kernel can run the region for all bindings of its symbols, or the reason
  // why not.
  virtual Verdict Takes(const Task& task) const = 0;
  // Returns useful encodings, best first; none where the kernel gains from none. Types are bound.
  virtual std::vector<ir::EncodingChoice> Encodings(const Task& /*task*/,
                                                    const Settings& /*settings*/) const {
    return {};
  }
  // Compiles a bound task.
  virtual absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const = 0;
};

template <class T>
bool IsAnchoredBy(const Task& task) {
  return task.anchor() != nullptr && task.anchor()->op.Is<T>();
}

const Kernel& PackKernel();
const Kernel& ElementWiseKernel();
const Kernel& ConvolutionKernel();
const Kernel& ConvolutionIntegerKernel();
const Kernel& ConvolutionTransposeKernel();
const Kernel& ConvolutionWeightGradientKernel();
const Kernel& MatMulKernel();
const Kernel& PoolKernel();
const Kernel& MaxPoolGradientKernel();
const Kernel& ReduceKernel();
const Kernel& ArgReduceKernel();
const Kernel& ScanKernel();
const Kernel& SortKernel();
const Kernel& LayerNormKernel();
const Kernel& LayerNormGradientKernel();
const Kernel& SoftmaxKernel();
const Kernel& SoftmaxStatisticsKernel();
const Kernel& ShapeKernel();
const Kernel& UpdateSliceKernel();
const Kernel& RecurrentStepsKernel();
const Kernel& StepsGradientKernel();
const Kernel& ScatterKernel();
const Kernel& FourierKernel();
const Kernel& GridSampleKernel();
const Kernel& ResizeKernel();
const Kernel& HistogramKernel();
const Kernel& EmbeddingBagKernel();
const Kernel& AttentionKernel();
const Kernel& AttentionGradientKernel();
const Kernel& LookupKernel();
const Kernel& TinyCastKernel();
std::span<const Kernel* const> AllKernels();

// Returns the first kernel that knows the task; null when there is none.
const Kernel* FindKernel(const Task& task);

// Yes when every op after the anchor is element-wise with the shape of the anchor, and every value
// read by the anchor is an operand; otherwise the reason.
Verdict TakesEpilogue(const Task& task);

// Returns channels last for every operand and result of a rank that allows it and for which the
// order of axes matters, dense for the others; nullopt where dense is equivalent.
std::optional<ir::EncodingChoice> ChannelsLastChoice(const Task& task);

// Returns dense, and channels last where it differs: for kernels that are equally fast with both.
std::vector<ir::EncodingChoice> BothLayouts(const Task& task, const Settings& settings);

// The estimated time of a task in seconds, from its operations and the bytes it moves.
double EstimateSeconds(const Task& task, const Settings& settings);

// Calls f with a value of the C++ type in which elements of a number type are computed.
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
