// SPDX-License-Identifier: Apache-2.0
#include "ir/analysis/dim_values.h"

#include <gtest/gtest.h>

#include "ir/ops/creation/fill.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/creation/shape_of.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/type/host_value.h"

namespace forge::ir {
namespace {

class DimValuesTest : public ::testing::Test {
 protected:
  Value Constant(std::vector<int64_t> numbers, DType t = DType::kI64) {
    const int64_t n = static_cast<int64_t>(numbers.size());
    HostValue v = *HostValue::Zeros(t, std::span(&n, 1));
    for (int64_t i = 0; i < n; ++i) v.SetI64(i, numbers[static_cast<size_t>(i)]);
    return f_.Read(m_.AddVariable({.name = "c",
                                   .type = v.type(),
                                   .init = Variable::Storage{v.shared_bytes(), v.type(), {}}}));
  }
  std::optional<Dims> Contents(Value v) {
    EXPECT_TRUE(f_.status().ok()) << f_.status();
    return DimValues(f_).ContentsOf(v.id);
  }

  Module m_;
  Function& f_ = *m_.AddFunction("main");
  Dim n_{m_.SymbolNamed("n")}, h_{m_.SymbolNamed("h")};
  Value x_ = f_.Argument("x", Type::Tensor(DType::kF32, {n_, 3, h_, 8}));
};

TEST_F(DimValuesTest, FollowsAShapeThroughMovement) {
  const Value shape = f_(ShapeOf{}, {x_});
  EXPECT_EQ(Contents(shape), (Dims{n_, 3, h_, 8}));
  const Value last = f_(Slice{{-2}, {INT64_MAX}}, {shape});
  EXPECT_EQ(Contents(last), (Dims{h_, 8}));
  const Value joined = f_(Concat{0}, {Constant({-1}), last, f_(Slice{{0}, {1}}, {shape})});
  EXPECT_EQ(Contents(joined), (Dims{-1, h_, 8, n_}));
  EXPECT_EQ(Contents(f_(Reshape{{2, 2}}, {joined})), (Dims{-1, h_, 8, n_}));
  EXPECT_EQ(Contents(f_(Transpose{{1, 0}}, {f_(Reshape{{2, 2}}, {joined})})),
            (Dims{-1, 8, h_, n_}));
}

TEST_F(DimValuesTest, FollowsIndicesAndCounts) {
  const Value shape = f_(ShapeOf{}, {x_});
  EXPECT_EQ(Contents(f_(Gather{}, {shape, Constant({-2, 0})})), (Dims{h_, n_}));
  EXPECT_EQ(Contents(f_(Gather{}, {shape, Constant({4})})), (Dims{0}));
  EXPECT_EQ(Contents(f_(Gather{}, {Constant({5, 6}), shape})), std::nullopt);
  EXPECT_EQ(Contents(f_(Iota{.begin = n_, .step = 2, .count = 2}, {})), (Dims{n_, n_ + 2}));
}

TEST_F(DimValuesTest, ComputesOnDimensions) {
  const Value shape = f_(ShapeOf{}, {x_});
  EXPECT_EQ(Contents(shape * 2.0 + 1.0), (Dims{n_ * 2 + 1, 7, h_ * 2 + 1, 17}));
  EXPECT_EQ(Contents(shape / 2.0), (Dims{FloorDiv(n_, 2), 1, FloorDiv(h_, 2), 4}));
  EXPECT_EQ(Contents(max(shape, 4.0)), (Dims{Max(n_, 4), 4, Max(h_, 4), 8}));
  EXPECT_EQ(Contents(convert(shape, DType::kI32)), (Dims{n_, 3, h_, 8}));
  EXPECT_EQ(Contents(shape + f_(Reshape{{1}}, {Constant({5})})), (Dims{n_ + 5, 8, h_ + 5, 13}));
}

TEST_F(DimValuesTest, ReducesAndEvaluatesPlainNumbers) {
  const Value shape = f_(ShapeOf{}, {x_});
  EXPECT_EQ(Contents(ReduceAxes(ReduceKind::kProd, shape, {0})), (Dims{n_ * h_ * 24}));
  EXPECT_EQ(Contents(ReduceAxes(ReduceKind::kSum, shape, {0})), (Dims{n_ + h_ + 11}));
  // No rule on dimensions, but plain numbers.
  EXPECT_EQ(Contents(f_(Clamp{0, 4}, {Constant({-3, 2, 9})})), (Dims{0, 2, 4}));
  EXPECT_EQ(Contents(f_(Fill{7, DType::kI64, {2}}, {})), (Dims{7, 7}));
}

TEST_F(DimValuesTest, SaysWhenContentsAreUnknown) {
  EXPECT_EQ(Contents(x_), std::nullopt);
  const Value given = f_.Argument("given", Type::Tensor(DType::kI64, {2}));
  EXPECT_EQ(Contents(given), std::nullopt);
  EXPECT_EQ(Contents(given + 1.0), std::nullopt);
  EXPECT_EQ(Contents(f_(Concat{0}, {given, f_(ShapeOf{}, {x_})})), std::nullopt);
  const Value shape = f_(ShapeOf{}, {x_});
  EXPECT_EQ(Contents(shape - 5.0), (Dims{n_ - 5, -2, h_ - 5, 3}));
  EXPECT_EQ(Contents((shape - 5.0) / 2.0), std::nullopt);  // truncation is not floor below zero
  Variable* p = m_.AddVariable({.name = "p",
                                .role = Variable::Role::kParameter,
                                .type = Type::Tensor(DType::kI64, {2}),
                                .init = {}});
  EXPECT_EQ(Contents(f_.Read(p)), std::nullopt);
}

TEST_F(DimValuesTest, GrowsWithItsFunction) {
  DimValues values(f_);
  const Value shape = f_(ShapeOf{}, {x_});
  EXPECT_TRUE(values.ContentsOf(shape.id));
  const Value twice = shape * 2.0;
  EXPECT_EQ((*values.ContentsOf(twice.id))[1], 6);
}

}  // namespace
}  // namespace forge::ir
