// SPDX-License-Identifier: Apache-2.0
// A region built by a test, run under every schedule that takes it.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/schedules/tuning.h"
#include "ir/graph/interpreter.h"
#include "tests/support/region_runner.h"

namespace forge::codegen {

using ir::Dims;
using ir::Value;
using ir::Values;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

class RegionTest : public ::testing::TestWithParam<Caps (*)()> {
 protected:
  RegionTest() : caps_(GetParam()()) {}
  Value Argument(Dims shape, DType t = DType::kF32) {
    return f_.Argument(fmt::format("x{}", f_.arguments().size()),
                       ir::Type::Tensor(t, std::move(shape)));
  }
  void Return(Value v) { f_.Return(fmt::format("y{}", f_.results().size()), v); }

  // Runs the region under every schedule that fits, with its defaults and with the numbers that
  // its parameters list, and compares each result with the region's interpretation.
  //   result: names of the schedules that ran
  std::vector<std::string> ExpectRight() {
    std::vector<std::string> ran;
    EXPECT_TRUE(f_.status().ok()) << f_.status();
    const auto region = Region::Of(f_, caps_);
    EXPECT_TRUE(region.ok()) << region.status();
    if (!region.ok()) return ran;
    Interpret();
    for (const Choice& choice : ChoicesFor(*region, most_choices_)) {
      if (std::find(ran.begin(), ran.end(), choice.schedule->name) == ran.end())
        ran.emplace_back(choice.schedule->name);
      ExpectRightUnder(choice, *region);
    }
    EXPECT_THAT(ran, Not(IsEmpty()));
    return ran;
  }

  // The same under this choice alone.
  void ExpectRightBy(std::string_view choice) {
    const auto region = Region::Of(f_, caps_);
    ASSERT_TRUE(region.ok()) << region.status();
    const absl::StatusOr<Choice> parsed = ParseChoice(*region, choice);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    Interpret();
    ExpectRightUnder(*parsed, *region);
  }

  // The schedule that Generate takes.
  std::string Chosen() {
    const auto region = Region::Of(f_, caps_);
    return region.ok() ? CanGenerate(*region).text() : region.status().ToString();
  }

  // What Generate makes; no launches where it fails.
  Program Generated() {
    const auto region = Region::Of(f_, caps_);
    EXPECT_TRUE(region.ok()) << region.status();
    if (!region.ok()) return {};
    absl::StatusOr<Program> program = Generate(*region);
    EXPECT_TRUE(program.ok()) << Message(program.status());
    return program.ok() ? *std::move(program) : Program{};
  }
  int Launches() { return static_cast<int>(Generated().launches.size()); }

  // The schedule of large products, by what the device is quick at.
  std::string Tiled() const { return caps_.runs_on_cpu ? "matmul_shuffle" : "matmul_shared"; }

  absl::Status Refusal() {
    const auto region = Region::Of(f_, caps_);
    return region.status();
  }

  ir::Function f_{"region"};
  Caps caps_;
  size_t most_choices_ = 24;  // nearly all with one number changed

 private:
  void Interpret() {
    arguments_.clear();
    for (const ir::Function::Input& a : f_.arguments()) arguments_.push_back(Numbers(a.value));
    auto want = ir::Interpreter().Run(f_, Operands());
    ASSERT_TRUE(want.ok()) << want.status();
    want_ = std::move(want->results);
  }

  void ExpectRightUnder(const Choice& choice, const Region& region) {
    SCOPED_TRACE(choice.ToText());
    const auto got = testing::RunProgram(region, Generate(region, choice), Operands());
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t i = 0; i < got->size(); ++i) ExpectClose(want_[i], (*got)[i], Tolerance());
  }

  // Sums are rounded once where operands are f16, to its 11 bits, or bf16, to its 8.
  double Tolerance() const {
    const auto any = [&](DType t) {
      return std::any_of(arguments_.begin(), arguments_.end(),
                         [&](const auto& a) { return a.dtype() == t; });
    };
    return any(DType::kBF16) ? 4e-3 : any(DType::kF16) ? 1e-3 : 2e-6;
  }

  std::vector<const ir::HostValue*> Operands() const {
    std::vector<const ir::HostValue*> out;
    for (const ir::HostValue& v : arguments_) out.push_back(&v);
    return out;
  }
  ir::HostValue Numbers(uint32_t value) {
    const ir::Type& t = f_.type(value);
    auto v = ir::HostValue::Zeros(t.dtype(), ir::Constants(t.shape()));
    EXPECT_TRUE(v.ok());
    for (int64_t i = 0; i < v->elements(); ++i)
      v->Set(i, static_cast<double>((i * 37 + value * 11) % 101) / 25 - 2);
    return *v;
  }
  static void ExpectClose(const ir::HostValue& want, const ir::HostValue& got, double tolerance) {
    ASSERT_EQ(want.elements(), got.elements());
    double scale = 1;
    for (int64_t i = 0; i < want.elements(); ++i) scale = std::max(scale, std::abs(want.f64(i)));
    for (int64_t i = 0; i < want.elements(); ++i)
      ASSERT_NEAR(want.f64(i), got.f64(i), tolerance * scale) << "element " << i;
  }

  std::vector<ir::HostValue> arguments_, want_;
};

inline std::string NameOf(const ::testing::TestParamInfo<Caps (*)()>& info) {
  const Caps caps = info.param();
  if (!caps.workgroup_matrices.empty()) return "workgroup_matrices";
  if (caps.matrix_elements) return "matrix_elements";
  if (!caps.matrices.empty()) return "matrices";
  return caps.runs_on_cpu ? "cpu" : caps.f64 ? "gpu" : "poorest";
}

}  // namespace forge::codegen
