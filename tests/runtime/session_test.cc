// SPDX-License-Identifier: Apache-2.0
// Inputs, bindings, functions, states, and what Sessions of one model share.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <thread>

#include "ir/ops/matmul.h"
#include "runtime/backends.h"
#include "runtime/compare.h"
#include "runtime/executable.h"
#include "runtime/host_device.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;
using ir::Variable;
using testing::AddingModel;
using testing::AddVariable;
using testing::ConvolvingModel;
using testing::Noise;
using Doubles = std::vector<double>;

DeviceRef Reference() { return *OpenDevice("reference", {}); }

absl::StatusOr<std::vector<NamedTensor>> RunOn(Session& s, std::string name, ir::HostValue value,
                                               size_t function = 0) {
  const NamedTensor in{std::move(name), std::move(value)};
  return s.Run({&in, 1}, function);
}

TEST(SessionTest, RunsWithNamedInputs) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(AddingModel(), Reference()));
  ASSERT_EQ(s->functions(), 1u);
  ASSERT_EQ(s->inputs().size(), 1u);
  EXPECT_EQ(s->inputs()[0].name, "x");
  EXPECT_EQ(s->outputs()[0].type.ToText(), "f32[n, 3]");
  FORGE_ASSERT_OK_AND_ASSIGN(auto y, RunOn(*s, "x", Tensor({1, 3}, {1, -50, 3})));
  ASSERT_EQ(y.size(), 1u);
  EXPECT_EQ(y[0].name, "y");
  EXPECT_EQ(Numbers(y[0].value), (Doubles{11, 0, 33}));
}

// A reference device that compiles nothing before constants go up, and takes none before it
// compiles.
class MeetingDevice final : public HostDevice {
 public:
  MeetingDevice() : HostDevice({}), reference_(Reference()) {}
  const ir::Target& target() const override { return reference_->target(); }
  // The first to ask for memory are constants.
  absl::StatusOr<BufferRef> Allocate(Memory kind, uint64_t bytes) override {
    Meet(loads_, compiles_);
    return HostDevice::Allocate(kind, bytes);
  }
  std::vector<absl::StatusOr<ProgramRef>> Compile(
      std::span<const CompileRequest> requests, absl::FunctionRef<void(size_t)> progress) override {
    if (!requests.empty() && !requests[0].once) Meet(compiles_, loads_);
    return reference_->Compile(requests, progress);
  }
  bool met() const { return met_; }

 private:
  void Meet(bool& self, const bool& other) {
    std::unique_lock lock(mutex_);
    self = true;
    changed_.notify_all();
    met_ &= changed_.wait_for(lock, std::chrono::seconds(20), [&] { return other; });
  }

  DeviceRef reference_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool loads_ = false, compiles_ = false;
  bool met_ = true;
};

TEST(SessionTest, LoadsConstantsWhileKernelsCompile) {
  const auto device = std::make_shared<MeetingDevice>();
  FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(AddingModel(), device));
  FORGE_ASSERT_OK_AND_ASSIGN(auto y, RunOn(*s, "x", Tensor({1, 3}, {1, -50, 3})));
  EXPECT_EQ(Numbers(y[0].value), (Doubles{11, 0, 33}));
  EXPECT_TRUE(device->met());
}

TEST(SessionTest, SaysWhatIsWrongWithInputs) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(AddingModel(), Reference()));
  constexpr auto kBad = StatusCode::kInvalidArgument;
  EXPECT_THAT(s->Run({}), Fails(kBad, "input 'x' (f32[n, 3]) is missing"));
  EXPECT_THAT(RunOn(*s, "z", Tensor({1, 3}, {})), Fails(kBad, "no input 'z'; it has x: f32[n, 3]"));
  EXPECT_THAT(RunOn(*s, "x", *ir::HostValue::Zeros(DType::kI32, ir::Index{1, 3})),
              Fails(kBad, "input 'x' is i32[1, 3], the model wants f32[n, 3]"));
  EXPECT_THAT(RunOn(*s, "x", Tensor({3}, {})), Fails(kBad, "the model wants f32[n, 3]"));
  EXPECT_THAT(RunOn(*s, "x", Tensor({2, 4}, {})), Fails(kBad, "4"));
  const NamedTensor twice[] = {{"x", Tensor({1, 3}, {})}, {"x", Tensor({1, 3}, {})}};
  EXPECT_THAT(s->Run(twice), Fails(kBad, "given twice"));
  EXPECT_THAT(s->Bind({}), Fails(kBad, "dimension 'n' of input 'x' is not given"));
  EXPECT_THAT(s->Bind({{"k", 1}}), Fails(kBad, "no dimension 'k'"));
  EXPECT_THAT(s->RunStepwise({}, [](const StepView&) { return absl::OkStatus(); }),
              Fails(kBad, "stepwise"));
  // And works as if nothing had been.
  EXPECT_THAT(RunOn(*s, "x", Tensor({2, 3}, {})), Succeeds());
}

