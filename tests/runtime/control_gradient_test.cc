// SPDX-License-Identifier: Apache-2.0
// Gradients through branches and loops, against those of the same steps written one after the
// other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph/copier.h"
#include "ir/ops/control/custom_gradient.h"
#include "ir/ops/control/if.h"
#include "ir/ops/control/loop.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/indexing/index.h"
#include "ir/ops/reduction/reduce.h"
#include "ir/training/differentiate.h"
#include "ir/training/step.h"
#include "runtime/session.h"
#include "tests/support/ir_values.h"
#include "tests/support/onnx_model.h"
#include "tests/support/oracle.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

using ir::Function;
using ir::Module;
using ir::Type;
using ir::Value;
using ir::Values;
using ::testing::DoubleNear;
using ::testing::Pointwise;

const Type kFlag = Type::Tensor(DType::kBool, {}), kNumber = Type::Tensor(DType::kI64, {});

Value SumOf(Value x) {
  return (*x.fn)(ir::Reduce{.kind = ir::ReduceKind::kSum, .axes = {}, .keep_dims = false}, {x});
}
Value Row(Value of, Value at) { return (*of.fn)(ir::IndexOp{}, {of, at}); }
Value Constant(Function& f, DType dtype, double v) {
  return f(ir::Fill{.value = v, .dtype = dtype}, {});
}

ir::HostValue Scalar(DType dtype, int64_t v) {
  ir::HostValue out = *ir::HostValue::Zeros(dtype, std::vector<int64_t>{});
  out.SetI64(0, v);
  return out;
}

// A cell of a recurrent network: the next state and what it shows.
struct Cell {
  Value state, shown;
};
Cell CellOf(Value state, Value x, Value w) {
  const Value next = tanh(state * w + x);
  return {next, next * next};
}

class ControlGradientTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Appends the gradients of `loss` for `with` as results.
  static void ReturnGradients(Function& f, Value loss, const Values& with) {
    const auto gradients = ir::Differentiate(f, loss, with);
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    f.Return("loss", loss);
    for (size_t i = 0; i < with.size(); ++i) f.Return(fmt::format("d{}", i), (*gradients)[i]);
  }

  std::unique_ptr<Session> Open(std::unique_ptr<Module> m, SessionOptions options = {}) {
    auto s = Session::Create(std::make_shared<const Model>(std::move(m)), OpenOnce(GetParam()),
                             std::move(options));
    EXPECT_TRUE(s.ok()) << s.status();
    return s.ok() ? *std::move(s) : nullptr;
  }

  // Both give the same.
  static void ExpectSame(Session& one, Session& other, std::span<const NamedTensor> in,
                         size_t function = 0) {
    FORGE_ASSERT_OK_AND_ASSIGN(const auto got, one.Run(in, function));
    FORGE_ASSERT_OK_AND_ASSIGN(const auto want, other.Run(in, function));
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_THAT(Numbers(got[i].value), Pointwise(DoubleNear(1e-5), Numbers(want[i].value)))
          << got[i].name;
  }

  // A body that runs the cell on row `step` of a capture; goes on while the state is small.
  static Function* CellBody(Module& m, int64_t steps, bool with_limit) {
    Function& f = *m.AddFunction("cell");
    const Value step = f.Argument("step", kNumber);
    f.Argument("go", kFlag);
    const Value state = f.Argument("state", F32({3}));
    const Value x = f.Argument("x", F32({steps, 3})), w = f.Argument("w", F32({3}));
    const Cell cell = CellOf(state, Row(x, step), w);
    f.Return("go", with_limit ? SumOf(cell.state) < 2.0 : Constant(f, DType::kBool, 1));
    f.Return("state", cell.state);
    f.Return("shown", cell.shown);
    return &f;
  }

  // A body that gives `of` of two captures of this type.
  static Function* Branch(Module& m, const Type& type, Value (*of)(Value x, Value w)) {
    Function& f = *m.AddFunction("branch");
    const Value x = f.Argument("x", type), w = f.Argument("w", type);
    f.Return("y", of(x, w));
    return &f;
  }

  static constexpr int64_t kSteps = 4;
  struct Inputs {
    Value state, x, w;
  };
  static Inputs AddInputs(Function& f) {
    return {f.Argument("state", F32({3})), f.Argument("x", F32({kSteps, 3})),
            f.Argument("w", F32({3}))};
  }
  static std::vector<NamedTensor> Numbered() {
    return {{"state", Tensor({3}, {0.1, -0.4, 0.3})},
            {"x", Tensor({kSteps, 3}, {.5, .1, -.2, .9, .3, .8, 1.5, 1.2, .4, -.3, .2, .6})},
            {"w", Tensor({3}, {0.7, -1.1, 0.4})}};
  }

  // The loss of an ONNX model of these inputs, with its gradients.
  //   shows: the model has what its steps show as its second result
  static std::unique_ptr<Module> LossOf(const OnnxModel& model, bool shows) {
    auto m = *model.Import();
    Function& f = *m->AddFunction("loss");
    const Inputs in = AddInputs(f);
    const Values out = Inline(*m->Find("main"), f, {{in.state, in.x, in.w}});
    const Value last = SumOf(out[0] * 3.0);
    ReturnGradients(f, shows ? SumOf(out[1]) + last : last, {in.state, in.x, in.w});
    return m;
  }

  // The loss of `steps` steps one after the other, with its gradients.
  static std::unique_ptr<Module> WrittenOut(int64_t steps, bool shows) {
    auto m = std::make_unique<Module>();
    Function& f = *m->AddFunction("main");
    const Inputs in = AddInputs(f);
    Cell cell{in.state, {}};
    Value loss;
    for (int64_t i = 0; i < steps; ++i) {
      cell = CellOf(cell.state, Row(in.x, Constant(f, DType::kI64, static_cast<double>(i))), in.w);
      if (shows) loss = loss ? loss + SumOf(cell.shown) : SumOf(cell.shown);
    }
    const Value last = SumOf(cell.state * 3.0);
    ReturnGradients(f, loss ? loss + last : last, {in.state, in.x, in.w});
    return m;
  }
};

