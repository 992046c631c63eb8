// SPDX-License-Identifier: Apache-2.0
// What a search believes: a choice that computes something else must not win, however quick it is.
#include "runtime/plan/autotune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "ir/graph/interpreter.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/product/matmul_integer.h"
#include "runtime/device/host_device.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

// Evaluates the op: as it is, at leisure, or on zeros in the place of one operand.
class Way final : public HostProgram {
 public:
  Way(const CompileRequest& r, bool slow, size_t ignored)
      : op_(*r.op), in_(r.in.begin(), r.in.end()), slow_(slow), ignored_(ignored) {}
  std::string_view kernel() const override { return "way"; }
  absl::Status Run(const HostArguments& a) const override {
    if (slow_) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::vector<ir::HostValue> operands;
    std::vector<const ir::HostValue*> pointers;
    for (size_t i = 0; i < in_.size(); ++i) {
      operands.push_back(*ir::HostValue::Zeros(in_[i].dtype(), ir::Constants(in_[i].shape())));
      const std::span<uint8_t> to = operands[i].mutable_bytes();
      if (i != ignored_) std::copy_n(a.operands[i].begin(), to.size(), to.begin());
    }
    for (const ir::HostValue& v : operands) pointers.push_back(&v);
    FORGE_ASSIGN_OR_RETURN(const std::vector<ir::HostValue> results, ir::Evaluate(op_, pointers));
    const std::span<const uint8_t> bytes = results[0].bytes();
    std::copy(bytes.begin(), bytes.end(), a.operands[in_.size()].begin());
    return absl::OkStatus();
  }

 private:
  const ir::AnyOp op_;
  const ir::Types in_;
  const bool slow_;
  const size_t ignored_;
};

// Choices: "slow", the default; "ignores N", which takes operand N for zeros; "quick", the last.
class DeviceOfChoices final : public HostDevice, public ir::Target {
 public:
  DeviceOfChoices() : HostDevice({.id = "choices:0"}) {}
  const ir::Target& target() const override { return *this; }
  std::string_view name() const override { return "choices"; }
  Verdict Supports(const ir::Candidate&) const override { return Verdict::Yes("way"); }
  Verdict Fuses(const ir::Function&) const override { return Verdict::No("not here"); }
  std::vector<ir::EncodingChoice> Encodings(const ir::Candidate&) const override { return {}; }
  double Seconds(const ir::Candidate&) const override { return 0; }

  std::vector<absl::StatusOr<ProgramRef>> Compile(std::span<const CompileRequest> requests,
                                                  CompileProgress) override {
    std::vector<absl::StatusOr<ProgramRef>> out;
    for (const CompileRequest& r : requests) {
      const bool ignores = r.choice.starts_with("ignores ");
      const size_t ignored = ignores ? static_cast<size_t>(r.choice.back() - '0') : r.in.size();
      out.push_back(std::make_shared<Way>(r, r.choice.empty() || r.choice == "slow", ignored));
    }
    return out;
  }
  std::vector<std::string> Choices(const CompileRequest& r, size_t most) override {
    std::vector<std::string> out{"slow"};
    for (size_t i = 0; i < r.in.size(); ++i) out.push_back(fmt::format("ignores {}", i));
    out.emplace_back("quick");
    out.resize(std::min(most, out.size()));
    return out;
  }
  absl::Status Prefer(const CompileRequest& r) override {
    preferred = r.choice;
    return absl::OkStatus();
  }
  std::string preferred;
};

class AutotuneAnswersTest : public ::testing::Test {
 protected:
  Autotuned Search(const ir::AnyOp& op, ir::Types in, size_t candidates = 32) {
    const ir::Types out = *op.Infer(in);
    const CompileRequest request{&op, in, out, "a step"};
    auto found = Autotune(device_, {&request, 1}, {.seconds = 60, .candidates = candidates},
                          [](size_t, size_t) {});
    EXPECT_THAT(found, Succeeds());
    return found.ok() && found->size() == 1 ? found->front() : Autotuned{};
  }
  // That whoever ignores any of the operands is found out.
  void ExpectQuickWins(const ir::AnyOp& op, const ir::Types& in) {
    const Autotuned found = Search(op, in);
    EXPECT_EQ(found.choice, "quick") << op.ToText();
    EXPECT_EQ(found.wrong, static_cast<int>(in.size())) << op.ToText();
    EXPECT_EQ(device_->preferred, "quick");
  }

  const std::shared_ptr<DeviceOfChoices> device_ = std::make_shared<DeviceOfChoices>();
};

ir::Type Matrix(DType t) { return ir::Type::Tensor(t, {8, 8}); }

TEST_F(AutotuneAnswersTest, WrongProductsLose) {
  ExpectQuickWins(ir::MatMul{}, {Matrix(DType::kF32), Matrix(DType::kF32)});
  ExpectQuickWins(ir::MatMulInteger{}, {Matrix(DType::kI8), Matrix(DType::kI8)});
  ExpectQuickWins(ir::MatMulInteger{}, {Matrix(DType::kU8), Matrix(DType::kI8)});
}

TEST_F(AutotuneAnswersTest, WrongIndicesLose) {
  const ir::Type indices = ir::Type::Tensor(DType::kI64, {5});
  ExpectQuickWins(ir::Gather{}, {Matrix(DType::kF32), indices});
  ExpectQuickWins(ir::Gather{}, {Matrix(DType::kI32), indices});
}

TEST_F(AutotuneAnswersTest, TriesAsManyAsAllowed) {
  const Autotuned found = Search(ir::MatMul{}, {Matrix(DType::kF32), Matrix(DType::kF32)}, 3);
  EXPECT_EQ(found.tried, 3);
  EXPECT_EQ(found.choice, "slow");
  EXPECT_EQ(device_->preferred, "");
}

}  // namespace
}  // namespace forge
