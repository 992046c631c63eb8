// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/module.h"

#include <gtest/gtest.h>

#include "ir/graph/copier.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/reduction/softmax.h"
#include "ir/ops/spatial/conv.h"
#include "ir/type/encodings.h"
#include "tests/support/ir_values.h"
#include "tests/support/status_matchers.h"

namespace forge::ir {
namespace {

TEST(ProvenanceTest, SpeaksTheModelsNames) {
  const ProvenanceRef conv = From("Conv_0", "Conv"), relu = From("Relu_1", "Relu");
  EXPECT_EQ(conv->ToText(), "Conv_0 (Conv)");
  const ProvenanceRef parts[] = {conv, relu, nullptr, conv};
  const ProvenanceRef fused = MadeBy("fuse", parts);
  EXPECT_EQ(fused->ToText(), "Conv_0 + Relu_1");
  const ProvenanceRef again[] = {fused, From("Conv_0", "Conv"), From("Add_2", "Add")};
  const ProvenanceRef more = MadeBy("plan", again);
  EXPECT_EQ(more->ToText(), "Conv_0 + Relu_1 + Add_2") << "flat, each source once";
  EXPECT_EQ(more->parts.size(), 3u);
  EXPECT_EQ(MadeBy("fold", {&conv, 1})->ToText(), "Conv_0 (Conv)");
  EXPECT_EQ(MadeBy("fold", {})->ToText(), "fold");
  std::vector<ProvenanceRef> many;
  for (int i = 0; i < 9; ++i) many.push_back(From(fmt::format("n{}", i), "Add"));
  EXPECT_EQ(MadeBy("fuse", many)->ToText(), "n0 + n1 + n2 + n3 + n4 + n5 + 3 more");

  const std::vector<ProvenanceRef> alike = {From("norm", "Mul"), From("norm", "Add"),
                                            From("head", "Add")};
  EXPECT_EQ(MadeBy("fuse", alike)->ToText(), "norm + head") << "each name once";
}

TEST(FunctionTest, BuildsAndKnowsEachValue) {
  Module m;
  Variable* bias = m.AddVariable({.name = "bias", .type = F32({4}), .init = {}});
  Function& f = *m.AddFunction("main");
  const Value x = f.Argument("x", F32({2, 4}));
  const Value sum = f(Add{}, {x, f.Read(bias)});
  const Value y = f(Softmax{}, {sum});
  f.SetName(sum, "dense/BiasAdd");
  f.SetName(sum, "another");
  f.Return("probabilities", y);
  ASSERT_THAT(f.status(), Succeeds());
  EXPECT_EQ(f.nodes().size(), 2u);
  EXPECT_EQ(y.type(), F32({2, 4}));
  EXPECT_EQ(f.NameOf(x.id), "x");
  EXPECT_EQ(f.NameOf(sum.id), "dense/BiasAdd");
  EXPECT_EQ(f.NameOf(y.id), "");
  EXPECT_EQ(f.VariableOf(f.Read(bias).id), bias) << "one value each";
  EXPECT_EQ(f.VariableOf(x.id), nullptr);
  EXPECT_EQ(f.origin(y.id).kind, Function::Origin::kNode);
  EXPECT_EQ(f.origin(y.id).index, 1u);
  EXPECT_EQ(f.UseCounts()[sum.id], 1);
  EXPECT_EQ(f.UseCounts()[y.id], 1);
  EXPECT_FALSE(Value().type());
}

TEST(FunctionTest, KeepsTheFirstErrorWithItsPlace) {
  Function f("main");
  const Value x = f.Argument("x", F32({2, 3}));
  Value y;
  {
    const Function::Scope scope(f, From("Softmax_3", "Softmax"));
    y = f(Softmax{.axis = 5}, {x});
  }
  EXPECT_FALSE(y.type());
  const Value z = f(Softmax{.axis = 9}, {y});
  EXPECT_FALSE(z.type());
  f.Return("z", z);
  EXPECT_THAT(f.status(), Fails(kInvalid, "Softmax_3 (Softmax): softmax(x: f32[2, 3]): axis 5"));
  EXPECT_TRUE(f.nodes().empty());
}

TEST(FunctionTest, GivesWhatTheSignatureNamesAfterAnError) {
  Function f("main");
  const Value x = f(Softmax{.axis = 5}, {f.Argument("x", F32({2, 3}))});
  ASSERT_FALSE(f.status().ok());
  EXPECT_EQ(f.Add(Relu{}, std::array{x}).size(), 1u);
  EXPECT_EQ(f.Add(Fused{}, std::array{x}).size(), 1u) << "none of a variadic part but the first";
}

TEST(FunctionTest, PadsOptionalOperands) {
  Function f("main");
  const Value x = f.Argument("x", F32({1, 3, 8, 8})), w = f.Argument("w", F32({4, 3, 3, 3}));
  f(Conv{}, {x, w});
  ASSERT_THAT(f.status(), Succeeds());
  EXPECT_EQ(f.nodes()[0].in, (std::vector<uint32_t>{x.id, w.id, kAbsent}));
}

TEST(FunctionTest, RefusesNamesUsedTwice) {
  Function f("main");
  const Value x = f.Argument("x", F32({2}));
  f.Argument("x", F32({2}));
  EXPECT_THAT(f.status(), Fails(kInvalid, "argument name 'x'"));
  Function g("main");
  const Value y = g.Argument("y", F32({2}));
  g.Return("r", y);
  g.Return("r", y);
  EXPECT_THAT(g.status(), Fails(kInvalid, "result name 'r'"));
  (void)x;
}

TEST(FunctionTest, StoresWhatFits) {
  Module m;
  const Dim n(m.SymbolNamed("n"));
  Variable* state =
      m.AddVariable({.name = "s", .role = Variable::Role::kState, .type = F32({n}), .init = {}});
  Function& f = *m.AddFunction("main");
  f.Store(state, f.Argument("x", F32({4})));
  ASSERT_THAT(f.status(), Succeeds());
  ASSERT_EQ(f.updates().size(), 1u);
  f.Store(state, f.Argument("y", F32({4, 1})));
  EXPECT_THAT(f.status(), Fails(kInvalid, "variable s is f32[n] and cannot store f32[4, 1]"));
}

TEST(FunctionTest, RuntimeValuedAttributesMakeResultsUnranked) {
  Function f("main");
  const Value x = f.Argument("x", F32({2, 3}));
  const Value shape = f.Argument("shape", Type::Tensor(DType::kI64, {1}));
  const Function::RuntimeField runtime[] = {{"shape", shape}};
  const Value y = f.AddRuntimeValued(Reshape{}, {{x}}, runtime)[0];
  EXPECT_EQ(y.type(), Type::Unranked(DType::kF32));
  EXPECT_EQ(f(Softmax{}, {y}).type(), Type::Unranked(DType::kF32));
  ASSERT_THAT(f.status(), Succeeds());
  EXPECT_EQ(f.nodes()[0].runtime_attributes.size(), 1u);
  EXPECT_EQ(f.UseCounts()[shape.id], 1);
  const Function::RuntimeField wrong[] = {{"shape", x}};
  f.AddRuntimeValued(Reshape{}, {{x}}, wrong);
  EXPECT_THAT(f.status(), Fails(kInvalid, "reshape: shape takes integers, not f32[2, 3]"));
}

TEST(ModuleTest, NamesAreMadeUnique) {
  Module m;
  EXPECT_EQ(m.AddFunction("main")->name(), "main");
  EXPECT_EQ(m.AddFunction("main")->name(), "main.1");
  EXPECT_EQ(m.AddFunction("main")->name(), "main.2");
  EXPECT_EQ(m.AddVariable({.name = "w", .type = {}, .init = {}})->name, "w");
  EXPECT_EQ(m.AddVariable({.name = "w", .type = {}, .init = {}})->name, "w.1");
  EXPECT_EQ(m.Find("main.1"), m.functions()[1].get());
  EXPECT_EQ(m.Find("load"), nullptr);
  EXPECT_EQ(m.FindVariable("w.1"), m.variables()[1].get());
  EXPECT_EQ(m.SymbolNamed("n"), m.SymbolNamed("n"));
  EXPECT_EQ(m.FindSymbol("h"), nullptr);
  m.metadata = {{"labels", "a,b"}};
  EXPECT_EQ(m.Metadata("labels"), "a,b");
  EXPECT_EQ(m.Metadata("none"), "");
}

// main(x) = fused(x) with body(x) = relu(x)
Function& WithBody(Module& m) {
  Function& body = *m.AddFunction("body");
  body.Return("y", body(Relu{}, {body.Argument("x", F32({4}))}));
  Function& f = *m.AddFunction("main");
  f.Return("y", f(Fused{&body}, {f.Argument("x", F32({4}))}));
  return f;
}

TEST(ModuleTest, FunctionsKnowTheirModule) {
  Module m;
  EXPECT_EQ(m.AddFunction("main")->module(), &m);
  EXPECT_EQ(Function("loose").module(), nullptr);
  EXPECT_EQ(Function("loose", &m).module(), &m);
  EXPECT_EQ(m.Replace("main", std::make_unique<Function>("main"))->module(), &m);
  const auto copy = Clone(m);
  EXPECT_EQ(copy->Find("main")->module(), copy.get());
}

TEST(ModuleTest, ReplacedBodiesAreFollowed) {
  Module m;
  const Function& f = WithBody(m);
  auto other = std::make_unique<Function>("body");
  other->Return("y", (*other)(Softmax{}, {other->Argument("x", F32({4}))}));
  Function* placed = m.Replace("body", std::move(other));
  EXPECT_EQ(m.Find("body"), placed);
  EXPECT_EQ(f.nodes()[0].op.As<Fused>()->body, placed);
  EXPECT_THAT(Verify(m), Succeeds());
}

TEST(ModuleTest, ClonesStandAlone) {
  auto copy = [] {
    Module m;
    m.metadata = {{"k", "v"}};
    const Bytes bytes(std::vector<uint8_t>(16));
    Variable* w = m.AddVariable(
        {.name = "w", .type = F32({4}), .init = Variable::Storage{bytes, F32({4}), {}}});
    Function& f = WithBody(m);
    f.Store(w, f.Read(w));
    auto copy = Clone(m);
    EXPECT_EQ(ToText(*copy), ToText(m));
    EXPECT_EQ(copy->variables()[0]->init->bytes.data(), bytes.data()) << "bytes are shared";
    EXPECT_NE(copy->variables()[0].get(), w);
    return copy;
  }();
  EXPECT_THAT(Verify(*copy), Succeeds());
  const Function& f = *copy->Find("main");
  EXPECT_EQ(f.nodes()[0].op.As<Fused>()->body, copy->Find("body"));
  EXPECT_EQ(f.updates()[0].variable, copy->FindVariable("w"));
}

// Rules look at operands and types while they add nodes.
TEST(FunctionTest, ReferencesStayValidAsItGrows) {
  Function f("main");
  const Value x = f.Argument("x", F32({2, 3}));
  const Value y = f(Relu{}, {x});
  f.SetName(y, "relu");
  const Type& type = y.type();
  const Node& node = f.nodes()[0];
  const std::string_view name = f.NameOf(y.id);
  Value last = y;
  for (int i = 0; i < 1000; ++i) f.SetName(last = f(Exp{}, {last}), fmt::format("exp.{}", i));
  EXPECT_EQ(type, F32({2, 3}));
  EXPECT_TRUE(node.op.Is<Relu>());
  EXPECT_EQ(node.in, std::vector<uint32_t>{x.id});
  EXPECT_EQ(name, "relu");
}

// Whoever else calls the root may not fit what it becomes.
TEST(ModuleTest, AFunctionIsClonedWithItsBodiesAlone) {
  Module m;
  Function& f = WithBody(m);
  Function& caller = *m.AddFunction("caller");
  caller.Return("y", caller(Fused{&f}, {caller.Argument("x", F32({4}))}));
  const auto copy = CloneWithBodies(m, f);
  EXPECT_THAT(Verify(*copy), Succeeds());
  EXPECT_EQ(copy->functions().size(), 2u);
  EXPECT_EQ(copy->Find("main")->nodes()[0].op.As<Fused>()->body, copy->Find("body"));
}

// A result is the number after all arguments and variables only where these came first.
TEST(FunctionTest, ClonesKeepValueIds) {
  Module m;
  Function& f = *m.AddFunction("main");
  const Value x = f.Argument("x", F32({2}));
  const Value y = f(Relu{}, {x});
  const Value w = f.Read(m.AddVariable({.name = "w", .type = F32({2})}));
  const Value z = f.Argument("z", F32({2}));
  f.Return("sum", f(Add{}, {f(Add{}, {y, w}), z}));
  const auto clone = Clone(m);
  const Function& copy = *clone->Find("main");
  EXPECT_EQ(ToText(*clone), ToText(m));
  ASSERT_EQ(copy.value_count(), f.value_count());
  for (uint32_t v = 0; v < f.value_count(); ++v) {
    EXPECT_EQ(copy.origin(v).kind, f.origin(v).kind);
    EXPECT_EQ(copy.type(v), f.type(v));
  }
}

class RewriterTest : public ::testing::Test {
 protected:
  RewriterTest() {
    n_ = m_.SymbolNamed("n");
    w_ = m_.AddVariable({.name = "w", .type = F32({Dim(n_)})});
    in_ = m_.AddFunction("main");
    const Value x = in_->Argument("x", F32({Dim(n_)}));
    const Function::Scope scope(*in_, From("Relu_0", "Relu"));
    const Value y = (*in_)(Relu{}, {x});
    in_->SetName(y, "relu");
    (*in_)(Exp{}, {y});  // nobody reads it
    in_->Return("y", (*in_)(Add{}, {y, in_->Read(w_)}));
  }

