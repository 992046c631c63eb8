// SPDX-License-Identifier: Apache-2.0
// Whole models on every device there is: the shipped one against onnxruntime's recorded answers, a
// stranger's against onnxruntime itself.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/platform.h"
#include "formats/arrays/npy.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/spatial/conv.h"
#include "runtime/backends.h"
#include "runtime/plan/compare.h"
#include "runtime/plan/executable.h"
#include "runtime/session.h"
#include "tests/support/metal_check.h"
#include "tests/support/oracle.h"
#include "tests/support/spirv_check.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

const std::filesystem::path kSource = FORGE_SOURCE_DIR;

// Pictures [first, first + count) as the model wants them: (value / 255 - mean) / std.
ir::HostValue Batch(const ir::HostValue& pictures, int64_t first, int64_t count) {
  constexpr int64_t kPixels = 28 * 28;
  const int64_t shape[] = {count, 1, 28, 28};
  ir::HostValue batch = *ir::HostValue::Zeros(DType::kF32, shape);
  for (int64_t i = 0; i < count * kPixels; ++i)
    batch.Set(i, (pictures.f64(first * kPixels + i) / 255.0 - 0.2860) / 0.3530);
  return batch;
}

class SlowFashionTest : public testing::TestWithParam<std::string> {};

TEST_P(SlowFashionTest, NamesAThousandPicturesAsOnnxruntimeDoes) {
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto model, Model::Load(kSource / "examples/fashion/fashion.onnx"));
  FORGE_ASSERT_OK_AND_ASSIGN(auto arrays, ReadNpz(kSource / "tests/data/fashion/pictures.npz"));
  FORGE_ASSERT_OK_AND_ASSIGN(ir::HostValue expected,
                             ReadNpy(kSource / "tests/data/fashion/probabilities.npy"));
  const ir::HostValue& pictures = arrays[0].second;
  ASSERT_EQ(pictures.dim(0), 1000);
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Session::Create(model, device));
  constexpr int64_t kBatch = 100, kClasses = 10;
  double worst = 0;
  int wrong_class = 0;
  for (int64_t first = 0; first < 1000; first += kBatch) {
    const NamedTensor input{"image", Batch(pictures, first, kBatch)};
    FORGE_ASSERT_OK_AND_ASSIGN(auto outputs, session->Run({&input, 1}));
    for (int64_t row = 0; row < kBatch; ++row) {
      int64_t best = 0, want = 0;
      for (int64_t c = 0; c < kClasses; ++c) {
        const int64_t at = row * kClasses + c, there = (first + row) * kClasses + c;
        worst = std::max(worst, std::abs(outputs[0].value.f64(at) - expected.f64(there)));
        if (outputs[0].value.f64(at) > outputs[0].value.f64(row * kClasses + best)) best = c;
        if (expected.f64(there) > expected.f64((first + row) * kClasses + want)) want = c;
      }
      wrong_class += best != want;
    }
  }
  EXPECT_EQ(wrong_class, 0);
  EXPECT_LE(worst, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(AllDevices, SlowFashionTest, testing::ValuesIn(Devices()),
                         NameOfParameter);

// A model of tests/models.tsv, and inputs as make_oracle.py takes them.
struct Stranger {
  std::string name;
  std::vector<std::string> inputs;
  bool classes = false;  // outputs rank classes along their last axis
};

// Small shapes first: the reference runs the first of each model only.
std::vector<Stranger> Strangers() {
  std::vector<Stranger> all = {
      {"ppocr-cls", {"x=1,3,48,192:7"}, true},
      {"ppocr-cls", {"x=6,3,48,192:7"}, true},
      {"ppocr-rec", {"x=1,3,48,64:7"}, true},
      {"ppocr-rec", {"x=2,3,48,96:7"}, true},
      {"magika", {"bytes=1,2048:7:0..256"}, true},
      {"basic-pitch", {"serving_default_input_2:0=1,43844,1:7"}, false},
      {"minilm",
       {"input_ids=2,16:7:1000..30000", "attention_mask=2,16:8:1..1", "token_type_ids=2,16:9:0..0"},
       false},
      {"minilm",
       {"input_ids=3,5:7:1000..30000", "attention_mask=3,5:8:0..1", "token_type_ids=3,5:9:0..0"},
       false},
  };
  return all;
}

struct StrangerOnDevice {
  std::string device;
  Stranger model;
  friend std::ostream& operator<<(std::ostream& out, const StrangerOnDevice& s) {
    return out << s.model.name << " on " << s.device;
  }
};

std::vector<StrangerOnDevice> StrangersEverywhere() {
  std::vector<StrangerOnDevice> all;
  for (const std::string& device : Devices()) {
    std::string before;
    for (const Stranger& s : Strangers()) {
      if (device != "reference" || s.name != before) all.push_back({device, s});
      before = s.name;
    }
  }
  return all;
}

// "x=6,3,48,192:7" as a part of a test's name.
std::string StrangerName(const testing::TestParamInfo<StrangerOnDevice>& info) {
  std::string name = info.param.device + "_" + info.param.model.name;
  name += "_" + info.param.model.inputs[0].substr(info.param.model.inputs[0].rfind('=') + 1);
  return AsTestName(std::move(name));
}

void RunOracle(const std::filesystem::path& python, const std::filesystem::path& onnx,
               const Stranger& model, const std::filesystem::path& folder) {
  std::string inputs;
  for (const std::string& input : model.inputs) inputs += fmt::format(" --input '{}'", input);
  const std::string command =
      fmt::format("'{}' '{}' '{}' '{}' --repeat 1 --warmup 0{} >/dev/null", python.string(),
                  (kSource / "tests/conformance/make_oracle.py").string(), onnx.string(),
                  folder.string(), inputs);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

class SlowModelsTest : public testing::TestWithParam<StrangerOnDevice> {};

TEST_P(SlowModelsTest, AgreesWithOnnxruntime) {
  const Stranger& m = GetParam().model;
  const std::filesystem::path onnx = CachedModel(m.name), python = OraclePython();
  if (!std::filesystem::exists(onnx) || !std::filesystem::exists(python))
    GTEST_SKIP() << "tools/fetch-models --all and tools/fetch-models --oracle have not run";
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam().device, {}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto model, Model::Load(onnx));
  auto created = Session::Create(model, device);
  // Only a device whose features are hidden may lack a kernel for an op of these models.
  if (absl::IsUnimplemented(created.status()) && Environment("FORGE_VK_DISABLE"))
    GTEST_SKIP() << "refused: " << created.status().message();
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, std::move(created));
  TempFolder folder;
  ASSERT_NO_FATAL_FAILURE(RunOracle(python, onnx, m, folder.path()));
  std::vector<NamedTensor> inputs;
  for (const std::string& input : m.inputs) {
    const std::string name = input.substr(0, input.rfind('='));
    FORGE_ASSERT_OK_AND_ASSIGN(ir::HostValue x, ReadNpy(FileOf(folder.path(), name)));
    inputs.push_back({name, std::move(x)});
  }
  FORGE_ASSERT_OK_AND_ASSIGN(auto outputs, session->Run(inputs));
  std::vector<NamedTensor> reference;
  for (const NamedTensor& o : outputs) {
    FORGE_ASSERT_OK_AND_ASSIGN(ir::HostValue want, ReadNpy(FileOf(folder.path(), o.name)));
    if (m.classes) {
      EXPECT_EQ(ClassesOf(o.value), ClassesOf(want)) << o.name;
    }
    reference.push_back({o.name, std::move(want)});
  }
  FORGE_ASSERT_OK_AND_ASSIGN(Comparison c, Compare(outputs, reference));
  EXPECT_LE(c.worst()->rel_error, 1e-4);
  EXPECT_TRUE(c.within());
  RecordProperty("model", m.name);
  RecordProperty("rel_error", fmt::format("{:.2e}", c.worst()->rel_error));
  fmt::print("{} on {}: relative error {:.2e}\n", m.name, GetParam().device, c.worst()->rel_error);
}

