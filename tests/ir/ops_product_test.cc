// SPDX-License-Identifier: Apache-2.0
// How products that are composites are computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph/module.h"
#include "ir/ops/product/einsum.h"
#include "ir/ops/product/tensor_dot.h"

namespace forge::ir {
namespace {

using testing::ElementsAre;

// The ops of a decomposition that compute or move elements.
std::vector<std::string> OpsOf(const AnyOp& op, const std::vector<Dims>& shapes,
                               DType t = DType::kF32) {
  Function f("product");
  Values in;
  for (const Dims& shape : shapes)
    in.push_back(f.Argument(fmt::format("x{}", in.size()), Type::Tensor(t, shape)));
  op.Decompose(f, in);
  EXPECT_TRUE(f.status().ok()) << f.status();
  std::vector<std::string> names;
  for (const Node& node : f.nodes())
    if (node.op.name() != "reshape") names.emplace_back(node.op.name());
  return names;
}

TEST(ProductsTest, EinsumOfMatricesIsOneMatmul) {
  for (const char* equation : {"ij,jk->ik", "ij,kj->ik", "ji,jk->ik", "ji,kj->ik"}) {
    const bool left = std::string_view(equation).starts_with("ji");
    const bool right = std::string_view(equation).substr(3).starts_with("kj");
    EXPECT_THAT(
        OpsOf(Einsum{equation}, {left ? Dims{3, 2} : Dims{2, 3}, right ? Dims{4, 3} : Dims{3, 4}}),
        ElementsAre("matmul"))
        << equation;
  }
  EXPECT_THAT(OpsOf(Einsum{"bhqd,bhkd->bhqk"}, {{2, 3, 4, 5}, {2, 3, 6, 5}}),
              ElementsAre("matmul"));
}

TEST(ProductsTest, ThoseWithoutSumsAreProductsOfElements) {
  EXPECT_THAT(OpsOf(Einsum{"i,j->ij"}, {{3}, {4}}), ElementsAre("mul"));
  EXPECT_THAT(OpsOf(TensorDot{}, {{3}, {4, 5}}), ElementsAre("mul"));
}

TEST(ProductsTest, WhatOneOperandAloneHasIsSummedFirst) {
  EXPECT_THAT(OpsOf(Einsum{"ijk,j->i"}, {{2, 3, 4}, {3}}), ElementsAre("reduce", "matmul"));
}

TEST(ProductsTest, IntegersAreMultipliedAndAdded) {
  EXPECT_THAT(OpsOf(Einsum{"ij,kj->ik"}, {{2, 3}, {4, 3}}, DType::kI64),
              ElementsAre("mul", "reduce"));
}

TEST(ProductsTest, NarrowFloatsOfSeveralStepsAreRoundedOnce) {
  EXPECT_THAT(OpsOf(Einsum{"ij,jk,kl->il"}, {{2, 3}, {3, 4}, {4, 5}}, DType::kF16),
              ElementsAre("cast", "cast", "matmul", "cast", "matmul", "cast"));
}

}  // namespace
}  // namespace forge::ir
