// SPDX-License-Identifier: Apache-2.0
#include "tests/cpu_runtime/regions.h"

#include <cmath>

#include "ir/graph/interpreter.h"
#include "ir/ops/compiler/fused.h"

namespace forge::cpu {

ir::HostValue Random(DType t, std::vector<int64_t> shape, uint64_t seed, double low, double high) {
  ir::HostValue v = *ir::HostValue::Zeros(t, shape);
  uint64_t state = seed * 2654435761u + 12345;
  for (int64_t i = 0; i < v.elements(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double unit = static_cast<double>(state >> 40) / double{1 << 24};
    const double x = low + unit * (high - low);
    v.Set(i, Has(kFloatTypes, t) ? x : std::round(x));
  }
  return v;
}

ir::HostValue Numbers(std::vector<int64_t> shape, std::initializer_list<float> values) {
  ir::HostValue v = *ir::HostValue::Zeros(DType::kF32, shape);
  int64_t i = 0;
  for (float x : values) v.Set(i++, x);
  return v;
}

ir::Value Region::Argument(const ir::Type& t) {
  return body_->Argument(fmt::format("a{}", arguments_++), t);
}

ir::AnyOp Region::op() const { return ir::Fused{body_}; }

std::string ExpectAgrees(const Region& region, const std::vector<ir::HostValue>& in,
                         const RunOptions& options, double tolerance) {
  std::vector<const ir::HostValue*> pointers;
  for (const ir::HostValue& v : in) pointers.push_back(&v);
  const auto expected = ir::Evaluate(region.op(), pointers);
  EXPECT_TRUE(expected.ok()) << expected.status();
  const auto got = RunOn(region.op(), pointers, options);
  EXPECT_TRUE(got.ok()) << got.status();
  if (!expected.ok() || !got.ok()) return {};
  for (size_t r = 0; r < expected->size(); ++r) {
    int wrong = 0;
    for (int64_t i = 0; i < (*expected)[r].elements() && wrong < 5; ++i) {
      const double want = (*expected)[r].f64(i), have = got->results[r].f64(i);
      const bool same = std::isfinite(want)
                            ? std::abs(have - want) <= tolerance * (1 + std::abs(want))
                            : have == want || (std::isnan(want) && std::isnan(have));
      EXPECT_TRUE(same) << "result " << r << " element " << i << ": " << have << ", expected "
                        << want << " (" << got->kernel << ")";
      wrong += !same;
    }
  }
  return got->kernel;
}

RunOptions BestLayouts(const Region& region, const std::vector<ir::HostValue>& in) {
  ir::Types types;
  for (const ir::HostValue& v : in) types.push_back(v.type());
  const ir::AnyOp op = region.op();
  const ir::Types out = *op.Infer(types);
  const auto choices = OpenCpu()->target().Encodings({op, types, out});
  RunOptions options;
  if (choices.empty()) return options;
  const ir::EncodingChoice* best = &choices[0];
  for (const ir::EncodingChoice& c : choices)
    if (c.seconds < best->seconds) best = &c;
  options.in = best->in;
  options.out = best->out;
  return options;
}

}  // namespace forge::cpu
