// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace forge {
namespace {

TEST(StatusTest, MakersFormatAndKeepTheCode) {
  const absl::Status s = OutOfRange("axis {} is outside rank {}", 3, 2);
  EXPECT_EQ(s.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Message(s), "axis 3 is outside rank 2");
}

TEST(StatusTest, AnnotatePutsThePlaceBefore) {
  absl::Status s = NotFound("gone");
  s.SetPayload("forge/x", absl::Cord("kept"));
  const absl::Status at = Annotate(s, "softmax");
  EXPECT_EQ(at.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(at), "softmax: gone");
  EXPECT_EQ(at.GetPayload("forge/x"), absl::Cord("kept"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "softmax").ok());
  EXPECT_EQ(Message(Annotate(s, "")), "gone");
}

absl::StatusOr<int> Half(int v) {
  if (v % 2 != 0) return InvalidArgument("{} is odd", v);
  return v / 2;
}

absl::StatusOr<int> Quarter(int v) {
  FORGE_ASSIGN_OR_RETURN(const int half, Half(v));
  FORGE_RETURN_IF_ERROR(Half(half).status());
  return Half(half);
}

TEST(StatusTest, MacrosPassTheFirstErrorOn) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Message(Quarter(5).status()), "5 is odd");
  EXPECT_EQ(Message(Quarter(6).status()), "3 is odd");
}

TEST(StatusTest, VerdictCarriesItsReason) {
  EXPECT_TRUE(Verdict::Yes("matmul_tiled"));
  EXPECT_FALSE(Verdict::No("no f64"));
  EXPECT_EQ(Verdict::No("no f64").text(), "no f64");
}

TEST(StatusDeathTest, CheckNamesTheCondition) {
  EXPECT_DEATH(FORGE_CHECK(1 + 1 == 3), "status_test.cc:[0-9]+: the check `1 \\+ 1 == 3` failed");
}

TEST(HashTest, IsTheSameInEveryProcess) {
  EXPECT_EQ(HashText("conv2d"), HashText("conv2d"));
  EXPECT_NE(HashText("conv2d"), HashText("conv2e"));
  EXPECT_NE(HashText("a", HashText("b")), HashText("b", HashText("a")));
  static_assert(HashText("fixed") == 0x4f1d01c11570737, "caches on disk hold it");
}

}  // namespace
}  // namespace forge
