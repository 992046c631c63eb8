// SPDX-License-Identifier: Apache-2.0
// Every kernel that tuning may choose has the results of the op's own evaluator: the op cases run
// those that are chosen without tuning, most of which do well with the small operands of a case.
// FORGE_CHOICES=N tries the first N of each case.
#include <gtest/gtest.h>

#include "ir/graph/interpreter.h"
#include "ir/ops/product/attention.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/product/matmul_integer.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv.h"
#include "runtime/backends.h"
#include "runtime/op_on_device.h"
#include "tests/support/case_seeds.h"
#include "tests/support/expect_results.h"
#include "tests/support/oracle.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

struct NamedCase {
  const char* name;
  ir::Case given;
};

std::vector<NamedCase> Cases() {
  return {
      {"matmul_f32", {ir::MatMul{}, {"f32[65,130]", "f32[130,67]"}}},
      {"matmul_f16", {ir::MatMul{}, {"f16[72,392]", "f16[392,200]"}}},
      {"matmul_odd_columns", {ir::MatMul{false, true}, {"f16[70,136]", "f16[201,136]"}}},
      {"matmul_transposed_bf16", {ir::MatMul{true, true}, {"bf16[136,72]", "bf16[200,136]"}}},
      {"matmul_integer", {ir::MatMulInteger{}, {"u8[40,72]", "i8[72,48]"}}},
      {"conv", {ir::Conv{}, {"f32[1,8,10,9]", "f32[12,8,3,3]"}}},
      {"attention", {ir::Attention{}, {"f16[1,2,20,64]", "f16[1,2,40,64]", "f16[1,2,40,64]"}}},
      {"softmax", {ir::Softmax{}, {"f32[5,1000]"}}},
      {"reduce", {ir::Reduce{ir::ReduceKind::kSum, {1}}, {"f32[7,1000]"}}},
  };
}

struct CaseOnDevice {
  NamedCase test;
  std::string device;
};

std::vector<CaseOnDevice> CasesOnDevices() {
  std::vector<CaseOnDevice> all;
  for (const BackendDevices& b : ListDevices())
    for (const DeviceInfo& d : b.devices)
      for (const NamedCase& c : Cases())
        if (d.usable) all.push_back({c, d.id});
  return all;
}

class ChoicesTest : public testing::TestWithParam<CaseOnDevice> {};

TEST_P(ChoicesTest, EachHasTheResultsOfTheEvaluator) {
  const DeviceRef device = OpenOnce(GetParam().device);
  ASSERT_TRUE(device);
  FORGE_ASSERT_OK_AND_ASSIGN(const auto cases, ir::Concretize(GetParam().test.given));
  const ir::ConcreteCase& c = cases.at(0);
  const ir::Types in = c.types();
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::Types out, c.op.Infer(in));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto inputs, ir::MakeInputs(c));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto expected, ir::Evaluate(c.op, inputs.pointers()));

  const CompileRequest request{&c.op, in, out, GetParam().test.name};
  const int most = CountFromEnvironment("FORGE_CHOICES", 6);
  auto choices = device->Choices(request, static_cast<size_t>(most));
  if (choices.empty()) choices.emplace_back();  // the only one
  for (const std::string& choice : choices) {
    SCOPED_TRACE(choice);
    FORGE_ASSERT_OK_AND_ASSIGN(
        const auto runner, OpOnDevice::Create(device, c.op, in, {.compile = {.choice = choice}}));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto results, runner->Run(inputs.pointers()));
    ExpectResults(c.op, inputs.pointers(), expected, results);
  }
}

INSTANTIATE_TEST_SUITE_P(AllDevices, ChoicesTest, testing::ValuesIn(CasesOnDevices()),
                         [](const auto& info) {
                           return AsTestName(std::string(info.param.test.name) + "_on_" +
                                             info.param.device);
                         });

}  // namespace
}  // namespace forge