  static std::optional<Values> CopyAll(Function&, const Node&, ValueSpan) { return std::nullopt; }

  Module m_;
  SymbolRef n_;
  Variable* w_;
  Function* in_;
  Function out_{"main"};
};

TEST_F(RewriterTest, CopiesWhatIsRead) {
  ASSERT_THAT((Rewriter{.pass = "copy"}.Run(*in_, out_, CopyAll)), Succeeds());
  EXPECT_EQ(ToText(out_), R"(function main(x: f32[n]) {
  %relu = relu(%x) : f32[n]  from Relu_0: Relu
  %0 = add(%relu, @w) : f32[n]  from Relu_0: Relu
  return y = %0
}
)");
}

// C++ evaluates the operands of `exp(x) + relu(x)` in either order.
TEST_F(RewriterTest, OrdersFormulasByTheirOperands) {
  std::string texts[2];
  for (const bool left_first : {false, true}) {
    Function out("main");
    const auto sum = [&](Function& f, const Node& n, ValueSpan in) -> std::optional<Values> {
      if (!n.op.Is<Relu>()) return std::nullopt;
      Value left, right;
      if (left_first) left = f(Exp{}, {in[0]});
      right = f(Relu{}, {in[0]});
      if (!left_first) left = f(Exp{}, {in[0]});
      return f.Add(Add{}, std::array{left, right});
    };
    ASSERT_THAT((Rewriter{.pass = "test"}.Run(*in_, out, sum)), Succeeds());
    texts[left_first] = ToText(out);
    ASSERT_EQ(out.nodes().size(), 4u);
    EXPECT_TRUE(out.nodes()[0].op.Is<Exp>()) << texts[left_first];
    EXPECT_TRUE(out.nodes()[1].op.Is<Relu>());
    EXPECT_EQ(out.NameOf(out.nodes()[2].first_out), "relu");
    EXPECT_EQ(out.VariableOf(out.nodes()[3].in[1]), w_);
  }
  EXPECT_EQ(texts[0], texts[1]);
}

TEST_F(RewriterTest, CopiesKeepTheirLayout) {
  Function f("f"), g("g");
  const EncodingRef columns = *PermutedEncoding::Make({1, 0});
  const Value y = f(Relu{}, {f.Argument("x", Type::Tensor(DType::kF32, {2, 3}))});
  f.SetEncoding(y, columns);
  f.Return("y", y);
  ASSERT_THAT(Rewriter{}.Run(
                  f, g, [](Function&, const Node&, ValueSpan) { return std::optional<Values>(); }),
              Succeeds());
  EXPECT_EQ(g.type(g.results()[0].value).ToText(), y.type().ToText());
}

TEST_F(RewriterTest, ReplacesByRule) {
  const auto rule = [](Function& out, const Node& n, ValueSpan in) -> std::optional<Values> {
    if (!n.op.Is<Relu>()) return std::nullopt;
    return Values{out(Maximum{}, {in[0], in[0]})};
  };
  ASSERT_THAT((Rewriter{.pass = "legalise"}.Run(*in_, out_, rule)), Succeeds());
  EXPECT_EQ(ToText(out_), R"(function main(x: f32[n]) {
  %relu = maximum(%x, %x) : f32[n]  from legalise(Relu_0: Relu)
  %0 = add(%relu, @w) : f32[n]  from Relu_0: Relu
  return y = %0
}
)");
}

