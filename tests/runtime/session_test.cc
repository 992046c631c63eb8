// SPDX-License-Identifier: Apache-2.0
// Inputs, bindings, functions, states, and what Sessions of one model share.
#include "runtime/session.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <condition_variable>
#include <semaphore>
#include <thread>
#include <utility>

#include "ir/ops/product/matmul.h"
#include "runtime/backends.h"
#include "runtime/device/host_device.h"
#include "runtime/plan/compare.h"
#include "runtime/plan/executable.h"
#include "tests/runtime/models.h"
#include "tests/support/hooked_device.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;
using ir::Variable;
using testing::AddingModel;
using testing::AddVariable;
using testing::ConvolvingModel;
using testing::HookedDevice;
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
  std::vector<absl::StatusOr<ProgramRef>> Compile(std::span<const CompileRequest> requests,
                                                  CompileProgress progress) override {
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
  EXPECT_THAT(RunOn(*s, "z", Tensor({1, 3}, {})),
              Fails(kBad, "no input 'z'; its inputs are x: f32[n, 3]"));
  EXPECT_THAT(RunOn(*s, "x", *ir::HostValue::Zeros(DType::kI32, ir::Index{1, 3})),
              Fails(kBad, "input 'x' is i32[1, 3], but the model expects f32[n, 3]"));
  EXPECT_THAT(RunOn(*s, "x", Tensor({3}, {})), Fails(kBad, "but the model expects f32[n, 3]"));
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

TEST(SessionTest, CallbacksCannotCallIt) {
  FORGE_ASSERT_OK_AND_ASSIGN(
      auto s, Session::Create(AddingModel(), Reference(), {.debug = {.stepwise = true}}));
  const NamedTensor x{"x", Tensor({1, 3}, {1, 2, 3})};
  const auto observe = [&](const StepView&) { return s->Run({&x, 1}).status(); };
  EXPECT_THAT(s->RunStepwise({&x, 1}, observe), Fails(StatusCode::kInvalidArgument, "a callback"));
  EXPECT_THAT(s->Run({&x, 1}), Succeeds());
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
  refuses({.functions = {"main", "main"}}, "'main' is selected twice");
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
  FORGE_ASSERT_OK_AND_ASSIGN(
      auto s, Session::Create(AddingModel(), Reference(), {.debug = {.compile_only = true}}));
  ASSERT_THAT(s->Bind({{"n", 2}}), Succeeds());
  EXPECT_GT(s->statistics().dispatches, 0);
  EXPECT_EQ(s->statistics().weight_bytes, 0u);
  EXPECT_THAT(RunOn(*s, "x", Tensor({2, 3}, {})),
              Fails(StatusCode::kInvalidArgument, "compile_only"));
}

TEST(SessionTest, KeepsBindingsAndForgetsTheOldest) {
  int bound = 0;
  SessionOptions options;
  options.debug.observe = [&](std::string_view pass, const ir::Function&) {
    bound += pass == "bind";
  };
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

// "a" and "b" multiply x by the same weight of 64 KiB, "b" by another of 4 KiB too.
std::shared_ptr<const Model> ProductsModel() {
  auto m = std::make_unique<ir::Module>();
  Variable* w = AddVariable(*m, "w", Variable::Role::kParameter, Noise({128, 128}));
  Variable* v = AddVariable(*m, "v", Variable::Role::kParameter, Noise({128, 8}));
  ir::Function& a = *m->AddFunction("a");
  a.Return("y", a(ir::MatMul{}, {a.Argument("x", F32({4, 128})), a.Read(w)}));
  ir::Function& b = *m->AddFunction("b");
  const ir::Value product = b(ir::MatMul{}, {b.Argument("x", F32({4, 128})), b.Read(w)});
  b.Return("y", b(ir::MatMul{}, {product, b.Read(v)}));
  return std::make_shared<const Model>(std::move(m));
}
constexpr uint64_t kLargeWeight = 128 * 128 * 4, kSmallWeight = 128 * 8 * 4;

// Counts what is allocated; weights are copied to it.
class CountingTest : public ::testing::Test {
 protected:
  CountingTest() {
    device_->imports = false;
    device_->on_allocate = [this](uint64_t bytes) {
      allocated_ += bytes;
      return absl::OkStatus();
    };
  }
  const std::shared_ptr<HookedDevice> device_ = std::make_shared<HookedDevice>(Reference());
  uint64_t allocated_ = 0;
};

TEST_F(CountingTest, SessionsOfUnlikeFunctionsShareWeights) {
  const auto model = ProductsModel();
  FORGE_ASSERT_OK_AND_ASSIGN(auto a, Session::Create(model, device_, {.functions = {"a"}}));
  ASSERT_THAT(a->Bind({}), Succeeds());
  EXPECT_GE(allocated_, kLargeWeight);
  EXPECT_EQ(a->statistics().weight_bytes, kLargeWeight);
  allocated_ = 0;
  FORGE_ASSERT_OK_AND_ASSIGN(auto b, Session::Create(model, device_, {.functions = {"b"}}));
  ASSERT_THAT(b->Bind({}), Succeeds());
  EXPECT_LT(allocated_, kLargeWeight);
  EXPECT_EQ(b->statistics().weight_bytes, kLargeWeight + kSmallWeight);
}

TEST_F(CountingTest, RefusesABindingBeyondTheLimitBeforeItAllocates) {
  const auto model = ProductsModel();
  FORGE_ASSERT_OK_AND_ASSIGN(auto free, Session::Create(model, device_, {.functions = {"b"}}));
  ASSERT_THAT(free->Bind({}), Succeeds());
  const SessionStatistics n = free->statistics();
  const uint64_t needed = n.weight_bytes + n.arena_bytes + n.staging_bytes;
  EXPECT_EQ(n.weight_bytes, kLargeWeight + kSmallWeight);
  free.reset();
  const auto bind = [&](uint64_t limit) -> absl::Status {
    allocated_ = 0;
    FORGE_ASSIGN_OR_RETURN(
        auto s, Session::Create(model, device_, {.functions = {"b"}, .memory_limit = limit}));
    return s->Bind({});
  };
  constexpr auto kCode = StatusCode::kResourceExhausted;
  EXPECT_THAT(bind(n.weight_bytes - 1), Fails(kCode, "the weights need"));
  EXPECT_EQ(allocated_, 0u);
  EXPECT_THAT(bind(needed - 1), Fails(kCode, "besides the weights"));
  EXPECT_LE(allocated_, needed - 1);
  EXPECT_THAT(bind(needed), Succeeds());
}

TEST_F(CountingTest, TheLimitCountsStatesAndNotOtherSessionsWeights) {
  const auto model = ProductsModel();
  FORGE_ASSERT_OK_AND_ASSIGN(auto b, Session::Create(model, device_, {.functions = {"b"}}));
  ASSERT_THAT(b->Bind({}), Succeeds());
  FORGE_ASSERT_OK_AND_ASSIGN(auto a, Session::Create(model, device_, {.functions = {"a"}}));
  ASSERT_THAT(a->Bind({}), Succeeds());
  const SessionStatistics n = a->statistics();
  const uint64_t needed = n.weight_bytes + n.arena_bytes + n.staging_bytes;
  FORGE_ASSERT_OK_AND_ASSIGN(
      auto limited, Session::Create(model, device_, {.functions = {"a"}, .memory_limit = needed}));
  EXPECT_THAT(limited->Bind({}), Succeeds());
  allocated_ = 0;
  EXPECT_THAT(
      Session::Create(CountingModel(), device_, {.functions = {"add"}, .memory_limit = 255}),
      Fails(StatusCode::kResourceExhausted, "the states need 256 bytes"));
  EXPECT_EQ(allocated_, 0u);
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
    FORGE_ASSERT_OK_AND_ASSIGN(auto stepwise, Session::Create(ChainModel(twice), Reference(),
                                                              {.debug = {.stepwise = true}}));
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

// Sessions of one model at several precisions, at once.
TEST(SessionTest, EachPrecision) {
  const auto model = ConvolvingModel();
  const ir::HostValue x = Noise({2, 8, 12, 12}, 1);
  FORGE_ASSERT_OK_AND_ASSIGN(auto reference, Session::Create(model, Reference()));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto exact, RunOn(*reference, "x", x));
  for (const BackendDevices& backend : ListDevices())
    for (const DeviceInfo& d : backend.devices) {
      if (!d.usable) continue;
      FORGE_ASSERT_OK_AND_ASSIGN(const DeviceRef device, OpenDevice(d.id, {}));
      std::vector<std::unique_ptr<Session>> sessions;
      for (const std::string_view name : {"exact", "f16", "bf16", "fast"}) {
        SCOPED_TRACE(fmt::format("{} in {}", d.id, name));
        FORGE_ASSERT_OK_AND_ASSIGN(const ir::Precision precision, ir::ParsePrecision(name));
        FORGE_ASSERT_OK_AND_ASSIGN(auto s,
                                   Session::Create(model, device, {.precision = precision}));
        FORGE_ASSERT_OK_AND_ASSIGN(const auto y, RunOn(*s, "x", x));
        FORGE_ASSERT_OK_AND_ASSIGN(const Comparison c,
                                   Compare(y, exact, Against::kReference, precision));
        EXPECT_TRUE(c.within()) << c.worst()->rel_error;
        if (precision.products != DType::kF32) {
          EXPECT_GT(c.worst()->rel_error, 1e-5);
        }
        sessions.push_back(std::move(s));
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

// Each thread gets the answer to its own question.
TEST_P(ThreadsTest, UseOneSession) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {.threads = 1}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(ConvolvingModel(), std::move(device)));
  FORGE_ASSERT_OK_AND_ASSIGN(auto reference, Session::Create(ConvolvingModel(), Reference()));
  std::vector<std::thread> threads;
  std::array<Results, 3> results;
  for (size_t t = 0; t < results.size(); ++t)
    threads.emplace_back([&, t] {
      for (int64_t n = 1; n <= 6; ++n) {
        const int64_t batch = 1 + (n + static_cast<int64_t>(t)) % 3;
        auto y = RunOn(*s, "x", Noise({batch, 8, 12, 12}, batch));
        ASSERT_THAT(y, Succeeds());
        results[t].emplace_back(batch, *std::move(y));
      }
    });
  for (std::thread& t : threads) t.join();
  for (const Results& of_thread : results) {
    ASSERT_EQ(of_thread.size(), 6u);
    for (const auto& [n, y] : of_thread) ExpectAsReference(y, *reference, n);
  }
}

// The other process has the threads of its devices and libraries.
TEST_P(ThreadsTest, AForkMakesItsSessionsAnew) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not follow forks of several threads";
#endif
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {.threads = 2}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(ConvolvingModel(), std::move(device)));
  const ir::HostValue x = Noise({2, 8, 12, 12});
  ASSERT_THAT(RunOn(*s, "x", x), Succeeds());
  const auto child = [&] {
    ::alarm(60);
    if (!absl::IsAborted(RunOn(*s, "x", x).status())) _exit(1);
    if (!absl::IsAborted(s->Bind({{"n", 3}}))) _exit(2);
    s.reset();
    const absl::StatusOr<DeviceRef> anew = OpenDevice(GetParam(), {.threads = 2});
    if (absl::IsUnavailable(anew.status())) _exit(0);
    if (!anew.ok()) _exit(3);
    const auto again = Session::Create(ConvolvingModel(), *anew);
    if (!again.ok()) _exit(4);
    _exit(RunOn(**again, "x", x).ok() ? 0 : 5);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
  EXPECT_THAT(RunOn(*s, "x", x), Succeeds());
}

class CancelTest : public ThreadsTest {
 protected:
  void SetUp() override {
    FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {.threads = 1}));
    device_ = std::make_shared<HookedDevice>(std::move(device));
    FORGE_ASSERT_OK_AND_ASSIGN(
        session_, Session::Create(ConvolvingModel(), device_, {.debug = {.stepwise = true}}));
  }
  absl::Status Run() { return RunOn(*session_, "x", x_).status(); }
  std::shared_ptr<HookedDevice> device_;
  std::unique_ptr<Session> session_;
  const ir::HostValue x_ = Noise({2, 8, 12, 12});
};

