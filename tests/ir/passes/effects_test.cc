// SPDX-License-Identifier: Apache-2.0
// Effects through every pass: none is lost, doubled, merged, moved to `load` or put before another.
#include "ir/op/define.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"
#include "tests/ir/passes/pass_test.h"

namespace forge::ir {

// Gives x back, and counts as an effect.
struct Tick {
  int64_t id = 0;

  static constexpr OpInfo kInfo{.name = "tick",
                                .formula = "y = x",
                                .inputs = "x: any",
                                .outputs = "y: =x",
                                .source = "this test",
                                .ordered = true};
  static constexpr Field kFields[] = {FieldOf<&Tick::id>("id", "Tells ticks apart.")};
  static constexpr BySignature infer{};
  static constexpr Primitive decompose{};
  static constexpr Zero gradient{};
  static constexpr PerElement cost{};
  absl::Status evaluate(Eval& e) const {
    e.out(0) = *e.in(0);
    return absl::OkStatus();
  }
  static Cases cases() { return {}; }
};
const OpDef& DefOf(const Tick*);
FORGE_DEFINE_OP(Tick)

namespace {

void CollectTicks(const Function& f, std::vector<int64_t>& ids) {
  for (const Node& n : f.nodes()) {
    if (const Tick* tick = n.op.As<Tick>()) ids.push_back(tick->id);
    for (const Function* body : BodiesOf(n.op)) CollectTicks(*body, ids);
  }
}

// In the order in which they happen.
std::vector<int64_t> TicksOf(const Function& f) {
  std::vector<int64_t> ids;
  CollectTicks(f, ids);
  return ids;
}

// A pass from a function to another; `load` is what `hoist` fills.
struct PassUnderTest {
  const char* name;
  absl::Status (*run)(Module& m, const Function& in, Function& load, Function& out);
};

absl::Status FuseAll(Module& m, const Function& in, Function& out) {
  FakeTarget target;
  target.fuses_anchors = [](const Function&) { return Verdict::Yes("all"); };
  return Fuse(m, in, out, target).status();
}

constexpr PassUnderTest kPasses[] = {
    {"dead_code",
     [](Module&, const Function& in, Function&, Function& out) { return Rewriter{}.Run(in, out); }},
    {"fold",
     [](Module& m, const Function& in, Function&, Function& out) { return Fold(m, in, out); }},
    {"recognise",
     [](Module&, const Function& in, Function&, Function& out) { return Recognise(in, out); }},
    {"integers",
     [](Module&, const Function& in, Function&, Function& out) {
       FakeTarget target;
       target.multiplies_bytes = true;
       return MultiplyIntegers(in, out, target);
     }},
    {"tabulate", [](Module&, const Function& in, Function&,
                    Function& out) { return Tabulate(in, out, FakeTarget()); }},
    {"precision", [](Module&, const Function& in, Function&,
                     Function& out) { return RoundProducts(in, out, DType::kF16); }},
    {"legalise",
     [](Module&, const Function& in, Function&, Function& out) {
       FakeTarget target;
       target.supports = [](const Candidate& c) {
         return c.op.def().decompose ? Verdict::No("a composite") : Verdict::Yes("any");
       };
       return Legalise(in, out, target);
     }},
    {"simplify",
     [](Module&, const Function& in, Function&, Function& out) { return Simplify(in, out); }},
    {"join", [](Module&, const Function& in, Function&, Function& out) { return Join(in, out); }},
    {"hoist", [](Module& m, const Function& in, Function& load,
                 Function& out) { return Hoist(m, in, load, out).status(); }},
    {"fuse",
     [](Module& m, const Function& in, Function&, Function& out) { return FuseAll(m, in, out); }},
    {"bind",
     [](Module& m, const Function& in, Function&, Function& out) { return Bind(m, in, out, {}); }},
    {"split",
     [](Module& m, const Function& in, Function&, Function& out) {
       Function fused(in.name(), &m);
       FORGE_RETURN_IF_ERROR(FuseAll(m, in, fused));
       FakeTarget target;
       target.supports = [](const Candidate& c) {
         return c.op.Is<Fused>() ? Verdict::No("fused") : Verdict::Yes("any");
       };
       return Split(m, fused, out, target);
     }},
    {"encode", [](Module&, const Function& in, Function&,
                  Function& out) { return AssignEncodings(in, out, FakeTarget()); }},
};

class EffectsTest : public PassTest, public ::testing::WithParamInterface<PassUnderTest> {
 protected:
  Value TickOf(Function& f, int64_t id, Value x) { return f(Tick{id}, {x}); }
};

TEST_P(EffectsTest, StayInTheirOrder) {
  Function& f = f_;
  const Value x = f.Argument("x", F32({2, 4})), constant = Constant(f, "c", {2, 4});
  const Value a = f(Relu{}, {x});
  TickOf(f, 1, a);
  TickOf(f, 2, constant);  // of constants alone
  TickOf(f, 2, constant);  // the same again
  const Value y = TickOf(f, 3, x);
  f.Return("sum", f(Sub{}, {a, y}));  // may fuse with `a`, which tick 1 needs
  TickOf(f, 4, f(Transpose{.permutation = {1, 0}}, {constant}));
  const auto product = [&](const char* name) {
    const Value of = f(MatMul{}, {x, Constant(f, name, {4, 4})});
    f.Return(name, f(Transpose{.permutation = {1, 0}}, {of}));
  };
  product("q");
  TickOf(f, 5, x);
  TickOf(f, 6, Constant(f, "late", {3}));  // ahead of its turn where constants are gathered
  product("k");
  f.Return("gelu", f(Gelu{}, {TickOf(f, 7, x)}));

  Function load("load", &m_);
  const Function& after = After(
      f, [&](const Function& in, Function& out) { return GetParam().run(m_, in, load, out); });
  EXPECT_EQ(TicksOf(after), TicksOf(f)) << ToText(after);
  EXPECT_EQ(TicksOf(load), std::vector<int64_t>());
}

INSTANTIATE_TEST_SUITE_P(Passes, EffectsTest, ::testing::ValuesIn(kPasses),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace forge::ir
