// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/ops/compiler/fused.h"
#include "ir/ops/control/bind_symbol.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/creation/shape_of.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/reduction/reduce.h"
#include "tests/support/ir_values.h"

namespace forge::ir {
namespace {

using ::testing::HasSubstr;

Bytes BytesOf(const HostValue& v) { return v.shared_bytes(); }

TEST(InterpreterTest, BindsSymbolsFromArguments) {
  Module m;
  const Dim n(m.SymbolNamed("n"));
  Function& f = *m.AddFunction("main");
  const Value x = f.Argument("x", Type::Tensor(DType::kF32, {n, 2}));
  f.Return("y", f(Reshape{{n * 2}}, {x}) + 1.0);
  const HostValue in = Tensor({3, 2}, {0, 1, 2, 3, 4, 5});
  const HostValue* arguments[] = {&in};
  const auto out = Interpreter{}.Run(f, arguments);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Numbers(out->results[0]), (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(InterpreterTest, BindsSymbolsToComputedNumbers) {
  Module m;
  const auto symbol = std::make_shared<Symbol>(Symbol{.name = "u", .max = 3});
  m.AddSymbol(symbol);
  const Dim u(symbol);
  Function& f = *m.AddFunction("main");
  const Value x = f.Argument("x", Type::Tensor(DType::kI64, {}));
  f(BindSymbol{u}, {x});
  f.Return("y", f(Iota{.count = u}, {}));
  EXPECT_EQ(f.type(f.results()[0].value).ToText(), "i64[u]");
  const auto run = [&](double number) {
    HostValue in = *HostValue::Zeros(DType::kI64, std::vector<int64_t>{});
    in.SetI64(0, static_cast<int64_t>(number));
    const HostValue* arguments[] = {&in};
    return Interpreter{}.Run(f, arguments);
  };
  for (const double n : {0.0, 2.0, 3.0}) {
    const auto out = run(n);
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(out->results[0].elements(), n);
  }
  for (const double n : {-1.0, 4.0})
    EXPECT_THAT(std::string(run(n).status().message()), HasSubstr("u cannot be"));
}

TEST(InterpreterTest, RefusesArgumentsOfOtherTypes) {
  Module m;
  const Dim n(m.SymbolNamed("n"));
  Function& f = *m.AddFunction("main");
  f.Argument("a", Type::Tensor(DType::kF32, {n}));
  f.Argument("b", Type::Tensor(DType::kF32, {n, 2}));
  const HostValue a = Tensor({3}, {}), b = Tensor({4, 2}, {}), c = Tensor({3, 1}, {});
  const auto run = [&](std::vector<const HostValue*> in) {
    return std::string(Interpreter{}.Run(f, in).status().message());
  };
  EXPECT_THAT(run({&a}), HasSubstr("takes 2 arguments"));
  EXPECT_THAT(run({&a, &b}), HasSubstr("input b, axis 0: n is 3, not 4"));
  EXPECT_THAT(run({&a, &c}), HasSubstr("input b, axis 1"));
  EXPECT_THAT(run({&a, &a}), HasSubstr("input b is f32[n, 2], not f32[3]"));
}

TEST(InterpreterTest, TurnsLateFieldsIntoNumbers) {
  Module m;
  const Dim n(m.SymbolNamed("n"));
  Function& f = *m.AddFunction("main");
  const Value x = f.Argument("x", Type::Tensor(DType::kF32, {n, 2, 2}));
  const Value like = f.Argument("like", Type::Tensor(DType::kF32, {n, 4}));
  const Value shape = f(ShapeOf{}, {like});
  const Function::RuntimeField runtime[] = {{"shape", shape}};
  f.Return("y", f.AddRuntimeValued(Reshape{}, {&x, 1}, runtime)[0]);
  ASSERT_TRUE(f.status().ok()) << f.status();
  const HostValue in = Tensor({1, 2, 2}, {1, 2, 3, 4}), other = Tensor({1, 4}, {});
  const HostValue* arguments[] = {&in, &other};
  const auto out = Interpreter{}.Run(f, arguments);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->results[0].type(), other.type());
}

TEST(InterpreterTest, RunsBodiesWhoseSymbolsTakeTheOperandsExtents) {
  Module m;
  const Dim k(m.SymbolNamed("k"));
  Function& body = *m.AddFunction("body");
  const Value a = body.Argument("a", Type::Tensor(DType::kF32, {k, 2}));
  body.Return("r", max(a, 0.0) * 2.0);
  Function& f = *m.AddFunction("main");
  const Value x = f.Argument("x", Type::Tensor(DType::kF32, {3, 2}));
  f.Return("y", f(Fused{&body}, {x}));
  EXPECT_EQ(f.type(f.results()[0].value), Type::Tensor(DType::kF32, {3, 2}));
  const HostValue in = Tensor({3, 2}, {-1, 1, -2, 2, -3, 3});
  const HostValue* arguments[] = {&in};
  const auto out = Interpreter{}.Run(f, arguments);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Numbers(out->results[0]), (std::vector<double>{0, 2, 0, 4, 0, 6}));
}

TEST(InterpreterTest, AFusedNodeDecomposesIntoItsBody) {
  Module m;
  Function& body = *m.AddFunction("body");
  const Value a = body.Argument("a", Type::Tensor(DType::kF32, {2}));
  body.Return("r", max(a, 0.0) + 1.0);
  Function& f = *m.AddFunction("main");
  const Value x = f.Argument("x", Type::Tensor(DType::kF32, {2}));
  const AnyOp op = Fused{&body};
  f.Return("y", op.Decompose(f, {&x, 1})[0]);
  const HostValue in = Tensor({2}, {-1, 1});
  const HostValue* arguments[] = {&in};
  const auto out = Interpreter{}.Run(f, arguments);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Numbers(out->results[0]), (std::vector<double>{1, 2}));
}

TEST(InterpreterTest, FusedRefusesOperandsItsBodyDoesNotTake) {
  Module m;
  const Dim k(m.SymbolNamed("k"));
  Function& body = *m.AddFunction("body");
  body.Argument("a", Type::Tensor(DType::kF32, {k}));
  body.Argument("b", Type::Tensor(DType::kF32, {k}));
  const auto infer = [&](Types in) { return AnyOp(Fused{&body}).Infer(in).ok(); };
  const Type two = Type::Tensor(DType::kF32, {2}), three = Type::Tensor(DType::kF32, {3});
  EXPECT_TRUE(infer({two, two}));
  EXPECT_FALSE(infer({two, three}));
  EXPECT_FALSE(infer({two}));
  EXPECT_FALSE(infer({two, Type::Tensor(DType::kI32, {2})}));
  EXPECT_FALSE(AnyOp(Fused{}).Infer({}).ok());
}

TEST(InterpreterTest, ReadsVariablesAndReturnsUpdates) {
  Module m;
  Variable* state = m.AddVariable({.name = "sum",
                                   .role = Variable::Role::kState,
                                   .type = Type::Tensor(DType::kF32, {2}),
                                   .init = {}});
  Function& f = *m.AddFunction("main");
  const Value x = f.Argument("x", Type::Tensor(DType::kF32, {2}));
  const Value sum = f.Read(state) + x;
  f.Store(state, sum);
  f.Return("y", sum);
  const HostValue in = Tensor({2}, {1, 2});
  const HostValue* arguments[] = {&in};
  auto out = Interpreter{}.Run(f, arguments);  // starts from zeros
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->updates.size(), 1u);
  EXPECT_EQ(out->updates[0].first, state);
  const HostValue now = out->updates[0].second;
  out = Interpreter{.read = [&](const Variable&) { return now; }}.Run(f, arguments);
  EXPECT_EQ(Numbers(out->results[0]), (std::vector<double>{2, 4}));
}

