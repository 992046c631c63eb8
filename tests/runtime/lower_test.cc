// SPDX-License-Identifier: Apache-2.0
// The passes in their order: what each leaves verifies, and what one decides the next keeps.
#include "runtime/plan/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/load.h"
#include "runtime/backends.h"
#include "tests/runtime/models.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using ::testing::ElementsAre;
using testing::Noise;

ir::Bindings Numbers(const ir::Module& m, int64_t n) {
  ir::Bindings values;
  for (const ir::SymbolRef& s : m.symbols()) values[s] = n;
  return values;
}

class PassesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PassesTest, LeaveFunctionsThatVerify) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto model, LoadModel(std::filesystem::path(FORGE_SOURCE_DIR) /
                                                   "examples/fashion/fashion.onnx"));
  std::vector<std::string> seen;
  LowerOptions options;
  options.verify = true;
  options.observe = [&](std::string_view pass, const ir::Function& f) {
    EXPECT_NE(f.module(), nullptr);
    EXPECT_THAT(ir::Verify(f), Succeeds()) << pass;
    seen.emplace_back(pass);
  };
  FORGE_ASSERT_OK_AND_ASSIGN(Lowered lowered, Lower(*model, device->target(), options));
  ASSERT_EQ(lowered.functions.size(), 1u);
  for (int64_t n : {1, 2}) {
    FORGE_ASSERT_OK_AND_ASSIGN(
        BoundFunctions bound,
        BindLowered(*lowered.functions[0], device->target(), Numbers(*lowered.module, n), options));
    EXPECT_EQ(bound.module->base(), lowered.module.get());
    EXPECT_THAT(ir::Verify(*bound.module), Succeeds());
  }
  EXPECT_THAT(seen,
              ElementsAre("import", "fold", "recognise", "integers", "tabulate", "precision",
                          "legalise", "simplify", "join", "hoist", "fuse", "fuse load", "bind",
                          "split", "encode", "pack", "bind", "split", "encode", "pack"));
}

INSTANTIATE_TEST_SUITE_P(Targets, PassesTest, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

// Layouts that `encode` chose are what is compiled.
TEST(LowerTest, PackingKeepsLayouts) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef cpu, OpenDevice("cpu", {}));
  std::map<std::string, std::map<std::string, std::string>> layouts;  // by pass, by name
  LowerOptions options;
  options.observe = [&](std::string_view pass, const ir::Function& f) {
    auto& of_pass = layouts[std::string(pass)];
    for (const ir::Node& n : f.nodes())
      if (const auto& e = f.type(n.first_out).encoding(); e && !f.NameOf(n.first_out).empty())
        of_pass[std::string(f.NameOf(n.first_out))] = e->name();
  };
  auto m = testing::ConvolvingModule();
  ir::Function& f = *m->Find("main");
  for (const ir::Node& n : f.nodes())
    f.SetName(f.value(n.first_out), fmt::format("v{}", n.first_out));
  FORGE_ASSERT_OK_AND_ASSIGN(Lowered lowered, Lower(*m, cpu->target(), options));
  ASSERT_THAT(
      BindLowered(*lowered.functions[0], cpu->target(), Numbers(*lowered.module, 4), options),
      Succeeds());
  EXPECT_FALSE(layouts["encode"].empty());
  EXPECT_EQ(layouts["pack"], layouts["encode"]);
}

TEST(LowerTest, LowersFunctionsTogether) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef reference, OpenDevice("reference", {}));
  ir::Module m;
  ir::Variable* w = testing::AddVariable(m, "w", ir::Variable::Role::kParameter, Noise({65, 64}));
  // "load" is a name like any other.
  for (const char* name : {"main", "load", "other"}) {
    ir::Function& f = *m.AddFunction(name);
    const ir::Value half = f(ir::Relu{}, {f.Read(w)});
    f.Return("y", f(ir::Add{}, {f.Argument("x", F32({65, 64})), half}));
  }
  LowerOptions options;
  options.functions = {"load", "main"};
  options.verify = true;
  FORGE_ASSERT_OK_AND_ASSIGN(Lowered lowered, Lower(m, reference->target(), options));
  ASSERT_EQ(lowered.functions.size(), 2u);
  EXPECT_EQ(lowered.functions[0], lowered.module->Find("load"));
  EXPECT_EQ(lowered.functions[1], lowered.module->Find("main"));
  EXPECT_EQ(lowered.load->results().size(), 2u);
  for (const auto& r : lowered.load->results())
    EXPECT_NE(lowered.module->FindVariable(r.name), nullptr);
  for (const ir::Function* f : lowered.functions) {
    EXPECT_EQ(f->nodes().size(), 1u);
    EXPECT_THAT(BindLowered(*f, reference->target(), {}, options), Succeeds());
  }
}