TEST_F(RewriterTest, BindsTypesAndVariables) {
  const Bindings bind = {{n_, 5}};
  ASSERT_THAT((Rewriter{.pass = "bind", .bind = &bind}.Run(*in_, out_, CopyAll)), Succeeds());
  EXPECT_EQ(out_.type(out_.results()[0].value), F32({5}));
  EXPECT_EQ(out_.type(out_.reads()[0].value), F32({5}));
}

TEST_F(RewriterTest, RefusesWhatDoesNotFit) {
  const auto give = [&](auto make) {
    Function out("main");
    return Rewriter{.pass = "p"}.Run(
        *in_, out, [&](Function& f, const Node&, ValueSpan in) -> std::optional<Values> {
          return make(f, in);
        });
  };
  EXPECT_THAT(give([](Function&, ValueSpan) { return Values{}; }),
              Fails(absl::StatusCode::kInternal, "p: main: relu has 1 results, the rule gave 0"));
  EXPECT_THAT(give([](Function& f, ValueSpan in) { return Values{f(Greater{}, {in[0], in[0]})}; }),
              Fails(absl::StatusCode::kInternal, "result 0 was f32[n], the rule gave bool[n]"));
  EXPECT_THAT(give([](Function& f, ValueSpan in) { return Values{f(Softmax{7}, {in[0]})}; }),
              Fails(kInvalid, "p: main: Relu_0 (Relu): softmax(x: f32[n]): axis 7"));
}

