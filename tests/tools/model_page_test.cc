// SPDX-License-Identifier: Apache-2.0
// The page of forge-inspect --html: what is in it, and what a browser makes of it.
#include <gmock/gmock.h>

#include <array>
#include <climits>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/images/image.h"
#include "tests/support/onnx_model.h"
#include "tests/support/status_matchers.h"
#include "tests/tools/shell.h"

namespace forge {
namespace {

using namespace testing;  // NOLINT: how programs are run

constexpr std::string_view kHostile =
    "</script><img src=x onerror=\"document.documentElement.dataset.hacked=1\">";

// Calls f with the text from each place of `what` on, until it returns true; whether it has.
template <class F>
bool AnyPlace(const std::string& text, std::string_view what, F f) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1))
    if (f(text.c_str() + at)) return true;
  return false;
}

size_t Count(std::string_view text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// The page's data, as its script reads it.
nlohmann::json DataOf(const std::string& page) {
  const std::string_view begin = "id=\"data\">";
  const size_t at = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at), nullptr, false);
}

std::string PageOf(const std::filesystem::path& model, const std::filesystem::path& file,
                   const std::string& options = "") {
  const Outcome o =
      Shell("forge-inspect " + Quoted(model) + " --html " + Quoted(file) + " " + options);
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.out, "");
  return Slurp(file);
}

// The lines of the box whose first line is `name`.
std::vector<std::string> LinesOf(const nlohmann::json& data, std::string_view name) {
  std::vector<std::string> lines;
  for (const auto& n : data["functions"][0]["nodes"])
    if (n["title"] == name)
      for (const auto& line : n["lines"]) lines.push_back(line[1]);
  return lines;
}

OnnxModel HostileModel() {
  const std::string h(kHostile);
  OnnxModel model;
  model.Input("x" + h, {"2", "N" + h}).Output("y");
  model.Floats("w" + h, {2, 1}, {-1, 3});
  auto& node = model.Node("Mul", {"x" + h, "w" + h}, {"inner" + h});
  node.set_name(h + "\xE2\x80\xA8 \\u003c \" ' \x01");
  model.Node("Softmax", {"inner" + h}, {"y"}).set_name("-->");
  auto& entry = *model.proto().add_metadata_props();
  entry.set_key(h);
  entry.set_value(h);
  return model;
}

// A deep network with branches.
OnnxModel DeepModel(int nodes) {
  OnnxModel model;
  model.Input("v0", {"1", "8"}).Output("v" + std::to_string(nodes));
  for (int i = 1; i <= nodes; ++i) {
    const std::string before = "v" + std::to_string(i - 1), now = "v" + std::to_string(i);
    if (i % 6 == 0)
      model.Node("Add", {before, "v" + std::to_string(i - 5)}, {now});
    else
      model.Node(i % 2 ? "Relu" : "Sigmoid", {before}, {now}).set_name("node_" + now);
  }
  return model;
}

TEST(ModelPageTest, HoldsTheWholeModel) {
  TempFolder folder;
  const std::string page = PageOf(kModel, folder / "page.html");
  EXPECT_EQ(page.find("http://"), page.rfind("http://")) << "only the name of SVG";
  EXPECT_EQ(page.find("https://"), page.npos);
  const nlohmann::json data = DataOf(page);
  const auto inspected = nlohmann::json::parse(Shell("forge-inspect --json " + kModel).out);
  ASSERT_EQ(data["functions"].size(), 1u);
  size_t nodes = 0;
  std::set<std::string> types;
  for (const auto& n : data["functions"][0]["nodes"]) nodes += n.contains("attributes");
  for (const auto& e : data["functions"][0]["edges"]) types.insert(e[2]);
  EXPECT_EQ(nodes, inspected["functions"][0]["nodes"].size());
  EXPECT_TRUE(types.contains("f32[N, 16, 14, 14]")) << data["functions"][0]["edges"].dump();
  EXPECT_EQ(
      LinesOf(data, "conv1 (Conv)"),
      (std::vector<std::string>{"conv1 (Conv)", "weight 16×1×3×3", "padding = [1, 1, 1, 1]"}));
  EXPECT_EQ(data["variables"].size(), inspected["variables"].size());
  for (const auto& v : data["variables"]) {
    ASSERT_TRUE(v.contains("summary")) << v.dump();
    EXPECT_LE(v["summary"]["min"], v["summary"]["mean"]);
    EXPECT_LE(v["summary"]["mean"], v["summary"]["max"]);
  }
}

