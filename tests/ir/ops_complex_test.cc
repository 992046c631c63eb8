// SPDX-License-Identifier: Apache-2.0
// Complex numbers in the reference. Against PyTorch: tests/goldens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "ir/cases/bounds.h"
#include "ir/graph/interpreter.h"
#include "ir/graph/module.h"
#include "ir/op/elements.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/scan.h"
#include "ir/passes/passes.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

using testing::ElementsAre;
using Complex = std::complex<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();

HostValue ComplexTensor(const std::vector<Complex>& numbers, DType t = DType::kC128) {
  const int64_t n = static_cast<int64_t>(numbers.size());
  HostValue v = *HostValue::Zeros(t, std::span(&n, 1));
  Store(numbers, v);
  return v;
}

HostValue Computed(const AnyOp& op, const std::vector<HostValue>& in) {
  std::vector<const HostValue*> pointers;
  for (const HostValue& v : in) pointers.push_back(&v);
  auto out = Evaluate(op, pointers);
  EXPECT_TRUE(out.ok()) << out.status();
  return std::move(out->front());
}

TEST(ComplexTest, SumsDifferencesAndProductsAreThoseOfComplexNumbers) {
  const HostValue a = ComplexTensor({{1, 2}, {-3, 0.5}}), b = ComplexTensor({{3, -1}, {0, 4}});
  EXPECT_THAT(Complexes(Computed(Add{}, {a, b})), ElementsAre(Complex(4, 1), Complex(-3, 4.5)));
  EXPECT_THAT(Complexes(Computed(Sub{}, {a, b})), ElementsAre(Complex(-2, 3), Complex(-3, -3.5)));
  EXPECT_THAT(Complexes(Computed(Mul{}, {a, b})), ElementsAre(Complex(5, 5), Complex(-2, -12)));
  EXPECT_THAT(Complexes(Computed(Neg{}, {a})), ElementsAre(Complex(-1, -2), Complex(3, -0.5)));
}

TEST(ComplexTest, QuotientsNeitherOverflowNorUnderflowEarly) {
  const HostValue a = ComplexTensor({{1, 2}, {1e300, 1e300}, {1e-300, 2e-300}, {4, 2}});
  const HostValue b = ComplexTensor({{3, -1}, {1e300, 1e300}, {1e-300, -1e-300}, {0, 2}});
  const auto quotients = Complexes(Computed(Div{}, {a, b}));
  const Complex expected[] = {{0.1, 0.7}, {1, 0}, {-0.5, 1.5}, {1, -2}};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_LT(std::abs(quotients[i] - expected[i]), 1e-15) << i << ": " << quotients[i];
}

TEST(ComplexTest, DivisionByZeroGivesInfinitiesAndNaN) {
  const auto q = Complexes(
      Computed(Div{}, {ComplexTensor({{1, 2}, {0, 0}}), ComplexTensor({{0, 0}, {0, 0}})}));
  EXPECT_EQ(q[0], Complex(kInf, kInf));
  EXPECT_TRUE(std::isnan(q[1].real()) && std::isnan(q[1].imag()));
}

TEST(ComplexTest, AModulusIsReal) {
  const HostValue y =
      Computed(Abs{}, {ComplexTensor({{3, -4}, {1e300, 1e300}, {-kInf, 1}}, DType::kC128)});
  EXPECT_EQ(y.dtype(), DType::kF64);
  EXPECT_EQ(y.f64(0), 5);
  EXPECT_NEAR(y.f64(1) / 1e300, std::sqrt(2), 1e-15);
  EXPECT_EQ(y.f64(2), kInf);
  EXPECT_EQ(Computed(Abs{}, {ComplexTensor({{3, -4}}, DType::kC64)}).dtype(), DType::kF32);
}

// The decomposition of an op on complex numbers, computed.
std::vector<Complex> ByParts(const AnyOp& op, const std::vector<Complex>& points) {
  Function f("f");
  const Value z =
      f.Argument("z", Type::Tensor(DType::kC128, {static_cast<int64_t>(points.size())}));
  const Values in{z};
  f.Return("y", op.Decompose(f, in)[0]);
  const HostValue at = ComplexTensor(points);
  const HostValue* arguments[] = {&at};
  auto got = Interpreter{}.Run(f, arguments);
  EXPECT_TRUE(got.ok()) << got.status();
  return Complexes(got->results[0]);
}

