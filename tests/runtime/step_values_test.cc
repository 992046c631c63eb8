// SPDX-License-Identifier: Apache-2.0
// Runs that differ in a step value alone: nothing is compiled or recorded between them where a
// device keeps step values open, and every device gives the same.
#include <gtest/gtest.h>

#include <numeric>

#include "ir/ops/movement/slice.h"
#include "ir/ops/product/attention.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/reduction/softmax.h"
#include "runtime/backends.h"
#include "runtime/plan/compare.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;
using testing::AddVariable;
using testing::Noise;

constexpr int64_t kMost = 40;

ir::Dim StepValue(ir::Module& m, int64_t least) {
  const auto n = std::make_shared<ir::Symbol>(
      ir::Symbol{.name = "n", .min = least, .max = kMost, .divisor = 1, .when = ir::When::kStep});
  m.AddSymbol(n);
  return ir::Dim(n);
}

// The softmax of x[n, 24] w: n is what the input has.
std::shared_ptr<const Model> RowsModel() {
  auto m = std::make_unique<ir::Module>();
  const ir::Dim n = StepValue(*m, 1);
  ir::Function& f = *m->AddFunction("main");
  const auto kRole = ir::Variable::Role::kParameter;
  const ir::Value x = f.Argument("x", F32({n, 24}));
  const ir::Value w = f.Read(AddVariable(*m, "w", kRole, Noise({24, 16})));
  f.Return("y", f(ir::Softmax{.axis = 1}, {f(ir::Relu{}, {f(ir::MatMul{}, {x, w})})}));
  return std::make_shared<const Model>(std::move(m));
}

// Attention of a query to the first n entries of a cache: no shape tells n.
std::shared_ptr<const Model> CacheModel() {
  auto m = std::make_unique<ir::Module>();
  const ir::Dim n = StepValue(*m, 1);
  ir::Function& f = *m->AddFunction("main");
  const auto kRole = ir::Variable::Role::kState;
  const ir::Value q = f.Argument("q", F32({2, 1, 8}));
  ir::Values entries;
  for (const char* name : {"k", "v"}) {
    const ir::Value all = f.Read(AddVariable(*m, name, kRole, Noise({2, kMost, 8}, name[0])));
    entries.push_back(f(ir::Slice{.begin = {0}, .end = {n}, .axes = {1}}, {all}));
  }
  f.Return("y", f(ir::Attention{}, {q, entries[0], entries[1]}));
  return std::make_shared<const Model>(std::move(m));
}

class StepValuesTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    FORGE_ASSERT_OK_AND_ASSIGN(device_, OpenDevice(GetParam(), {}));
    FORGE_ASSERT_OK_AND_ASSIGN(reference_, OpenDevice("reference", {}));
  }
  void Create(const std::shared_ptr<const Model>& model, SessionOptions options = {}) {
    FORGE_ASSERT_OK_AND_ASSIGN(session_, Session::Create(model, device_, std::move(options)));
    FORGE_ASSERT_OK_AND_ASSIGN(wanted_, Session::Create(model, reference_));
  }
  void ExpectAsReference(const NamedTensor& in) {
    FORGE_ASSERT_OK_AND_ASSIGN(const auto got, session_->Run({&in, 1}));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto want, wanted_->Run({&in, 1}));
    FORGE_ASSERT_OK_AND_ASSIGN(const Comparison same, Compare(got, want));
    EXPECT_TRUE(same.within());
  }
  // What was compiled and recorded for the newest binding.
  std::pair<int, int> Made() const {
    const CompileCounts counts = device_->compile_counts();
    return {counts.compiled + counts.cached, session_->statistics().recordings};
  }

  DeviceRef device_, reference_;
  std::unique_ptr<Session> session_, wanted_;
};

TEST_P(StepValuesTest, ComeFromTheShapesOfInputs) {
  Create(RowsModel());
  ExpectAsReference({"x", Noise({7, 24})});
  const auto made = Made();
  for (const int64_t n : {kMost, int64_t{1}, int64_t{33}, int64_t{7}}) {
    SCOPED_TRACE(n);
    ExpectAsReference({"x", Noise({n, 24}, n)});
    FORGE_ASSERT_OK_AND_ASSIGN(const ir::Types outputs, session_->BoundOutputs());
    EXPECT_EQ(outputs[0].ToText(), F32({n, 16}).ToText());
    if (device_->keeps_step_values()) {
      EXPECT_EQ(Made(), made);
    }
  }
  if (device_->keeps_step_values()) {
    EXPECT_EQ(made.second, 1);
  }
  const NamedTensor more{"x", Noise({kMost + 1, 24})};
  EXPECT_THAT(session_->Run({&more, 1}), Fails(StatusCode::kInvalidArgument, "n cannot be"));
}

TEST_P(StepValuesTest, LeaveNothingToSearchFor) {
  Create(RowsModel(), {.autotune = {.seconds = 0.1}});
  for (const int64_t n : {7, 9}) ExpectAsReference({"x", Noise({n, 24})});
}

TEST_P(StepValuesTest, FillMemoryOfTheCaller) {
  Create(RowsModel());
  for (const int64_t n : {5, 40, 3}) {
    SCOPED_TRACE(n);
    const ir::HostValue x = Noise({n, 24}, n);
    ASSERT_THAT(session_->Bind({{"n", n}}), Succeeds());
    std::vector<float> y(static_cast<size_t>(n) * 16 + 1, -1.0f);
    const TensorRef in{x.dtype(), x.shape(), x.bytes()};
    const std::span<uint8_t> out(reinterpret_cast<uint8_t*>(y.data()), (y.size() - 1) * 4);
    ASSERT_THAT(session_->Run({&in, 1}, {&out, 1}), Succeeds());
    for (size_t row = 0; row < static_cast<size_t>(n); ++row)
      EXPECT_NEAR(std::accumulate(&y[row * 16], &y[row * 16] + 16, 0.0), 1, 1e-5);
    EXPECT_EQ(y.back(), -1.0f);
  }
}

TEST_P(StepValuesTest, AreSetWhereNoShapeTellsThem) {
  Create(CacheModel());
  const NamedTensor q{"q", Noise({2, 1, 8})};
  // Where it is fused no type has it, and the step that reads it says so.
  EXPECT_THAT(
      session_->Run({&q, 1}),
      ::testing::AnyOf(Fails(StatusCode::kInvalidArgument, "the step value 'n' is not given"),
                       Fails(StatusCode::kInvalidArgument, "fuse: dimension n is not bound")));
  std::optional<std::pair<int, int>> made;
  for (const int64_t n : {3, 40, 1, 17}) {
    SCOPED_TRACE(n);
    ASSERT_THAT(session_->SetStepValue("n", n), Succeeds());
    ASSERT_THAT(wanted_->SetStepValue("n", n), Succeeds());
    ExpectAsReference({"q", Noise({2, 1, 8}, n)});
    if (made && device_->keeps_step_values()) {
      EXPECT_EQ(Made(), *made);
    }
    made = Made();
  }
  EXPECT_THAT(session_->SetStepValue("n", kMost + 1),
              Fails(StatusCode::kInvalidArgument, "the model wants 1 to 40"));
  EXPECT_THAT(session_->SetStepValue("m", 1),
              Fails(StatusCode::kInvalidArgument, "no step value 'm'"));
}

std::vector<std::string> Devices() {
  std::vector<std::string> ids;
  for (const BackendDevices& backend : ListDevices())
    for (const DeviceInfo& device : backend.devices)
      if (device.usable) ids.push_back(device.id);
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Devices, StepValuesTest, ::testing::ValuesIn(Devices()), [](auto& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace forge
