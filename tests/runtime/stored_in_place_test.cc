// SPDX-License-Identifier: Apache-2.0
// New values of states that are computed from the old ones: in the memory of the state where
// nothing else reads what it held.
#include <gtest/gtest.h>

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/softmax.h"
#include "tests/runtime/states.h"

namespace forge {
namespace {

using testing::Noise;

constexpr int64_t kLines = 40, kColumns = 24;
constexpr uint64_t kStateBytes = kLines * kColumns * 4;

class StoredInPlaceTest : public testing::StatesTest {
 protected:
  ir::Variable* Weights(std::string name, int64_t seed) {
    return State(std::move(name), Noise({kLines, kColumns}, seed));
  }
  // The reference runs op by op, each of which reads and writes by itself.
  bool Fuses() const { return GetParam() != "reference"; }
  ir::Value Gradient() { return f_.Argument("gradient", F32({kLines, kColumns})); }
  // Moments and weights as Adam keeps them.
  void StoreAdam(ir::Value gradient) {
    ir::Variable *w = Weights("w", 1), *m = Weights("m", 2), *v = Weights("v", 3);
    const ir::Value mean = f_.Read(m) * 0.9 + gradient * 0.1;
    const ir::Value square = f_.Read(v) * 0.99 + gradient * gradient * 0.01;
    const ir::Value after = f_.Read(w) - mean / (sqrt(abs(square)) + 1e-3) * 0.01;
    f_.Store(m, mean);
    f_.Store(v, square);
    f_.Store(w, after);
    f_.Return("sum", after + mean + square);
  }
};

TEST_P(StoredInPlaceTest, ThreeStatesOfOneKernelAreNotCopied) {
  // Of a gradient whose memory would be free, too.
  const ir::Value x = f_.Argument("x", F32({kColumns, kLines}));
  StoreAdam(f_(ir::Transpose{{1, 0}}, {f_(ir::Softmax{}, {x})}));
  Run();
  if (Fuses()) {
    EXPECT_EQ(BytesWritten("state "), 0u);
  }
}

TEST_P(StoredInPlaceTest, BehindAProductAsWell) {
  const ir::Value a = f_.Argument("a", F32({kLines, 16})),
                  b = f_.Argument("b", F32({16, kColumns}));
  StoreAdam(f_(ir::MatMul{}, {a, b}));
  Run();
}

TEST_P(StoredInPlaceTest, AnOldValueThatIsReadLaterIsKept) {
  ir::Variable* w = Weights("w", 1);
  const ir::Value before = f_.Read(w), after = before * 0.5 + Gradient();
  f_.Store(w, after);
  f_.Return("product", f_(ir::MatMul{}, {f_(ir::Transpose{{1, 0}}, {after}), before}));
  Run();
  EXPECT_EQ(BytesWritten("state w"), kStateBytes);
}

TEST_P(StoredInPlaceTest, AnOldValueThatIsReadElsewhereInTheKernelIsKept) {
  ir::Variable* w = State("w", Noise({kColumns, kColumns}, 1));
  const ir::Value before = f_.Read(w);
  f_.Store(w, before + f_(ir::Transpose{{1, 0}}, {before}));
  f_.Return("one", f_.Argument("x", F32({1})) + 1.0);
  Run();
  if (Fuses()) {
    EXPECT_EQ(BytesWritten("state w"), uint64_t{kColumns * kColumns * 4});
  }
}

TEST_P(StoredInPlaceTest, StatesThatChangePlaces) {
  ir::Variable *a = Weights("a", 1), *b = Weights("b", 2);
  const ir::Value old_a = f_.Read(a), old_b = f_.Read(b);
  f_.Store(a, old_b * 0.5);
  f_.Store(b, old_a + 1.0);
  f_.Return("sum", f_(ir::Add{}, {old_a, old_b}));
  Run();
}

TEST_P(StoredInPlaceTest, AValueOfTwoStates) {
  ir::Variable *a = Weights("a", 1), *b = Weights("b", 2);
  const ir::Value next = f_.Read(a) + Gradient();
  f_.Store(a, next);
  f_.Store(b, next);
  f_.Return("sum", next + f_.Read(b));
  Run();
  EXPECT_LE(BytesWritten("state "), 2 * kStateBytes);
}

TEST_P(StoredInPlaceTest, ResultsAreTheNewValues) {
  ir::Variable* w = Weights("w", 1);
  const ir::Value after = exp(f_.Read(w) * 0.1) - Gradient();
  f_.Store(w, after);
  f_.Return("w", after);
  Run();
}

INSTANTIATE_TEST_SUITE_P(Devices, StoredInPlaceTest,
                         ::testing::Values("reference", "cpu", "vulkan"));

}  // namespace
}  // namespace forge