TEST(SessionTest, KeepsExtentsWithinTheirBounds) {
  auto m = std::make_unique<ir::Module>();
  auto n = std::make_shared<ir::Symbol>(ir::Symbol{.name = "n", .min = 2, .max = 8, .divisor = 2});
  m->AddSymbol(n);
  ir::Function& f = *m->AddFunction("main");
  f.Return("y", f(ir::Relu{}, {f.Argument("x", F32({ir::Dim(n)}))}));
  auto model = std::make_shared<const Model>(std::move(m));
  FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(model, Reference()));
  EXPECT_THAT(RunOn(*s, "x", Tensor({4}, {})), Succeeds());
  ASSERT_THAT(s->Bind({{"n", 6}}), Succeeds());
  for (int64_t bad : {0, 3, 10}) {
    EXPECT_THAT(RunOn(*s, "x", Tensor({bad}, {})),
                Fails(StatusCode::kInvalidArgument, "n cannot be"));
    EXPECT_THAT(s->Bind({{"n", bad}}), Fails(StatusCode::kInvalidArgument, "2 to 8 in steps of 2"));
  }
}

TEST(SessionTest, RefusesWhatTheModelHasNot) {
  auto refuses = [](SessionOptions options, std::string_view part) {
    EXPECT_THAT(Session::Create(AddingModel(), Reference(), std::move(options)),
                Fails(StatusCode::kInvalidArgument, part));
  };
  refuses({.functions = {"decode"}}, "no function 'decode'");
  refuses({.functions = {"main", "main"}}, "'main' was asked for twice");
  refuses({.functions = {}}, "no function");
  refuses({.outputs = {"nothing"}}, "no output or inner value 'nothing'");
  refuses({.dims = {{"k", 3}}}, "no dimension 'k'");
}

TEST(SessionTest, GivesInnerValues) {
  FORGE_ASSERT_OK_AND_ASSIGN(
      auto s, Session::Create(AddingModel(), Reference(), {.outputs = {"sum", "y"}}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto y, RunOn(*s, "x", Tensor({1, 3}, {1, -50, 3})));
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(Numbers(y[0].value), (Doubles{11, -30, 33}));
}

TEST(SessionTest, CompilesWithoutRunning) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto s,
                             Session::Create(AddingModel(), Reference(), {.compile_only = true}));
  ASSERT_THAT(s->Bind({{"n", 2}}), Succeeds());
  EXPECT_GT(s->statistics().dispatches, 0);
  EXPECT_EQ(s->statistics().weight_bytes, 0u);
  EXPECT_THAT(RunOn(*s, "x", Tensor({2, 3}, {})),
              Fails(StatusCode::kInvalidArgument, "compile only"));
}

TEST(SessionTest, KeepsBindingsAndForgetsTheOldest) {
  int bound = 0;
  SessionOptions options;
  options.observe = [&](std::string_view pass, const ir::Function&) { bound += pass == "bind"; };
  FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(AddingModel(), Reference(), options));
  auto use = [&](int64_t n) {
    FORGE_ASSERT_OK_AND_ASSIGN(auto y, RunOn(*s, "x", Noise({n, 3})));
    EXPECT_EQ(y[0].value.dim(0), n);
  };
  for (int64_t n : {1, 2, 1, 2, 1}) use(n);
  EXPECT_EQ(bound, 2);
  for (int64_t n = 3; n <= 8; ++n) use(n);
  use(1);
  EXPECT_EQ(bound, 8);
  use(9);  // 2 was used longest ago
  use(1);
  EXPECT_EQ(bound, 9);
  use(2);
  EXPECT_EQ(bound, 10);
}

// ---- functions and states

