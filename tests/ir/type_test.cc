// SPDX-License-Identifier: Apache-2.0
#include "ir/type/type.h"

#include <gtest/gtest.h>

#include "ir/type/encodings.h"
#include "tests/support/ir_values.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

TEST(TypeTest, TextReads) {
  const Dim n = Named("n");
  EXPECT_EQ(Type::Tensor(DType::kF32, {n, 3, 48, 192}).ToText(), "f32[n, 3, 48, 192]");
  EXPECT_EQ(Type::Tensor(DType::kI64, {}).ToText(), "i64[]");
  EXPECT_EQ(Type::Unranked(DType::kF16).ToText(), "f16[*]");
  EXPECT_EQ(Type::Sequence(Type::Optional(Type::Unranked(DType::kU8))).ToText(),
            "sequence<optional<u8[*]>>");
  EXPECT_EQ(Type().ToText(), "none");
}

TEST(TypeTest, ComparesByContent) {
  const Dim n = Named("n");
  const Type t = Type::Tensor(DType::kF32, {n, 3});
  EXPECT_EQ(t, Type::Tensor(DType::kF32, {n, 3}));
  EXPECT_NE(t, Type::Tensor(DType::kF16, {n, 3}));
  EXPECT_NE(t, Type::Tensor(DType::kF32, {n, 4}));
  EXPECT_NE(t, Type());
  EXPECT_EQ(Type::Sequence(t), Type::Sequence(t.With(DType::kF32)));
  EXPECT_NE(Type::Sequence(t), Type::Optional(t));
  EXPECT_EQ(t.With(*PermutedEncoding::Make({1, 0})), t.With(*PermutedEncoding::Make({1, 0})));
  EXPECT_NE(t.With(*PermutedEncoding::Make({1, 0})), t);
}

TEST(TypeTest, BytesCountPackedElementsAndRefuseOverflow) {
  EXPECT_EQ(*Type::Tensor(DType::kF32, {2, 3}).bytes(), 24);
  EXPECT_EQ(*Type::Tensor(DType::kI4, {3, 3}).bytes(), 5);
  EXPECT_EQ(*Type::Tensor(DType::kF64, {0, 3}).bytes(), 0);
  const Dim n = Named("n");
  EXPECT_EQ(*Type::Tensor(DType::kF16, {n, 4}).bytes(), n * 8);
  EXPECT_THAT(Type::Tensor(DType::kF32, {INT64_MAX, 2}).bytes(),
              Fails(absl::StatusCode::kOutOfRange, "overflows 64 bits"));
  EXPECT_THAT(Type::Tensor(DType::kF32, {int64_t{1} << 61}).bytes(),
              Fails(absl::StatusCode::kOutOfRange, "overflows 64 bits"));
  EXPECT_FALSE(Type::Tensor(DType::kString, {2}).bytes().ok());
  EXPECT_FALSE(Type::Unranked(DType::kF32).bytes().ok());
}

TEST(TypeTest, BindReachesElements) {
  const SymbolRef n = std::make_shared<Symbol>(Symbol{.name = "n"});
  const Type t = Type::Sequence(Type::Tensor(DType::kF32, {Dim(n) * 2}));
  EXPECT_EQ(t.Bind({{n, 3}}).ToText(), "sequence<f32[6]>");
}

TEST(EncodingTest, PermutedDecodes) {
  // Two channels of one row of three, stored row, column, channel.
  const EncodingRef nhwc = *PermutedEncoding::Make({1, 2, 0});
  EXPECT_EQ(nhwc->name(), "permuted(1,2,0)");
  const std::vector<uint8_t> in = {1, 4, 2, 5, 3, 6};
  std::vector<uint8_t> out(6);
  const int64_t shape[] = {2, 1, 3};
  ASSERT_THAT(nhwc->Decode(DType::kU8, shape, in, out), Succeeds());
  EXPECT_EQ(out, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(nhwc->Decode(DType::kU16, shape, in, out),
              Fails(absl::StatusCode::kInvalidArgument, "12 bytes are needed"));
}

TEST(EncodingTest, NamesFindEncodings) {
  EXPECT_EQ((*EncodingNamed("permuted(0,2,3,1)"))->name(), "permuted(0,2,3,1)");
  for (const char* bad : {"", "permuted", "permuted()x", "permuted(", "permuted(0,0)",
                          "permuted(1,2)", "permuted(0,)", "permuted(,0)", "permuted(00)",
                          "permuted(-1,0)", "permuted(99999999999999999999)", "q9_z"})
    EXPECT_FALSE(EncodingNamed(bad).ok()) << bad;
}

}  // namespace
}  // namespace forge::ir
