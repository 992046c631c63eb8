// SPDX-License-Identifier: Apache-2.0
#include "ir/op/signature.h"

#include <gtest/gtest.h>

#include "ir/op/define.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv.h"
#include "tests/support/ir_values.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

Type F16(Dims shape) { return Type::Tensor(DType::kF16, std::move(shape)); }
Type I64(Dims shape) { return Type::Tensor(DType::kI64, std::move(shape)); }

// An op that is nothing but its signature.
OpDef Def(std::string_view inputs, std::string_view outputs = {}) {
  OpDef d;
  d.info = {.name = "test", .inputs = inputs, .outputs = outputs};
  return d;
}

// SignatureOf() keeps what it parsed by address, so each definition lives on.
const OpDef& Keep(OpDef d) { return *new OpDef(std::move(d)); }  // NOLINT

TEST(SignatureTest, ParsesTheWholeForm) {
  FORGE_ASSERT_OK_AND_ASSIGN(
      const Signature s, ParseSignature("x: float[n, c, *r]; w: =x[2, k]; b: int|bool?; v: any...",
                                        "y: =x[n, k]; z: =x"));
  ASSERT_EQ(s.inputs.size(), 4u);
  EXPECT_EQ(s.inputs[0].dtypes, kFloatTypes);
  ASSERT_EQ(s.inputs[0].axes->size(), 3u);
  EXPECT_EQ((*s.inputs[0].axes)[2].kind, Parameter::Axis::kRest);
  EXPECT_EQ(s.inputs[1].like, "x");
  EXPECT_EQ((*s.inputs[1].axes)[0].number, 2);
  EXPECT_TRUE(s.inputs[2].optional);
  EXPECT_EQ(s.inputs[2].dtypes, kIntTypes | Bit(DType::kBool));
  EXPECT_FALSE(s.inputs[2].axes.has_value());
  EXPECT_TRUE(s.inputs[3].variadic);
  EXPECT_EQ(s.outputs.size(), 2u);
  EXPECT_TRUE(ParseSignature("", "")->inputs.empty());
}

TEST(SignatureTest, AWideResultIsOfFloatsWhereTheOperandIsNarrower) {
  const OpDef& def = Keep(Def("x: real[*d]", "y: wide(x)[*d]"));
  const AnyOp op(def, nullptr);
  for (const auto& [of, wide] : {std::pair(DType::kF16, DType::kF32),
                                 {DType::kBF16, DType::kF32},
                                 {DType::kF32, DType::kF32},
                                 {DType::kF64, DType::kF64},
                                 {DType::kI8, DType::kI8}}) {
    FORGE_ASSERT_OK_AND_ASSIGN(const Types out,
                               InferBySignature(op, {{Type::Tensor(of, {Dim(2)})}}));
    EXPECT_EQ(out, Types{Type::Tensor(wide, {Dim(2)})});
  }
}

TEST(SignatureTest, RefusesWhatIsNone) {
  for (const char* bad : {"x", "x float", ": float", "x: f31", "x: float[", "x: float[*a, *b]",
                          "x: float[-1]", "x: float[a b]", "x: any...; y: any", "x: =", "x y: any"})
    EXPECT_FALSE(ParseSignature(bad, "").ok()) << bad;
}

TEST(SignatureTest, ClassesAreSetsOfDTypes) {
  const auto of = [](std::string_view word) {
    return ParseSignature(fmt::format("x: {}", word), "")->inputs[0].dtypes;
  };
  EXPECT_EQ(of("real"), of("float") | of("int"));
  EXPECT_EQ(of("int"), of("signed") | of("unsigned"));
  EXPECT_EQ(of("ordered"), of("real") | of("bool"));
  EXPECT_EQ(of("complex"), of("c64|c128"));
  EXPECT_FALSE(Has(of("ordered"), DType::kC64));
  EXPECT_FALSE(Has(of("real"), DType::kBool));
}

TEST(SignatureTest, AnUnknownClassIsRefusedWithThoseThereAre) {
  EXPECT_THAT(ParseSignature("x: flaot", "").status(),
              Fails(kInvalid,
                    "'flaot' is neither a dtype nor a class of them (float, int, signed, "
                    "unsigned, complex, real, ordered, number, any, narrow)"));
}

TEST(SignatureTest, EveryOpHasOne) {
  for (const OpDef* def : AllOps()) {
    EXPECT_THAT(ParseSignature(def->info.inputs, def->info.outputs), Succeeds()) << def->info.name;
    EXPECT_EQ(FindOp(def->info.name), def);
  }
  EXPECT_EQ(FindOp("no_such_op"), nullptr);
}

TEST(SignatureTest, ChecksArity) {
  const OpDef& d = Keep(Def("x: float; w: float; b: float?"));
  const Type t = F32({2});
  EXPECT_THAT(CheckSignature(d, Types{t, t}), Succeeds());
  EXPECT_THAT(CheckSignature(d, Types{t, t, Type()}), Succeeds());
  EXPECT_THAT(CheckSignature(d, Types{t}), Fails(kInvalid, "test: operand w is missing"));
  EXPECT_THAT(CheckSignature(d, Types{t, Type(), t}), Fails(kInvalid, "operand w is missing"));
  EXPECT_THAT(CheckSignature(d, Types{t, t, t, t}), Fails(kInvalid, "takes 3 operands, not 4"));
  const OpDef& many = Keep(Def("x: float..."));
  EXPECT_THAT(CheckSignature(many, {}), Succeeds());
  EXPECT_THAT(CheckSignature(many, Types{t, t, t}), Succeeds());
  EXPECT_THAT(CheckSignature(many, Types{t, Type()}), Fails(kInvalid, "operand x is missing"));
}