TEST(InterpreterTest, BodiesSeeTheStateAndTheSymbolsOfTheRun) {
  Module m;
  const Dim n(m.SymbolNamed("n"));
  Variable* state = m.AddVariable({.name = "state",
                                   .role = Variable::Role::kState,
                                   .type = Type::Tensor(DType::kF32, {2}),
                                   .init = {}});
  Function& body = *m.AddFunction("body");
  const Value a = body.Argument("a", Type::Tensor(DType::kF32, {2}));
  const Value sum = a + body.Read(state);
  const Value below = body(Iota{.dtype = DType::kF32, .count = n}, {});  // n is not the body's own
  body.Return("r", sum + ReduceAxes(ReduceKind::kSum, below, {0}));
  Function& f = *m.AddFunction("main");
  const Value x = f.Argument("x", Type::Tensor(DType::kF32, {2}));
  f.Argument("of_n", Type::Tensor(DType::kF32, {n}));
  f.Return("y", f(Fused{&body}, {x}));
  const HostValue in = Tensor({2}, {1, 2}), of_n = Tensor({4}, {}), now = Tensor({2}, {10, 20});
  const HostValue* arguments[] = {&in, &of_n};
  int seen = 0;
  const Interpreter how{.read = [&](const Variable&) { return now; },
                        .observe =
                            [&](uint32_t, const HostValue&) {
                              ++seen;
                              return absl::OkStatus();
                            }};
  const auto out = how.Run(f, arguments);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Numbers(out->results[0]), (std::vector<double>{17, 28}));
  EXPECT_EQ(seen, 3) << "values of bodies have numbers of their own";
}