TEST(LowerTest, FreezesUnlessToldNotTo) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef reference, OpenDevice("reference", {}));
  const auto m = testing::ConvolvingModule();
  for (bool freeze : {true, false}) {
    LowerOptions options;
    options.freeze = freeze;
    FORGE_ASSERT_OK_AND_ASSIGN(Lowered lowered, Lower(*m, reference->target(), options));
    EXPECT_EQ(lowered.module->FindVariable("w1")->role,
              freeze ? ir::Variable::Role::kConstant : ir::Variable::Role::kParameter);
  }
}

class NothingTarget final : public ir::Target {
 public:
  std::string_view name() const override { return "nothing"; }
  Verdict Supports(const ir::Candidate&) const override { return Verdict::No("no kernel"); }
  Verdict Fuses(const ir::Function&) const override { return Verdict::No("no kernel"); }
  std::vector<ir::EncodingChoice> Encodings(const ir::Candidate&) const override { return {}; }
  double Seconds(const ir::Candidate&) const override { return 0; }
};

TEST(LowerTest, ListsAllThatCannotRun) {
  const auto m = testing::ConvolvingModule();
  const auto refused = Lower(*m, NothingTarget(), {});
  // A pool over two axes is one operator, though it is made of two pools.
  EXPECT_THAT(refused, Fails(absl::StatusCode::kUnimplemented, "nothing cannot run 5 of"));
  EXPECT_THAT(refused, Fails(absl::StatusCode::kUnimplemented, "conv"));
  EXPECT_THAT(refused, Fails(absl::StatusCode::kUnimplemented, "pool"));
}

TEST(LowerTest, RefusesNumbersThatDoNotFit) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef reference, OpenDevice("reference", {}));
  ir::Module m;
  ir::Function& f = *m.AddFunction("main");
  const ir::SymbolRef a = m.SymbolNamed("a"), b = m.SymbolNamed("b");
  f.Return("y",
           f(ir::Add{}, {f.Argument("x", F32({ir::Dim(a)})), f.Argument("z", F32({ir::Dim(b)}))}));
  FORGE_ASSERT_OK_AND_ASSIGN(Lowered lowered, Lower(m, reference->target(), {}));
  const ir::Function& main = *lowered.functions[0];
  EXPECT_THAT(BindLowered(main, reference->target(), {{a, 2}, {b, 3}}, {}),
              Fails(absl::StatusCode::kInvalidArgument, "add"));
  EXPECT_THAT(BindLowered(main, reference->target(), {{a, 3}, {b, 3}}, {}), Succeeds());
}

TEST(LowerTest, KeepsSomeResults) {
  ir::Module m;
  ir::Function& f = *m.AddFunction("load");
  const ir::Value x = f.Argument("x", F32({4}));
  for (const char* name : {"a", "b", "c"}) f.Return(name, f(ir::Relu{}, {x}));
  ir::Function some("load", &m);
  ASSERT_THAT(KeepResults(f, some, {"c", "a"}), Succeeds());
  EXPECT_EQ(some.nodes().size(), 2u);
  ASSERT_EQ(some.results().size(), 2u);
  EXPECT_EQ(some.results()[0].name, "c");
  ir::Function none("load", &m);
  EXPECT_THAT(KeepResults(f, none, {"d"}), Fails(absl::StatusCode::kInvalidArgument, "'d'"));
}

}  // namespace
}  // namespace forge
