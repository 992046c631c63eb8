// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/elementwise/elementwise.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using FreezeTest = PassTest;

TEST_F(FreezeTest, ParametersBecomeConstantsThatNobodyTrains) {
  Variable* w = Add("w", Random(F32({2})), Variable::Role::kParameter);
  w->trainable = true;
  Freeze(m_);
  EXPECT_EQ(w->role, Variable::Role::kConstant);
  EXPECT_FALSE(w->trainable);
}

TEST_F(FreezeTest, LeavesConstantsAndStatesAlone) {
  Variable* state = Add("s", Random(F32({2})), Variable::Role::kState);
  Variable* constant = Add("c", Random(F32({2})));
  Freeze(m_);
  EXPECT_EQ(state->role, Variable::Role::kState);
  EXPECT_EQ(constant->role, Variable::Role::kConstant);
}

TEST_F(FreezeTest, KeepsWhatVariablesHold) {
  Variable* w = Add("w", Random(F32({2, 3})), Variable::Role::kParameter);
  f_.Return("y", f_(Relu{}, {f_.Read(w)}));
  FORGE_ASSERT_OK_AND_ASSIGN(const Interpretation before, Run(f_, {}));
  Freeze(m_);
  FORGE_ASSERT_OK_AND_ASSIGN(const Interpretation after, Run(f_, {}));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(before.results[0].f64(i), after.results[0].f64(i));
}

}  // namespace
}  // namespace forge::ir