// "add" adds x to a state and returns the sum, "get" returns the state, both times a weight.
std::shared_ptr<const Model> CountingModel() {
  auto m = std::make_unique<ir::Module>();
  Variable* total = AddVariable(*m, "total", Variable::Role::kState, Tensor({2}, {100, 200}));
  Variable* w = AddVariable(*m, "w", Variable::Role::kParameter, Noise({2, 4096}));
  ir::Function& add = *m->AddFunction("add");
  const ir::Value sum = add(ir::Add{}, {add.Argument("x", F32({2})), add.Read(total)});
  add.Store(total, sum);
  add.Return("sum", sum);
  add.Return("w", add(ir::Relu{}, {add.Read(w)}));
  ir::Function& get = *m->AddFunction("get");
  get.Return("total", get(ir::Mul{}, {get.Read(total), get.Argument("by", F32({2}))}));
  get.Return("w", get(ir::Mul{}, {get.Read(w), get.Read(w)}));
  return std::make_shared<const Model>(std::move(m));
}

TEST(SessionTest, FunctionsShareStates) {
  const SessionOptions both{.functions = {"add", "get"}};
  const auto model = CountingModel();
  for (const char* device : {"reference", "cpu"}) {
    SCOPED_TRACE(device);
    FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef d, OpenDevice(device, {}));
    FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(model, d, both));
    ASSERT_EQ(s->functions(), 2u);
    EXPECT_EQ(s->inputs(1)[0].name, "by");
    EXPECT_EQ(s->outputs(1)[0].name, "total");
    FORGE_ASSERT_OK_AND_ASSIGN(auto a, RunOn(*s, "x", Tensor({2}, {1, 2})));
    EXPECT_EQ(Numbers(a[0].value), (Doubles{101, 202}));
    FORGE_ASSERT_OK_AND_ASSIGN(auto b, RunOn(*s, "by", Tensor({2}, {1, 10}), 1));
    EXPECT_EQ(Numbers(b[0].value), (Doubles{101, 2020}));
    FORGE_ASSERT_OK_AND_ASSIGN(auto c, RunOn(*s, "x", Tensor({2}, {1, 2})));
    EXPECT_EQ(Numbers(c[0].value), (Doubles{102, 204}));
    // Another Session has its own.
    FORGE_ASSERT_OK_AND_ASSIGN(auto other, Session::Create(model, d, both));
    FORGE_ASSERT_OK_AND_ASSIGN(auto fresh, RunOn(*other, "by", Tensor({2}, {1, 1}), 1));
    EXPECT_EQ(Numbers(fresh[0].value), (Doubles{100, 200}));
    EXPECT_THAT(RunOn(*s, "by", Tensor({2}, {})), Fails(StatusCode::kInvalidArgument, "no input"));
  }
}

TEST(SessionTest, SessionsOfUnlikeFunctionsShareWeights) {
  const DeviceRef device = Reference();
  const auto model = CountingModel();
  FORGE_ASSERT_OK_AND_ASSIGN(auto add, Session::Create(model, device, {.functions = {"add"}}));
  ASSERT_TRUE(add->Bind({}).ok());
  const uint64_t before = add->statistics().weight_bytes;
  EXPECT_GE(before, 4096u * 4);
  FORGE_ASSERT_OK_AND_ASSIGN(auto get, Session::Create(model, device, {.functions = {"get"}}));
  ASSERT_TRUE(get->Bind({}).ok());
  EXPECT_LE(get->statistics().weight_bytes, 2 * before);
}

// y = relu(x w), z = relu(y) in y's place; both are wanted where `twice`.
std::shared_ptr<const Model> ChainModel(bool twice) {
  auto m = std::make_unique<ir::Module>();
  Variable* w = AddVariable(*m, "w", Variable::Role::kParameter, testing::Noise({32, 32}));
  ir::Function& f = *m->AddFunction("main");
  ir::Value y = f(ir::MatMul{}, {f.Argument("x", F32({64, 32})), f.Read(w)});
  if (twice) f.Return("product", y);
  for (int i = 0; i < 3; ++i) y = f(ir::HardSwish{}, {y});
  f.Return("y", y);
  return std::make_shared<const Model>(std::move(m));
}

TEST(SessionTest, ElementWiseResultsTakeTheirOperandsPlace) {
  constexpr uint64_t kBytes = 64 * 32 * sizeof(float);
  for (const bool twice : {false, true}) {
    FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(ChainModel(twice), Reference()));
    FORGE_ASSERT_OK_AND_ASSIGN(auto stepwise,
                               Session::Create(ChainModel(twice), Reference(), {.stepwise = true}));
    const ir::HostValue x = testing::Noise({64, 32});
    FORGE_ASSERT_OK_AND_ASSIGN(auto got, RunOn(*s, "x", x));
    FORGE_ASSERT_OK_AND_ASSIGN(auto want, RunOn(*stepwise, "x", x));
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(Numbers(got[i].value), Numbers(want[i].value)) << want[i].name;
    // Results lie where they are read, outside of the arena.
    EXPECT_EQ(s->statistics().arena_bytes, kBytes);
    EXPECT_EQ(stepwise->statistics().arena_bytes, 2 * kBytes);
    EXPECT_EQ(s->statistics().staging_bytes, (twice ? 3 : 2) * kBytes);
  }
}