TEST_P(ControlGradientTest, FlowThroughTheBranchThatIsChosen) {
  const auto product = [](Value x, Value w) { return x * w * w; };
  const auto curve = [](Value x, Value w) { return tanh(x + w); };
  auto m = std::make_unique<Module>();
  const ir::If branches{Branch(*m, F32({2}), product), Branch(*m, F32({2}), curve)};
  Function& f = *m->AddFunction("main");
  const Value go = f.Argument("go", kFlag), x = f.Argument("x", F32({2})),
              w = f.Argument("w", F32({2}));
  const Value scaled = x * 2.0;
  ReturnGradients(f, SumOf(f(branches, {go, scaled, w}) * 3.0), {x, w});
  const auto session = Open(std::move(m));
  ASSERT_NE(session, nullptr);
  for (const bool chosen : {true, false}) {
    auto plain = std::make_unique<Module>();
    Function& p = *plain->AddFunction("main");
    p.Argument("go", kFlag);
    const Value px = p.Argument("x", F32({2})), pw = p.Argument("w", F32({2}));
    const Value y = chosen ? product(px * 2.0, pw) : curve(px * 2.0, pw);
    ReturnGradients(p, SumOf(y * 3.0), {px, pw});
    const auto want = Open(std::move(plain));
    const NamedTensor in[] = {{"go", Scalar(DType::kBool, chosen)},
                              {"x", Tensor({2}, {0.3, -0.6})},
                              {"w", Tensor({2}, {1.5, 0.2})}};
    ExpectSame(*session, *want, in);
  }
}

TEST_P(ControlGradientTest, FlowBackOverTheStepsOfALoop) {
  auto m = std::make_unique<Module>();
  Function* const body = CellBody(*m, kSteps, false);
  Function& f = *m->AddFunction("main");
  const Inputs in = AddInputs(f);
  const Values out = f.Add(ir::Loop{.body = body, .carried = 1, .rows = kSteps},
                           {{Constant(f, DType::kI64, kSteps), {}, in.state, in.x, in.w}});
  ReturnGradients(f, SumOf(out[1]) + SumOf(out[0] * 3.0), {in.state, in.x, in.w});
  const auto got = Open(std::move(m)), want = Open(WrittenOut(kSteps, true));
  ASSERT_TRUE(got && want);
  ExpectSame(*got, *want, Numbered());
}

