// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/product/matmul_integer.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/conv_integer.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

class IntegerProductsTest : public PassTest {
 protected:
  static constexpr double kScale = 0.03125;

  Value Dequantised(Value number, double zero, double scale = kScale) {
    const Value x = f_(Cast{DType::kF32}, {number});
    return (zero == 0 ? x : x - zero) * scale;
  }
  // The argument `x`, quantised and back.
  Value Image(Dims shape, double zero = 100) {
    const Value x = f_.Argument("x", F32(std::move(shape)));
    const Value level = f_(Round{}, {x / kScale}) + zero;
    return Dequantised(f_(Cast{DType::kU8}, {level}), zero);
  }
  // Each element of a constant is another one.
  Value Bytes(const Dims& shape, DType dtype = DType::kI8) {
    HostValue v = *HostValue::Zeros(dtype, Constants(shape));
    for (int64_t i = 0; i < v.elements(); ++i) v.SetI64(i, (i * 37 + 11) % 120);
    return f_.Read(Add("weights", v));
  }
  Value PerChannel(Value weights, Dims shape) {
    return f_(Cast{DType::kF32}, {weights}) *
           f_(Reshape{std::move(shape)}, {Constant(f_, "scales", {weights.type().shape()[0]})});
  }

  const Function& Multiplied(bool by_bytes = true, bool with_convolution = true) {
    return After(f_, [&](const Function& in, Function& out) {
      FakeTarget target;
      target.multiplies_bytes = by_bytes;
      target.supports = [&](const Candidate& c) {
        return c.op.Is<ConvInteger>() && !with_convolution ? Verdict::No("no kernel")
                                                           : Verdict::Yes("any");
      };
      return MultiplyIntegers(in, out, target);
    });
  }
  template <class T>
  void ExpectBecomes() {
    const Function& after = Multiplied();
    Only<T>(after);
    ExpectSame(f_, after, {.tolerance = 1e-5});
  }
  void ExpectKeeps(const Function& after) {
    for (const Node& n : after.nodes())
      EXPECT_FALSE(n.op.Is<MatMulInteger>() || n.op.Is<ConvInteger>()) << ToText(after);
  }
};

TEST_F(IntegerProductsTest, ConvolutionWithPaddingScalesOfChannelsAndBias) {
  const Value w = PerChannel(Bytes({4, 3, 3, 3}), {4, 1, 1, 1});
  const Conv conv{.strides = {2, 1}, .padding = {1, 0, 1, 2}};
  f_.Return("y", f_(conv, {Image({2, 3, 7, 6}), w, Constant(f_, "bias", {4})}));
  ExpectBecomes<ConvInteger>();
}

TEST_F(IntegerProductsTest, ConvolutionOfGroupsWithOneScale) {
  f_.Return("y", f_(Conv{.dilations = {2}, .groups = 2},
                    {Image({1, 4, 9}, 0), Dequantised(Bytes({6, 2, 3}), 0)}));
  ExpectBecomes<ConvInteger>();
}

TEST_F(IntegerProductsTest, MatrixProductWithOneScale) {
  f_.Return("y", f_(MatMul{}, {Image({2, 3, 5}), Dequantised(Bytes({5, 4}), 0)}));
  ExpectBecomes<MatMulInteger>();
}

TEST_F(IntegerProductsTest, TransposedMatrixProduct) {
  f_.Return("y", f_(MatMul{.transpose_b = true}, {Image({3, 5}), Dequantised(Bytes({4, 5}), 0)}));
  ExpectBecomes<MatMulInteger>();
}

TEST_F(IntegerProductsTest, MatrixProductWithScalesOfColumns) {
  const Value w = f_(Cast{DType::kF32}, {Bytes({5, 4})}) * Constant(f_, "scales", {4});
  f_.Return("y", f_(MatMul{}, {Image({3, 5}), w}));
  ExpectBecomes<MatMulInteger>();
}

TEST_F(IntegerProductsTest, ScalesOfRowsAreNoScalesOfTheResult) {
  const Value w = PerChannel(Bytes({5, 4}), {5, 1});
  f_.Return("y", f_(MatMul{}, {Image({3, 5}), w}));
  ExpectKeeps(Multiplied());
}

TEST_F(IntegerProductsTest, WeightsThatARunChangesAreLeft) {
  const Value w = f_(Cast{DType::kI8}, {f_.Argument("w", F32({5, 4}))});
  f_.Return("y", f_(MatMul{}, {Image({3, 5}), Dequantised(w, 0)}));
  ExpectKeeps(Multiplied());
}

TEST_F(IntegerProductsTest, ConstantsThatTheModelQuantises) {
  const Value levels = f_(Round{}, {Constant(f_, "w", {5, 4}) / kScale});
  const Value w = Dequantised(f_(Cast{DType::kI8}, {levels}), 0);
  f_.Return("y", f_(MatMul{}, {Image({2, 3, 5}), w}));
  ExpectBecomes<MatMulInteger>();
}

TEST_F(IntegerProductsTest, MatrixProductWithAZeroPointOfTheWeights) {
  f_.Return("y", f_(MatMul{}, {Image({2, 3, 5}), Dequantised(Bytes({5, 4}, DType::kU8), 131)}));
  ExpectBecomes<MatMulInteger>();
}

TEST_F(IntegerProductsTest, TransposedMatrixProductWithAZeroPointOfTheWeights) {
  f_.Return("y",
            f_(MatMul{.transpose_b = true}, {Image({3, 5}, 0), Dequantised(Bytes({4, 5}), -7)}));
  ExpectBecomes<MatMulInteger>();
}

TEST_F(IntegerProductsTest, AZeroPointOfConvolutionWeightsStays) {
  f_.Return("y", f_(Conv{}, {Image({1, 3, 5, 5}), Dequantised(Bytes({4, 3, 3, 3}), 3)}));
  ExpectKeeps(Multiplied());
}

TEST_F(IntegerProductsTest, AZeroPointIsAWholeNumber) {
  const Value x = f_(Cast{DType::kU8}, {f_.Argument("x", F32({3, 5}))});
  f_.Return("y", f_(MatMul{}, {Dequantised(x, 0.5), Dequantised(Bytes({5, 4}), 0)}));
  ExpectKeeps(Multiplied());
}

TEST_F(IntegerProductsTest, OfSixteenBitsAreLeft) {
  const Value w = Dequantised(Bytes({5, 4}, DType::kI16), 0);
  f_.Return("y", f_(MatMul{}, {Image({3, 5}), w}));
  ExpectKeeps(Multiplied());
}

TEST_F(IntegerProductsTest, OnlyWhereTheTargetHasThem) {
  f_.Return("y", f_(MatMul{}, {Image({3, 5}), Dequantised(Bytes({5, 4}), 0)}));
  ExpectKeeps(Multiplied(false));
}

TEST_F(IntegerProductsTest, ConvolutionsNeedAKernel) {
  f_.Return("y", f_(Conv{}, {Image({1, 3, 5, 5}), Dequantised(Bytes({4, 3, 3, 3}), 0)}));
  ExpectKeeps(Multiplied(true, false));
}

}  // namespace
}  // namespace forge::ir
