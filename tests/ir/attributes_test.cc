// SPDX-License-Identifier: Apache-2.0
#include "ir/op/attributes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/graph/module.h"
#include "ir/ops/compiler/relayout.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

enum class Mode : uint8_t { kNone, kTopLeft };

struct All {
  bool flag = false;
  int64_t count = 1;
  double scale = 0.5;
  std::string label = "s";
  std::vector<int64_t> axes = {0, 1};
  std::vector<double> weights = {};
  DType dtype = DType::kF32;
  Mode mode = Mode::kNone;
  Dim extent = 1;
  Dims shape = {};
  Type type = {};
  Function* body = nullptr;
  Number value = 0.5;
  static constexpr Field kFields[] = {
      FieldOf<&All::flag>("flag", ""),     FieldOf<&All::count>("count", ""),
      FieldOf<&All::scale>("scale", ""),   FieldOf<&All::label>("label", ""),
      FieldOf<&All::axes>("axes", ""),     FieldOf<&All::weights>("weights", ""),
      FieldOf<&All::dtype>("dtype", ""),   FieldOf<&All::mode>("mode", "", "none|top_left"),
      FieldOf<&All::extent>("extent", ""), FieldOf<&All::shape>("shape", ""),
      FieldOf<&All::type>("type", ""),     FieldOf<&All::body>("body", ""),
      FieldOf<&All::value>("value", "")};
};
static_assert(FieldCount<All>() == std::size(All::kFields));

class AttributesTest : public ::testing::Test {
 protected:
  static const Field& Named(std::string_view name) { return *FindField(All::kFields, name); }

  const SymbolRef n_ = std::make_shared<Symbol>(Symbol{.name = "n"});
  Function f_{"body_0"};
  All a_, b_;
};

TEST_F(AttributesTest, GetAndSetAreInverseForEachKind) {
  const std::pair<const char*, Attribute> values[] = {{"flag", true},
                                                      {"count", int64_t{-7}},
                                                      {"scale", 0.1},
                                                      {"label", std::string("a \"b\"\n")},
                                                      {"axes", std::vector<int64_t>{3, -1}},
                                                      {"weights", std::vector<double>{0.25, 1e300}},
                                                      {"dtype", DType::kBF16},
                                                      {"mode", std::string("top_left")},
                                                      {"extent", Dim(n_) * 2},
                                                      {"shape", Dims{1, Dim(n_)}},
                                                      {"type", Type::Tensor(DType::kI8, {Dim(n_)})},
                                                      {"body", &f_},
                                                      {"value", Number(INT64_MIN)}};
  ASSERT_EQ(std::size(values), std::size(All::kFields));
  for (const auto& [name, value] : values) {
    const Field& f = Named(name);
    EXPECT_TRUE(FieldEqual(f, &a_, &b_)) << name;
    const uint64_t before = HashFields(All::kFields, &a_, 0);
    ASSERT_THAT(SetAttribute(f, &a_, value), Succeeds()) << name;
    EXPECT_EQ(GetAttribute(f, &a_), value) << name;
    EXPECT_FALSE(FieldEqual(f, &a_, &b_)) << name;
    EXPECT_NE(HashFields(All::kFields, &a_, 0), before) << name;
    ASSERT_THAT(SetAttribute(f, &b_, value), Succeeds());
    EXPECT_EQ(HashFields(All::kFields, &a_, 0), HashFields(All::kFields, &b_, 0)) << name;
  }
  EXPECT_EQ(a_.mode, Mode::kTopLeft);
  EXPECT_EQ(FieldsText(All::kFields, &a_, &b_), "");
  const All defaults;
  EXPECT_EQ(FieldsText(All::kFields, &a_, &defaults),
            "{flag = true, count = -7, scale = 0.1, label = \"a \\\"b\\\"\\n\", axes = [3, -1], "
            "weights = [0.25, 1e+300], dtype = bf16, mode = top_left, extent = 2*n, "
            "shape = [1, n], type = i8[n], body = @body_0, "
            "value = -9223372036854775808}");
}

