// SPDX-License-Identifier: Apache-2.0
#include "ir/type/host_value.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

HostValue Zeros(DType t, std::vector<int64_t> shape) {
  auto v = HostValue::Zeros(t, shape);
  FORGE_CHECK(v.ok());
  return *std::move(v);
}

double Stored(DType t, double v) { return HostValue::Scalar(t, v).f64(0); }

TEST(HostValueTest, StartsAtZeroInEveryType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    if (t == DType::kString) continue;
    const HostValue v = Zeros(t, {3, 3});
    EXPECT_EQ(v.elements(), 9);
    for (int64_t e = 0; e < 9; ++e) EXPECT_EQ(v.f64(e), 0) << Name(t);
    EXPECT_EQ(v.type().ToText(), std::string(Name(t)) + "[3, 3]");
  }
}

TEST(HostValueTest, RefusesHostileShapes) {
  const auto zeros = [](std::vector<int64_t> shape) {
    return HostValue::Zeros(DType::kF32, shape);
  };
  EXPECT_THAT(zeros({2, -1}), Fails(absl::StatusCode::kInvalidArgument, "-1 is no dimension"));
  EXPECT_THAT(zeros({INT64_MAX, INT64_MAX}), Fails(absl::StatusCode::kResourceExhausted, ""));
  EXPECT_THAT(zeros({int64_t{1} << 39}), Fails(absl::StatusCode::kResourceExhausted, "2^40"));
  EXPECT_THAT(zeros({0, INT64_MAX, INT64_MAX}), Fails(absl::StatusCode::kResourceExhausted, ""));
  EXPECT_EQ(zeros({0, 5})->elements(), 0);
}

TEST(HostValueTest, ViewsBytesThatFit) {
  const Bytes b(std::vector<uint8_t>{1, 0, 2, 0});
  const int64_t two[] = {2}, three[] = {3};
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue v, HostValue::Of(DType::kI16, two, b));
  EXPECT_EQ(v.i64(1), 2);
  EXPECT_EQ(v.bytes().data(), b.data());
  EXPECT_THAT(HostValue::Of(DType::kI16, three, b),
              Fails(absl::StatusCode::kInvalidArgument, "takes 6 bytes, not 4"));
}

TEST(HostValueTest, CopiesBeforeItWritesSharedBytes) {
  HostValue a = Zeros(DType::kF32, {2});
  a.Set(0, 1);
  const uint8_t* before = a.bytes().data();
  a.Set(1, 2);
  EXPECT_EQ(a.bytes().data(), before) << "alone, it writes in place";
  const HostValue b = a;
  const Bytes kept = a.shared_bytes();
  a.Set(0, 5);
  EXPECT_EQ(a.f64(0), 5);
  EXPECT_EQ(b.f64(0), 1);
  EXPECT_EQ(kept.data(), before);
}

TEST(HostValueTest, IntegersWrapAndFloatsSaturateIntoThem) {
  HostValue v = Zeros(DType::kI8, {1});
  v.SetI64(0, 300);
  EXPECT_EQ(v.i64(0), 44);
  v.Set(0, 300);
  EXPECT_EQ(v.i64(0), 127);
  v.Set(0, -300);
  EXPECT_EQ(v.i64(0), -128);
  v.Set(0, NAN);
  EXPECT_EQ(v.i64(0), 0);
  v.Set(0, -1.9);
  EXPECT_EQ(v.i64(0), -1);
  EXPECT_EQ(Stored(DType::kU8, -3), 0);
  EXPECT_EQ(Stored(DType::kU32, 1e20), 4294967295.0);
  EXPECT_EQ(HostValue::Scalar(DType::kI64, 1e300).i64(0), INT64_MAX);
  EXPECT_EQ(HostValue::Scalar(DType::kI64, -1e300).i64(0), INT64_MIN);
  EXPECT_EQ(Stored(DType::kU64, 1e300), 18446744073709551616.0);
  EXPECT_EQ(HostValue::Scalar(DType::kF32, 1e30).i64(0), INT64_MAX);
  EXPECT_EQ(Stored(DType::kBool, 0.25), 1);
  EXPECT_EQ(Stored(DType::kBool, NAN), 1);
}

TEST(HostValueTest, NumbersAreExact) {
  for (const auto& [t, number] : {std::pair(DType::kI64, Number((int64_t{1} << 53) + 1)),
                                  {DType::kI64, INT64_MIN},
                                  {DType::kU64, UINT64_MAX},
                                  {DType::kF64, 0.1},
                                  {DType::kC128, std::complex(0.1, -0.2)}})
    EXPECT_EQ(HostValue::Scalar(t, number).number(0), number);
}