INSTANTIATE_TEST_SUITE_P(AllDevices, SlowModelsTest, testing::ValuesIn(StrangersEverywhere()),
                         StrangerName);

// Does the device take a convolution with bias and residual as one program? The reference fuses
// nothing, and a device that binds four buffers cannot.
bool FusesResiduals(const Device& device) {
  ir::Function body("residual");
  const ir::Type image = ir::Type::Tensor(DType::kF32, {1, 8, 16, 16});
  const ir::Value x = body.Argument("x", image), r = body.Argument("r", image);
  const ir::Value w = body.Argument("w", ir::Type::Tensor(DType::kF32, {8, 8, 1, 1}));
  const ir::Value b = body.Argument("b", ir::Type::Tensor(DType::kF32, {8}));
  body.Return("y", body(ir::Add{}, {body(ir::Conv{}, {x, w, b}), r}));
  return static_cast<bool>(device.target().Fuses(body));
}

class ModelsCompileTest : public testing::TestWithParam<std::string> {
 protected:
  void Compile(const std::filesystem::path& path, const std::map<std::string, int64_t>& dims,
               int most_dispatches) {
    FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {}));
    FORGE_ASSERT_OK_AND_ASSIGN(auto model, Model::Load(path));
    SessionOptions options;
    options.debug.compile_only = true;
    auto created = Session::Create(model, device, options);
    // As above: only hidden features are an excuse.
    if (absl::IsUnimplemented(created.status()) && Environment("FORGE_VK_DISABLE"))
      GTEST_SKIP() << "refused: " << created.status().message();
    FORGE_ASSERT_OK_AND_ASSIGN(auto session, std::move(created));
    ASSERT_THAT(session->Bind(dims), Succeeds());
    if (FusesResiduals(*device)) {
      int dispatches = 0;
      for (const StepInfo& step : session->executable()->steps())
        if (step.op != "relayout") dispatches += step.dispatches;  // copies into another layout
      EXPECT_LE(dispatches, most_dispatches);
    }
    for (const ProgramRef& program : session->executable()->programs()) {
      EXPECT_EQ(SpirvErrors(*program), "");
      EXPECT_EQ(MetalErrors(*program), "");
    }
    // A library's plain loops are hundreds of times slower: layouts do not fit together.
    for (const StepInfo& step : session->executable()->steps())
      EXPECT_THAT(step.kernel, testing::Not(testing::HasSubstr(":ref"))) << step.types;
  }
};

