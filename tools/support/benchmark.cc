// SPDX-License-Identifier: Apache-2.0
#include "tools/support/benchmark.h"

#include <algorithm>

#include "ir/ops/elementwise.h"
#include "ir/ops/fused.h"
#include "ir/ops/matmul.h"
#include "ir/ops/reduce.h"
#include "ir/scalar_math.h"
#include "runtime/op_runner.h"
#include "tools/support/tensor_io.h"

namespace forge::tools {
namespace {

constexpr int kRuns = 7;
// Far beyond any cache, well below the smallest guaranteed buffer.
constexpr int64_t kLargeElements = int64_t{16} << 20;
constexpr int64_t kChainElements = int64_t{1} << 20;
constexpr int kChains = 4, kChainLength = 64;
constexpr int64_t kProductExtent = 768;

// The time of the steps that compute, copies in and out left out.
absl::StatusOr<double> StepSeconds(const Executable& e) {
  FORGE_ASSIGN_OR_RETURN(std::vector<StepTime> times, e.Timestamps());
  double total = 0;
  for (size_t i = 0; i < times.size(); ++i)
    if (e.steps()[i].op != "copy")
      total += static_cast<double>(times[i].end - times[i].begin) * 1e-9;
  return total;
}

absl::StatusOr<double> TimeRunner(OpRunner& runner, std::span<const ir::HostValue* const> inputs) {
  std::vector<double> seconds;
  for (int i = 0; i < kRuns + 1; ++i) {
    FORGE_RETURN_IF_ERROR(runner.Run(inputs).status());
    FORGE_ASSIGN_OR_RETURN(double s, StepSeconds(runner.executable()));
    if (i > 0) seconds.push_back(s);  // the first run warms up
  }
  return Median(seconds);
}

absl::StatusOr<double> TimeOn(const DeviceRef& device, const ir::AnyOp& op,
                              const std::vector<ir::HostValue>& inputs) {
  ir::Types types;
  std::vector<const ir::HostValue*> pointers;
  for (const ir::HostValue& v : inputs) {
    types.push_back(v.type());
    pointers.push_back(&v);
  }
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<OpRunner> runner,
                         OpRunner::Create(device, op, types, {.timestamps = true}));
  return TimeRunner(*runner, pointers);
}

// Independent chains of v * x + x on elements that are loaded once: what the device computes when
// it waits for neither memory nor results.
absl::StatusOr<double> ChainGflops(const DeviceRef& device) {
  ir::Function body("chain");
  const ir::Value x = body.Argument("x", ir::Type::Tensor(DType::kF32, {kChainElements}));
  std::vector<ir::Value> chains;
  for (int c = 0; c < kChains; ++c) chains.push_back(x + (c + 1));
  for (int i = 0; i < kChainLength; ++i)
    for (ir::Value& v : chains) v = v * x + x;
  ir::Value sum = chains[0];
  for (int c = 1; c < kChains; ++c) sum = sum + chains[c];
  body.Return("sum", sum);
  FORGE_RETURN_IF_ERROR(body.status());
  const int64_t shape[] = {kChainElements};
  FORGE_ASSIGN_OR_RETURN(ir::HostValue xs, RandomTensor(DType::kF32, shape, 1));
  FORGE_ASSIGN_OR_RETURN(double seconds, TimeOn(device, ir::Fused{.body = &body}, {xs}));
  constexpr double kFlops = 2.0 * kChains * (kChainLength + 1) - 1;
  return static_cast<double>(kChainElements) * kFlops / seconds * 1e-9;
}

// Where element-wise ops are no way to the peak, as on processors with a matrix library.
absl::StatusOr<double> ProductGflops(const DeviceRef& device) {
  const int64_t shape[] = {kProductExtent, kProductExtent};
  FORGE_ASSIGN_OR_RETURN(ir::HostValue a, RandomTensor(DType::kF32, shape, 4));
  FORGE_ASSIGN_OR_RETURN(double seconds, TimeOn(device, ir::MatMul{}, {a, a}));
  constexpr double kExtent = kProductExtent;
  return 2 * kExtent * kExtent * kExtent / seconds * 1e-9;
}

}  // namespace

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

absl::StatusOr<Peak> MeasurePeak(const DeviceRef& device) {
  Peak peak;
  const int64_t shape[] = {64, kLargeElements / 64};
  FORGE_ASSIGN_OR_RETURN(ir::HostValue large, RandomTensor(DType::kF32, shape, 3));
  FORGE_ASSIGN_OR_RETURN(double copy, TimeOn(device, ir::Relu{}, {large}));
  FORGE_ASSIGN_OR_RETURN(
      double read, TimeOn(device, ir::Reduce{.kind = ir::ReduceKind::kSum, .axes = {1}}, {large}));
  FORGE_ASSIGN_OR_RETURN(const double chain, ChainGflops(device));
  FORGE_ASSIGN_OR_RETURN(const double product, ProductGflops(device));
  peak.fma_gflops = std::max(chain, product);
  peak.copy_gbps = static_cast<double>(kLargeElements) * 8 / copy * 1e-9;
  peak.read_gbps = static_cast<double>(kLargeElements) * 4 / read * 1e-9;
  return peak;
}

absl::StatusOr<OpTime> TimeOp(const DeviceRef& device, const ir::ConcreteCase& c) {
  const ir::Types types = c.types();
  FORGE_ASSIGN_OR_RETURN(ir::Types results, c.op.Infer(types));
  FORGE_ASSIGN_OR_RETURN(ir::CaseInputs inputs, ir::MakeInputs(c));
  FORGE_ASSIGN_OR_RETURN(std::unique_ptr<OpRunner> runner,
                         OpRunner::Create(device, c.op, types, {.timestamps = true}));
  OpTime time;
  FORGE_ASSIGN_OR_RETURN(time.seconds, TimeRunner(*runner, inputs.pointers()));
  FORGE_ASSIGN_OR_RETURN(int64_t flops,
                         c.op.def().cost(c.op.def(), c.op.self(), types).flops.Evaluate({}));
  time.flops = static_cast<double>(flops);
  for (const ir::Types* list : {&types, static_cast<const ir::Types*>(&results)}) {
    for (const ir::Type& t : *list) {
      if (!t) continue;
      FORGE_ASSIGN_OR_RETURN(ir::Dim bytes, t.bytes());
      time.bytes += static_cast<double>(bytes.constant());
    }
  }
  return time;
}

}  // namespace forge::tools