TEST_P(CancelTest, EndsARunBetweenSteps) {
  ASSERT_THAT(session_->Bind({{"n", 2}}), Succeeds());
  int submitted = 0;
  device_->on_submit = [&] {
    if (++submitted == 2) session_->Cancel();
  };
  EXPECT_TRUE(absl::IsAborted(Run()));
  EXPECT_EQ(submitted, 2);
  device_->on_submit = nullptr;
  EXPECT_THAT(Run(), Succeeds());
}

TEST_P(CancelTest, EndsABinding) {
  for (const bool by_run : {false, true}) {
    SCOPED_TRACE(by_run ? "of a run" : "by itself");
    device_->on_compile = [&](std::span<const CompileRequest>) { session_->Cancel(); };
    EXPECT_TRUE(absl::IsAborted(by_run ? Run() : session_->Bind({{"n", 2}})));
    EXPECT_EQ(session_->executable(), nullptr);
  }
  device_->on_compile = nullptr;
  EXPECT_THAT(Run(), Succeeds());
}

TEST_P(CancelTest, EndsAStepwiseRun) {
  int seen = 0;
  const NamedTensor x{"x", x_};
  const auto cancel = [&](const StepView&) {
    ++seen;
    session_->Cancel();
    return absl::OkStatus();
  };
  EXPECT_TRUE(absl::IsAborted(session_->RunStepwise({&x, 1}, cancel).status()));
  EXPECT_EQ(seen, 1);
  EXPECT_THAT(Run(), Succeeds());
}

