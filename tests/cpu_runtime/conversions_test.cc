// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/tape/conversions.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cpu_runtime/tape/plain_scalar.h"

namespace forge::cpu {
namespace {

template <class To>
void ExpectAsBase(void (*narrow)(const uint8_t*, uint8_t*, size_t)) {
  std::vector<float> wide;  // every upper half of an f32; one element more than whole vectors
  for (uint32_t high = 0; high < 0x10000; ++high)
    wide.push_back(std::bit_cast<float>(high << 16 | (high & 1)));
  for (int i = -600; i <= 600; ++i) wide.push_back(static_cast<float>(i) / 2);
  for (float edge :
       {0x1p31F, std::nextafter(0x1p31F, 0.0F), -0x1p31F, std::nextafter(-0x1p31F, -1e30F)})
    wide.push_back(edge);
  std::vector<To> whole(wide.size());
  narrow(reinterpret_cast<const uint8_t*>(wide.data()), reinterpret_cast<uint8_t*>(whole.data()),
         wide.size());
  for (size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(whole[i], FromDouble<To>(wide[i])) << wide[i];
}

TEST(ConversionsTest, ConvertAsBaseDoes) {
  ExpectAsBase<uint8_t>(&F32ToU8);
  ExpectAsBase<int8_t>(&F32ToI8);
  ExpectAsBase<int32_t>(&F32ToI32);
}

TEST(ConversionsTest, RoundI32ToTheNearestFloat) {
  std::vector<int32_t> whole{INT32_MIN, INT32_MIN + 1, -1, 0, INT32_MAX};
  for (int i = -19; i <= 19; ++i) whole.push_back((1 << 24) + i);
  std::vector<float> floats(whole.size());
  I32ToF32(reinterpret_cast<const uint8_t*>(whole.data()),
           reinterpret_cast<uint8_t*>(floats.data()), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(floats[i], static_cast<float>(whole[i]));
}

TEST(ConversionsTest, WidenEveryByte) {
  std::vector<uint8_t> bytes(259);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  std::vector<float> u8(bytes.size()), i8(bytes.size());
  U8ToF32(bytes.data(), reinterpret_cast<uint8_t*>(u8.data()), bytes.size());
  I8ToF32(bytes.data(), reinterpret_cast<uint8_t*>(i8.data()), bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(u8[i], static_cast<float>(bytes[i]));
    EXPECT_EQ(i8[i], static_cast<float>(static_cast<int8_t>(bytes[i])));
  }
}

}  // namespace
}  // namespace forge::cpu