TEST_P(ModelsCompileTest, Fashion) {
  // 9 kernels, and a launch that adds up where a GPU's workgroups share a product of few tiles.
  Compile(kSource / "examples/fashion/fashion.onnx", {{"N", 4}}, 10);
}

struct Budget {
  std::string_view model;
  std::map<std::string, int64_t> dims;
  int most_dispatches;
};

// At the shapes of tests/models.tsv.
TEST_P(ModelsCompileTest, StrangersWithinTheirDispatches) {
  const Budget budgets[] = {
      {"ppocr-cls", {{"x.0", 1}, {"x.2", 48}, {"x.3", 192}}, 75},
      {"ppocr-det",
       {{"p2o.DynamicDimension.0", 1},
        {"p2o.DynamicDimension.1", 640},
        {"p2o.DynamicDimension.2", 640}},
       95},
      {"ppocr-rec",
       {{"p2o.DynamicDimension.0", 1}, {"x.2", 48}, {"p2o.DynamicDimension.1", 320}},
       110},
      {"minilm", {{"batch", 1}, {"sequence", 256}}, 87},
      {"basic-pitch", {{"unk__749", 1}}, 90},
      {"magika", {{"unk__214", 1}}, 40},
  };
  for (const Budget& b : budgets) {
    const std::filesystem::path path = CachedModel(std::string(b.model));
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "tools/fetch-models --all has not run";
    SCOPED_TRACE(b.model);
    Compile(path, b.dims, b.most_dispatches);
  }
}

INSTANTIATE_TEST_SUITE_P(AllDevices, ModelsCompileTest, testing::ValuesIn(Devices()),
                         NameOfParameter);

}  // namespace
}  // namespace forge
