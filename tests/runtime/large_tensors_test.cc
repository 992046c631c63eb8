// SPDX-License-Identifier: Apache-2.0
// Tensors of more elements than 32 bits number: a device supports them, or says before anything is
// allocated which type has how many elements, and how many it takes.
#include <gtest/gtest.h>

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/spatial/conv.h"
#include "runtime/backends.h"
#include "runtime/op_on_device.h"
#include "tests/support/ir_values.h"

namespace forge {
namespace {

struct Large {
  ir::AnyOp op;
  ir::Types in;
  std::string of;  // the type that is too large
};

std::vector<Large> LargeOps() {
  constexpr int64_t kSide = 1 << 16;
  const ir::Type square = F32({kSide, kSide}), thin = F32({kSide, 1});
  const std::string text = "f32[65536, 65536] has 4294967296 elements";
  return {{ir::Relu{}, {square}, text},
          {ir::Add{}, {thin, F32({kSide})}, text},
          {ir::Transpose{.permutation = {1, 0}}, {square}, text},
          {ir::MatMul{}, {thin, F32({1, kSide})}, text},
          {ir::Reduce{.kind = ir::ReduceKind::kSum, .axes = {1}}, {square}, text},
          {ir::Neg{},
           {ir::Type::Tensor(DType::kI8, {kSide, kSide})},
           "i8[65536, 65536] has 4294967296 elements"},
          {ir::Conv{},
           {F32({1, 1, kSide, kSide}), F32({1, 1, 3, 3})},
           "f32[1, 1, 65536, 65536] has 4294967296 elements"}};
}

TEST(LargeTensorsTest, AreSupportedOrRefusedByName) {
  for (const BackendDevices& backend : ListDevices())
    for (const DeviceInfo& info : backend.devices) {
      if (!info.usable) continue;
      SCOPED_TRACE(info.id);
      const auto device = OpenDevice(info.id, {});
      ASSERT_TRUE(device.ok()) << device.status();
      for (const Large& large : LargeOps()) {
        SCOPED_TRACE(large.op.ToText());
        const OpSupport support = OpOnDevice::Support(**device, large.op, large.in);
        if (support.way != OpSupport::Way::kRefused) continue;
        ASSERT_FALSE(support.refused.empty());
        const std::string& why = support.refused[0].why;
        EXPECT_NE(why.find(large.of), std::string::npos) << why;
        EXPECT_NE(why.find("kernels number at most"), std::string::npos) << why;
      }
    }
}

}  // namespace
}  // namespace forge