TEST(SignatureTest, ChecksDTypes) {
  const OpDef& d = Keep(Def("x: float; w: =x"));
  EXPECT_THAT(CheckSignature(d, Types{F16({2}), F16({3})}), Succeeds());
  EXPECT_THAT(CheckSignature(d, Types{I64({2}), I64({2})}),
              Fails(kInvalid, "test: operand x is i64[2]: expected float"));
  EXPECT_THAT(CheckSignature(d, Types{F16({2}), F32({2})}),
              Fails(kInvalid, "operand w is f32[2]: expected f16 like x"));
  EXPECT_THAT(CheckSignature(d, Types{Type::Sequence(F16({2})), F16({2})}),
              Fails(kInvalid, "expected a tensor"));
  const OpDef& s = Keep(Def("x: sequence; o: optional; v: value"));
  EXPECT_THAT(CheckSignature(s, Types{Type::Sequence(F32({})), Type::Optional(F32({})), F32({})}),
              Succeeds());
  EXPECT_THAT(CheckSignature(s, Types{F32({}), Type::Optional(F32({})), F32({})}),
              Fails(kInvalid, "expected a sequence"));
}

TEST(SignatureTest, ChecksRanksAndEqualDimensions) {
  const OpDef& d = Keep(Def("a: float[*d, m, k]; b: =a[k, n]; c: =a[*d, 2]?"));
  EXPECT_THAT(CheckSignature(d, Types{F32({7, 2, 3}), F32({3, 5})}), Succeeds());
  EXPECT_THAT(CheckSignature(d, Types{F32({3}), F32({3, 5})}),
              Fails(kInvalid, "operand a is f32[3]: expected at least rank 2"));
  EXPECT_THAT(CheckSignature(d, Types{F32({2, 3}), F32({3, 5, 1})}),
              Fails(kInvalid, "operand b is f32[3, 5, 1]: expected rank 2"));
  EXPECT_THAT(CheckSignature(d, Types{F32({2, 3}), F32({4, 5})}),
              Fails(kInvalid, "operand b is f32[4, 5]: dimension k should be 3, got 4"));
  EXPECT_THAT(CheckSignature(d, Types{F32({7, 2, 3}), F32({3, 5}), F32({8, 2})}),
              Fails(kInvalid, "dimensions d should be [7], got [8]"));
  EXPECT_THAT(CheckSignature(d, Types{F32({7, 2, 3}), F32({3, 5}), F32({7, 3})}),
              Fails(kInvalid, "expected a dimension of 2, got 3"));
}

TEST(SignatureTest, SymbolsWaitForBinding) {
  const Dim n = Named("n"), h = Named("h");
  const OpDef& d = Keep(Def("a: float[m, k]; b: =a[k, n]", "y: =a[m, n, k]"));
  FORGE_ASSERT_OK_AND_ASSIGN(const Types out,
                             InferBySignature(AnyOp(d, nullptr), Types{F32({n, h}), F32({4, n})}));
  EXPECT_EQ(out[0], F32({n, n, 4})) << "the constant is known better than the symbol";
}

TEST(SignatureTest, InfersResults) {
  const OpDef& d = Keep(Def("x: float[n, *r]; i: int", "y: =x; z: =i[*r, n, 3]; w: bool[n]"));
  FORGE_ASSERT_OK_AND_ASSIGN(const Types out,
                             InferBySignature(AnyOp(d, nullptr), Types{F16({2, 5, 7}), I64({})}));
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0], F16({2, 5, 7}));
  EXPECT_EQ(out[1], I64({5, 7, 2, 3}));
  EXPECT_EQ(out[2], Type::Tensor(DType::kBool, {2}));
}

struct Convert {
  DType to = DType::kF32;
  static constexpr Field kFields[] = {FieldOf<&Convert::to>("to", "")};
};

TEST(SignatureTest, AResultMayHaveTheDTypeOfAnAttribute) {
  OpDef d = Def("x: any[*d]", "y: =to[*d]");
  d.fields = Convert::kFields;
  const Convert op{DType::kU8};
  FORGE_ASSERT_OK_AND_ASSIGN(
      const Types out,
      InferBySignature(AnyOp(Keep(d), std::shared_ptr<const void>(&op, [](const void*) {})),
                       Types{F32({4})}));
  EXPECT_EQ(out[0], Type::Tensor(DType::kU8, {4}));
}

TEST(SignatureTest, UnrankedOperandsGiveUnrankedResults) {
  const Type x = Type::Unranked(DType::kF16);
  FORGE_ASSERT_OK_AND_ASSIGN(const Types y, AnyOp(Softmax{}).Infer(Types{x}));
  EXPECT_EQ(y[0], x);
  EXPECT_THAT(AnyOp(Softmax{}).Infer(Types{Type::Unranked(DType::kI32)}),
              Fails(kInvalid, "softmax: operand x is i32[*]: expected float"));
  FORGE_ASSERT_OK_AND_ASSIGN(const Types z,
                             AnyOp(Conv{}).Infer(Types{x, F16({4, 3, 3, 3}), Type()}));
  EXPECT_EQ(z[0], x);
}

TEST(SignatureTest, RuleErrorsNameOpAndOperands) {
  EXPECT_THAT(AnyOp(Softmax{.axis = 3}).Infer(Types{F32({2, 3})}),
              Fails(kInvalid, "softmax(x: f32[2, 3]): axis 3"));
}

}  // namespace
}  // namespace forge::ir
