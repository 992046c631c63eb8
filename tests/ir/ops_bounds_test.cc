// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/cases/bounds.h"
#include "ir/cases/case_inputs.h"
#include "ir/graph/interpreter.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/product/attention.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"

namespace forge::ir {
namespace {

using ::testing::HasSubstr;

HostValue Filled(DType t, std::span<const int64_t> shape, const std::vector<double>& numbers) {
  HostValue v = *HostValue::Zeros(t, shape);
  for (size_t i = 0; i < numbers.size(); ++i) v.Set(static_cast<int64_t>(i), numbers[i]);
  return v;
}

HostValue Vector(DType t, const std::vector<double>& numbers) {
  const auto n = static_cast<int64_t>(numbers.size());
  return Filled(t, std::span(&n, 1), numbers);
}

HostValue Column(DType t, const std::vector<double>& numbers) {
  const std::array shape = {static_cast<int64_t>(numbers.size()), int64_t{1}};
  return Filled(t, shape, numbers);
}

// Is `got` taken for the result of `op` on `in`?
absl::Status Compare(const AnyOp& op, const std::vector<HostValue>& in, const HostValue& got) {
  std::vector<const HostValue*> pointers;
  for (const HostValue& v : in) pointers.push_back(&v);
  return CompareResult(op, pointers, (*Evaluate(op, pointers))[0], got);
}

TEST(BoundsTest, ElementWiseResultsMayDifferByUnits) {
  const HostValue x = Vector(DType::kF32, {1});
  const float e = std::exp(1.0f);
  const auto off = [&](int units) {
    float y = e;
    for (int i = 0; i < units; ++i) y = std::nextafter(y, 10.0f);
    return Compare(Exp{}, {x}, Vector(DType::kF32, {y})).ok();
  };
  EXPECT_TRUE(off(0));
  EXPECT_TRUE(off(2));
  EXPECT_FALSE(off(4));
}

TEST(BoundsTest, SumsMayDifferByTheirLength) {
  const std::vector<double> ones(10000, 1);
  const HostValue x = Vector(DType::kF32, ones);
  const AnyOp sum = Reduce{ReduceKind::kSum, {0}};
  // 4 * 2^-24 * sqrt(10000) * 10000 = 0.238
  EXPECT_TRUE(Compare(sum, {x}, Vector(DType::kF32, {10000.2})).ok());
  EXPECT_FALSE(Compare(sum, {x}, Vector(DType::kF32, {10000.3})).ok());
}

TEST(BoundsTest, CancellationCountsTheMagnitudesOfTerms) {
  const HostValue x = Vector(DType::kF32, {1e6, -1e6});
  EXPECT_TRUE(Compare(Reduce{ReduceKind::kSum, {0}}, {x}, Vector(DType::kF32, {0.5})).ok());
  EXPECT_FALSE(Compare(Reduce{ReduceKind::kSum, {0}}, {x}, Vector(DType::kF32, {1})).ok());
}

// Of two equal weights, whose values cancel.
TEST(BoundsTest, WeightsOfNarrowAttentionMayBeRounded) {
  const auto accepted = [](DType t, double got) {
    return Compare(Attention{}, {Column(t, {0}), Column(t, {0, 0}), Column(t, {1, -1})},
                   Column(t, {got}))
        .ok();
  };
  EXPECT_TRUE(accepted(DType::kF16, 4e-4));  // 2^-11 is 4.9e-4
  EXPECT_FALSE(accepted(DType::kF16, 6e-4));
  EXPECT_TRUE(accepted(DType::kBF16, 3e-3));
  EXPECT_FALSE(accepted(DType::kBF16, 5e-3));
  EXPECT_FALSE(accepted(DType::kF32, 4e-4));
}

TEST(BoundsTest, WhatIsOnlyChosenMustBeEqual) {
  const HostValue x = Vector(DType::kF32, {1, 2});
  const AnyOp most = Reduce{ReduceKind::kMax, {0}};
  EXPECT_TRUE(Compare(most, {x}, Vector(DType::kF32, {2})).ok());
  EXPECT_FALSE(Compare(most, {x}, Vector(DType::kF32, {2.0000002})).ok());
}

TEST(BoundsTest, NaNAndInfinitiesMustBeWhereTheReferenceHasThem) {
  const HostValue x = Vector(DType::kF32, {NAN, INFINITY, 1});
  const auto compare = [&](double a, double b, double c) {
    return Compare(Relu{}, {x}, Vector(DType::kF32, {a, b, c})).ok();
  };
  EXPECT_TRUE(compare(NAN, INFINITY, 1));
  EXPECT_FALSE(compare(0, INFINITY, 1));
  EXPECT_FALSE(compare(NAN, 3e38, 1));
  EXPECT_FALSE(compare(NAN, INFINITY, NAN));
}

TEST(BoundsTest, DenormalResultsMayBeZero) {
  const HostValue x = Vector(DType::kF32, {1e-39});
  EXPECT_TRUE(Compare(Relu{}, {x}, Vector(DType::kF32, {0})).ok());
  EXPECT_FALSE(Compare(Relu{}, {Vector(DType::kF32, {1e-37})}, Vector(DType::kF32, {0})).ok());
}

TEST(BoundsTest, NamesTheWorstElement) {
  const HostValue x = *HostValue::Zeros(DType::kF32, std::vector<int64_t>{2, 2});
  HostValue y = x;
  y.Set(1, 1);
  y.Set(2, 5);
  const absl::Status s = Compare(Relu{}, {x}, y);
  EXPECT_THAT(std::string(s.message()), HasSubstr("element [0, 1] is 1, should be 0"));
  EXPECT_THAT(std::string(s.message()), HasSubstr("2 of 4 elements are off"));
  EXPECT_THAT(std::string(Compare(Relu{}, {x}, Vector(DType::kF32, {0})).message()),
              HasSubstr("the result is f32[1], should be f32[2, 2]"));
}

TEST(BoundsTest, IntegersMustBeEqual) {
  const HostValue x = Vector(DType::kI32, {1, -2});
  EXPECT_TRUE(Compare(Relu{}, {x}, Vector(DType::kI32, {1, 0})).ok());
  EXPECT_FALSE(Compare(Relu{}, {x}, Vector(DType::kI32, {1, 1})).ok());
}

TEST(CaseInputsTest, ClassWordsBecomeTheSameTypeEverywhere) {
  const auto cases = Concretize({MatMul{}, {"float[2,3]", "float[3,1] in 0..1"}});
  ASSERT_TRUE(cases.ok()) << cases.status();
  ASSERT_EQ(cases->size(), 4u);
  for (const ConcreteCase& c : *cases) EXPECT_EQ(c.in[0].type.dtype(), c.in[1].type.dtype());
  EXPECT_EQ((*cases)[0].in[1].high, 1);
  EXPECT_EQ(Concretize({Select{}, {"bool[2]", "f32[2]", "f32[2]"}})->size(), 1u);
}

TEST(CaseInputsTest, RefusesWhatItDoesNotUnderstand) {
  for (const char* text : {"f32", "f33[2]", "f32[n]", "f32[2] in 3", "f32[2] in 2..1",
                           "f32[2] between", "f32[2]in 0..1"})
    EXPECT_FALSE(Concretize({Relu{}, {text}}).ok()) << text;
  EXPECT_FALSE(Concretize({Add{}, {"float[2]", "int[2]"}}).ok());
}

TEST(CaseInputsTest, DrawsTheSameNumbersWithinTheirRange) {
  const ConcreteCase c = Concretize({Add{}, {"f32[100] in -1..2", "f32[100] in -1..2"}})->front();
  const CaseInputs a = *MakeInputs(c, 7), b = *MakeInputs(c, 7), other = *MakeInputs(c, 8);
  EXPECT_TRUE(std::ranges::equal(a.values[0]->bytes(), b.values[0]->bytes()));
  EXPECT_FALSE(std::ranges::equal(a.values[0]->bytes(), other.values[0]->bytes()));
  EXPECT_FALSE(std::ranges::equal(a.values[0]->bytes(), a.values[1]->bytes()));
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_GE(a.values[0]->f64(i), -1);
    EXPECT_LE(a.values[0]->f64(i), 2);
  }
}

TEST(CaseInputsTest, IntegersStayWithinTypeAndRange) {
  const ConcreteCase c = Concretize({Relu{}, {"u8[200] in -3..2"}})->front();
  const CaseInputs inputs = *MakeInputs(c);
  for (int64_t i = 0; i < 200; ++i) EXPECT_LE(inputs.values[0]->i64(i), 2);
}

}  // namespace
}  // namespace forge::ir