TEST(HostValueTest, NumbersSaturateIntoIntegers) {
  const auto stored = [](DType t, Number v) { return HostValue::Scalar(t, v).number(0); };
  EXPECT_EQ(stored(DType::kI64, UINT64_MAX), INT64_MAX);
  EXPECT_EQ(stored(DType::kU64, INT64_MIN), 0);
  EXPECT_EQ(stored(DType::kI8, 300), 127);
  EXPECT_EQ(stored(DType::kI8, UINT64_MAX), 127);
  EXPECT_EQ(stored(DType::kU4, -3), 0);
  EXPECT_EQ(stored(DType::kU4, UINT64_MAX), 15);
  EXPECT_EQ(stored(DType::kBool, UINT64_MAX), 1);
  EXPECT_EQ(stored(DType::kF32, (int64_t{1} << 60) + (int64_t{1} << 36) + 1), 0x1.000002p60);
}

TEST(HostValueTest, SubByteElementsArePackedFromTheLowBits) {
  HostValue v = Zeros(DType::kI4, {3});
  v.SetI64(0, -1);
  v.SetI64(1, 7);
  v.SetI64(2, -8);
  EXPECT_EQ(v.bytes()[0], 0x7f);
  EXPECT_EQ(v.bytes()[1], 0x08);
  EXPECT_EQ(v.i64(0), -1);
  EXPECT_EQ(v.i64(2), -8);
  v.Set(1, 100);
  EXPECT_EQ(v.i64(1), 7) << "saturates";
  HostValue u = Zeros(DType::kU2, {5});
  for (int64_t i = 0; i < 5; ++i) u.SetI64(i, i);
  EXPECT_EQ(u.i64(3), 3);
  EXPECT_EQ(u.i64(4), 0);
  HostValue f = Zeros(DType::kF4E2M1, {2});
  f.Set(1, -1.5);
  EXPECT_EQ(f.f64(1), -1.5);
  EXPECT_EQ(f.bytes()[0], 0xb0);
}

TEST(HostValueTest, FloatsRoundOnce) {
  EXPECT_EQ(Stored(DType::kF16, 2049), 2048);
  EXPECT_EQ(Stored(DType::kF16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);
  EXPECT_EQ(Stored(DType::kBF16, 257), 256);
  EXPECT_EQ(Stored(DType::kF32, 16777217), 16777216);
  EXPECT_EQ(Stored(DType::kF8E4M3, 1000), 448);
  EXPECT_TRUE(std::isnan(Stored(DType::kF16, NAN)));
  EXPECT_EQ(Stored(DType::kF64, 0.1), 0.1);
}

TEST(HostValueTest, ComplexElementsAreInterleaved) {
  for (DType t : {DType::kC64, DType::kC128}) {
    HostValue v = Zeros(t, {2});
    v.SetC128(1, {1.5, -2});
    EXPECT_EQ(v.c128(1), std::complex<double>(1.5, -2));
    EXPECT_EQ(v.f64(1), 1.5);
    v.Set(1, 3);
    EXPECT_EQ(v.c128(1), std::complex<double>(3, 0));
    EXPECT_EQ(v.c128(0), std::complex<double>(0, 0));
  }
}

TEST(HostValueTest, FlatAndUnflatAreInverse) {
  const HostValue v = Zeros(DType::kU8, {2, 3, 4});
  int64_t flat = 0;
  for (Box b(v.shape()); b; b.Next(), ++flat) {
    EXPECT_EQ(v.Flat(*b), flat);
    EXPECT_EQ(v.Unflat(flat), *b);
  }
  EXPECT_EQ(flat, 24);
  EXPECT_TRUE(v.Has(1, 2));
  EXPECT_FALSE(v.Has(1, 3));
  EXPECT_FALSE(v.Has(1, -1));
}

TEST(BoxTest, EmptyAndScalarBoxes) {
  const int64_t empty[] = {2, 0};
  EXPECT_FALSE(Box(empty));
  int n = 0;
  for (Box b(std::span<const int64_t>{}); b; b.Next()) ++n;
  EXPECT_EQ(n, 1) << "a scalar has one index";
}

TEST(LanesTest, CoverEachElementOnce) {
  const int64_t shape[] = {2, 3, 4};
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<int> seen(24);
    for (const Lane& lane : Lanes(shape, axis)) {
      EXPECT_EQ(lane.n, shape[axis]);
      for (int64_t i = 0; i < lane.n; ++i) ++seen[static_cast<size_t>(lane[i])];
    }
    EXPECT_EQ(seen, std::vector<int>(24, 1)) << axis;
  }
  const int64_t none[] = {2, 0, 4};
  EXPECT_TRUE(Lanes(none, 0).empty());
  EXPECT_EQ(Lanes(none, 1).size(), 8u) << "reductions give one result for each empty lane";
}

}  // namespace
}  // namespace forge::ir
