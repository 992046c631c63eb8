// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/compiler/fused.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/product/matmul.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {
namespace {

using ::testing::ElementsAre;

class SplitTest : public PassTest {
 protected:
  // y = (x w) z, where the rows of x and z have unlike extents, fused and bound.
  const Function& FusedAndBound(int64_t rows_of_x, int64_t rows_of_z) {
    const SymbolRef n = m_.SymbolNamed("n"), h = m_.SymbolNamed("h");
    const Value x = f_.Argument("x", F32({Dim(n), 4})), w = f_.Argument("w", F32({4, 4})),
                z = f_.Argument("z", F32({Dim(h), 4}));
    f_.Return("y", f_(MatMul{}, {x, w}) * z);
    const Function& fused = After(
        f_, [&](const Function& in, Function& out) { return Fuse(m_, in, out, target_).status(); });
    EXPECT_THAT(Ops(fused), ElementsAre("fused"));
    values_ = {{n, rows_of_x}, {h, rows_of_z}};
    return After(fused,
                 [&](const Function& in, Function& out) { return Bind(m_, in, out, values_); });
  }
  const Function& AfterSplit(const Function& bound) {
    return After(bound,
                 [&](const Function& in, Function& out) { return Split(m_, in, out, target_); });
  }
  // As a device judges: an epilogue has the elements of its anchor.
  static Verdict KeepsElements(const Function& body) {
    for (const Node& n : body.nodes())
      if (!(body.type(n.first_out).elements() == body.type(body.nodes()[0].first_out).elements()) &&
          body.type(n.first_out).is_constant())
        return Verdict::No("another number of elements");
    return Verdict::Yes("any");
  }

  FakeTarget target_;
  Bindings values_;
};

TEST_F(SplitTest, LeavesWhatTheTargetSupports) {
  const Function& bound = FusedAndBound(3, 3);
  target_.supports = [](const Candidate& c) { return KeepsElements(*c.op.As<Fused>()->body); };
  EXPECT_THAT(Ops(AfterSplit(bound)), ElementsAre("fused"));
}

TEST_F(SplitTest, FusesAgainWithNumbersWhatTheTargetDoesNotSupport) {
  const Function& bound = FusedAndBound(1, 3);
  target_.supports = [](const Candidate& c) { return KeepsElements(*c.op.As<Fused>()->body); };
  target_.fuses = KeepsElements;
  const Function& after = AfterSplit(bound);
  EXPECT_THAT(Ops(after), ElementsAre("matmul", "mul"));
  ExpectSame(bound, after);
}

}  // namespace
}  // namespace forge::ir
