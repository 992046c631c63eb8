// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <gtest/gtest.h>

namespace forge {
namespace {

TEST(BytesTest, AreNoneAtFirst) {
  const Bytes none;
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none.Part(0, 0).size(), 0u);
}

TEST(BytesTest, TakeOverAVectorWithoutACopy) {
  std::vector<uint8_t> own{1, 2, 3};
  const uint8_t* at = own.data();
  const Bytes bytes(std::move(own));
  EXPECT_EQ(bytes.data(), at);
  EXPECT_EQ(bytes.size(), 3u);
}

TEST(BytesTest, ViewsKeepTheirOwnerAsLongAsAnyPartLives) {
  auto owner = std::make_shared<const std::vector<uint8_t>>(std::vector<uint8_t>{1, 2, 3, 4});
  const std::weak_ptr<const void> alive = owner;
  Bytes all(*owner, owner);
  EXPECT_EQ(all.data(), owner->data());
  owner.reset();
  Bytes part = all.Part(2, 2);
  all = Bytes();
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(part.data()[0], 3);
  part = Bytes();
  EXPECT_TRUE(alive.expired());
}

TEST(BytesTest, PartsShareOwnership) {
  Bytes part;
  {
    const Bytes all(std::vector<uint8_t>{1, 2, 3, 4});
    part = all.Part(1, 2).Part(1, 1);
  }
  ASSERT_EQ(part.size(), 1u);
  EXPECT_EQ(part.data()[0], 3);
  EXPECT_EQ(Bytes(std::vector<uint8_t>{1}).Part(1, 0).size(), 0u);
}

TEST(BytesTest, AreAllocatedAtCacheLines) {
  for (const uint64_t size : {0, 1, 65, 100'000}) {
    const std::shared_ptr<uint8_t> memory = AllocateBytes(size);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % kLineBytes, 0) << size;
  }
}

TEST(BytesDeathTest, PartsLieInside) {
  const Bytes all(std::vector<uint8_t>{1, 2, 3, 4});
  EXPECT_DEATH(all.Part(3, 2), "failed");
  EXPECT_DEATH(all.Part(1, UINT64_MAX), "failed");
}

}  // namespace
}  // namespace forge