TEST_F(AttributesTest, RefusesOtherKindsAndChoices) {
  EXPECT_THAT(SetAttribute(Named("count"), &a_, 0.5), Fails(kInvalid, "count takes an integer"));
  EXPECT_THAT(SetAttribute(Named("mode"), &a_, std::string("bottom")),
              Fails(kInvalid, "mode takes one of none|top_left, not 'bottom'"));
  EXPECT_THAT(SetAttribute(Named("mode"), &a_, int64_t{1}), Fails(kInvalid, "mode takes a choice"));
}

TEST_F(AttributesTest, RuntimeValuedAttributesTakeNumbers) {
  const Dims numbers = {4, 5}, one = {4};
  ASSERT_THAT(SetFromDims(Named("axes"), &a_, numbers), Succeeds());
  ASSERT_THAT(SetFromDims(Named("shape"), &a_, numbers), Succeeds());
  ASSERT_THAT(SetFromDims(Named("extent"), &a_, one), Succeeds());
  ASSERT_THAT(SetFromDims(Named("count"), &a_, one), Succeeds());
  EXPECT_EQ(a_.axes, (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(a_.shape, (Dims{4, 5}));
  EXPECT_EQ(a_.extent, 4);
  EXPECT_EQ(a_.count, 4);
  EXPECT_THAT(SetFromDims(Named("count"), &a_, numbers), Fails(kInvalid, "one number, not 2"));
  EXPECT_THAT(SetFromDims(Named("label"), &a_, numbers), Fails(kInvalid, "label"));
}

TEST_F(AttributesTest, FloatsCompareByBits) {
  a_.scale = b_.scale = NAN;
  EXPECT_TRUE(FieldEqual(Named("scale"), &a_, &b_));
  a_.scale = 0.0;
  b_.scale = -0.0;
  EXPECT_FALSE(FieldEqual(Named("scale"), &a_, &b_));
}

TEST_F(AttributesTest, NumbersTakeIntegersAndDoubles) {
  const Field& value = Named("value");
  ASSERT_THAT(SetAttribute(value, &a_, int64_t{7}), Succeeds());
  ASSERT_THAT(SetAttribute(value, &b_, 7.0), Succeeds());
  EXPECT_TRUE(FieldEqual(value, &a_, &b_));
  EXPECT_EQ(HashFields(All::kFields, &a_, 0), HashFields(All::kFields, &b_, 0));
  b_.value = std::complex(7.0, 1.0);
  EXPECT_FALSE(FieldEqual(value, &a_, &b_));
  EXPECT_NE(HashFields(All::kFields, &a_, 0), HashFields(All::kFields, &b_, 0));
  EXPECT_THAT(SetAttribute(value, &a_, std::string("7")), Fails(kInvalid, "value takes a number"));
}

TEST_F(AttributesTest, BindReachesDimsAndTypes) {
  a_.extent = Dim(n_) + 1;
  a_.shape = {2, Dim(n_)};
  a_.type = Type::Tensor(DType::kF32, {Dim(n_)});
  BindFields(All::kFields, &a_, {{n_, 3}});
  EXPECT_EQ(a_.extent, 4);
  EXPECT_EQ(a_.shape, (Dims{2, 3}));
  EXPECT_EQ(a_.type.ToText(), "f32[3]");
}

TEST(AnyOpTest, ComparesHashesAndPrints) {
  const AnyOp a = Conv{.groups = 4}, b = Conv{.groups = 4}, c = Conv{};
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.Hash(), b.Hash());
  EXPECT_FALSE(a == c);
  EXPECT_NE(a.Hash(), c.Hash());
  EXPECT_FALSE(c == AnyOp(Softmax{}));
  EXPECT_EQ(a.ToText(), "conv{groups = 4}");
  EXPECT_EQ(c.ToText(), "conv");
  EXPECT_EQ(a.As<Conv>()->groups, 4);
  EXPECT_EQ(a.As<Softmax>(), nullptr);
}

TEST(AnyOpTest, BindGivesAnotherOp) {
  const SymbolRef n = std::make_shared<Symbol>(Symbol{.name = "n"});
  const AnyOp op = Reshape{{Dim(n), 2}};
  EXPECT_EQ(op.Bind({{n, 5}}).ToText(), "reshape{shape = [5, 2]}");
  EXPECT_EQ(op.ToText(), "reshape{shape = [n, 2]}");
}

}  // namespace
}  // namespace forge::ir