// One body, read at two nodes with other extents.
TEST(InterpreterTest, ASymbolOfABodyIsTheExtentOfItsArgument) {
  Module m;
  const Dim n(m.SymbolNamed("n"));
  Function& body = *m.AddFunction("body");
  body.Return("r", -body.Argument("a", Type::Tensor(DType::kF32, {n})));
  Function& f = *m.AddFunction("main");
  f.Argument("of_n", Type::Tensor(DType::kF32, {n}));
  const Value three = f.Argument("three", Type::Tensor(DType::kF32, {3}));
  f.Return("y", f(Fused{&body}, {three}));
  const HostValue of_n = Tensor({2}, {0, 0}), in = Tensor({3}, {1, 2, 3});
  const HostValue* arguments[] = {&of_n, &in};
  const auto out = Interpreter{}.Run(f, arguments);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Numbers(out->results[0]), (std::vector<double>{-1, -2, -3}));
}

TEST(InterpreterTest, TakesABoxOfAStoredTensor) {
  const HostValue whole = Tensor({2, 3}, {0, 1, 2, 3, 4, 5});
  Variable v;
  v.name = "w";
  v.type = Type::Tensor(DType::kF32, {2, 2});
  v.init = Variable::Storage{BytesOf(whole), whole.type(), {0, 1}};
  const auto box = InitialValue(v);
  ASSERT_TRUE(box.ok()) << box.status();
  EXPECT_EQ(Numbers(*box), (std::vector<double>{1, 2, 4, 5}));
  v.init->begin = {0, 2};
  EXPECT_THAT(std::string(InitialValue(v).status().message()), HasSubstr("variable w: axis 1"));
  v.init->begin = {0, INT64_MIN};
  EXPECT_FALSE(InitialValue(v).ok());
  v.init->begin = {0};
  EXPECT_FALSE(InitialValue(v).ok());
}

TEST(InterpreterTest, ShowsEveryValueAndNamesTheNodeThatFails) {
  Module m;
  const Dim n(m.SymbolNamed("n"));
  Function& f = *m.AddFunction("main");
  const Value x = f.Argument("x", Type::Tensor(DType::kF32, {n}));
  auto from = std::make_shared<Provenance>();
  from->node = "Reshape_7";
  const Function::Scope scope(f, from);
  f.Return("y", f(Reshape{{4}}, {x + 1.0}));
  int seen = 0;
  Interpreter how{.observe = [&](uint32_t, const HostValue&) {
    ++seen;
    return absl::OkStatus();
  }};
  const HostValue in = Tensor({3}, {});
  const HostValue* arguments[] = {&in};
  const auto out = how.Run(f, arguments);
  EXPECT_THAT(std::string(out.status().message()), HasSubstr("Reshape_7"));
  EXPECT_EQ(seen, 3);  // the argument, the number 1, the sum
}

}  // namespace
}  // namespace forge::ir
