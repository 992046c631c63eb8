// SPDX-License-Identifier: Apache-2.0
// forge-train as a person meets it.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "formats/arrays/safetensors.h"
#include "formats/images/image.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/shell.h"
#include "tools/train/batches.h"
#include "tools/train/curve.h"

namespace forge {
namespace {

using namespace testing;  // NOLINT: how programs are run

// Bytes in the IDX format.
std::string IdxOf(const std::vector<int>& shape, const std::function<int(int)>& element) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  int n = 1;
  for (const int d : shape) {
    n *= d;
    for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(d >> shift);
  }
  for (int i = 0; i < n; ++i) out += static_cast<char>(element(i));
  return out;
}

// Writes archives with the standard library alone: y = 2 a - 3 b, the same without y, and y in
// 0..1.
constexpr const char* kWriteArchives = R"(
import struct, sys, zipfile
def npy(shape, values):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (shape,)
    head = head.ljust(117) + "\n"
    data = struct.pack("<%df" % len(values), *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data
x = [1, 0, 0, 1, 1, 1, 1, -1]
y = [2 * a - 3 * b for a, b in zip(x[::2], x[1::2])]
unit = [0.25, 0.5, 1, 0.75]
for path, label, values in zip(sys.argv[1:], ("label.npy", "other.npy", "label.npy"), (y, y, unit)):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", npy((4, 2), x))
        archive.writestr(label, npy((4, 1), values))
)";

// Forty pictures of 28x28: class c is a bright row, row c.
class ForgeTrainTest : public ::testing::Test {
 protected:
  ForgeTrainTest() {
    Write(folder_ / "x", IdxOf({40, 28, 28}, [](int i) {
            return i / 28 % 28 == i / 784 % 10 ? 200 + i % 50 : 0;
          }));
    Write(folder_ / "y", IdxOf({40}, [](int i) { return i % 10; }));
  }
  std::string Data() const {
    return Quoted((folder_ / "x").string() + "," + (folder_ / "y").string());
  }
  std::string Path(const std::string& name) const { return Quoted(folder_ / name); }
  std::string Command(const std::string& more, const std::string& model = "mnist-mlp") const {
    return "forge-train " + model + " --device cpu --batch 16 --data " + Data() + " " + more;
  }
  TempFolder folder_;
};

TEST_F(ForgeTrainTest, TrainsAModelThatForgeRunRuns) {
  const Outcome o = Shell(Command("--json --epochs 15 --validate " + Data() + " -o " +
                                  Path("t.bin") + " --log " + Path("log")));
  ASSERT_EQ(o.status, 0) << o.err;
  const auto json = nlohmann::json::parse(o.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << o.out;
  ASSERT_EQ(json["epochs"].size(), 15U);
  EXPECT_GT(json["epochs"][0]["loss"], json["epochs"][14]["loss"]);
  EXPECT_EQ(json["validation"]["accuracy"], 1.0);
  EXPECT_TRUE(json["device"].is_string());
  const std::string log = Slurp(folder_ / "log");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 15);
  const Outcome run =
      Shell("forge-run --device reference " + Path("t.bin") + " --input image=random --dim N=2");
  EXPECT_EQ(run.status, 0) << run.err;
}

TEST_F(ForgeTrainTest, ResumesToTheSameBits) {
  const std::string options = "--optimizer adamw --weight-decay 0.1 --augment flip,shift=2 ";
  const std::string whole = "--epochs 4 --weights-out " + Path("whole");
  ASSERT_EQ(Shell(Command(options + whole)).status, 0);
  ASSERT_EQ(Shell(Command(options + "--epochs 2 --checkpoint " + Path("c"))).status, 0);
  const Outcome rest = Shell(
      Command(options + "--epochs 4 --resume " + Path("c") + " --weights-out " + Path("rest")));
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(Slurp(folder_ / "whole"), Slurp(folder_ / "rest"));
  ExpectError(Command("--resume " + Path("c")), 2, "belongs to a training with");
}

// Forty pictures are two and a half batches, so the last update has fewer.
TEST_F(ForgeTrainTest, AccumulatesGradientsAcrossInterruptions) {
  const std::string options = "--optimizer rmsprop --accumulate 2 --average 0.5 --precision f16 ";
  ASSERT_EQ(Shell(Command(options + "--epochs 3 --weights-out " + Path("whole"))).status, 0);
  ASSERT_EQ(Shell(Command(options + "--epochs 1 --checkpoint " + Path("c"))).status, 0);
  const Outcome rest = Shell(
      Command(options + "--epochs 3 --resume " + Path("c") + " --weights-out " + Path("rest")));
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(Slurp(folder_ / "whole"), Slurp(folder_ / "rest"));
}

// With the whole data in one batch, the mean of the halves' gradients is the gradient.
TEST_F(ForgeTrainTest, TwoHalvesMakeTheUpdateOfAWhole) {
  const std::string sgd =
      "forge-train mnist-mlp --device cpu --optimizer sgd --lr 0.1 --epochs 4 "
      "--data " +
      Data() + " --weights-out ";
  ASSERT_EQ(Shell(sgd + Path("whole") + " --batch 40").status, 0);
  ASSERT_EQ(Shell(sgd + Path("halves") + " --batch 20 --accumulate 2").status, 0);
  FORGE_ASSERT_OK_AND_ASSIGN(const Safetensors whole, ReadSafetensors(folder_ / "whole"));
  FORGE_ASSERT_OK_AND_ASSIGN(const Safetensors halves, ReadSafetensors(folder_ / "halves"));
  for (size_t t = 0; t < whole.tensors.size(); ++t)
    for (int64_t i = 0; i < whole.tensors[t].second.elements(); ++i)
      ASSERT_NEAR(whole.tensors[t].second.f64(i), halves.tensors[t].second.f64(i), 1e-5);
}

TEST_F(ForgeTrainTest, ComputesAgainWhatABudgetHasNoRoomFor) {
  const std::string sgd = "--optimizer sgd --lr 0.1 --epochs 2 --json";
  const Outcome whole = Shell(Command(sgd, "mnist-cnn")),
                part = Shell(Command(sgd + " --activation-budget 1K", "mnist-cnn")),
                text = Shell(Command("--epochs 1 --activation-budget 1K", "mnist-cnn"));
  ASSERT_EQ(whole.status + part.status + text.status, 0) << part.err << text.err;
  const auto json = nlohmann::json::parse(part.out);
  EXPECT_NEAR(json["epochs"][1]["loss"],
              nlohmann::json::parse(whole.out)["epochs"][1]["loss"].get<double>(), 1e-5);
  EXPECT_GT(json["activations"]["flops_again"], 0);
  EXPECT_LT(json["activations"]["most_bytes"], json["activations"]["saved_bytes"]);
  EXPECT_THAT(text.out, ::testing::HasSubstr("of the forward pass is computed again"));
}

TEST_F(ForgeTrainTest, RefusesDamagedAndForeignCheckpoints) {
  ASSERT_EQ(Shell(Command("--checkpoint " + Path("c"))).status, 0);
  const auto file = folder_ / "c/checkpoint.safetensors";
  const std::string content = Slurp(file);
  std::string damaged = content;
  damaged[damaged.size() - 5] ^= 1;
  Write(file, damaged);
  ExpectError(Command("--resume " + Path("c")), 3, "the checkpoint is damaged");
  Write(file, content.substr(0, content.size() / 2));
  ExpectError(Command("--resume " + Path("c")), 3, "checkpoint.safetensors");
  ASSERT_TRUE(WriteSafetensors(file, {}).ok());
  ExpectError(Command("--resume " + Path("c")), 3, "not a checkpoint of forge-train");
  ExpectError(Command("--resume " + Path("none")), 3, "none");
}

TEST_F(ForgeTrainTest, NamesWhatIsWrongWithTheData) {
  const std::string train = "forge-train mnist-mlp --device cpu --data ";
  const std::string x = (folder_ / "x").string() + ",", z = (folder_ / "z").string();
  ExpectError(train + "nothing", 2, "is not IMAGES.idx,LABELS.idx");
  ExpectError(train + Quoted(x + "none"), 3, "none");
  Write(z, IdxOf({40}, [](int i) { return i == 7 ? 10 : 0; }));
  ExpectError(train + Quoted(x + z), 3, "label 10 of sample 7 is not one of the model's 10");
  Write(z, IdxOf({39}, [](int) { return 0; }));
  ExpectError(train + Quoted(x + z), 3, "there are 39 labels");
  Write(z, IdxOf({0}, [](int) { return 0; }));
  ExpectError(train + Quoted(x + z), 3, "there is no sample");
  std::filesystem::create_directories(folder_ / "p");
  ExpectError(train + Path("p"), 3, "no sub-folder");
  ExpectError(Command("--optimizer lbfgs"), 2,
              "is not sgd, adam, adamw, adagrad, rmsprop, lion or muon");
  ExpectError(Command("--nesterov"), 2, "needs --optimizer sgd and --momentum");
  ExpectError(Command("--momentum 0.9"), 2, "not of adam");
  ExpectError(Command("--by-adamw fc"), 2, "--by-adamw is of muon, not of adam");
  ExpectError(Command("--optimizer muon --by-adamw '('"), 2, "is no regular expression");
  ExpectError(Command("--average 1"), 2, "--average 1 is not at least 0 and below 1");
  ExpectError(Command("--no-decay '('"), 2, "--no-decay '(' is no regular expression");
  ExpectError(Command("--lr nan"), 2, "--lr nan is not a number of at least 0");
  ExpectError(Command("--augment blur"), 2, "'blur' is not flip or shift=N");
  ExpectError(Command("--check-nan --time-by-op"), 2, "--check-nan and --time-by-op");
  ExpectError(Command("--precision f8"), 2, "precision 'f8' is not exact, f16, bf16 or fast");
  ExpectError(Command("--activation-budget much"), 2, "much");
  ExpectError(Command("--activation-budget 1K --dim K=2"), 2, "the model has no size 'K'");
  ExpectError(Command("--loss hinge"), 2, "is not cross_entropy, mse, l1");
  ExpectError(Command("-o t.onnx"), 2, "only a model of an .onnx");
}

TEST_F(ForgeTrainTest, StopsWhereTheLossIsNotFinite) {
  ExpectFailure(Command("--optimizer sgd --lr 1e20 --epochs 3"), "the loss is nan");
  ExpectFailure(Command("--optimizer sgd --lr 1e20 --epochs 3 --check-nan"),
                "makes a NaN, element");
  EXPECT_EQ(Shell(Command("--optimizer sgd --lr 0.1 --check-nan")).status, 0);
}

TEST_F(ForgeTrainTest, WritesTrainedOnnxModels) {
  OnnxModel model;
  model.Input("image", {"N", "784"}).Output("scores");
  model.Floats("w", {784, 10}, std::vector<float>(7840, 0.01F));
  model.Node("MatMul", {"image", "w"}, {"h"});
  Attribute(model.Node("Softmax", {"h"}, {"scores"}), "axis", onnx::AttributeProto::INT).set_i(1);
  Write(folder_ / "m.onnx", model.File());
  const Outcome o = Shell("forge-train " + Path("m.onnx") + " --device cpu --lr 0.01 --epochs 10 " +
                          "--data " + Data() + " --json -o " + Path("t.onnx"));
  ASSERT_EQ(o.status, 0) << o.err;
  const auto json = nlohmann::json::parse(o.out, nullptr, false);
  EXPECT_GT(json["epochs"][9]["accuracy"], 0.9);
  // Trained on: it begins where the first training ended.
  const Outcome again =
      Shell("forge-train " + Path("t.onnx") + " --device cpu --lr 0 --data " + Data() + " --json");
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out)["epochs"][0]["accuracy"], 1.0);
}

