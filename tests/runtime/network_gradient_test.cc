// SPDX-License-Identifier: Apache-2.0
// Gradients of a network of convolution, pooling, norm, attention, products and a loss, on each
// device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/loss/classification.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/norm/layer_norm.h"
#include "ir/ops/product/attention.h"
#include "ir/ops/product/matmul.h"
#include "ir/ops/spatial/conv.h"
#include "ir/ops/spatial/pool.h"
#include "ir/training/differentiate.h"
#include "runtime/session.h"
#include "tests/support/ir_values.h"
#include "tests/support/oracle.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

using ir::Function;
using ir::Module;
using ir::Value;
using ir::Values;
using ::testing::DoubleNear;
using ::testing::Pointwise;

constexpr int64_t kPictures = 3, kChannels = 8, kTokens = 16, kClasses = 5;

// The loss, and the gradients of its picture and of all weights.
std::unique_ptr<Module> LossWithGradients() {
  auto m = std::make_unique<Module>();
  Function& f = *m->AddFunction("main");
  const Value x = f.Argument("x", F32({kPictures, 1, 8, 8}));
  const Value label = f.Argument("label", ir::Type::Tensor(DType::kI64, {kPictures}));
  Values with{x};
  const auto weight = [&](const char* name, ir::Dims shape) {
    return with.emplace_back(f.Argument(name, F32(std::move(shape))));
  };
  const Value filters = weight("filters", {kChannels, 1, 3, 3}), bias = weight("bias", {kChannels});
  Value y = f(ir::Conv{.padding = {1, 1, 1, 1}}, {x, filters, bias});
  y = f(ir::Pool{.kernel = {2, 2}, .strides = {2, 2}}, {f(ir::Silu{}, {y})});
  y = f(ir::Reshape{{kPictures, kTokens, kChannels}}, {y});
  y = f(ir::LayerNorm{}, {y, weight("gamma", {kChannels}), weight("beta", {kChannels})});
  const Value q = f(ir::MatMul{}, {y, weight("query", {kChannels, kChannels})});
  y = y + f(ir::Attention{}, {q, y, y});
  y = f(ir::Reshape{{kPictures, kTokens * kChannels}}, {y});
  y = f(ir::MatMul{}, {y, weight("head", {kTokens * kChannels, kClasses})});
  const Value loss = f(ir::CrossEntropy{}, {y, label});
  const auto gradients = ir::Differentiate(f, loss, with);
  EXPECT_TRUE(gradients.ok()) << gradients.status();
  f.Return("loss", loss);
  for (size_t i = 0; gradients.ok() && i < with.size(); ++i)
    f.Return(fmt::format("d{}", i), (*gradients)[i]);
  return m;
}

// Waves of about 0.6, and labels.
std::vector<NamedTensor> InputsOf(const Module& m) {
  std::vector<NamedTensor> out;
  const Function& f = *m.Find("main");
  for (const Function::Input& a : f.arguments()) {
    ir::HostValue v =
        *ir::HostValue::Zeros(f.type(a.value).dtype(), ir::Constants(f.type(a.value).shape()));
    for (int64_t i = 0; i < v.elements(); ++i) {
      if (a.name == "label")
        v.SetI64(i, i % kClasses);
      else
        v.Set(i, 0.6 * std::sin(1.7 * static_cast<double>(i) + static_cast<double>(out.size())));
    }
    out.push_back({a.name, std::move(v)});
  }
  return out;
}

class NetworkGradientTest : public ::testing::TestWithParam<std::string> {
 protected:
  static std::vector<std::vector<double>> Run(const std::string& device, bool fuse) {
    SessionOptions options;
    options.debug.fuse = fuse;
    std::unique_ptr<Module> m = LossWithGradients();
    const std::vector<NamedTensor> inputs = InputsOf(*m);
    auto session = Session::Create(std::make_shared<const Model>(std::move(m)), OpenOnce(device),
                                   std::move(options));
    EXPECT_TRUE(session.ok()) << session.status();
    if (!session.ok()) return {};
    auto results = (*session)->Run(inputs);
    EXPECT_TRUE(results.ok()) << results.status();
    std::vector<std::vector<double>> out;
    for (size_t i = 0; results.ok() && i < results->size(); ++i)
      out.push_back(Numbers((*results)[i].value));
    return out;
  }
  static void ExpectNear(const std::vector<std::vector<double>>& got,
                         const std::vector<std::vector<double>>& want) {
    ASSERT_EQ(got.size(), want.size());
    ASSERT_EQ(want.size(), 8U);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_THAT(got[i], Pointwise(DoubleNear(2e-6), want[i])) << i;
  }
};

TEST_P(NetworkGradientTest, AreThoseOfTheReference) {
  ExpectNear(Run(GetParam(), true), Run("reference", true));
}

TEST_P(NetworkGradientTest, AreTheSameStepByStep) {
  ExpectNear(Run(GetParam(), false), Run(GetParam(), true));
}

TEST_P(NetworkGradientTest, AreTheSameBitsAgain) {
  EXPECT_EQ(Run(GetParam(), true), Run(GetParam(), true));
}

INSTANTIATE_TEST_SUITE_P(AllDevices, NetworkGradientTest, ::testing::ValuesIn(Devices()),
                         NameOfParameter);

}  // namespace
}  // namespace forge
