// SPDX-License-Identifier: Apache-2.0
// Timing of ops, models and devices, on the clock of the device where it has one.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/cases/case_inputs.h"
#include "runtime/device/device.h"

namespace forge::tools {

// The rates that a device reaches.
struct Peak {
  double fma_gflops = 0, read_gbps = 0, copy_gbps = 0;
  // From the host; bytes read plus written, as for copies; only set by MeasurePeak.
  double upload_gbps = 0;
};

// Measures the rates that the device reaches in kernels of Forge at one moment. Other load on the
// machine changes them, so ops are timed alternately with these measurements.
class Yardstick {
 public:
  static absl::StatusOr<Yardstick> Create(const DeviceRef& device);
  // Runs each benchmark once. FMA: the better of multiply-add chains in registers and a large
  // matrix product; read: the better of sums of few long rows and of many rows; copy: of a tensor.
  // The tensors are far larger than caches.
  absl::StatusOr<Peak> Measure();
  // Keeps the device busy until its clocks are up.
  absl::Status WarmUp();

 private:
  struct Form;
  std::shared_ptr<ir::Function> chains_;  // the body of an op of fma_
  std::vector<std::shared_ptr<Form>> fma_, read_, copy_;
};

// Returns medians of 7 measurements.
absl::StatusOr<Peak> MeasurePeak(const DeviceRef& device);

struct OpTime {
  double seconds = 0;           // median of 7 runs of the steps of the op
  double flops = 0, bytes = 0;  // flops from the cost of the op; bytes of its operands and results
  // Medians of the ratios to the rates measured right after each run.
  double of_fma = 0, of_read = 0, of_copy = 0;
};
// Times a case as one kernel, or as the plan of its decomposition.
//   choice: of a kernel, one of Device::Choices; empty: the preferred one
absl::StatusOr<OpTime> TimeOp(const DeviceRef& device, const ir::ConcreteCase& c,
                              const std::string& choice, Yardstick& yardstick);

double Median(std::vector<double> values);

}  // namespace forge::tools
