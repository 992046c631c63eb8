// SPDX-License-Identifier: Apache-2.0
// Expressions of element-wise ops against their references, scalar by scalar.
#include <gtest/gtest.h>

#include "ir/cases/bounds.h"
#include "ir/cases/case_inputs.h"
#include "ir/graph/interpreter.h"
#include "ir/ops/elementwise/elementwise.h"
#include "tests/ir/test_rows.h"
#include "tests/support/ir_values.h"

namespace forge::ir {
namespace {

HostValue Filled(DType t, std::vector<double> numbers) {
  const int64_t n = static_cast<int64_t>(numbers.size());
  HostValue v = *HostValue::Zeros(t, std::span(&n, 1));
  for (size_t i = 0; i < numbers.size(); ++i) v.Set(static_cast<int64_t>(i), numbers[i]);
  return v;
}

std::vector<double> Apply(const AnyOp& op, const std::vector<HostValue>& in) {
  std::vector<const HostValue*> pointers;
  for (const HostValue& v : in) pointers.push_back(&v);
  const auto out = Evaluate(op, pointers);
  EXPECT_TRUE(out.ok()) << out.status();
  return Numbers(out->front());
}

template <class T>
T Element(const HostValue& v, int64_t i) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(v.f64(i));
  else
    return static_cast<T>(v.i64(i));
}

template <class T>
bool Near(const ScalarInfo& info, T got, T reference) {
  if (got == reference || (got != got && reference != reference)) return true;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(got) || !std::isfinite(reference)) return false;
    const T size = std::max(std::fabs(reference), static_cast<T>(info.scale));
    const T unit = std::nextafter(size, std::numeric_limits<T>::infinity()) - size;
    return std::fabs(got - reference) <= static_cast<T>(info.ulps) * unit;
  }
  return false;
}

bool IsNarrowFloat(DType t) { return t == DType::kF16 || t == DType::kBF16; }

// Applies the expression to each element of a case whose operands have one shape.
template <class T>
void CheckExpression(const ConcreteCase& c) {
  const ScalarDef& scalar = *c.op.def().scalar;
  const auto function = TestRowOf(c.op.def()).template In<TestScalar<T>>();
  ASSERT_NE(function, nullptr) << c.ToText();
  const CaseInputs inputs = *MakeInputs(c);
  const HostValue reference = (*Evaluate(c.op, inputs.pointers()))[0];
  HostValue narrow = *HostValue::Zeros(reference.dtype(), reference.shape());
  for (int64_t i = 0; i < reference.elements(); ++i) {
    TestScalar<T> x[3];
    for (size_t k = 0; k < c.in.size(); ++k) x[k].v = Element<T>(*inputs.values[k], i);
    const T got = function(c.op.self(), x).v;
    narrow.Set(i, static_cast<double>(got));
    if (IsNarrowFloat(reference.dtype())) continue;
    ASSERT_TRUE(Near(scalar.info, got, Element<T>(reference, i)))
        << c.ToText() << " at " << i << ": " << +got << ", should be " << +Element<T>(reference, i);
  }
  if (!IsNarrowFloat(reference.dtype())) return;
  const absl::Status s = CompareResult(c.op, inputs.pointers(), reference, narrow);
  EXPECT_TRUE(s.ok()) << c.ToText() << ": " << s;
}

// Computes as devices do: narrow floats in f32.
void CheckExpressionIn(DType t, const ConcreteCase& c) {
  switch (t) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
      return CheckExpression<float>(c);
    case DType::kF64:
      return CheckExpression<double>(c);
    case DType::kI8:
      return CheckExpression<int8_t>(c);
    case DType::kBool:
      return CheckExpression<bool>(c);
    case DType::kU8:
      return CheckExpression<uint8_t>(c);
    case DType::kI16:
      return CheckExpression<int16_t>(c);
    case DType::kU16:
      return CheckExpression<uint16_t>(c);
    case DType::kI32:
      return CheckExpression<int32_t>(c);
    case DType::kU32:
      return CheckExpression<uint32_t>(c);
    case DType::kI64:
      return CheckExpression<int64_t>(c);
    case DType::kU64:
      return CheckExpression<uint64_t>(c);
    default:
      FAIL() << "no scalar computes in " << Name(t);
  }
}

TEST(ElementWiseTest, ExpressionsAgreeWithReferences) {
  for (const OpDef* def : AllOps()) {
    // What converts computes in two types of number.
    if (def->scalar == nullptr || def->scalar->info.result == ResultType::kAttribute) continue;
    const std::vector<ConcreteCase> cases = *ConcreteCases(*def);
    int checked = 0;
    for (const ConcreteCase& c : cases) {
      const Types in = c.types();
      const bool one_shape = std::all_of(in.begin(), in.end(),
                                         [&](const Type& t) { return t.shape() == in[0].shape(); });
      // No scalar of the expressions is complex: ops_complex_test.cc and the goldens check those.
      const bool is_complex = Has(kComplexTypes, in.back().dtype());
      if (c.bench || !c.refuse.empty() || !one_shape || is_complex) continue;
      CheckExpressionIn(in.back().dtype(), c);
      ++checked;
    }
    EXPECT_GT(checked, 0) << def->info.name << " has no case of operands of one shape";
  }
}

