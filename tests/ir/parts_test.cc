// SPDX-License-Identifier: Apache-2.0
// What follows from a composite's decomposition, seen from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/cases/bounds.h"
#include "ir/graph/interpreter.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/compiler/relayout.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/norm/rms_norm.h"
#include "ir/ops/reduction/softmax.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {

// (a + b) * factor; of parity 1 by a part without a gradient.
struct ScaledSum {
  double factor = 1;
  int64_t parity = 0;

  static constexpr OpInfo kInfo{.name = "scaled_sum",
                                .formula = "y = (a + b) * factor",
                                .inputs = "a: float[*d]; b: =a[*d]?",
                                .outputs = "y: =a[*r]",
                                .source = "this test"};
  static constexpr Field kFields[] = {FieldOf<&ScaledSum::factor>("factor", "A number."),
                                      FieldOf<&ScaledSum::parity>("parity", "0 or 1.")};
  Values decompose(Function& f, ValueSpan in) const {
    if (parity > 1) f.Fail(InvalidArgument("parity {} is neither 0 nor 1", parity));
    const Value sum = in[1] ? Widened(in[0]) + Widened(in[1]) : Widened(in[0]);
    const Value y = Narrowed(sum * factor, in[0].type().dtype());
    return {parity == 0 ? y : f(Relayout{y.type()}, {y})};
  }
  static Cases cases() { return {}; }
};
const OpDef& DefOf(const ScaledSum*);
FORGE_DEFINE_OP(ScaledSum)

namespace {

using ::testing::HasSubstr;

HostValue Numbered(DType t, std::vector<double> numbers) {
  HostValue v = *HostValue::Zeros(t, std::vector{static_cast<int64_t>(numbers.size())});
  Store(numbers, v);
  return v;
}

const Type kF32x2 = Type::Tensor(DType::kF32, {2});

TEST(PartsTest, TypesAreThoseOfTheParts) {
  FORGE_ASSERT_OK_AND_ASSIGN(const Types out, AnyOp(ScaledSum{}).Infer(Types{kF32x2, kF32x2}));
  EXPECT_EQ(out, Types{kF32x2});
  // Left out, an optional operand is absent.
  FORGE_ASSERT_OK_AND_ASSIGN(const Types alone, AnyOp(ScaledSum{}).Infer(Types{kF32x2}));
  EXPECT_EQ(alone, Types{kF32x2});
}

TEST(PartsTest, WhatTheyRefuseTheCompositeRefuses) {
  const auto refused = AnyOp(ScaledSum{.parity = 2}).Infer(Types{kF32x2});
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("scaled_sum(a: f32[2])"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("parity 2 is neither 0 nor 1"));
}

TEST(PartsTest, EvaluationIsInF64AndRoundsOnce) {
  // The sum is 2049, in f16 2048.
  const HostValue a = Numbered(DType::kF16, {2048}), b = Numbered(DType::kF16, {1});
  const HostValue* in[] = {&a, &b};
  FORGE_ASSERT_OK_AND_ASSIGN(const auto y, Evaluate(ScaledSum{.factor = 3}, in));
  EXPECT_EQ(y[0].dtype(), DType::kF16);
  EXPECT_EQ(y[0].f64(0), 6148);
}

TEST(PartsTest, CostsAddUp) {
  const Cost cost = AnyOp(ScaledSum{}).Cost(Types{kF32x2, kF32x2});
  EXPECT_EQ(cost.flops, Dim(4));
  EXPECT_EQ(cost.terms, Dim(1));
  EXPECT_EQ(AnyOp(RmsNorm{}).Cost(Types{Type::Tensor(DType::kF32, {3, 70})}).terms, Dim(70));
}

// Is y[0] * (1 + units * 2^-24) taken for y[0], with y the op's result?
bool IsTaken(const AnyOp& op, const HostValue& x, double units) {
  const HostValue* in[] = {&x};
  const HostValue y = (*Evaluate(op, in))[0];
  HostValue off = y;
  off.Set(0, y.f64(0) * (1 + units * 0x1p-24));
  return CompareResult(op, in, y, off).ok();
}

TEST(PartsTest, ErrorsGrowWithWhatAmplifiesThem) {
  // e^(x - max) of large differences magnifies the rounding of the difference.
  const HostValue near = Numbered(DType::kF32, {-1, 0}), far = Numbered(DType::kF32, {-80, 0});
  EXPECT_TRUE(IsTaken(Softmax{}, near, 4));
  EXPECT_FALSE(IsTaken(Softmax{}, near, 60));
  EXPECT_TRUE(IsTaken(Softmax{}, far, 60));
  EXPECT_FALSE(IsTaken(Softmax{}, far, 1000));
}

TEST(PartsTest, BoundsScaleWithTheAccumulator) {
  const HostValue x = Numbered(DType::kF64, {-1, 0});
  EXPECT_TRUE(IsTaken(Softmax{}, x, 4 * 0x1p-29));
  EXPECT_FALSE(IsTaken(Softmax{}, x, 60 * 0x1p-29));
}

TEST(PartsTest, GradientsFlowThroughTheParts) {
  Function f("f");
  const Value a = f.Argument("a", kF32x2), b = f.Argument("b", kF32x2);
  const Value dy = f.Argument("dy", kF32x2);
  const AnyOp op = ScaledSum{.factor = 3};
  const Values both = op.Gradient({f, std::array{a, b}, f.Add(op, std::array{a, b}), {&dy, 1}});
  // Given twice, an operand gets the whole at its first place.
  const Values twice = op.Gradient({f, std::array{a, a}, f.Add(op, std::array{a, a}), {&dy, 1}});
  ASSERT_THAT(f.status(), Succeeds());
  EXPECT_FALSE(twice[1]);
  for (const auto& [name, v] : {std::pair("da", both[0]), {"db", both[1]}, {"daa", twice[0]}})
    f.Return(name, v);
  const HostValue x = Numbered(DType::kF32, {1, 2});
  const HostValue* in[] = {&x, &x, &x};
  FORGE_ASSERT_OK_AND_ASSIGN(const Interpretation got, Interpreter{}.Run(f, in));
  EXPECT_EQ(Doubles(got.results[0]), (std::vector<double>{3, 6}));
  EXPECT_EQ(Doubles(got.results[1]), (std::vector<double>{3, 6}));
  EXPECT_EQ(Doubles(got.results[2]), (std::vector<double>{6, 12}));
}

TEST(PartsTest, APartWithoutAGradientIsNamed) {
  Function f("f");
  const Value a = f.Argument("a", kF32x2), dy = f.Argument("dy", kF32x2);
  const AnyOp op = ScaledSum{.parity = 1};
  op.Gradient({f, {&a, 1}, f.Add(op, {&a, 1}), {&dy, 1}});
  EXPECT_THAT(std::string(f.status().message()),
              HasSubstr("scaled_sum has no gradient: that of its part"));
}

}  // namespace
}  // namespace forge::ir
