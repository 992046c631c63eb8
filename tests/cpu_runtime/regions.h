// SPDX-License-Identifier: Apache-2.0
// Small regions and random operands for them.
#pragma once
#include <functional>

#include "ir/graph/module.h"
#include "tests/cpu_runtime/run.h"
#include "tests/support/ir_values.h"

namespace forge::cpu {

// A tensor of numbers in low..high, the same on every machine for a seed; integers are whole.
ir::HostValue Random(DType t, std::vector<int64_t> shape, uint64_t seed, double low = -2,
                     double high = 2);
ir::HostValue Numbers(std::vector<int64_t> shape, std::initializer_list<float> values);

// A module with one body, wrapped as a fused op.
class Region {
 public:
  ir::Value Argument(const ir::Type& t);
  ir::Function& body() { return *body_; }
  void Return(ir::Value v) { body_->Return(fmt::format("r{}", results_++), v); }
  ir::AnyOp op() const;

 private:
  ir::Module module_;
  ir::Function* body_ = module_.AddFunction("region");
  int arguments_ = 0, results_ = 0;
};

// The region on the device, compared with its evaluator: |x - ref| <= tolerance * (1 + |ref|), NaN
// and infinities where the reference has them.  Returns the kernel's name.
std::string ExpectAgrees(const Region& region, const std::vector<ir::HostValue>& in,
                         const RunOptions& options = {}, double tolerance = 2e-5);

// Operands and results as the target likes best.
RunOptions BestLayouts(const Region& region, const std::vector<ir::HostValue>& in);

}  // namespace forge::cpu