TEST(ElementWiseTest, RowsHaveTheirPlaceInTheList) {
  size_t count = 0;
  for (const OpDef* def : AllOps()) {
    if (def->scalar == nullptr) continue;
    EXPECT_EQ(def->scalar->index, static_cast<int>(count++)) << def->info.name;
  }
  EXPECT_GT(count, 0u);
}

TEST(ElementWiseTest, CastSaturatesTruncatesAndTakesNaNToZero) {
  const HostValue x = Filled(DType::kF32, {300, -300, 1.9, -1.9, NAN, INFINITY, -INFINITY});
  EXPECT_EQ(Apply(Cast{DType::kI8}, {x}), (std::vector<double>{127, -128, 1, -1, 0, 127, -128}));
  EXPECT_EQ(Apply(Cast{DType::kU8}, {x}), (std::vector<double>{255, 0, 1, 0, 0, 255, 0}));
  EXPECT_EQ(Apply(Cast{DType::kBool}, {x}), (std::vector<double>{1, 1, 1, 1, 1, 1, 1}));
  const HostValue wide = Filled(DType::kF64, {1e30, -1e30});
  EXPECT_EQ(Apply(Cast{DType::kU64}, {wide}), (std::vector<double>{0x1p64, 0}));
  EXPECT_EQ(Apply(Cast{DType::kI64}, {wide}), (std::vector<double>{0x1p63, -0x1p63}));
}

TEST(ElementWiseTest, CastWrapsIntegersAndRoundsHalfToEven) {
  EXPECT_EQ(Apply(Cast{DType::kI8}, {Filled(DType::kI32, {128, -129, 255})}),
            (std::vector<double>{-128, 127, -1}));
  EXPECT_EQ(Apply(Cast{DType::kF16}, {Filled(DType::kF32, {2049, 2051})}),
            (std::vector<double>{2048, 2052}));
  HostValue big = Filled(DType::kI64, {0});
  big.SetI64(0, (int64_t{1} << 53) + (int64_t{1} << 29) + 1);  // just above a tie in f32
  EXPECT_EQ(Apply(Cast{DType::kF32}, {big}), (std::vector<double>{0x1p53 + 0x1p30}));
}

TEST(ElementWiseTest, IntegersWrapAndDivideWithoutTraps) {
  const HostValue a = Filled(DType::kI32, {INT32_MIN, 7, -7, 5, INT32_MAX});
  const HostValue b = Filled(DType::kI32, {-1, 2, 2, 0, 2});
  EXPECT_EQ(Apply(Div{}, {a, b}), (std::vector<double>{INT32_MIN, 3, -3, -1, 1073741823}));
  EXPECT_EQ(Apply(Mul{}, {a, b}), (std::vector<double>{INT32_MIN, 14, -14, 0, -2}));
  EXPECT_EQ(Apply(Add{}, {a, b}), (std::vector<double>{INT32_MAX, 9, -5, 5, INT32_MIN + 1.0}));
  EXPECT_EQ(Apply(Div{}, {Filled(DType::kU8, {200, 3}), Filled(DType::kU8, {7, 0})}),
            (std::vector<double>{28, 255}));
}

TEST(ElementWiseTest, MaximaAndClampsKeepNaN) {
  const HostValue x = Filled(DType::kF32, {NAN, 1, -2}), y = Filled(DType::kF32, {0, NAN, 3});
  const auto greatest = Apply(Maximum{}, {x, y}), least = Apply(Minimum{}, {x, y});
  EXPECT_TRUE(std::isnan(greatest[0]) && std::isnan(greatest[1]));
  EXPECT_TRUE(std::isnan(least[0]) && std::isnan(least[1]));
  EXPECT_EQ(greatest[2], 3);
  EXPECT_TRUE(std::isnan(Apply(Relu{}, {x})[0]));
  EXPECT_TRUE(std::isnan(Apply(Clamp{0, 1}, {x})[0]));
  EXPECT_EQ(Apply(Clamp{2, 1}, {x})[1], 1);  // the upper bound wins
}

TEST(ElementWiseTest, ClampRefusesBoundsNoIntegerCanHave) {
  const Types in{Type::Tensor(DType::kU8, {2})};
  EXPECT_FALSE(AnyOp(Clamp{0.5, 2}).Infer(in).ok());
  EXPECT_FALSE(AnyOp(Clamp{256, 300}).Infer(in).ok());
  EXPECT_FALSE(AnyOp(Clamp{.low = NAN}).Infer(in).ok());
  EXPECT_TRUE(AnyOp(Clamp{-5, 300}).Infer(in).ok());
}

}  // namespace
}  // namespace forge::ir