// Zeros of either sign stand for the two sides of a cut.
TEST(ComplexTest, InverseFunctionsContinueAtTheirBranchCuts) {
  const std::vector<Complex> points{{2, 0.0},  {2, -0.0},  {-2, 0.0},  {-2, -0.0}, {0.0, 2},
                                    {-0.0, 2}, {0.0, -2},  {-0.0, -2}, {0.5, 0.0}, {-0.5, -0.0},
                                    {1e-9, 3}, {3, 1e-12}, {-0.75, -1}};
  const auto check = [&](const AnyOp& op, Complex (*expected)(const Complex&)) {
    const std::vector<Complex> got = ByParts(op, points);
    for (size_t i = 0; i < points.size(); ++i)
      EXPECT_LT(std::abs(got[i] - expected(points[i])), 4e-15) << op.name() << " " << points[i];
  };
  check(Asin{}, &std::asin<double>);
  check(Acos{}, &std::acos<double>);
  check(Atan{}, &std::atan<double>);
  check(Asinh{}, &std::asinh<double>);
  check(Acosh{}, &std::acosh<double>);
  check(Atanh{}, &std::atanh<double>);
}

TEST(ComplexTest, ProductsAlongAnAxisAreThoseOfComplexNumbers) {
  const std::vector<Complex> points{{1, 2}, {0.5, -1}, {-2, 0}, {0, 3}, {1, 1}};
  Complex product = 1;
  std::vector<Complex> running;
  for (const Complex& z : points) running.push_back(product *= z);
  const auto near = [](const std::vector<Complex>& got, const std::vector<Complex>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(std::abs(got[i] - want[i]), 1e-13) << i;
  };
  near(ByParts(Reduce{ReduceKind::kProd, {0}}, points), {product});
  near(ByParts(Scan{.kind = ScanKind::kProd}, points), running);
  running.insert(running.begin(), 1);
  running.pop_back();
  near(ByParts(Scan{.kind = ScanKind::kProd, .exclusive = true}, points), running);
}

TEST(ComplexTest, EqualLooksAtBothParts) {
  const HostValue y = Computed(
      Equal{}, {ComplexTensor({{1, 2}, {1, 2}, {1, 2}}), ComplexTensor({{1, 2}, {1, 3}, {0, 2}})});
  EXPECT_EQ(y.dtype(), DType::kBool);
  EXPECT_THAT(Integers(y), ElementsAre(1, 0, 0));
}

TEST(ComplexTest, SelectsByATruthValue) {
  HostValue p = *HostValue::Zeros(DType::kBool, std::vector<int64_t>{2});
  p.SetI64(1, 1);
  EXPECT_THAT(Complexes(Computed(
                  Select{}, {p, ComplexTensor({{1, 2}, {3, 4}}), ComplexTensor({{5, 6}, {7, 8}})})),
              ElementsAre(Complex(5, 6), Complex(3, 4)));
}

TEST(ComplexTest, CastsKeepTheRealPartAndTestBoth) {
  const HostValue z = ComplexTensor({{1.75, -2}, {0, 0.5}, {0, 0}});
  EXPECT_THAT(Doubles(Computed(Cast{DType::kF32}, {z})), ElementsAre(1.75, 0, 0));
  EXPECT_THAT(Integers(Computed(Cast{DType::kI32}, {z})), ElementsAre(1, 0, 0));
  EXPECT_THAT(Integers(Computed(Cast{DType::kBool}, {z})), ElementsAre(1, 1, 0));
  EXPECT_THAT(Complexes(Computed(Cast{DType::kC64}, {z})),
              ElementsAre(Complex(1.75, -2), Complex(0, 0.5), Complex(0, 0)));
  HostValue i = *HostValue::Zeros(DType::kI32, std::vector<int64_t>{1});
  i.SetI64(0, -7);
  EXPECT_THAT(Complexes(Computed(Cast{DType::kC128}, {i})), ElementsAre(Complex(-7, 0)));
}

