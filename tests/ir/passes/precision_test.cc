// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/precision.h"

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/product/add_matmul.h"
#include "ir/ops/product/attention.h"
#include "ir/ops/product/matmul.h"
#include "ir/type/precision.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

class PrecisionTest : public PassTest {
 protected:
  const Function& At(DType precision) {
    return After(
        f_, [=](const Function& in, Function& out) { return RoundProducts(in, out, precision); });
  }
  // The types of the operands of a node; "-" where one is absent.
  static std::string OperandTypes(const Function& f, const Node& node) {
    std::string text;
    for (const uint32_t v : node.in)
      text += (text.empty() ? "" : " ") + std::string(v == kAbsent ? "-" : Name(f.type(v).dtype()));
    return text;
  }
};

TEST_F(PrecisionTest, RoundsOperandsAndGivesF32) {
  const Value x = f_.Argument("x", F32({3, 40}));
  f_.Return("y", f_(Relu{}, {f_(MatMul{}, {x, Constant(f_, "w", {40, 5})})}));
  for (const DType t : {DType::kF16, DType::kBF16}) {
    const Function& after = At(t);
    EXPECT_EQ(Ops(after), (std::vector<std::string>{"cast", "cast", "matmul", "cast", "relu"}));
    const Node* product = Only<MatMul>(after);
    EXPECT_EQ(after.type(product->first_out).dtype(), t);
    EXPECT_EQ(after.type(after.results()[0].value), F32({3, 5}));
    ExpectSame(f_, after, {.tolerance = t == DType::kF16 ? 2e-2 : 2e-1});
  }
}

TEST_F(PrecisionTest, ExactChangesNothing) {
  f_.Return("y", f_(MatMul{}, {f_.Argument("x", F32({3, 4})), Constant(f_, "w", {4, 5})}));
  EXPECT_EQ(Ops(At(DType::kF32)), std::vector<std::string>{"matmul"});
}

TEST_F(PrecisionTest, LeavesProductsOfOtherTypes) {
  const auto argument = [&](const char* name, DType t) {
    return f_.Argument(name, Type::Tensor(t, {4, 4}));
  };
  const Value half = argument("half", DType::kBF16), wide = argument("wide", DType::kF64);
  f_.Return("h", f_(MatMul{}, {half, half}));
  f_.Return("w", f_(MatMul{}, {wide, wide}));
  EXPECT_EQ(Ops(At(DType::kF16)), (std::vector<std::string>{"matmul", "matmul"}));
}

TEST_F(PrecisionTest, CompositesAreProductsToo) {
  const Value x = f_.Argument("x", F32({3, 4}));
  f_.Return("y", f_(Linear{}, {x, Constant(f_, "w", {5, 4}), Constant(f_, "b", {5})}));
  const Function& after = At(DType::kF16);
  EXPECT_EQ(OperandTypes(after, *Only<Linear>(after)), "f16 f16 f16");
}

// -1e9 stays what it is: as f16 it would be an infinity.
TEST_F(PrecisionTest, MasksStayWhatTheyAre) {
  const Value q = f_.Argument("q", F32({1, 2, 6, 8})), mask = f_.Argument("mask", F32({6, 6}));
  f_.Return("y", f_(Attention{}, {q, q, q, mask}));
  const Function& after = At(DType::kF16);
  EXPECT_EQ(OperandTypes(after, *Only<Attention>(after)), "f16 f16 f16 f32");
  ExpectSame(f_, after, {.tolerance = 1e-2});
}

TEST_F(PrecisionTest, NamesAreThoseOfTheTools) {
  EXPECT_EQ(*ParsePrecision("exact"), Precision{});
  EXPECT_EQ(ParsePrecision("bf16")->products, DType::kBF16);
  EXPECT_EQ(ParsePrecision("fast")->coarsest(), DType::kBF16);
  for (const std::string_view name : {"exact", "f16", "bf16", "fast"})
    EXPECT_EQ(NameOf(*ParsePrecision(name)), name);
  EXPECT_THAT(ParsePrecision("f8"), Fails(absl::StatusCode::kInvalidArgument,
                                          "precision 'f8' is not exact, f16, bf16 or fast"));
}

}  // namespace
}  // namespace forge::ir
