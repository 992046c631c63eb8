// SPDX-License-Identifier: Apache-2.0
// Sums and extremes of f32 that many invocations make at once, by the device or by exchanges.
#include <algorithm>

#include "codegen/kernel/scalar.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

using codegen::AtomicKind;
using codegen::kF32;
using codegen::Val;

constexpr uint32_t kThreads = 64, kGroups = 50, kPlaces = 3;

// Of all whole numbers from 0 on, kPlaces results in memory and as many by way of shared memory.
codegen::Kernel AtomicKernel(AtomicKind kind) {
  codegen::Kernel k{.name = "atomic"};
  k.workgroup = {kThreads, 1, 1};
  k.grid[0] = kGroups;
  codegen::Builder b(k);
  const uint16_t y = b.AddView({.name = "y", .elem = kF32, .operand = 0, .writes = true});
  const uint16_t tile = b.AddView({.name = "tile",
                                   .space = codegen::Space::kShared,
                                   .elem = kF32,
                                   .extent = kPlaces,
                                   .writes = true});
  const Val local = b.Builtin(codegen::BuiltinKind::kLocalX);
  const Val i = b.Builtin(codegen::BuiltinKind::kWorkgroupX) * kThreads + local;
  const Val number = b.Convert(i, DType::kF32), place = i % kPlaces;
  b.If(local < kPlaces, [&] { b.Store(tile, local, b.Literal(kF32, 0)); });
  b.Barrier();
  b.Atomic(kind, y, place, number);
  b.Atomic(kind, tile, place, number);
  b.Barrier();
  b.If(local < kPlaces, [&] { b.Atomic(kind, y, local + kPlaces, b.Load(tile, local)); });
  b.Finish();
  return k;
}

class AtomicsTest : public VulkanRunTest {
 protected:
  void ExpectRight(AtomicKind kind) {
    const codegen::Caps& caps = device_->context()->caps();
    const codegen::Kernel k = AtomicKernel(kind);
    ASSERT_OK(codegen::Verify(k, caps));
    const auto code = PrintCode(k, 1, caps);
    ASSERT_OK(code.status());
    const auto program =
        MakeProgram({.code = *code, .grid = {kGroups, 1, 1}}, device_->pipelines());
    ASSERT_OK(program.status());
    constexpr uint64_t kBytes = 2 * kPlaces * sizeof(float);
    const std::vector<Step> steps = {MakeStep(*program, {Use(0, 0, kBytes, true)}, "atomic")};
    const std::vector<SlotSpec> slots = {{kBytes, true}};
    const auto segment = device_->Record({steps, slots, {}, false});
    ASSERT_OK(segment.status());
    const std::vector<BufferRef> buffers = {Upload(std::vector<float>(2 * kPlaces))};
    const auto done = device_->Submit(*segment, Args(buffers));
    ASSERT_OK(done.status());
    ASSERT_OK(device_->Wait(*done, -1));
    std::vector<float> want(2 * kPlaces);
    for (uint32_t n = 0; n < kThreads * kGroups; ++n) {
      float& at = want[n % kPlaces];
      const auto number = static_cast<float>(n);
      at = kind == AtomicKind::kAdd ? at + number : std::max(at, number);
    }
    std::copy_n(want.begin(), kPlaces, want.begin() + kPlaces);
    EXPECT_EQ(Download<float>(buffers[0]), want);
  }
};

TEST_F(AtomicsTest, AddAndMaximumOfTheDevice) {
  ExpectRight(AtomicKind::kAdd);
  ExpectRight(AtomicKind::kMax);
}

TEST_F(AtomicsTest, AddByExchanges) {
  const ScopedEnvironment hide("FORGE_VK_DISABLE", "f32_atomic_add");
  Open();
  EXPECT_FALSE(device_->context()->caps().f32_atomic_add);
  ExpectRight(AtomicKind::kAdd);
}

}  // namespace
}  // namespace forge::vk