// The updates of one run happen at once.
TEST(SessionTest, StatesSwap) {
  auto m = std::make_unique<ir::Module>();
  Variable* a = AddVariable(*m, "a", Variable::Role::kState, Tensor({2}, {1, 2}));
  Variable* b = AddVariable(*m, "b", Variable::Role::kState, Tensor({2}, {3, 4}));
  Variable* c = AddVariable(*m, "c", Variable::Role::kState, Tensor({2}, {5, 6}));
  ir::Function& f = *m->AddFunction("main");
  const ir::Value x = f.Argument("x", F32({2}));
  const ir::Value va = f.Read(a), vb = f.Read(b), vc = f.Read(c);
  f.Store(a, vb);
  f.Store(b, va);
  f.Store(c, va);
  f.Return("sum", f(ir::Add{}, {x, vc}));
  f.Return("a", f(ir::Add{}, {x, va}));
  f.Return("b", f(ir::Add{}, {x, vb}));
  auto model = std::make_shared<const Model>(std::move(m));
  for (const char* device : {"reference", "cpu"}) {
    SCOPED_TRACE(device);
    FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef d, OpenDevice(device, {}));
    FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(model, d));
    const std::array<std::array<Doubles, 3>, 3> expected = {
        {{{{5, 6}, {1, 2}, {3, 4}}}, {{{1, 2}, {3, 4}, {1, 2}}}, {{{3, 4}, {1, 2}, {3, 4}}}}};
    for (const auto& run : expected) {
      FORGE_ASSERT_OK_AND_ASSIGN(auto y, RunOn(*s, "x", Tensor({2}, {0, 0})));
      for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Numbers(y[i].value), run[i]) << y[i].name;
    }
  }
}

TEST(SessionTest, ParametersChangeOnlyWhereTheyAreNotFrozen) {
  auto m = std::make_unique<ir::Module>();
  Variable* w = AddVariable(*m, "w", Variable::Role::kParameter, Tensor({2}, {1, 2}));
  ir::Function& f = *m->AddFunction("main");
  const ir::Value next = f(ir::Sub{}, {f.Read(w), f.Argument("step", F32({2}))});
  f.Store(w, next);
  f.Return("w", next);
  auto model = std::make_shared<const Model>(std::move(m));
  EXPECT_THAT(Session::Create(model, Reference()),
              Fails(StatusCode::kInvalidArgument, "changes 'w'"));
  FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(model, Reference(), {.freeze = false}));
  ASSERT_THAT(RunOn(*s, "step", Tensor({2}, {1, 1})), Succeeds());
  FORGE_ASSERT_OK_AND_ASSIGN(auto y, RunOn(*s, "step", Tensor({2}, {1, 1})));
  EXPECT_EQ(Numbers(y[0].value), (Doubles{-1, 0}));
}

// ---- weights

void ExpectAsReference(const std::vector<NamedTensor>& y, Session& reference, int64_t n) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto want, RunOn(reference, "x", Noise({n, 8, 12, 12}, n)));
  FORGE_ASSERT_OK_AND_ASSIGN(Comparison c, Compare(y, want));
  EXPECT_LE(c.worst()->rel_error, 1e-4) << "batch " << n;
}

// More bindings than a Session keeps, twice over: the packed weights of those that are gone are
// freed, and never mistaken for another's.
TEST(SessionTest, DroppedBindingsFreeTheirWeights) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef cpu, OpenDevice("cpu", {}));
  const auto model = ConvolvingModel();
  FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(model, cpu));
  FORGE_ASSERT_OK_AND_ASSIGN(auto reference, Session::Create(model, Reference()));
  uint64_t most = 0;
  for (int round = 0; round < 2; ++round) {
    for (int64_t n = 1; n <= 12; ++n) {
      FORGE_ASSERT_OK_AND_ASSIGN(auto y, RunOn(*s, "x", Noise({n, 8, 12, 12}, n)));
      ExpectAsReference(y, *reference, n);
      const uint64_t bytes = s->statistics().weight_bytes;
      if (round == 0 && n <= 8) most = std::max(most, bytes);
      EXPECT_LE(bytes, most) << "round " << round << ", batch " << n;
    }
  }
}

