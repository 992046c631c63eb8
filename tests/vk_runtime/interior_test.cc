// SPDX-License-Identifier: Apache-2.0
// Kernels whose workgroups of the interior and of the edge have bodies of their own.
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/pool.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

class WindowsTest : public GpuKernelTest {
 protected:
  static ir::HostValue Numbers(const ir::Dims& shape) {
    auto v = ir::HostValue::Zeros(DType::kF32, ir::Constants(shape));
    EXPECT_TRUE(v.ok());
    for (int64_t i = 0; i < v->elements(); ++i)
      v->Set(i, static_cast<double>((i * 37 + 11) % 101) / 25 - 2);
    return *std::move(v);
  }
};

TEST_F(WindowsTest, DepthwiseConvolutionsAreRight) {
  const ir::HostValue x = Numbers({2, 4, 43, 80}), w = Numbers({4, 1, 3, 3}), b = Numbers({4});
  const ir::HostValue* operands[] = {&x, &w, &b};
  for (const std::string choice : {"", "conv_depthwise(rows=2, columns=4)", "conv_direct()"}) {
    ExpectRightBy(choice, ir::Conv{.padding = {1, 1, 1, 1}, .groups = 4}, operands);
    ExpectRightBy(
        choice,
        ir::Conv{.strides = {2, 1}, .dilations = {1, 3}, .padding = {2, 4, 0, 5}, .groups = 4},
        operands);
  }
}

TEST_F(WindowsTest, PoolsAreRight) {
  const ir::HostValue x = Numbers({2, 3, 45, 61});
  const ir::HostValue* operands[] = {&x};
  for (const ir::PoolKind kind : {ir::PoolKind::kMax, ir::PoolKind::kAverage}) {
    ExpectRightBy("", ir::Pool{.kind = kind, .kernel = {3, 3}, .padding = {1, 1, 1, 1}}, operands);
    ExpectRightBy("",
                  ir::Pool{.kind = kind,
                           .kernel = {3, 2},
                           .strides = {2, 1},
                           .dilations = {1, 3},
                           .padding = {2, 1, 0, 2},
                           .ceil_mode = true},
                  operands);
  }
}

TEST_F(WindowsTest, SignalsAndVolumesAreRight) {
  const ir::HostValue signal = Numbers({2, 4, 1203}), taps = Numbers({4, 1, 5});
  const ir::HostValue* operands[] = {&signal, &taps};
  ExpectRightBy("", ir::Conv{.strides = {2}, .padding = {2, 3}, .groups = 4}, operands);
  ExpectRightBy("", ir::Pool{.kernel = {3}, .strides = {2}, .padding = {1, 2}}, {operands, 1});
  const ir::HostValue volume = Numbers({1, 2, 13, 22, 31}), window = Numbers({2, 1, 3, 3, 2});
  const ir::HostValue* of_volume[] = {&volume, &window};
  ExpectRightBy("", ir::Conv{.padding = {1, 1, 0, 2, 1, 1}, .groups = 2}, of_volume);
  ExpectRightBy("",
                ir::Pool{.kind = ir::PoolKind::kAverage,
                         .kernel = {2, 3, 3},
                         .strides = {1, 2, 2},
                         .padding = {1, 1, 1, 0, 2, 1}},
                {of_volume, 1});
}

}  // namespace
}  // namespace forge::vk
