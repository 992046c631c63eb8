// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/driver.h"

#include "ir/op/define.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/elementwise/elementwise.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {

// Calls its body, which stays whole: control flow, as passes see it.
struct CallBody {
  Function* body = nullptr;

  static constexpr OpInfo kInfo{.name = "call_body",
                                .formula = "the results of body",
                                .inputs = "x: any...",
                                .outputs = "y: any...",
                                .source = "this test"};
  static constexpr Field kFields[] = {FieldOf<&CallBody::body>("body", "What is called.")};
  absl::StatusOr<Types> infer(TypeSpan) const {
    Types out;
    for (const auto& r : body->results()) out.push_back(body->type(r.value));
    return out;
  }
  static constexpr Primitive decompose{};
  static constexpr Zero gradient{};
  static constexpr PerElement cost{};
  absl::Status evaluate(Eval& e) const {
    std::vector<const HostValue*> in;
    for (size_t i = 0; i < e.inputs(); ++i) in.push_back(e.in(i));
    FORGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, e.Call(*body, in));
    for (size_t i = 0; i < results.size(); ++i) e.out(i) = std::move(results[i]);
    return absl::OkStatus();
  }
  static Cases cases() { return {}; }
};
const OpDef& DefOf(const CallBody*);
FORGE_DEFINE_OP(CallBody)

namespace {

using ::testing::ElementsAre;

void ReturnRepeatedRelu(Function& f) {
  f.Return("y", f(Relu{}, {f(Relu{}, {f.Argument("x", F32({2}))})}));
}

class PassDriverTest : public PassTest {
 protected:
  // main(x) = body(x), body(x) = relu(relu(x)); `other` is called by nobody.
  PassDriverTest() {
    for (const char* name : {"body", "other"}) ReturnRepeatedRelu(*m_.AddFunction(name));
    f_.Return("y", f_(CallBody{m_.Find("body")}, {f_.Argument("x", F32({2}))}));
  }
  PassDriver Driver() {
    return PassDriver(m_, {"main"},
                      {.verify = true, .observe = [this](std::string_view pass, const Function& f) {
                         seen_.push_back(fmt::format("{} {}", pass, f.name()));
                       }});
  }
  std::vector<std::string> seen_;
};

TEST_F(PassDriverTest, TakesBodiesAlongBeforeTheirCallers) {
  ASSERT_THAT(Driver().Run("simplify", Simplify), Succeeds());
  EXPECT_THAT(seen_, ElementsAre("simplify body", "simplify main"));
  EXPECT_EQ(m_.Find("main")->nodes()[0].op.As<CallBody>()->body, m_.Find("body"));
  EXPECT_THAT(Ops(*m_.Find("body")), ElementsAre("relu"));
  EXPECT_THAT(Ops(*m_.Find("other")), ElementsAre("relu", "relu"));
  EXPECT_THAT(Verify(m_), Succeeds());
}

TEST_F(PassDriverTest, LeavesFusedBodiesAlone) {
  Function* const fused = m_.AddFunction("main.fused");
  ReturnRepeatedRelu(*fused);
  auto main = std::make_unique<Function>("main", &m_);
  main->Return("y", (*main)(Fused{fused}, {main->Argument("x", F32({2}))}));
  m_.Replace("main", std::move(main));
  ASSERT_THAT(Driver().Run("simplify", Simplify), Succeeds());
  EXPECT_THAT(seen_, ElementsAre("simplify main"));
  EXPECT_EQ(m_.Find("main.fused"), fused);
}

TEST_F(PassDriverTest, NamesThePassThatBreaksAFunction) {
  Module elsewhere;
  Variable* const foreign = elsewhere.AddVariable({.name = "w", .type = F32({2})});
  const auto broken = [&](const Function& in, Function& out) {
    out.Read(foreign);
    return Rewriter{}.Run(in, out);
  };
  EXPECT_THAT(Driver().Run("tidy", broken),
              Fails(absl::StatusCode::kInternal, "after the pass tidy: function body: a variable"));
  EXPECT_THAT(seen_, ElementsAre());
}

// The numbers of a binding reach bodies: those of a call are its own.
TEST_F(PassDriverTest, BoundBodiesArePassedOverToo) {
  Module bound(&m_);
  ASSERT_THAT(Bind(bound, *m_.Find("main"), *bound.AddFunction("main"), {}), Succeeds());
  PassDriver driver(bound, {"main"}, {.verify = true});
  ASSERT_THAT(driver.Run("simplify", Simplify), Succeeds());
  EXPECT_THAT(Ops(*bound.Find("body")), ElementsAre("relu"));
  EXPECT_THAT(Ops(*m_.Find("body")), ElementsAre("relu", "relu"));
}

}  // namespace
}  // namespace forge::ir
