// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "cpu_runtime/tape/conversions.h"

namespace forge::cpu {
namespace {

TEST(HalfFloatsTest, WidenEveryCodeAsBaseDoes) {
  std::vector<uint16_t> codes(0x10000);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint16_t>(i);
  for (DType t : {DType::kF16, DType::kBF16}) {
    std::vector<float> wide(codes.size());
    WidenHalves(t, codes.data(), wide.data(), codes.size());
    for (uint16_t code : codes) {
      const float expected = t == DType::kF16 ? F16ToF32(code) : BF16ToF32(code);
      ASSERT_EQ(std::bit_cast<uint32_t>(wide[code]), std::bit_cast<uint32_t>(expected)) << code;
    }
  }
}

// Every upper half of an f32, with lower halves on both sides of where rounding changes; one
// element more than whole vectors.
TEST(HalfFloatsTest, NarrowAsBaseDoes) {
  constexpr uint32_t kLow[] = {0,      1,      0xfff,  0x1000, 0x1001, 0x1fff, 0x2000, 0x2fff,
                               0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0xefff, 0xf000, 0xffff};
  std::vector<float> wide;
  for (uint32_t high = 0; high < 0x10000; ++high)
    for (uint32_t low : kLow) wide.push_back(std::bit_cast<float>(high << 16 | low));
  wide.push_back(2049);
  for (DType t : {DType::kF16, DType::kBF16}) {
    std::vector<uint16_t> codes(wide.size());
    NarrowHalves(t, wide.data(), codes.data(), wide.size());
    for (size_t i = 0; i < wide.size(); ++i)
      ASSERT_EQ(codes[i], t == DType::kF16 ? F32ToF16(wide[i]) : F32ToBF16(wide[i])) << wide[i];
  }
}

}  // namespace
}  // namespace forge::cpu