TEST_F(RewriterTest, RuntimeValuesFollowTheOperands) {
  Function in("runtime");
  const Value x = in.Argument("x", F32({2, 3}));
  const Value shape = in.Argument("shape", Type::Tensor(DType::kI64, {1}));
  const Function::RuntimeField runtime[] = {{"shape", shape}};
  in.Return("y", in.AddRuntimeValued(Reshape{}, {{x}}, runtime)[0]);
  ASSERT_THAT((Rewriter{.pass = "copy"}.Run(in, out_, CopyAll)), Succeeds());
  EXPECT_EQ(ToText(out_).substr(ToText(out_).find('\n')), ToText(in).substr(ToText(in).find('\n')));
  Function resolved("main");
  const auto rule = [](Function& out, const Node& n, ValueSpan in) -> std::optional<Values> {
    EXPECT_EQ(in.size(), 2u);
    EXPECT_EQ(out.NameOf(in[1].id), "shape");
    return out.Add(Reshape{{6}}, in.first(n.in.size()));
  };
  ASSERT_THAT((Rewriter{.pass = "fold"}.Run(in, resolved, rule)), Succeeds());
  EXPECT_EQ(resolved.type(resolved.results()[0].value), F32({6}));
}

}  // namespace
}  // namespace forge::ir
