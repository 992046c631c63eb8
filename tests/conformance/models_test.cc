// SPDX-License-Identifier: Apache-2.0
// Whole models on every device there is: the shipped one against onnxruntime's recorded answers, a
// stranger's against onnxruntime itself.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/platform.h"
#include "formats/npy.h"
#include "ir/ops/conv2d.h"
#include "ir/ops/elementwise.h"
#include "runtime/backends.h"
#include "runtime/compare.h"
#include "runtime/executable.h"
#include "runtime/session.h"
#include "tests/support/spirv_check.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace forge {
namespace {

const std::filesystem::path kSource = FORGE_SOURCE_DIR;

std::vector<std::string> Devices() {
  std::vector<std::string> ids;
  for (const BackendDevices& b : ListDevices())
    for (const DeviceInfo& d : b.devices)
      if (d.usable) ids.push_back(d.id);
  return ids;
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

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

INSTANTIATE_TEST_SUITE_P(AllDevices, SlowFashionTest, testing::ValuesIn(Devices()), TestName);

std::filesystem::path CachedModel(const std::string& name) {
  return CacheFolder() / "models" / (name + ".onnx");
}

class SlowDirectionClassifierTest : public testing::TestWithParam<std::string> {};

TEST_P(SlowDirectionClassifierTest, AgreesWithOnnxruntime) {
  const std::filesystem::path onnx = CachedModel("ppocr-cls"),
                              python = CacheFolder() / "oracle-venv/bin/python";
  if (!std::filesystem::exists(onnx) || !std::filesystem::exists(python))
    GTEST_SKIP() << "tools/fetch-models and tools/fetch-models --oracle have not run";
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto model, Model::Load(onnx));
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, Session::Create(model, device));
  for (int batch : {1, 6}) {
    TempFolder folder;
    const std::string command =
        fmt::format("'{}' '{}' '{}' '{}' --repeat 1 --warmup 0 --input x={},3,48,192:7 >/dev/null",
                    python.string(), (kSource / "tests/conformance/make_oracle.py").string(),
                    onnx.string(), folder.path().string(), batch);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    FORGE_ASSERT_OK_AND_ASSIGN(ir::HostValue x, ReadNpy(folder.path() / "x.npy"));
    FORGE_ASSERT_OK_AND_ASSIGN(ir::HostValue want,
                               ReadNpy(folder.path() / "save_infer_model_scale_0.tmp_1.npy"));
    const NamedTensor input{"x", x};
    FORGE_ASSERT_OK_AND_ASSIGN(auto outputs, session->Run({&input, 1}));
    ASSERT_EQ(outputs.size(), 1u);
    const std::vector<NamedTensor> reference = {{outputs[0].name, want}};
    FORGE_ASSERT_OK_AND_ASSIGN(Comparison c, Compare(outputs, reference));
    EXPECT_LE(c.worst()->rel_error, 1e-4) << "batch " << batch;
    EXPECT_TRUE(c.within()) << "batch " << batch;
  }
}

INSTANTIATE_TEST_SUITE_P(AllDevices, SlowDirectionClassifierTest, testing::ValuesIn(Devices()),
                         TestName);

// Does the device take a convolution with bias and residual as one program? The reference fuses
// nothing, and a device that binds four buffers cannot.
bool FusesResiduals(const Device& device) {
  ir::Function body("residual");
  const ir::Type image = ir::Type::Tensor(DType::kF32, {1, 8, 16, 16});
  const ir::Value x = body.Argument("x", image), r = body.Argument("r", image);
  const ir::Value w = body.Argument("w", ir::Type::Tensor(DType::kF32, {8, 8, 1, 1}));
  const ir::Value b = body.Argument("b", ir::Type::Tensor(DType::kF32, {8}));
  body.Return("y", body(ir::Add{}, {body(ir::Conv2d{}, {x, w, b}), r}));
  return static_cast<bool>(device.target().Fuses(body));
}

class ModelsCompileTest : public testing::TestWithParam<std::string> {
 protected:
  void Compile(const std::filesystem::path& path, const std::map<std::string, int64_t>& dims,
               int most_dispatches) {
    FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam(), {}));
    FORGE_ASSERT_OK_AND_ASSIGN(auto model, Model::Load(path));
    SessionOptions options;
    options.compile_only = true;
    FORGE_ASSERT_OK_AND_ASSIGN(auto session, Session::Create(model, device, options));
    ASSERT_THAT(session->Bind(dims), Succeeds());
    if (FusesResiduals(*device)) {
      int dispatches = 0;
      for (const StepInfo& step : session->executable()->steps())
        if (step.op != "relayout") dispatches += step.dispatches;  // copies into another layout
      EXPECT_LE(dispatches, most_dispatches);
    }
    for (const ProgramRef& program : session->executable()->programs())
      EXPECT_EQ(SpirvErrors(*program), "");
    // A library's plain loops are hundreds of times slower: layouts do not fit together.
    for (const StepInfo& step : session->executable()->steps())
      EXPECT_THAT(step.kernel, testing::Not(testing::HasSubstr(":ref"))) << step.types;
  }
};

TEST_P(ModelsCompileTest, Fashion) {
  Compile(kSource / "examples/fashion/fashion.onnx", {{"N", 4}}, 9);
}

TEST_P(ModelsCompileTest, DirectionClassifier) {
  if (!std::filesystem::exists(CachedModel("ppocr-cls")))
    GTEST_SKIP() << "tools/fetch-models has not run";
  Compile(CachedModel("ppocr-cls"), {{"x.0", 1}, {"x.2", 48}, {"x.3", 192}}, 75);
}

INSTANTIATE_TEST_SUITE_P(AllDevices, ModelsCompileTest, testing::ValuesIn(Devices()), TestName);

}  // namespace
}  // namespace forge