TEST_F(ForgeTrainTest, LearnsFromFoldersOfPictures) {
  const std::filesystem::path pictures = kSource + "/examples/fashion/pictures";
  for (const char* name : {"bag", "coat", "sandal"}) {
    std::filesystem::create_directories(folder_ / "p" / name);
    std::filesystem::copy_file(pictures / (std::string(name) + ".png"),
                               folder_ / "p" / name / "1.png");
  }
  const std::string train = "forge-train mnist-cnn --device cpu --json --data " + Path("p");
  const Outcome o = Shell(train + " --preprocess color=gray --epochs 15 --lr 0.003");
  ASSERT_EQ(o.status, 0) << o.err;
  const auto json = nlohmann::json::parse(o.out, nullptr, false);
  EXPECT_EQ(json["epochs"][14]["accuracy"], 1.0);
  const Outcome colour = Shell(train);
  EXPECT_EQ(colour.status, 2) << colour.err;
  EXPECT_NE(colour.err.find("input 'image'"), std::string::npos) << colour.err;
}

// A regression of y from two numbers; sigmoids of the sum for labels in 0..1.
class RegressionTest : public ForgeTrainTest {
 protected:
  void SetUp() override {
    OnnxModel line, share;
    for (OnnxModel* m : {&line, &share}) {
      m->Input("x", {"N", "2"}).Output("y");
      m->Floats("w", {2, 1}, {0, 0});
    }
    line.Node("MatMul", {"x", "w"}, {"y"});
    Write(folder_ / "m.onnx", line.File());
    share.Node("MatMul", {"x", "w"}, {"h"});
    share.Node("Sigmoid", {"h"}, {"y"});
    Write(folder_ / "share.onnx", share.File());
    const std::string python = "python3 - " + Path("d.npz") + " " + Path("bad.npz") + " " +
                               Path("unit.npz") + " <<'E'\n" + kWriteArchives + "E\n";
    ASSERT_EQ(std::system(python.c_str()), 0);
  }
};