TEST(ComplexTest, Reduces) {
  const HostValue x = ComplexTensor({{1, 1}, {2, -1}, {0, 2}});
  const auto reduced = [&](ReduceKind kind) {
    return Complexes(Computed(Reduce{kind, {0}}, {x}))[0];
  };
  EXPECT_EQ(reduced(ReduceKind::kSum), Complex(3, 2));
  EXPECT_EQ(reduced(ReduceKind::kProd), Complex(-2, 6));
  EXPECT_EQ(reduced(ReduceKind::kMean), Complex(1, 2.0 / 3));
}

TEST(ComplexTest, MatrixProductsMultiplyComplexNumbers) {
  HostValue a = *HostValue::Zeros(DType::kC64, std::vector<int64_t>{1, 2});
  HostValue b = *HostValue::Zeros(DType::kC64, std::vector<int64_t>{2, 1});
  Store(std::vector<Complex>{{1, 2}, {0, -1}}, a);
  Store(std::vector<Complex>{{3, 1}, {2, 2}}, b);
  const HostValue y = Computed(MatMul{}, {a, b});
  EXPECT_EQ(y.dtype(), DType::kC64);
  EXPECT_THAT(Complexes(y), ElementsAre(Complex(3, 5)));
}

TEST(ComplexTest, WhatNeedsAnOrderRefuses) {
  const Type c64 = Type::Tensor(DType::kC64, {2});
  for (const AnyOp& op : {AnyOp(Maximum{}), AnyOp(Greater{})}) {
    const auto got = op.Infer(Types{c64, c64});
    ASSERT_FALSE(got.ok()) << op.name();
    EXPECT_THAT(std::string(Message(got.status())), testing::HasSubstr("expected real"));
  }
}

TEST(ComplexTest, GradientsAreThoseOfTheParts) {
  Function f("f");
  const Value z = f.Argument("z", Type::Tensor(DType::kC128, {2}));
  const Value dy = f.Argument("dy", Type::Tensor(DType::kC128, {2}));
  const Values in{z, z}, y = f.Add(Mul{}, in), dz = AnyOp(Mul{}).Gradient({f, in, y, {{dy}}});
  f.Return("dz", dz[0]);
  const HostValue at = ComplexTensor({{1, 2}, {-3, 0.5}}), seed = ComplexTensor({{1, 0}, {2, 1}});
  const HostValue* arguments[] = {&at, &seed};
  FORGE_ASSERT_OK_AND_ASSIGN(const auto got, Interpreter{}.Run(f, arguments));
  // dy times the conjugate of 2 z
  EXPECT_THAT(Complexes(got.results[0]), ElementsAre(Complex(2, -4), Complex(-11, -8)));
}

// An infinity times 1 + 0i has an imaginary part of NaN, which a simplification would lose.
TEST(ComplexTest, NeutralNumbersStay) {
  Function f("f"), after("f");
  const Value x = f.Argument("x", Type::Tensor(DType::kC128, {2}));
  f.Return("y", x * 1);
  const absl::Status s = Simplify(f, after);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(after.nodes().back().op.name(), "mul");
}

TEST(ComplexTest, ComparesPartsByTheModulus) {
  const HostValue a = ComplexTensor({{1, 0}}, DType::kC64),
                  b = ComplexTensor({{1, 1e-3}}, DType::kC64);
  const HostValue* in[] = {&a, &b};
  const HostValue want = Computed(Mul{}, {a, b});
  const auto near = [&](Complex z) {
    return CompareResult(Mul{}, in, want, ComplexTensor({z}, DType::kC64), 0).ok();
  };
  EXPECT_TRUE(near({1, 1e-3 + 2e-7}));  // two units of 1, thousands of 1e-3
  EXPECT_FALSE(near({1, 1e-3 + 2e-6}));
  EXPECT_FALSE(near({1 + 2e-6, 1e-3}));
  EXPECT_FALSE(near({kInf, 1e-3}));
}

}  // namespace
}  // namespace forge::ir