// The sum of the state is over 2 after the third step.
TEST_P(ControlGradientTest, FlowBackOverAsManyStepsAsARunTook) {
  auto m = std::make_unique<Module>();
  Function* const body = CellBody(*m, kSteps, true);
  Function& f = *m->AddFunction("main");
  const Inputs in = AddInputs(f);
  const Values out = f.Add(ir::Loop{.body = body, .carried = 1},
                           {{{}, Constant(f, DType::kBool, 1), in.state, in.x, in.w}});
  ReturnGradients(f, SumOf(out[0] * 3.0), {in.state, in.x, in.w});
  const auto got = Open(std::move(m)), want = Open(WrittenOut(3, false));
  ASSERT_TRUE(got && want);
  ExpectSame(*got, *want, Numbered());
}

// The inputs of Numbered(), and the cell as nodes of an ONNX body with the row as `x`.
OnnxModel OnnxInputs() {
  OnnxModel m;
  m.Input("state", {"3"}).Input("x", {"4", "3"}).Input("w", {"3"});
  return m;
}
void AddCell(OnnxModel& body, const std::string& x) {
  body.Node("Mul", {"before", "w"}, {"scaled"});
  body.Node("Add", {"scaled", x}, {"sum"});
  body.Node("Tanh", {"sum"}, {"after"});
}
void SetBody(onnx::NodeProto& node, OnnxModel& body) {
  *Attribute(node, "body", onnx::AttributeProto::GRAPH).mutable_g() = body.graph();
}

// Loops of ONNX do not state the types of what they carry.
TEST_P(ControlGradientTest, FlowBackOverALoopOfOnnx) {
  OnnxModel m = OnnxInputs(), body;
  body.Input("step", {}, onnx::TensorProto::INT64).Input("go", {}, onnx::TensorProto::BOOL);
  body.Input("before", {}).Output("go").Output("after").Output("shown");
  body.Node("Gather", {"x", "step"}, {"row"});
  AddCell(body, "row");
  body.Node("Mul", {"after", "after"}, {"shown"});
  m.Ints("steps", {}, {kSteps}).Output("last").Output("rows");
  SetBody(m.Node("Loop", {"steps", "", "state"}, {"last", "rows"}), body);
  const auto got = Open(LossOf(m, true), {.functions = {"loss"}}),
             want = Open(WrittenOut(kSteps, true));
  ASSERT_TRUE(got && want);
  ExpectSame(*got, *want, Numbered());
}

TEST_P(ControlGradientTest, FlowBackOverAScanOfOnnx) {
  OnnxModel m = OnnxInputs(), body;
  body.Input("before", {}).Input("row", {}).Output("after").Output("shown");
  AddCell(body, "row");
  body.Node("Mul", {"after", "after"}, {"shown"});
  m.Output("last").Output("rows");
  onnx::NodeProto& scan = m.Node("Scan", {"state", "x"}, {"last", "rows"});
  Set(scan, "num_scan_inputs", int64_t{1});
  SetBody(scan, body);
  const auto got = Open(LossOf(m, true), {.functions = {"loss"}}),
             want = Open(WrittenOut(kSteps, true));
  ASSERT_TRUE(got && want);
  ExpectSame(*got, *want, Numbered());
}

TEST_P(ControlGradientTest, FlowBackOverALoopOfOnnxThatItsConditionEnds) {
  OnnxModel m = OnnxInputs(), body;
  body.Input("step", {}, onnx::TensorProto::INT64).Input("go", {}, onnx::TensorProto::BOOL);
  body.Input("before", {}).Output("go_on").Output("after");
  body.Node("Gather", {"x", "step"}, {"row"});
  AddCell(body, "row");
  Set(body.Node("ReduceSum", {"after"}, {"size"}), "keepdims", int64_t{0});
  body.Floats("limit", {}, {2}).Node("Less", {"size", "limit"}, {"go_on"});
  SetBody(m.Output("last").Node("Loop", {"", "", "state"}, {"last"}), body);
  const auto got = Open(LossOf(m, false), {.functions = {"loss"}}),
             want = Open(WrittenOut(3, false));
  ASSERT_TRUE(got && want);
  ExpectSame(*got, *want, Numbered());
}

