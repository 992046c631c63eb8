// SPDX-License-Identifier: Apache-2.0
// Every op at random shapes on every device there is, between movement ops: operands are stored
// with other axes or with gaps, results are transposed. Fused and step by step it computes what the
// op's evaluator does. FORGE_RANDOM_CASES=N draws N cases of each op.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>

#include "ir/cases/bounds.h"
#include "ir/graph/interpreter.h"
#include "ir/graph/module.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/transpose.h"
#include "runtime/backends.h"
#include "runtime/op_on_device.h"
#include "runtime/session.h"
#include "tests/support/random_cases.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

ir::Transpose Reversal(int64_t rank) {
  ir::Transpose op;
  for (int64_t a = rank; a-- > 0;) op.permutation.push_back(a);
  return op;
}

ir::HostValue Reversed(const ir::HostValue& x) {
  const ir::HostValue* in[] = {&x};
  return (*ir::Evaluate(Reversal(static_cast<int64_t>(x.shape().size())), in))[0];
}

// Every second element of the last axis is that of x, the others are zeros.
ir::HostValue Spaced(const ir::HostValue& x) {
  std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
  shape.back() *= 2;
  ir::HostValue wide = *ir::HostValue::Zeros(x.dtype(), shape);
  const size_t bytes = *BytesOf(x.dtype(), 1);
  for (size_t i = 0; i < static_cast<size_t>(x.elements()); ++i)
    std::memcpy(wide.mutable_bytes().data() + (2 * i + 1) * bytes, x.bytes().data() + i * bytes,
                bytes);
  return wide;
}

// A model of one op between movement ops, and its inputs.
struct MovedModel {
  std::shared_ptr<const Model> model;
  std::vector<NamedTensor> inputs;
};

MovedModel Moved(const ir::ConcreteCase& c, const ir::CaseInputs& inputs) {
  auto module = std::make_unique<ir::Module>();
  ir::Function& f = *module->AddFunction("main");
  MovedModel m;
  ir::Values in;
  for (size_t i = 0; i < c.in.size(); ++i) {
    const std::string name = fmt::format("x{}", i);
    const ir::HostValue* x = inputs.pointers()[i];
    if (x == nullptr) {
      in.emplace_back();
      continue;
    }
    const bool spaced = i % 2 == 1 && !x->shape().empty();
    m.inputs.push_back({name, spaced ? Spaced(*x) : Reversed(*x)});
    const ir::HostValue& stored = m.inputs.back().value;
    const ir::Value argument = f.Argument(name, stored.type());
    const ir::Slice odd{.begin = {1},
                        .end = {stored.shape().empty() ? 1 : stored.shape().back()},
                        .axes = {-1},
                        .steps = {2}};
    in.push_back(spaced ? f(odd, {argument}) : f(Reversal(argument.type().rank()), {argument}));
  }
  for (const ir::Value& y : f.Add(c.op, in))
    if (f.status().ok())
      f.Return(fmt::format("y{}", f.results().size()), f(Reversal(y.type().rank()), {y}));
  EXPECT_THAT(f.status(), Succeeds());
  m.model = std::make_shared<const Model>(std::move(module));
  return m;
}

class MovedInputsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { FORGE_ASSERT_OK_AND_ASSIGN(device_, OpenDevice(GetParam(), {})); }
  // Elements below a byte need not be movable, nor those that the device cannot compute with: ops
  // that give on what they get take them all the same.
  bool IsMovable(const ir::Type& t) const {
    if (!t) return true;
    return BitWidth(t.dtype()) >= 8 &&
           OpOnDevice::Support(*device_, Reversal(t.rank()), {&t, 1}).way !=
               OpSupport::Way::kRefused;
  }
  void Check(const ir::ConcreteCase& c) {
    SCOPED_TRACE(c.ToText());
    FORGE_ASSERT_OK_AND_ASSIGN(const ir::Types results, c.op.Infer(c.types()));
    for (const ir::Types& types : {c.types(), results})
      if (!std::ranges::all_of(types, [this](const ir::Type& t) { return IsMovable(t); })) return;
    if (OpOnDevice::Support(*device_, c.op, c.types()).way == OpSupport::Way::kRefused) return;
    FORGE_ASSERT_OK_AND_ASSIGN(const ir::CaseInputs inputs, ir::MakeInputs(c));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto want, ir::Evaluate(c.op, inputs.pointers()));
    const MovedModel moved = Moved(c, inputs);
    for (const bool fuse : {true, false}) {
      SCOPED_TRACE(fuse ? "fused" : "step by step");
      SessionOptions options;
      options.debug.fuse = fuse;
      FORGE_ASSERT_OK_AND_ASSIGN(auto session, Session::Create(moved.model, device_, options));
      FORGE_ASSERT_OK_AND_ASSIGN(const auto got, session->Run(moved.inputs));
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_THAT(ir::CompareResult(c.op, inputs.pointers(), want[i], Reversed(got[i].value), i),
                    Succeeds())
            << "result " << i;
    }
    ++ran_;
  }

  DeviceRef device_;
  int ran_ = 0;
};

TEST_P(MovedInputsTest, MakeNoDifference) {
  for (const ir::OpDef* def : ir::AllOps())
    for (const ir::ConcreteCase& c : RandomCases(*def, RandomCaseCount(1))) Check(c);
  EXPECT_GT(ran_, 100);
  RecordProperty("cases", ran_);
}

std::vector<std::string> DevicesThatMove() {
  std::vector<std::string> all;
  for (const BackendDevices& b : ListDevices())
    for (const DeviceInfo& d : b.devices)
      if (d.usable) all.push_back(d.id);
  return all;
}

INSTANTIATE_TEST_SUITE_P(AllDevices, MovedInputsTest, testing::ValuesIn(DevicesThatMove()),
                         NameOfParameter);

}  // namespace
}  // namespace forge
