// SPDX-License-Identifier: Apache-2.0
#include "tools/support/benchmark.h"

#include <algorithm>

#include "base/platform.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "runtime/op_on_device.h"
#include "runtime/plan/staging.h"
#include "tools/support/tensor_io.h"

namespace forge::tools {
namespace {

constexpr int kRuns = 7;
// Far beyond any cache, well below the smallest guaranteed buffer.
constexpr int64_t kLargeElements = int64_t{16} << 20;
constexpr size_t kUploadBytes = 100 << 20;
// Work that is known is doubled until it takes so long, so that its launch does not count.
constexpr double kLongEnough = 1e-3;  // seconds
constexpr int64_t kChainElements = int64_t{1} << 20, kMostChainElements = int64_t{1} << 26;
constexpr int kChains = 4, kChainLength = 64;
constexpr int64_t kProductExtent = 768, kMostProductExtent = 6144;
// GPUs raise their clocks within this time.
constexpr int64_t kWarmUpNanoseconds = 200'000'000;

// The time of the steps that compute, copies in and out left out.
absl::StatusOr<double> StepSeconds(const Executable& e) {
  FORGE_ASSIGN_OR_RETURN(std::vector<StepTime> times, e.Timestamps());
  double total = 0;
  for (size_t i = 0; i < times.size(); ++i)
    if (e.steps()[i].op != "copy")
      total += static_cast<double>(times[i].end - times[i].begin) * 1e-9;
  return total;
}

// After a first Run.
template <class Runner>  // of one kernel, or of a plan
absl::StatusOr<double> OwnSeconds(Runner& runner, std::span<const ir::HostValue* const> inputs) {
  FORGE_RETURN_IF_ERROR(runner.Repeat(inputs));
  return StepSeconds(runner.executable());
}

// Independent chains of v * x + x on elements that are loaded once: what the device computes when
// it waits for neither memory nor results.
void AddChains(ir::Function& body, int64_t elements) {
  const ir::Value x = body.Argument("x", ir::Type::Tensor(DType::kF32, {elements}));
  std::vector<ir::Value> chains;
  for (int c = 0; c < kChains; ++c) chains.push_back(x + (c + 1));
  for (int i = 0; i < kChainLength; ++i)
    for (ir::Value& v : chains) v = v * x + x;
  ir::Value sum = chains[0];
  for (int c = 1; c < kChains; ++c) sum = sum + chains[c];
  body.Return("sum", sum);
}
constexpr double kFlopsOfChains = 2.0 * kChains * (kChainLength + 1) - 1;  // of an element

}  // namespace

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// An op whose work is known, in units of 1e9.
struct Yardstick::Form {
  std::unique_ptr<OpRunner> runner;
  ir::HostValue input;
  size_t operands;
  double work;
  std::vector<const ir::HostValue*> inputs() const { return {operands, &input}; }
  absl::StatusOr<double> Rate() {
    FORGE_ASSIGN_OR_RETURN(const double seconds, OwnSeconds(*runner, inputs()));
    return work / seconds;
  }
};

absl::StatusOr<Yardstick> Yardstick::Create(const DeviceRef& device) {
  Yardstick y;
  // Returns the seconds of the first run after one that warms up.
  const auto add = [&](std::vector<std::shared_ptr<Form>>& forms, const ir::AnyOp& op,
                       std::vector<int64_t> shape, size_t operands,
                       double work) -> absl::StatusOr<double> {
    FORGE_ASSIGN_OR_RETURN(ir::HostValue input, RandomTensor(DType::kF32, shape, 1));
    const ir::Types types(operands, input.type());
    FORGE_ASSIGN_OR_RETURN(std::unique_ptr<OpRunner> runner,
                           OpRunner::Create(device, op, types, {.timestamps = true}));
    forms.push_back(std::make_shared<Form>(std::move(runner), std::move(input), operands, work));
    Form& form = *forms.back();
    FORGE_RETURN_IF_ERROR(form.runner->Run(form.inputs()).status());
    FORGE_ASSIGN_OR_RETURN(const double rate, form.Rate());
    return work / rate;
  };
  double seconds = 0;
  for (int64_t n = kChainElements; n <= kMostChainElements && seconds < kLongEnough; n *= 2) {
    y.fma_.clear();
    y.chains_ = std::make_shared<ir::Function>("chains");
    AddChains(*y.chains_, n);
    FORGE_RETURN_IF_ERROR(y.chains_->status());
    FORGE_ASSIGN_OR_RETURN(seconds, add(y.fma_, ir::Fused{.body = y.chains_.get()}, {n}, 1,
                                        static_cast<double>(n) * kFlopsOfChains * 1e-9));
  }
  // Where element-wise ops are no way to the peak, as on processors with a matrix library.
  seconds = 0;
  for (int64_t n = kProductExtent; n <= kMostProductExtent && seconds < kLongEnough; n *= 2) {
    if (n > kProductExtent) y.fma_.pop_back();
    const auto extent = static_cast<double>(n);
    FORGE_ASSIGN_OR_RETURN(
        seconds, add(y.fma_, ir::MatMul{}, {n, n}, 2, 2.0 * extent * extent * extent * 1e-9));
  }
  const ir::Reduce sum{.kind = ir::ReduceKind::kSum, .axes = {1}};
  constexpr double kBytes = 4 * static_cast<double>(kLargeElements) * 1e-9;
  for (int64_t rows : {64, 16384})
    FORGE_RETURN_IF_ERROR(add(y.read_, sum, {rows, kLargeElements / rows}, 1, kBytes).status());
  FORGE_RETURN_IF_ERROR(add(y.copy_, ir::Relu{}, {kLargeElements}, 1, 2 * kBytes).status());
  return y;
}

absl::Status Yardstick::WarmUp() {
  const int64_t end = NowNanoseconds() + kWarmUpNanoseconds;
  while (NowNanoseconds() < end) FORGE_RETURN_IF_ERROR(fma_.front()->Rate().status());
  return absl::OkStatus();
}

absl::StatusOr<Peak> Yardstick::Measure() {
  const auto best = [](std::span<const std::shared_ptr<Form>> forms) -> absl::StatusOr<double> {
    double rate = 0;
    for (const std::shared_ptr<Form>& form : forms) {
      FORGE_ASSIGN_OR_RETURN(const double r, form->Rate());
      rate = std::max(rate, r);
    }
    return rate;
  };
  Peak peak;
  FORGE_ASSIGN_OR_RETURN(peak.fma_gflops, best(fma_));
  FORGE_ASSIGN_OR_RETURN(peak.read_gbps, best(read_));
  FORGE_ASSIGN_OR_RETURN(peak.copy_gbps, best(copy_));
  return peak;
}

namespace {

// Into a buffer that the device has written before.
absl::StatusOr<double> UploadRate(Device& device, const BufferRef& to,
                                  std::span<const uint8_t> bytes) {
  const int64_t begin = NowNanoseconds();
  FORGE_RETURN_IF_ERROR(WriteBuffer(device, to, 0, bytes));
  return 2 * static_cast<double>(bytes.size()) / static_cast<double>(NowNanoseconds() - begin);
}

}  // namespace

absl::StatusOr<Peak> MeasurePeak(const DeviceRef& device) {
  FORGE_ASSIGN_OR_RETURN(Yardstick yardstick, Yardstick::Create(device));
  if (!device->info().is_cpu) FORGE_RETURN_IF_ERROR(yardstick.WarmUp());
  const std::vector<uint8_t> bytes(kUploadBytes, 1);
  FORGE_ASSIGN_OR_RETURN(const BufferRef to, device->Allocate(Memory::kDevice, bytes.size()));
  FORGE_RETURN_IF_ERROR(UploadRate(*device, to, bytes).status());
  std::vector<double> fma, read, copy, upload;
  for (int i = 0; i < kRuns; ++i) {
    FORGE_ASSIGN_OR_RETURN(const Peak p, yardstick.Measure());
    fma.push_back(p.fma_gflops), read.push_back(p.read_gbps), copy.push_back(p.copy_gbps);
    FORGE_ASSIGN_OR_RETURN(const double rate, UploadRate(*device, to, bytes));
    upload.push_back(rate);
  }
  return Peak{Median(fma), Median(read), Median(copy), Median(upload)};
}

absl::StatusOr<OpTime> TimeOp(const DeviceRef& device, const ir::ConcreteCase& c,
                              const std::string& choice, Yardstick& yardstick) {
  const ir::Types types = c.types();
  FORGE_ASSIGN_OR_RETURN(ir::Types results, c.op.Infer(types));
  FORGE_ASSIGN_OR_RETURN(ir::CaseInputs inputs, ir::MakeInputs(c));
  FORGE_ASSIGN_OR_RETURN(
      std::unique_ptr<OpOnDevice> runner,
      OpOnDevice::Create(device, c.op, types, {.timestamps = true, .compile = {.choice = choice}}));
  OpTime time;
  FORGE_ASSIGN_OR_RETURN(int64_t flops, c.op.Cost(types).flops.Evaluate({}));
  time.flops = static_cast<double>(flops);
  for (const ir::Types* list : {&types, static_cast<const ir::Types*>(&results)}) {
    for (const ir::Type& t : *list) {
      if (!t) continue;
      FORGE_ASSIGN_OR_RETURN(ir::Dim bytes, t.bytes());
      time.bytes += static_cast<double>(bytes.constant());
    }
  }
  std::vector<double> seconds, of_fma, of_read, of_copy;
  FORGE_RETURN_IF_ERROR(runner->Run(inputs.pointers()).status());
  if (!device->info().is_cpu) FORGE_RETURN_IF_ERROR(yardstick.WarmUp());
  for (int i = 0; i < kRuns; ++i) {
    // The yardstick leaves nothing of the op's in the caches.
    FORGE_RETURN_IF_ERROR(runner->Repeat(inputs.pointers()));
    FORGE_ASSIGN_OR_RETURN(const double s, OwnSeconds(*runner, inputs.pointers()));
    FORGE_ASSIGN_OR_RETURN(const Peak p, yardstick.Measure());
    seconds.push_back(s);
    of_fma.push_back(time.flops / s * 1e-9 / p.fma_gflops);
    of_read.push_back(time.bytes / s * 1e-9 / p.read_gbps);
    of_copy.push_back(time.bytes / s * 1e-9 / p.copy_gbps);
  }
  time.seconds = Median(seconds);
  time.of_fma = Median(of_fma), time.of_read = Median(of_read), time.of_copy = Median(of_copy);
  return time;
}

}  // namespace forge::tools