TEST_F(RegressionTest, EveryLossFalls) {
  for (const std::string loss : {"mse", "l1", "smooth_l1", "huber", "binary_cross_entropy",
                                 "binary_cross_entropy_with_logits", "kl_div", "poisson_nll"}) {
    const bool of_shares = loss == "binary_cross_entropy";
    const Outcome o = Shell("forge-train " + Path(of_shares ? "share.onnx" : "m.onnx") +
                            " --device cpu --json --epochs 9 --optimizer sgd --lr 0.05 --loss " +
                            loss + " --data " + Path("unit.npz"));
    ASSERT_EQ(o.status, 0) << loss << o.err;
    const auto json = nlohmann::json::parse(o.out, nullptr, false);
    EXPECT_LT(json["epochs"][8]["loss"], json["epochs"][0]["loss"]) << loss;
  }
}

TEST_F(RegressionTest, FindsTheCoefficients) {
  const std::string train = "forge-train " + Path("m.onnx") + " --device cpu --loss mse --data ";
  const Outcome o =
      Shell(train + Path("d.npz") + " --optimizer sgd --lr 0.2 --batch 4 --epochs 80" +
            " --weights-out " + Path("w"));
  ASSERT_EQ(o.status, 0) << o.err;
  FORGE_ASSERT_OK_AND_ASSIGN(const Safetensors weights, ReadSafetensors(folder_ / "w"));
  ASSERT_EQ(weights.tensors.size(), 1U);
  EXPECT_NEAR(weights.tensors[0].second.f64(0), 2, 1e-3);
  EXPECT_NEAR(weights.tensors[0].second.f64(1), -3, 1e-3);
  ExpectError(train + Path("bad.npz"), 3, "has no array 'label'");
}