TEST(ModelPageTest, StringsOfTheModelAreDataOnly) {
  TempFolder folder;
  Write(folder / "hostile.onnx", HostileModel().File());
  const std::string page = PageOf(folder / "hostile.onnx", folder / "page.html");
  EXPECT_EQ(page.find("<img"), page.npos);
  EXPECT_EQ(Count(page, "</script"), 2u);
  EXPECT_EQ(Count(page, "<script"), 2u);
  EXPECT_EQ(Count(page, "\xE2\x80\xA8"), 0u);
  const nlohmann::json data = DataOf(page);
  ASSERT_FALSE(data.is_discarded());
  bool whole = false;
  for (const auto& n : data["functions"][0]["nodes"])
    whole |= n["title"].get<std::string>().starts_with(kHostile);
  EXPECT_TRUE(whole) << data.dump();
}

// A shape stands once for each value, and only where it changes.
TEST(ModelPageTest, LabelsLinesOnce) {
  TempFolder folder;
  OnnxModel model;
  model.Input("x", {"2", "3"}).Output("y");
  model.Node("Relu", {"x"}, {"same"});
  model.Node("Transpose", {"same"}, {"turned"});
  model.Node("Exp", {"turned"}, {"a"});
  model.Node("Neg", {"turned"}, {"b"});
  model.Node("Add", {"a", "b"}, {"sum"});
  model.Node("Mul", {"sum", "half"}, {"y"}).set_name("halve");
  model.Floats("half", {1}, {0.5});
  Write(folder / "model.onnx", model.File());
  const nlohmann::json data = DataOf(PageOf(folder / "model.onnx", folder / "page.html"));
  std::vector<std::string> labels;
  for (const auto& e : data["functions"][0]["edges"])
    if (e[4] != "") labels.push_back(e[4]);
  EXPECT_EQ(labels, std::vector<std::string>{"3×2"});
  EXPECT_EQ(LinesOf(data, "halve (Mul)"), (std::vector<std::string>{"halve (Mul)", "b 0.5"}));
}

TEST(ModelPageTest, ShowsNumbersForOpenDimensions) {
  TempFolder folder;
  const std::string page = PageOf(kModel, folder / "page.html", "--dim N=7");
  const nlohmann::json data = DataOf(page);
  EXPECT_EQ(data["functions"][0]["nodes"][0]["lines"][0][1], "7×1×28×28");
  for (const auto& e : data["functions"][0]["edges"])
    EXPECT_THAT(e[2].get<std::string>(), ::testing::StartsWith("f32[7, "));
}

TEST(ModelPageTest, ShowsRegionsAfterAPass) {
  if (!IsHere("cpu")) GTEST_SKIP() << "there is no CPU device";
  TempFolder folder;
  const nlohmann::json before =
      DataOf(PageOf(kModel, folder / "page.html", "--pass fold --device cpu"));
  EXPECT_EQ(before["functions"].size(), 1u);
  const nlohmann::json after =
      DataOf(PageOf(kModel, folder / "page.html", "--pass fuse --device cpu"));
  EXPECT_EQ(after["title"], "fashion.bin after fuse on cpu");
  int regions = 0;
  for (const auto& n : after["functions"][0]["nodes"]) {
    if (n["op"] != "conv + relu") continue;
    ++regions;
    const size_t body = n["bodies"][0];
    EXPECT_TRUE(after["functions"][body]["body"]);
    EXPECT_EQ(after["functions"][body]["nodes"].back()["kind"], "output");
  }
  EXPECT_EQ(regions, 3);
  ExpectError("forge-inspect " + kModel + " --pass all --html " + Quoted(folder / "x.html"), 2,
              "after one pass");
  EXPECT_FALSE(std::filesystem::exists(folder / "x.html"));
  ExpectError("forge-inspect " + kModel + " --html /proc/no/page.html", 1, "/proc/no/page.html");
}

TEST(ModelPageTest, ShowsKernelsAndTimes) {
  if (!IsHere("cpu")) GTEST_SKIP() << "there is no CPU device";
  TempFolder folder;
  const std::string trace = Quoted(folder / "trace.json");
  const Outcome run = Shell("forge-run --json --explain --device cpu " + kModel +
                            " --input image=" + kPicture + " --profile " + trace);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto plan = nlohmann::json::parse(run.out)["plan"]["steps"];
  const std::string here = "--device cpu --dim N=1 ";
  const nlohmann::json data =
      DataOf(PageOf(kModel, folder / "page.html", here + "--profile " + trace));
  double share = 0;
  size_t steps = 0;
  for (const auto& n : data["functions"][0]["nodes"]) {
    if (!n.contains("kernel")) continue;
    EXPECT_EQ(n["kernel"], plan[n["step"].get<size_t>()]["kernel"]);
    EXPECT_GE(n["ms"], 0);
    share += n["share"].get<double>();
    ++steps;
  }
  EXPECT_EQ(steps, plan.size());
  EXPECT_NEAR(share, 1, 1e-9);
  const std::string page = " --html " + Quoted(folder / "x.html") + " ";
  ExpectError("forge-inspect " + kModel + page + here + "--no-fuse --profile " + trace, 2,
              "another plan");
  Write(folder / "other.json", "{}");
  ExpectError(
      "forge-inspect " + kModel + page + here + "--profile " + Quoted(folder / "other.json"), 3,
      "not a trace");
}