TEST_P(CancelTest, ComesFromAnyThread) {
  ASSERT_THAT(session_->Bind({{"n", 2}}), Succeeds());
  std::binary_semaphore running(0), cancelled(0);
  device_->on_submit = [&, first = true]() mutable {
    if (!std::exchange(first, false)) return;
    running.release();
    cancelled.acquire();
  };
  std::thread other([&] {
    running.acquire();
    session_->Cancel();
    cancelled.release();
  });
  EXPECT_TRUE(absl::IsAborted(Run()));
  other.join();
}

// Whichever allocation fails, the call says so, and the next one works.
TEST_P(CancelTest, RecoversFromFailedAllocations) {
  device_->imports = false;
  int left = 0;
  bool failed = false;
  device_->on_allocate = [&](uint64_t) -> absl::Status {
    if (left-- > 0) return absl::OkStatus();
    failed = true;
    return ResourceExhausted("no memory for a test");
  };
  FORGE_ASSERT_OK_AND_ASSIGN(auto reference, Session::Create(ConvolvingModel(), Reference()));
  int failures = 0;
  for (int at = 0;; ++at) {
    FORGE_ASSERT_OK_AND_ASSIGN(auto s, Session::Create(ConvolvingModel(), device_));
    left = at;
    failed = false;
    const auto y = RunOn(*s, "x", Noise({2, 8, 12, 12}, 2));
    if (!failed) break;
    ++failures;
    EXPECT_THAT(y, Fails(StatusCode::kResourceExhausted, "no memory for a test")) << at;
    left = INT_MAX;
    const auto again = RunOn(*s, "x", Noise({2, 8, 12, 12}, 2));
    ASSERT_THAT(again, Succeeds()) << at;
    ExpectAsReference(*again, *reference, 2);
  }
  EXPECT_GE(failures, 3) << "weights, staging, arena";
}

std::string NameOf(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Devices, ThreadsTest, ::testing::ValuesIn(DevicesOfAllBackends()), NameOf);
INSTANTIATE_TEST_SUITE_P(Devices, CancelTest, ::testing::ValuesIn(DevicesOfAllBackends()), NameOf);

}  // namespace
}  // namespace forge