TEST_F(ForgeTrainTest, WritesACheckpointWhenInterrupted) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);
    const std::string command =
        "exec " + kBin + Command("--epochs 1000000 --checkpoint " + Path("c")) + " >/dev/null 2>&1";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 600 && !std::filesystem::exists(folder_ / "c/checkpoint.safetensors"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
  EXPECT_EQ(Shell(Command("--epochs 1 --resume " + Path("c"))).status, 0);
}

TEST_F(ForgeTrainTest, LeavesParametersOutOfTheDecay) {
  const std::string train =
      "forge-train mnist-mlp --device cpu --optimizer adamw --batch 40 --data " + Data() + " ";
  ASSERT_EQ(Shell(train + "--weight-decay 0 --weights-out " + Path("none")).status, 0);
  ASSERT_EQ(
      Shell(train + "--weight-decay 9 --no-decay 'fc2|bias' --weights-out " + Path("some")).status,
      0);
  FORGE_ASSERT_OK_AND_ASSIGN(const Safetensors none, ReadSafetensors(folder_ / "none"));
  FORGE_ASSERT_OK_AND_ASSIGN(const Safetensors some, ReadSafetensors(folder_ / "some"));
  for (size_t t = 0; t < none.tensors.size(); ++t) {
    const auto& [name, without] = none.tensors[t];
    const ir::HostValue& with = some.tensors[t].second;
    const bool same = std::ranges::equal(without.bytes(), with.bytes());
    EXPECT_EQ(same, name != "fc1.weight") << name;
  }
}