// A branch in each step of a loop, which captures what the loop does.
TEST_P(ControlGradientTest, FlowThroughABranchInALoop) {
  const auto even = [](Value s, Value w) { return sin(s * w); };
  const auto odd = [](Value s, Value w) { return s * s + w; };
  auto m = std::make_unique<Module>();
  const ir::If branches{Branch(*m, F32({3}), odd), Branch(*m, F32({3}), even)};
  Function& body = *m->AddFunction("body");
  const Value step = body.Argument("step", kNumber);
  body.Argument("go", kFlag);
  const Value state = body.Argument("state", F32({3})), w = body.Argument("w", F32({3}));
  const Value is_odd = step - convert(convert(step, DType::kF32) * 0.5, DType::kI64) * 2.0 > 0.0;
  const Value next = body(branches, {is_odd, state, w});
  body.Return("go", Constant(body, DType::kBool, 1));
  body.Return("state", next);
  Function& f = *m->AddFunction("main");
  const Inputs in = AddInputs(f);
  const Value out = f(ir::Loop{.body = &body, .carried = 1, .rows = 3},
                      {Constant(f, DType::kI64, 3), {}, in.state, in.w});
  ReturnGradients(f, SumOf(out), {in.state, in.w});
  auto plain = std::make_unique<Module>();
  Function& p = *plain->AddFunction("main");
  const Inputs pin = AddInputs(p);
  ReturnGradients(p, SumOf(even(odd(even(pin.state, pin.w), pin.w), pin.w)), {pin.state, pin.w});
  const auto got = Open(std::move(m)), want = Open(std::move(plain));
  ASSERT_TRUE(got && want);
  ExpectSame(*got, *want, Numbered());
}

TEST_P(ControlGradientTest, AValueThatChangesItsTypeHasNone) {
  Module m;
  Function& body = *m.AddFunction("body");
  body.Argument("step", kNumber);
  body.Argument("go", kFlag);
  const Value state = body.Argument("state", F32({2}));
  body.Return("go", Constant(body, DType::kBool, 1));
  body.Return("state", body(ir::Fill{.value = 1, .dtype = DType::kF32, .shape = {3}}, {}));
  body.Return("row", state * 2.0);
  Function& f = *m.AddFunction("main");
  const Value x = f.Argument("x", F32({2}));
  const Values out = f.Add(ir::Loop{.body = &body, .carried = 1, .rows = 2},
                           {{Constant(f, DType::kI64, 2), {}, x}});
  EXPECT_THAT(ir::Differentiate(f, SumOf(out[1]), {{x}}),
              Fails(absl::StatusCode::kUnimplemented, "begins as f32[2] and ends as"));
}

// The product of a rounded number, through whose rounding gradients flow; that of w is doubled.
struct Straight {
  explicit Straight(Module& m)
      : body(*m.AddFunction("body")), backward(*m.AddFunction("backward")) {
    const Value x = body.Argument("x", F32({3})), w = body.Argument("w", F32({3}));
    body.Return("y", body(ir::Round{}, {x}) * w);
    const Value x_again = backward.Argument("x", F32({3})),
                w_again = backward.Argument("w", F32({3}));
    backward.Argument("y", F32({3}));
    const Value dy = backward.Argument("dy", F32({3}));
    backward.Return("w", dy * x_again * 2.0);
    backward.Return("x", dy * w_again);
  }
  ir::CustomGradient op() const { return {.body = &body, .backward = &backward}; }
  Function &body, &backward;
};

