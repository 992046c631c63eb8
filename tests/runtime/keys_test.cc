// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/keys.h"

#include <gtest/gtest.h>

#include "ir/ops/compiler/fused.h"
#include "ir/ops/movement/slice.h"
#include "runtime/device/reference_device.h"
#include "runtime/plan/executable.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using ir::Variable;
using testing::AddVariable;
using testing::Noise;

// Takes two of ten elements, from `begin` on.
ir::Function* Part(ir::Module& m, std::string name, int64_t begin) {
  ir::Function& f = *m.AddFunction(std::move(name));
  const ir::Value x = f.Argument("x", F32({10}));
  const ir::Value y = f(ir::Slice{.begin = {begin}, .end = {begin + 2}}, {x});
  f.SetName(y, f.name() + ".y");
  f.Return("y", y);
  return &f;
}

TEST(KeysTest, BodiesCountForWhatTheyCompute) {
  ir::Module m, other;
  const std::string key = KeyOf(ir::AnyOp(ir::Fused{Part(m, "main.fused", 3)}));
  EXPECT_EQ(KeyOf(ir::AnyOp(ir::Fused{Part(m, "another", 3)})), key);
  EXPECT_NE(KeyOf(ir::AnyOp(ir::Fused{Part(other, "main.fused", 4)})), key);
}

TEST(KeysTest, VariablesCountForWhatTheyHold) {
  ir::Module m;
  const ir::HostValue bytes = Noise({64}), same = Noise({64});
  const Variable* a = AddVariable(m, "a", Variable::Role::kConstant, bytes);
  const Variable* tied = AddVariable(m, "tied", Variable::Role::kConstant, bytes);
  const Variable* other = AddVariable(m, "other", Variable::Role::kConstant, same);
  Variable part = *a;
  part.type = F32({16});
  part.init->begin = {16};
  const Variable* box = m.AddVariable(part);
  const Variable* state =
      m.AddVariable({.name = "s", .role = Variable::Role::kState, .type = F32({64})});
  const Variable* more =
      m.AddVariable({.name = "t", .role = Variable::Role::kState, .type = F32({64})});
  const VariableKeys keys;
  EXPECT_EQ(keys.Of(*a), keys.Of(*tied));
  std::set<std::string> unlike;
  for (const Variable* v : {a, other, box, state, more}) unlike.insert(keys.Of(*v));
  EXPECT_EQ(unlike.size(), 5u);
}

TEST(KeysTest, ComputedVariablesCountForHowTheyAreMade) {
  ir::Module m;
  Variable* a = AddVariable(m, "a", Variable::Role::kConstant, Noise({10}));
  Variable* b = AddVariable(m, "b", Variable::Role::kConstant, Noise({10}, 3));
  VariableKeys keys;
  std::map<std::string, std::string> key_of;
  auto compute = [&](std::string name, Variable* from, bool twice) {
    ir::Function& load = *m.AddFunction("load");
    ir::Value v = load(ir::Relu{}, {load.Read(from)});
    if (twice) v = load(ir::Relu{}, {v});
    Variable* made = m.AddVariable({.name = name, .type = F32({10})});
    load.Return(made->name, v);
    keys.AddComputed(m, load);
    key_of[name] = keys.Of(*made);
  };
  compute("x", a, false);
  compute("y", a, false);
  compute("z", b, false);
  compute("u", a, true);
  EXPECT_EQ(key_of["x"], key_of["y"]);
  EXPECT_NE(key_of["x"], key_of["z"]);
  EXPECT_NE(key_of["x"], key_of["u"]);
  EXPECT_NE(key_of["x"], keys.Of(*a));
}

TEST(VariableStoreTest, SharesAndFrees) {
  const DeviceRef device = *ReferenceDriver()->Open(0, {});
  VariableStore store(device);
  ir::Module m;
  const Variable* big = AddVariable(m, "big", Variable::Role::kConstant, Noise({4096}));
  const Variable* small = AddVariable(m, "small", Variable::Role::kConstant, Noise({8}));
  const VariableKeys keys;
  const VariableStore::Keyed both[] = {{big, keys.Of(*big)}, {small, keys.Of(*small)}};
  VariablePlaces first, second;
  FORGE_ASSERT_OK_AND_ASSIGN(auto fresh, store.Add(both, first));
  EXPECT_EQ(fresh.size(), 2u);
  EXPECT_EQ(store.bytes(), 4096u * 4 + kAlignment);
  const auto clone = ir::Clone(m);
  std::vector<VariableStore::Keyed> cloned;
  for (const auto& v : clone->variables()) cloned.push_back({v.get(), keys.Of(*v)});
  FORGE_ASSERT_OK_AND_ASSIGN(fresh, store.Add(cloned, second));
  EXPECT_TRUE(fresh.empty());
  EXPECT_EQ(first.at(small), second.at(clone->FindVariable("small")));
  first.clear();
  EXPECT_EQ(store.bytes(), 4096u * 4 + kAlignment);
  second.clear();
  EXPECT_EQ(store.bytes(), 0u);
  FORGE_ASSERT_OK_AND_ASSIGN(fresh, store.Add(both, first));
  EXPECT_EQ(fresh.size(), 2u);
}

}  // namespace
}  // namespace forge