TEST(SessionTest, SessionsShareWhatTheyCompute) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef cpu, OpenDevice("cpu", {}));
  const auto model = ConvolvingModel();
  FORGE_ASSERT_OK_AND_ASSIGN(auto a, Session::Create(model, cpu));
  ASSERT_THAT(a->Bind({{"n", 2}}), Succeeds());
  const uint64_t alone = a->statistics().weight_bytes;
  {
    FORGE_ASSERT_OK_AND_ASSIGN(auto b, Session::Create(model, cpu));
    ASSERT_THAT(b->Bind({{"n", 2}}), Succeeds());
    EXPECT_EQ(b->statistics().weight_bytes, alone);
    ASSERT_THAT(b->Bind({{"n", 7}}), Succeeds());
  }
  EXPECT_EQ(a->statistics().weight_bytes, alone);
  // What one made lives on with the other.
  FORGE_ASSERT_OK_AND_ASSIGN(auto b, Session::Create(model, cpu));
  ASSERT_THAT(b->Bind({{"n", 2}}), Succeeds());
  a.reset();
  FORGE_ASSERT_OK_AND_ASSIGN(auto reference, Session::Create(model, Reference()));
  FORGE_ASSERT_OK_AND_ASSIGN(auto y, RunOn(*b, "x", Noise({2, 8, 12, 12}, 2)));
  ExpectAsReference(y, *reference, 2);
}

// Every device that is there, once.
std::vector<std::string> DevicesOfAllBackends() {
  std::vector<std::string> ids;
  for (const BackendDevices& backend : ListDevices())
    for (const DeviceInfo& device : backend.devices)
      if (device.usable) ids.push_back(device.id);
  return ids;
}

class ThreadsTest : public ::testing::TestWithParam<std::string> {
 protected:
  using Results = std::vector<std::pair<int64_t, std::vector<NamedTensor>>>;
  // Binds and runs a Session in each of several threads, and compares what they give.
  template <class Open>  // StatusOr<unique_ptr<Session>>(), called in each thread
  void RunInThreads(Open open, Session& reference) {
    std::vector<std::thread> threads;
    std::array<Results, 3> results;
    for (Results& mine : results)
      threads.emplace_back([&] {
        auto s = open();
        ASSERT_THAT(s, Succeeds());
        for (int64_t n : {1, 2, 1, 3}) {
          auto y = RunOn(**s, "x", Noise({n, 8, 12, 12}, n));
          ASSERT_THAT(y, Succeeds());
          mine.emplace_back(n, *std::move(y));
        }
      });
    for (std::thread& t : threads) t.join();
    for (const Results& of_thread : results) {
      EXPECT_EQ(of_thread.size(), 4u);
      for (const auto& [n, y] : of_thread) ExpectAsReference(y, reference, n);
    }
  }
};

TEST_P(ThreadsTest, BindAndRunAtOnce) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {.threads = 1}));
  const auto model = ConvolvingModel();
  FORGE_ASSERT_OK_AND_ASSIGN(auto reference, Session::Create(model, Reference()));
  RunInThreads([&] { return Session::Create(model, device); }, *reference);
}

// As programs do that know nothing of each other: nothing is shared but the plug-in.
TEST_P(ThreadsTest, OpenDevicesAndLoadModelsAtOnce) {
  FORGE_ASSERT_OK_AND_ASSIGN(auto reference, Session::Create(ConvolvingModel(), Reference()));
  auto open = [&]() -> absl::StatusOr<std::unique_ptr<Session>> {
    FORGE_ASSIGN_OR_RETURN(DeviceRef device, OpenDevice(GetParam(), {.threads = 1}));
    return Session::Create(ConvolvingModel(), std::move(device));
  };
  RunInThreads(open, *reference);
}

TEST_P(ThreadsTest, CancelFromElsewhere) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {.threads = 1}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(ConvolvingModel(), std::move(device)));
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) s->Cancel();
  });
  for (int i = 0; i < 4; ++i) {
    const auto y = RunOn(*s, "x", Noise({2, 8, 12, 12}));
    EXPECT_TRUE(y.ok() || y.status().code() == StatusCode::kAborted) << y.status();
  }
  done = true;
  other.join();
  // And is as good as new.
  EXPECT_THAT(RunOn(*s, "x", Noise({2, 8, 12, 12})), Succeeds());
}

INSTANTIATE_TEST_SUITE_P(Devices, ThreadsTest, ::testing::ValuesIn(DevicesOfAllBackends()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

}  // namespace
}  // namespace forge
