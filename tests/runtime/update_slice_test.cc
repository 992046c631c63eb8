// SPDX-License-Identifier: Apache-2.0
// Writes into part of a tensor: what is copied, and what is not.
#include "ir/ops/movement/update_slice.h"

#include <gtest/gtest.h>

#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/scatter_nd.h"
#include "ir/ops/movement/slice.h"
#include "tests/runtime/states.h"

namespace forge {
namespace {

using testing::AddVariable;
using testing::Noise;

constexpr int64_t kRows = 48, kWidth = 16;
constexpr uint64_t kRowBytes = kWidth * 4, kAllBytes = kRows * kRowBytes;

class UpdateSliceTest : public testing::StatesTest {
 protected:
  ir::Value Cache() { return f_.Read(cache_); }
  ir::Value Row(std::string name = "row") { return f_.Argument(std::move(name), F32({1, kWidth})); }
  ir::Value Updated(ir::Value x, ir::Value row, ir::Dim at) {
    return f_(ir::UpdateSlice{{std::move(at), 0}}, {x, row});
  }
  bool InPlace() const { return GetParam() != "reference"; }

  ir::Variable* cache_ = State("cache", Noise({kRows, kWidth}));
};

TEST_P(UpdateSliceTest, OfAStateWritesItsRowsAlone) {
  const ir::Value after = Updated(Cache(), Row() * 2.0, 5);
  f_.Store(cache_, after);
  f_.Return("sum", f_(ir::Exp{}, {after}));
  Run();
  if (!InPlace()) return;
  EXPECT_EQ(BytesWritten("state cache"), 0u);
  EXPECT_EQ(BytesWritten("keep "), 0u);
  EXPECT_EQ(BytesWritten("update_slice"), kRowBytes);
}

TEST_P(UpdateSliceTest, SeveralOfAStateWriteTheirRowsAlone) {
  const ir::Value first = Updated(Cache(), Row("a"), 5), both = Updated(first, Row("b"), 6);
  f_.Store(cache_, both);
  f_.Return("y", f_(ir::Neg{}, {both}));
  Run();
  if (!InPlace()) return;
  EXPECT_EQ(BytesWritten("state cache") + BytesWritten("keep "), 0u);
  EXPECT_EQ(BytesWritten("update_slice"), 2 * kRowBytes);
}

TEST_P(UpdateSliceTest, KeepsAnOldValueThatIsReadLater) {
  const ir::Value before = Cache(), after = Updated(before, Row(), 5);
  f_.Store(cache_, after);
  f_.Return("before", before);
  Run();
  if (!InPlace()) return;
  EXPECT_EQ(BytesWritten("keep "), kAllBytes);
}

TEST_P(UpdateSliceTest, LeavesWhatIsNotStoredBackAsItIs) {
  f_.Return("y", Updated(Cache(), Row(), 5));
  f_.Return("again", f_(ir::Exp{}, {Cache()}));
  Run();
  if (!InPlace()) return;
  EXPECT_EQ(BytesWritten("keep "), kAllBytes);
}

TEST_P(UpdateSliceTest, LeavesArgumentsAsTheyAre) {
  const ir::Value x = f_.Argument("x", F32({kRows, kWidth}));
  f_.Return("y", Updated(x, Row(), 5));
  Run();
  if (!InPlace()) return;
  EXPECT_EQ(BytesWritten("keep "), kAllBytes);
}

TEST_P(UpdateSliceTest, TakesTheMemoryOfWhatIsComputed) {
  const ir::Value x = f_.Argument("x", F32({kRows, kWidth}));
  f_.Return("y", Updated(f_(ir::Exp{}, {x}), Row(), 5) * 3.0);
  Run();
  EXPECT_EQ(BytesWritten("keep "), 0u);
}

TEST_P(UpdateSliceTest, OfAStateWithItsOwnRowsIsRight) {
  const ir::Value before = Cache();
  const ir::Value row = f_(ir::Slice{.begin = {4}, .end = {5}, .axes = {0}}, {before});
  f_.Store(cache_, Updated(before, row + Row(), 5));
  f_.Return("y", f_(ir::Exp{}, {before}));
  Run();
}

TEST_P(UpdateSliceTest, AScatterIntoAStateWritesItsRowsAlone) {
  const ir::Value place = f_(ir::Fill{5, DType::kI32, {1, 1}}, {});
  const ir::Value after = f_(ir::Scatter{}, {Cache(), place, Row() * 2.0});
  f_.Store(cache_, after);
  f_.Return("sum", f_(ir::Exp{}, {after}));
  Run();
  if (!InPlace()) return;
  EXPECT_EQ(BytesWritten("state cache") + BytesWritten("keep "), 0u);
  EXPECT_EQ(BytesWritten("scatter"), kRowBytes);
}

TEST_P(UpdateSliceTest, AScatterThroughFlatIndicesDoesToo) {
  const ir::Value place = f_(ir::Fill{-3, DType::kI64, {1, 1}}, {});
  const ir::Value after = f_(ir::ScatterNd{0, ir::ScatterMode::kAdd}, {Cache(), place, Row()});
  f_.Store(cache_, after);
  f_.Return("sum", f_(ir::Exp{}, {after}));
  Run();
  if (!InPlace()) return;
  EXPECT_EQ(BytesWritten("state cache") + BytesWritten("keep "), 0u);
  EXPECT_EQ(BytesWritten("scatter"), kRowBytes);
}

TEST_P(UpdateSliceTest, AScatterOfWhatIsReadLaterLeavesIt) {
  const ir::Value before = Cache(), place = f_(ir::Fill{7, DType::kI32, {1, 1}}, {});
  f_.Store(cache_, f_(ir::Scatter{0, ir::ScatterMode::kMax}, {before, place, Row()}));
  f_.Return("before", before);
  Run();
  if (!InPlace()) return;
  EXPECT_EQ(BytesWritten("keep "), kAllBytes);
}

// A token's keys in a cache of 2,048: 2 KiB of 4 MiB, whatever the position.
TEST_P(UpdateSliceTest, OfACacheWritesTheRowsOfAPosition) {
  const auto n = std::make_shared<ir::Symbol>(
      ir::Symbol{.name = "n", .min = 0, .max = 2047, .divisor = 1, .when = ir::When::kStep});
  m_->AddSymbol(n);
  const ir::Dim at(n);
  ir::Variable* keys =
      AddVariable(*m_, "keys", ir::Variable::Role::kState, Noise({1, 8, 2048, 64}));
  const ir::Value rows = f_.Argument("rows", F32({1, 8, 1, 64}));
  const ir::Value after = f_(ir::UpdateSlice{{0, 0, at, 0}}, {f_.Read(keys), rows * 2.0});
  f_.Store(keys, after);
  f_.Return("y", f_(ir::Slice{.begin = {at - 1}, .end = {at + 1}, .axes = {2}}, {after}));
  Create();
  for (const int64_t position : {1, 2, 2047, 5}) {
    SCOPED_TRACE(position);
    ASSERT_THAT(session_->SetStepValue("n", position), Succeeds());
    ASSERT_THAT(wanted_->SetStepValue("n", position), Succeeds());
    RunOnce(position);
    if (!InPlace()) continue;
    EXPECT_EQ(BytesWritten("update_slice"), 8u * 64 * 4);
    EXPECT_EQ(BytesWritten("keep ") + BytesWritten("state keys"), 0u);
    if (device_->keeps_step_values()) {
      EXPECT_EQ(session_->statistics().recordings, 1);
    }
  }
}

TEST_P(UpdateSliceTest, StoredToTwoStatesIsInBoth) {
  ir::Variable* other = State("other", Noise({kRows, kWidth}, 3));
  const ir::Value after = Updated(Cache(), Row(), 5);
  f_.Store(cache_, after);
  f_.Store(other, after);
  f_.Return("y", f_(ir::Add{}, {f_.Read(other), after}));
  Run();
}

INSTANTIATE_TEST_SUITE_P(Devices, UpdateSliceTest, ::testing::Values("reference", "cpu", "vulkan"));

}  // namespace
}  // namespace forge