TEST_F(ForgeTrainTest, GivesParametersRatesOfTheirOwn) {
  const std::string train = "forge-train mnist-mlp --device cpu --batch 40 --data " + Data() + " ";
  const auto trained = [&](const std::string& options, const char* file) {
    EXPECT_EQ(Shell(train + options + " --weights-out " + Path(file)).status, 0);
    auto weights = ReadSafetensors(folder_ / file);
    EXPECT_TRUE(weights.ok()) << weights.status();
    std::map<std::string, std::vector<uint8_t>> bytes;
    for (const auto& [name, value] : weights->tensors)
      bytes[name].assign(value.bytes().begin(), value.bytes().end());
    return bytes;
  };
  const auto first = trained("--lr 0", "first"), all = trained("", "all");
  const auto some = trained("--rate 'weight$=0' --rate fc2=1", "some");
  for (const auto& [name, bytes] : some) {
    const bool still = name.ends_with("weight");
    EXPECT_EQ(bytes == first.at(name), still) << name;
    EXPECT_EQ(bytes == all.at(name), !still) << name;
  }
  const auto rest = trained("--freeze fc1", "rest");
  EXPECT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest.at("fc2.bias"), all.at("fc2.bias"));
  ExpectError(train + "--freeze .", 2, "no f32 parameter to train");
  ExpectError(train + "--rate fc1", 2, "--rate fc1 is not REGEX=FACTOR");
  ExpectError(train + "--rate fc1=-1", 2, "with a factor of at least 0");
  ExpectError(train + "--rate '(=1'", 2, "--rate '(' is no regular expression");
}

TEST_F(ForgeTrainTest, DrawsTheLosses) {
  const Outcome o = Shell(Command("--epochs 3 --validate " + Data() + " --curve " + Path("c.png")));
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.out, ::testing::ContainsRegex("\nloss [0-9.]+ .+ [0-9.]+\n$"));
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue picture, ReadImage(folder_ / "c.png"));
  EXPECT_THAT(picture.shape(), ::testing::ElementsAre(480, 800, 3));
  ExpectFailure(Command("--curve " + Path("no/such/folder.png")), "no/such/folder.png");
}

// Where the line is in a column of a picture: 0 at the top; -1: nowhere.
int RowOfLine(const ir::HostValue& picture, int64_t column) {
  for (int64_t y = 31; y < 480; ++y)
    if (picture.f64((y * 800 + column) * 3) == 0x1f) return static_cast<int>(y);
  return -1;
}

TEST(LossCurveTest, FallsAsTheLossDoes) {
  tools::LossCurve curve;
  EXPECT_EQ(curve.Text(4), "");
  for (int step = 1; step <= 65'536; ++step) curve.Add(step, 3 - step / 32768.0);
  EXPECT_EQ(curve.Text(4), "2.7500 █▆▃▁ 1.2500");
  const TempFolder folder;
  ASSERT_TRUE(curve.WritePng(folder / "c.png").ok());
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue picture, ReadImage(folder / "c.png"));
  const int left = RowOfLine(picture, 100), middle = RowOfLine(picture, 430),
            right = RowOfLine(picture, 760);
  EXPECT_GE(left, 0);
  EXPECT_NEAR(middle, (left + right) / 2, 2);
  EXPECT_LT(left, middle);
}

TEST(LossCurveTest, DrawsASinglePoint) {
  tools::LossCurve curve;
  curve.Add(1, 0.5);
  curve.AddValidation(1, 0.5);
  EXPECT_EQ(curve.Text(4), "0.5000 ▁ 0.5000");
  const TempFolder folder;
  EXPECT_TRUE(curve.WritePng(folder / "c.png").ok());
}

TEST(BatchesTest, OrderDependsOnSeedAndEpochAlone) {
  using tools::Shuffled;
  EXPECT_EQ(Shuffled(100, 1, 2), Shuffled(100, 1, 2));
  EXPECT_NE(Shuffled(100, 1, 2), Shuffled(100, 1, 3));
  EXPECT_NE(Shuffled(100, 1, 2), Shuffled(100, 2, 2));
  std::vector<int64_t> sorted = Shuffled(100, 1, 2);
  std::sort(sorted.begin(), sorted.end());
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace forge
