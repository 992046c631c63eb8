// SPDX-License-Identifier: Apache-2.0
// Products of bytes by the device's dot products, wherever it has them.
#include "ir/ops/product/matmul_integer.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class BytesTest : public GpuKernelTest {
 protected:
  // Bytes of every value.
  ir::HostValue Bytes(DType t, const ir::Dims& shape) {
    auto v = ir::HostValue::Zeros(t, ir::Constants(shape));
    EXPECT_TRUE(v.ok());
    const double low = t == DType::kI8 ? -128 : 0;
    for (int64_t i = 0; i < v->elements(); ++i)
      v->Set(i, low + static_cast<double>((i * 37 + 11) % 256));
    return *std::move(v);
  }

  void ExpectRight(const ir::MatMulInteger& op, const ir::HostValue& a, const ir::HostValue& b) {
    const ir::HostValue* operands[] = {&a, &b};
    for (const int stages : {1, 2})
      ExpectRightBy(fmt::format("matmul_shared(depth=32, stages={}, dots=1)", stages), op,
                    operands);
  }
};

TEST_F(BytesTest, MultipliesEveryMixtureOfSigns) {
  if (!device_->context()->caps().int_dot) GTEST_SKIP() << "the device has no dot products";
  for (const DType ta : {DType::kI8, DType::kU8})
    for (const DType tb : {DType::kI8, DType::kU8}) {
      SCOPED_TRACE(fmt::format("{} {}", Name(ta), Name(tb)));
      ExpectRight({}, Bytes(ta, {20, 70}), Bytes(tb, {70, 36}));
      ExpectRight({.transpose_b = true}, Bytes(ta, {2, 33, 40}), Bytes(tb, {18, 40}));
    }
}

}  // namespace
}  // namespace forge::vk