TEST(ModelPageTest, StaysSmallForLargeModels) {
  TempFolder folder;
  Write(folder / "deep.onnx", DeepModel(1500).File());
  const std::string page = PageOf(folder / "deep.onnx", folder / "page.html");
  EXPECT_LT(page.size(), 3u << 20);
  EXPECT_EQ(DataOf(page)["functions"][0]["leftOut"], 0);
}

// A browser without a window.
class SlowBrowserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v chromium >/dev/null") != 0)
      GTEST_SKIP() << "DID NOT RUN: there is no chromium, so nothing is known of how pages look";
  }

  // The elements after the page's script has run; fails when the console has anything to say.
  std::string Dom(const std::filesystem::path& page, const std::string& fragment = "") {
    const std::string dom = Chromium(page, fragment, "--dump-dom");
    EXPECT_NE(dom.find("data-errors=\"0\""), dom.npos);
    EXPECT_NE(dom.find("data-ready=\"yes\""), dom.npos);
    EXPECT_EQ(dom.find("data-hacked"), dom.npos);
    return dom;
  }

  ir::HostValue Screenshot(const std::filesystem::path& page, const std::string& fragment) {
    const std::filesystem::path file = folder_ / "picture.png";
    Chromium(page, fragment, "--screenshot=" + Quoted(file));
    auto picture = ReadImage(file);
    EXPECT_THAT(picture, Succeeds());
    return picture.ok() ? *picture : ir::HostValue::Scalar(DType::kU8, 0);
  }

  TempFolder folder_;

 private:
  std::string Chromium(const std::filesystem::path& page, const std::string& fragment,
                       const std::string& what) {
    const std::filesystem::path out = folder_ / "out", err = folder_ / "err";
    const std::string command =
        "timeout 120 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars "
        "--no-first-run --disable-dev-shm-usage --window-size=1200,800 --enable-logging=stderr "
        "--virtual-time-budget=4000 --user-data-dir=" +
        Quoted(folder_ / "profile") + " " + what + " 'file://" + page.string() + fragment + "' >" +
        Quoted(out) + " 2>" + Quoted(err);
    EXPECT_EQ(std::system(command.c_str()), 0) << Slurp(err);
    EXPECT_EQ(Slurp(err).find("CONSOLE"), std::string::npos) << Slurp(err);
    return Slurp(out);
  }
};

size_t BoxesIn(const std::string& dom) { return Count(dom, "data-index=\""); }

TEST_F(SlowBrowserTest, DrawsEveryNode) {
  const nlohmann::json data = DataOf(PageOf(kModel, folder_ / "page.html"));
  const std::string dom = Dom(folder_ / "page.html");
  EXPECT_EQ(BoxesIn(dom), data["functions"][0]["nodes"].size());
  EXPECT_EQ(Count(dom, "class=\"edge\""), data["functions"][0]["edges"].size());
  EXPECT_NE(dom.find(">N×16×14×14<"), dom.npos);
  EXPECT_NE(dom.find(">weight 16×1×3×3<"), dom.npos);
}

TEST_F(SlowBrowserTest, TellsOfNodesWeightsAndSearches) {
  PageOf(kModel, folder_ / "page.html");
  const std::string node = Dom(folder_ / "page.html", "#node=2");
  EXPECT_NE(node.find("class=\"node composite selected\""), node.npos);
  EXPECT_NE(node.find("id=\"provenance\""), node.npos);
  EXPECT_NE(node.find("Read by"), node.npos);
  const std::string conv = Dom(folder_ / "page.html", "#node=1");
  EXPECT_NE(conv.find("id=\"attributes\""), conv.npos);
  const std::string weight = Dom(folder_ / "page.html", "#weight=0");
  EXPECT_NE(weight.find("id=\"statistics\""), weight.npos);
  EXPECT_NE(weight.find("aria-label=\"histogram\""), weight.npos);
  const std::string found = Dom(folder_ / "page.html", "#search=pool");
  EXPECT_EQ(Count(found, "<li"), 3u);
}

