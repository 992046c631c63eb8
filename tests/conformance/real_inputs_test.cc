// SPDX-License-Identifier: Apache-2.0
// Models on what they are made for: text, sentences, files and a melody, which real_inputs/ makes.
// Each model's Session sees all its shapes in turn.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/platform.h"
#include "formats/arrays/npy.h"
#include "runtime/backends.h"
#include "runtime/plan/compare.h"
#include "runtime/session.h"
#include "tests/support/oracle.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

// Exit status of `real_inputs COMMAND NAME MODEL ...FOLDERS`.
int RealInputs(const std::string& command, const std::string& name,
               std::initializer_list<std::filesystem::path> folders) {
  std::string line = fmt::format("'{}' '{}' {} {} '{}'", OraclePython().string(),
                                 FORGE_SOURCE_DIR "/tests/conformance/real_inputs", command, name,
                                 CachedModel(name).string());
  for (const std::filesystem::path& folder : folders) line += fmt::format(" '{}'", folder.string());
  const int status = std::system(line.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Where the cases of each model are, with onnxruntime's answers; made when first asked for.
class CaseFolders {
 public:
  // What `real_inputs make` says: 0 the cases are there, 4 something that makes them is missing.
  int Make(const std::string& model) {
    const auto [it, first] = statuses_.try_emplace(model, 0);
    if (first) it->second = RealInputs("make", model, {Of(model)});
    return it->second;
  }
  std::filesystem::path Of(const std::string& model) const { return root_ / model; }

 private:
  TempFolder root_;
  std::map<std::string, int> statuses_;
};

CaseFolders& Cases() {
  static CaseFolders folders;
  return folders;
}

struct ModelOnDevice {
  std::string device, model;
  friend std::ostream& operator<<(std::ostream& out, const ModelOnDevice& m) {
    return out << m.model << " on " << m.device;
  }
};

std::vector<ModelOnDevice> ModelsEverywhere() {
  std::vector<std::string> models = {"ppocr-cls", "basic-pitch"};
  // models_test.cc compares them too, at one size each; with whole pictures and texts they take
  // minutes.
  if (Environment("FORGE_ALL_REAL_INPUTS"))
    models.insert(models.end(), {"ppocr-det", "ppocr-rec", "magika", "minilm"});
  std::vector<ModelOnDevice> all;
  for (const std::string& device : Devices())
    for (const std::string& model : models) all.push_back({device, model});
  return all;
}

std::string Name(const testing::TestParamInfo<ModelOnDevice>& info) {
  return AsTestName(info.param.device + "_" + info.param.model);
}

absl::StatusOr<std::vector<NamedTensor>> ReadAll(const nlohmann::json& entries,
                                                 const std::filesystem::path& folder) {
  std::vector<NamedTensor> all;
  for (const nlohmann::json& entry : entries) {
    FORGE_ASSIGN_OR_RETURN(ir::HostValue value, ReadNpy(folder / entry["file"].get<std::string>()));
    all.push_back({entry["name"], std::move(value)});
  }
  return all;
}

class SlowRealInputsTest : public testing::TestWithParam<ModelOnDevice> {
 protected:
  // Runs one case, compares it, and keeps the outputs for the judge.
  void Check(Session& session, const nlohmann::json& test) {
    const std::filesystem::path folder =
        Cases().Of(GetParam().model) / test["name"].get<std::string>();
    FORGE_ASSERT_OK_AND_ASSIGN(auto inputs, ReadAll(test["inputs"], folder));
    FORGE_ASSERT_OK_AND_ASSIGN(auto expected, ReadAll(test["outputs"], folder));
    FORGE_ASSERT_OK_AND_ASSIGN(auto outputs, session.Run(inputs));
    FORGE_ASSERT_OK_AND_ASSIGN(Comparison c, Compare(outputs, expected));
    EXPECT_LE(c.worst()->rel_error, 1e-4) << c.worst()->output;
    worst_ = std::max(worst_, c.worst()->rel_error);
    for (size_t i = 0; test["classes"] && i < outputs.size(); ++i)
      EXPECT_EQ(ClassesOf(outputs[i].value), ClassesOf(expected[i].value));
    const std::filesystem::path kept = judged_.path() / test["name"].get<std::string>();
    std::filesystem::create_directories(kept);
    for (const NamedTensor& o : outputs)
      ASSERT_THAT(WriteNpy(FileOf(kept, o.name), o.value), Succeeds());
  }

  TempFolder judged_;
  double worst_ = 0;
};

TEST_P(SlowRealInputsTest, AgreeWithOnnxruntimeAndMeanWhatTheyShould) {
  const std::string& name = GetParam().model;
  if (!std::filesystem::exists(CachedModel(name)) || !std::filesystem::exists(OraclePython()))
    GTEST_SKIP() << "tools/fetch-models --all and tools/fetch-models --oracle have not run";
  const int made = Cases().Make(name);
  if (made == 4) GTEST_SKIP() << "what makes the inputs is missing, see above";
  ASSERT_EQ(made, 0) << "onnxruntime's own answers are not what they should be";
  FORGE_ASSERT_OK_AND_ASSIGN(DeviceRef device, OpenDevice(GetParam().device, {}));
  FORGE_ASSERT_OK_AND_ASSIGN(auto model, Model::Load(CachedModel(name)));
  auto created = Session::Create(model, device);
  // Only a device whose features are hidden may lack a kernel for an op of these models.
  if (absl::IsUnimplemented(created.status()) && Environment("FORGE_VK_DISABLE"))
    GTEST_SKIP() << "refused: " << created.status().message();
  FORGE_ASSERT_OK_AND_ASSIGN(auto session, std::move(created));
  std::ifstream file(Cases().Of(name) / "cases.json");
  for (const nlohmann::json& test : nlohmann::json::parse(file)) {
    SCOPED_TRACE(test["name"].get<std::string>());
    if (const std::string inner = test["inner"]; !inner.empty()) {
      SessionOptions options;
      options.outputs = {inner};
      FORGE_ASSERT_OK_AND_ASSIGN(auto inside, Session::Create(model, device, options));
      ASSERT_NO_FATAL_FAILURE(Check(*inside, test));
    } else {
      ASSERT_NO_FATAL_FAILURE(Check(*session, test));
    }
  }
  EXPECT_EQ(RealInputs("judge", name, {Cases().Of(name), judged_.path()}), 0);
  RecordProperty("model", name);
  RecordProperty("rel_error", fmt::format("{:.2e}", worst_));
}

INSTANTIATE_TEST_SUITE_P(AllDevices, SlowRealInputsTest, testing::ValuesIn(ModelsEverywhere()),
                         Name);

}  // namespace
}  // namespace forge
