// SPDX-License-Identifier: Apache-2.0
// Dot products of four bytes, by the device's instruction or spelled by shifts.
#include "codegen/kernel/scalar.h"
#include "tests/vk_runtime/vulkan_test.h"

namespace forge::vk {
namespace {

using codegen::DotKind;
using codegen::kU32;
using codegen::Val;

constexpr uint32_t kDotInvocations = 64, kPairs = 1 << 16;
constexpr DotKind kKinds[] = {DotKind::kSigned, DotKind::kUnsigned, DotKind::kMixed};

// Operand 0 holds the first words and then the second; operand 1 takes the sums of each kind.
codegen::Kernel DotKernel() {
  codegen::Kernel k{.name = "dot"};
  k.workgroup = {kDotInvocations, 1, 1};
  k.grid[0] = kPairs / kDotInvocations;
  codegen::Builder b(k);
  const uint16_t words = b.AddView({.name = "words", .elem = kU32, .operand = 0});
  const uint16_t sums =
      b.AddView({.name = "sums", .elem = kU32, .operand = 1, .reads = false, .writes = true});
  const Val i = b.Builtin(codegen::BuiltinKind::kWorkgroupX) * kDotInvocations +
                b.Builtin(codegen::BuiltinKind::kLocalX);
  const Val x = b.Load(words, i), y = b.Load(words, i + kPairs);
  uint32_t at = 0;
  for (const DotKind kind : kKinds) {
    const Val begin = kind == DotKind::kUnsigned ? x : bitcast(x, DType::kI32);
    b.Store(sums, i + at, bitcast(b.Dot4(kind, x, y, begin), DType::kU32));
    at += kPairs;
  }
  b.Finish();
  return k;
}

// Every pair of bytes meets at each of the four places.
std::vector<uint32_t> Words() {
  std::vector<uint32_t> words(2 * kPairs);
  for (uint32_t i = 0; i < kPairs; ++i)
    for (uint32_t place = 0; place < 4; ++place) {
      const uint32_t pair = (i + place * 20011) % kPairs;
      words[i] |= (pair >> 8) << (8 * place);
      words[kPairs + i] |= (pair & 255) << (8 * place);
    }
  return words;
}

// x + the sum of the products of the bytes of both.
uint32_t Dot(DotKind kind, uint32_t x, uint32_t y) {
  const auto number = [](uint32_t byte, bool is_signed) {
    return is_signed && byte > 127 ? static_cast<int>(byte) - 256 : static_cast<int>(byte);
  };
  uint32_t sum = x;
  for (int bit = 0; bit < 32; bit += 8) {
    const int a = number(x >> bit & 255, kind != DotKind::kUnsigned);
    sum += static_cast<uint32_t>(a * number(y >> bit & 255, kind == DotKind::kSigned));
  }
  return sum;
}

class DotTest : public VulkanRunTest {
 protected:
  absl::StatusOr<std::vector<uint32_t>> Run(const std::vector<uint32_t>& words) {
    FORGE_ASSIGN_OR_RETURN(const KernelCode code,
                           PrintCode(DotKernel(), 2, device_->context()->caps()));
    FORGE_ASSIGN_OR_RETURN(const ProgramRef program,
                           MakeProgram({.code = code, .grid = {kPairs / kDotInvocations, 1, 1}},
                                       device_->pipelines()));
    const std::vector<BufferRef> buffers = {
        Upload(words), Upload(std::vector<uint32_t>(std::size(kKinds) * kPairs))};
    const uint64_t in = buffers[0]->size(), out = buffers[1]->size();
    const std::vector<Step> steps = {
        MakeStep(program, {Use(0, 0, in), Use(1, 0, out, true)}, "dot")};
    const std::vector<SlotSpec> slots = {{in, false}, {out, false}};
    FORGE_ASSIGN_OR_RETURN(const SegmentRef segment, device_->Record({steps, slots, {}, false}));
    FORGE_ASSIGN_OR_RETURN(const Point done, device_->Submit(segment, Args(buffers)));
    FORGE_RETURN_IF_ERROR(device_->Wait(done, -1));
    return Download<uint32_t>(buffers[1]);
  }
  void ExpectRight() {
    const std::vector<uint32_t> words = Words();
    const auto got = Run(words);
    ASSERT_OK(got.status());
    size_t at = 0;
    for (const DotKind kind : kKinds)
      for (uint32_t i = 0; i < kPairs; ++i)
        ASSERT_EQ((*got)[at++], Dot(kind, words[i], words[kPairs + i])) << fmt::format(
            "kind {}: {:08x} and {:08x}", static_cast<int>(kind), words[i], words[kPairs + i]);
  }
};

TEST_F(DotTest, ByTheDevice) {
  if (!device_->context()->caps().int_dot) GTEST_SKIP() << "the device has no dot products";
  ExpectRight();
}

TEST_F(DotTest, ByShifts) {
  const ScopedEnvironment hide("FORGE_VK_DISABLE", "int_dot");
  Open();
  EXPECT_FALSE(device_->context()->caps().int_dot);
  ExpectRight();
}

}  // namespace
}  // namespace forge::vk