TEST_P(ControlGradientTest, APartHasGradientsOfItsOwn) {
  const auto network = [](bool custom) {
    auto m = std::make_unique<Module>();
    Function& f = *m->AddFunction("main");
    const Value x = f.Argument("x", F32({3})), w = f.Argument("w", F32({3}));
    const Value seed = x * x;
    const Value y = custom ? f(Straight(*m).op(), {seed, w}) : f(ir::Round{}, {seed}) * w;
    if (custom) {
      ReturnGradients(f, SumOf(y * y), {x, w});
    } else {
      f.Return("loss", SumOf(y * y));
      f.Return("d0", 2.0 * y * w * (2.0 * x));
      f.Return("d1", 2.0 * y * seed * 2.0);
    }
    return m;
  };
  const auto got = Open(network(true)), want = Open(network(false));
  ASSERT_TRUE(got && want);
  const std::vector<NamedTensor> in = {{"x", Tensor({3}, {1.3, -1.9, 0.2})},
                                       {"w", Tensor({3}, {0.7, -1.1, 0.4})}};
  ExpectSame(*got, *want, in);
}

TEST(CustomGradientTest, RefusesAnotherWayBack) {
  Module m;
  ir::Variable* const v =
      m.AddVariable({.name = "v", .role = ir::Variable::Role::kParameter, .type = F32({3})});
  const auto refusal = [&](auto change) {
    Straight parts(m);
    change(parts);
    Function f("main", &m);
    const Value x = f.Argument("x", F32({3}));
    f(parts.op(), {x, x});
    return f.status();
  };
  using absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(refusal([](Straight&) {}), absl::OkStatus());
  EXPECT_THAT(refusal([](Straight& s) { s.backward.Argument("more", F32({3})); }),
              Fails(kInvalidArgument, "takes 5 values, not 4"));
  EXPECT_THAT(
      refusal([](Straight& s) { s.backward.Return("z", s.backward.Argument("z", F32({3}))); }),
      Fails(kInvalidArgument, "takes 5 values"));
  EXPECT_THAT(refusal([](Straight& s) { s.backward.Return("z", s.backward.value(0)); }),
              Fails(kInvalidArgument, "returns 'z', which is no argument of body"));
  EXPECT_THAT(refusal([&](Straight& s) { s.body.Read(v); }),
              Fails(kInvalidArgument, "reads 'v', which must be an operand"));
}

// Two networks of one parameter, which a body reads, and the same steps of Adam on both.
TEST_P(ControlGradientTest, AParameterThatABodyReadsIsTrained) {
  const auto network = [](bool loops) {
    auto m = std::make_unique<Module>();
    ir::Variable* const w =
        m->AddVariable({.name = "w", .role = ir::Variable::Role::kParameter, .type = F32({3})});
    Function& f = *m->AddFunction("main");
    const Value x = f.Argument("x", F32({3}));
    Value y = x;
    if (loops) {
      Function& body = *m->AddFunction("body");
      body.Argument("step", kNumber);
      body.Argument("go", kFlag);
      const Value state = body.Argument("state", F32({3}));
      body.Return("go", Constant(body, DType::kBool, 1));
      body.Return("state", tanh(state + body.Read(w)));
      y = f(ir::Loop{.body = &body, .carried = 1, .rows = 3}, {Constant(f, DType::kI64, 3), {}, x});
    } else {
      for (int i = 0; i < 3; ++i) y = tanh(y + f.Read(w));
    }
    f.Return("y", y);
    const auto added =
        ir::AddTraining(*m, {.loss = "mse", .optimizer = {.kind = ir::OptimizerKind::kAdam}});
    EXPECT_TRUE(added.ok()) << added.status();
    return m;
  };
  const SessionOptions options{.functions = {"train", "evaluate", "read_variables"},
                               .freeze = false};
  const auto got = Open(network(true), options), want = Open(network(false), options);
  ASSERT_TRUE(got && want);
  EXPECT_TRUE(got->runs_in_parts());
  ir::HostValue rate = Tensor({}, {0.1});
  const std::vector<NamedTensor> batch = {{"x", Tensor({3}, {0.2, -0.5, 0.9})},
                                          {"label", Tensor({3}, {0.9, 0.1, -0.3})}};
  std::vector<NamedTensor> in = batch;
  in.push_back({"learning_rate", rate});
  for (int step = 0; step < 3; ++step) ExpectSame(*got, *want, in);
  ExpectSame(*got, *want, batch, 1);
  ExpectSame(*got, *want, {}, 2);
}

INSTANTIATE_TEST_SUITE_P(AllDevices, ControlGradientTest, ::testing::ValuesIn(Devices()),
                         NameOfParameter);

}  // namespace
}  // namespace forge
