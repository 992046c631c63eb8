// SPDX-License-Identifier: Apache-2.0
// Runs one kernel on vectors: loads the PTX, copies operands to device memory, launches, copies
// back.
#pragma once
#include <span>

#include "tests/ptx/machine/machine.h"

namespace forge::ptx {

// An operand of a kernel: bytes in device memory, or the bits of a scalar.
class Argument {
 public:
  template <class T>
  static Argument Buffer(std::vector<T>& v) {
    return {{reinterpret_cast<uint8_t*>(v.data()), v.size() * sizeof(T)}, 0};
  }
  template <class T>
  static Argument Scalar(T v) {
    Argument a{{}, sizeof(T)};
    std::memcpy(a.scalar, &v, sizeof(T));
    return a;
  }
  std::span<uint8_t> buffer;
  size_t scalar_bytes = 0;
  uint8_t scalar[8] = {};
};

struct RunOptions {
  Dim3 grid, threads;
  uint32_t dynamic_shared = 0;
  Order order = Order::kForward;
  uint64_t seed = 1;
  int host_threads = 2;
  uint64_t most_steps = uint64_t{1} << 24;
};

// Runs `kernel` of the PTX text. Buffers are written back, also after a finding.
absl::Status RunPtx(const std::string& text, const std::string& kernel, const RunOptions& options,
                    std::vector<Argument> arguments, Statistics* statistics = nullptr);
// The text of tests/ptx/kernels/NAME.sm_ARCH.ptx.
std::string KernelText(const std::string& name, const std::string& arch);

}  // namespace forge::ptx
