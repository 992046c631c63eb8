// SPDX-License-Identifier: Apache-2.0
// Real models before and after the pass `simplify`: the same bits.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "formats/load.h"
#include "ir/graph/interpreter.h"
#include "ir/passes/passes.h"
#include "tests/support/oracle.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

// Has kernels for primitives alone, which leaves most to simplify.
struct PrimitiveTarget final : ir::Target {
  std::string_view name() const override { return "primitives"; }
  Verdict Supports(const ir::Candidate& node) const override {
    ir::Function parts("parts");
    ir::Values in;
    for (const ir::Type& t : node.in)
      in.push_back(t ? parts.Argument(fmt::format("x{}", in.size()), t) : ir::Value{});
    const bool has_parts = !node.op.Decompose(parts, in).empty();
    return has_parts ? Verdict::No("a composite") : Verdict::Yes("a primitive");
  }
  Verdict Fuses(const ir::Function&) const override { return Verdict::No("nothing fuses"); }
  std::vector<ir::EncodingChoice> Encodings(const ir::Candidate&) const override { return {}; }
  double Seconds(const ir::Candidate&) const override { return 1; }
};

struct SizedModel {
  std::string name;
  std::vector<std::vector<int64_t>> shapes;  // of the inputs, in order
};

const SizedModel kModels[] = {
    {"basic-pitch", {{1, 43844, 1}}},        {"magika", {{1, 2048}}},
    {"minilm", {{2, 16}, {2, 16}, {2, 16}}}, {"ppocr-cls", {{1, 3, 48, 192}}},
    {"ppocr-det", {{1, 3, 64, 96}}},         {"ppocr-rec", {{1, 3, 48, 64}}}};

class SlowSimplifyTest : public testing::TestWithParam<SizedModel> {
 protected:
  // Every second integer is 1, so that a mask lets something through.
  ir::HostValue Random(DType dtype, const std::vector<int64_t>& shape) {
    ir::HostValue v = *ir::HostValue::Zeros(dtype, shape);
    for (int64_t i = 0; i < v.elements(); ++i) {
      const double number = static_cast<double>(random_() % 4096) / 1024 - 2;
      v.Set(i, Has(kIntTypes, dtype) ? (number < 0 ? 1 : std::floor(number * 100)) : number);
    }
    return v;
  }

  // The same function, as the passes before `simplify` leave it.
  void Prepare(ir::Module& m, ir::Function& legal) {
    ir::Function folded("main", &m), named("main", &m);
    ASSERT_THAT(ir::Fold(m, *m.Find("main"), folded), Succeeds());
    ASSERT_THAT(ir::Recognise(folded, named), Succeeds());
    ASSERT_THAT(ir::Legalise(named, legal, PrimitiveTarget()), Succeeds());
  }

  std::mt19937 random_{7};
};

TEST_P(SlowSimplifyTest, ChangesNoBit) {
  const std::filesystem::path path = CachedModel(GetParam().name);
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "tools/fetch-models --all has not run";
  FORGE_ASSERT_OK_AND_ASSIGN(auto model, LoadModel(path));
  ir::Freeze(*model);
  ir::Function before("main", model.get()), after("main", model.get());
  ASSERT_NO_FATAL_FAILURE(Prepare(*model, before));
  ASSERT_THAT(ir::Simplify(before, after), Succeeds());
  EXPECT_LE(after.nodes().size(), before.nodes().size());
  std::vector<ir::HostValue> inputs;
  std::vector<const ir::HostValue*> arguments;
  for (size_t i = 0; i < GetParam().shapes.size(); ++i)
    inputs.push_back(
        Random(before.type(before.arguments()[i].value).dtype(), GetParam().shapes[i]));
  for (const ir::HostValue& v : inputs) arguments.push_back(&v);
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::Interpretation want,
                             ir::Interpreter{}.Run(before, arguments));
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::Interpretation got, ir::Interpreter{}.Run(after, arguments));
  ASSERT_EQ(got.results.size(), want.results.size());
  for (size_t i = 0; i < got.results.size(); ++i) {
    const auto a = got.results[i].bytes(), b = want.results[i].bytes();
    ASSERT_EQ(a.size(), b.size());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size()), 0) << before.results()[i].name;
  }
  fmt::print("{}: {} nodes before simplify, {} after\n", GetParam().name, before.nodes().size(),
             after.nodes().size());
}

INSTANTIATE_TEST_SUITE_P(Models, SlowSimplifyTest, testing::ValuesIn(kModels),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace forge