TEST_F(SlowBrowserTest, FindsKernelsAndFitsTheWholeGraph) {
  if (!IsHere("cpu")) GTEST_SKIP() << "there is no CPU device";
  const nlohmann::json plan =
      DataOf(PageOf(kModel, folder_ / "page.html", "--device cpu --dim N=1"));
  const std::string kernel = plan["functions"][0]["nodes"][1]["kernel"];
  size_t users = 0;
  for (const auto& n : plan["functions"][0]["nodes"])
    users += n.value("kernel", "").find(kernel) != std::string::npos;
  EXPECT_GT(users, 0u);
  EXPECT_EQ(Count(Dom(folder_ / "page.html", "#search=" + kernel), "<li"), users);
  EXPECT_NE(Dom(folder_ / "page.html", "#node=1").find("id=\"kernel\""), std::string::npos);
  Write(folder_ / "deep.onnx", DeepModel(300).File());
  const nlohmann::json data = DataOf(PageOf(folder_ / "deep.onnx", folder_ / "deep.html"));
  const std::string dom = Dom(folder_ / "deep.html", "#fit=1");
  double x = -1, y = -1, scale = 0;
  ASSERT_TRUE(AnyPlace(dom, "translate(", [&](const char* at) {
    return std::sscanf(at, "translate(%lf %lf) scale(%lf)", &x, &y, &scale) == 3;
  }));
  EXPECT_GE(y, 0);
  EXPECT_LE(y + scale * data["functions"][0]["size"][1].get<double>(), 800);
  EXPECT_GE(x, 0);
  EXPECT_LE(x + scale * data["functions"][0]["size"][0].get<double>(), 1200);
}

TEST_F(SlowBrowserTest, KeepsHostileNamesHarmless) {
  Write(folder_ / "hostile.onnx", HostileModel().File());
  PageOf(folder_ / "hostile.onnx", folder_ / "page.html");
  for (const char* fragment : {"", "#node=1", "#node=2", "#weight=0", "#search=script",
                               "#function=%3C/script%3E%3Cimg%20src=x%20onerror=alert(1)%3E"}) {
    SCOPED_TRACE(fragment);
    const std::string dom = Dom(folder_ / "page.html", fragment);
    EXPECT_EQ(dom.find("<img"), dom.npos);
    EXPECT_EQ(BoxesIn(dom), 4u);
  }
}

// Ten times the nodes may take ten times as long, and noise; not a hundred times.
TEST_F(SlowBrowserTest, DrawsLargeGraphsInLinearTime) {
  const auto drawn = [&](int nodes) {
    Write(folder_ / "deep.onnx", DeepModel(nodes).File());
    PageOf(folder_ / "deep.onnx", folder_ / "page.html");
    int best = INT_MAX;
    for (int i = 0; i < 3; ++i) {
      const std::string dom = Dom(folder_ / "page.html", "#node=100");
      EXPECT_EQ(BoxesIn(dom), static_cast<size_t>(nodes) + 2);
      int ms = 0;
      if (!AnyPlace(dom, "data-drawn=", [&](const char* at) {
            return std::sscanf(at, "data-drawn=\"%d\"", &ms) == 1;
          }))
        return INT_MAX;
      best = std::min(best, ms);
    }
    return best;
  };
  const int few = drawn(400), many = drawn(4000);
  EXPECT_LT(many, 40 * std::max(few, 10)) << "milliseconds";
}

struct Look {
  size_t colours = 0;
  double brightness = 0;  // 0 to 255
  double drawn = 0;       // share of pixels unlike the most frequent colour
};

Look LookOf(const ir::HostValue& picture) {
  std::map<std::array<uint8_t, 3>, size_t> colours;
  const auto bytes = picture.bytes();
  const size_t channels = picture.shape().back(), pixels = bytes.size() / channels;
  double sum = 0;
  size_t most = 0;
  for (size_t i = 0; i + channels <= bytes.size(); i += channels) {
    most = std::max(most, ++colours[{bytes[i], bytes[i + 1], bytes[i + 2]}]);
    sum += (bytes[i] + bytes[i + 1] + bytes[i + 2]) / 3.0;
  }
  const auto n = static_cast<double>(pixels);
  return {colours.size(), sum / n, 1 - static_cast<double>(most) / n};
}

TEST_F(SlowBrowserTest, LooksLikeSomethingInLightAndDark) {
  PageOf(kModel, folder_ / "page.html");
  const Look light = LookOf(Screenshot(folder_ / "page.html", "#node=2&theme=light"));
  const Look dark = LookOf(Screenshot(folder_ / "page.html", "#node=2&theme=dark"));
  EXPECT_GT(light.colours, 60u);
  EXPECT_GT(dark.colours, 60u);
  EXPECT_GT(light.brightness, 200);
  EXPECT_LT(dark.brightness, 80);
  EXPECT_GT(light.drawn, 0.1);
  EXPECT_GT(dark.drawn, 0.1);
}

}  // namespace
}  // namespace forge
