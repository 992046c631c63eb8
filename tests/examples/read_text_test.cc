// SPDX-License-Identifier: Apache-2.0
// examples/read_text reads what ImageMagick drew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/oracle.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_names.h"

namespace forge {
namespace {

using testing::HasSubstr;

const std::string kProgram = FORGE_BINARY_DIR "/bin/read_text";
const std::string kFonts = "/usr/share/fonts/truetype/dejavu/DejaVu";  // fonts-dejavu-core

struct Outcome {
  int status;
  std::string out, err;
};

std::string Slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Outcome Shell(const std::string& command) {
  TempFolder folder;
  const std::string out = folder / "out", err = folder / "err";
  const int status = std::system((command + " >'" + out + "' 2>'" + err + "'").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Slurp(out), Slurp(err)};
}

// ImageMagick 7 or 6; empty where there is neither.
std::string ImageMagick() {
  for (const char* program : {"magick", "convert", "/usr/bin/convert"})
    if (Shell(std::string(program) + " -version").out.find("ImageMagick") != std::string::npos)
      return program;
  return "";
}

// A line of text at a place, turned by some degrees.
std::string Line(const std::string& text, const std::string& font, int size, int degrees,
                 const std::string& place) {
  return fmt::format(
      " \\( -background none -fill '#102040' -font {}{}.ttf -pointsize {} 'label:{}' -rotate {} "
      "+repage \\) -geometry {} -composite",
      kFonts, font, size, text, degrees, place);
}

class ReadTextTest : public testing::Test {
 protected:
  std::string Models(bool classifier) const {
    std::string options = fmt::format(" --det '{}' --rec '{}'", CachedModel("ppocr-det").string(),
                                      CachedModel("ppocr-rec").string());
    if (classifier) options += fmt::format(" --cls '{}'", CachedModel("ppocr-cls").string());
    return options;
  }
  bool ModelsAreThere() const {
    for (const char* name : {"ppocr-det", "ppocr-rec", "ppocr-cls"})
      if (!std::filesystem::exists(CachedModel(name))) return false;
    return true;
  }
  TempFolder folder_;
};

class SlowReadTextTest : public ReadTextTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    if (!ModelsAreThere()) GTEST_SKIP() << "tools/fetch-models --all has not run";
    imagemagick_ = ImageMagick();
    if (imagemagick_.empty() || !std::filesystem::exists(kFonts + "Sans.ttf"))
      GTEST_SKIP() << "imagemagick or fonts-dejavu-core is not installed";
  }
  // Draws `lines` on a page, and gives what the program reads there.
  std::string Read(const std::string& size, const std::string& lines, const std::string& kind,
                   const std::string& options) {
    const std::string picture = folder_ / ("page." + kind);
    const Outcome drawn = Shell(
        fmt::format("{} -size {} 'xc:#f4f0e6' +size{} '{}'", imagemagick_, size, lines, picture));
    EXPECT_EQ(drawn.status, 0) << drawn.err;
    const Outcome o = Shell(fmt::format("'{}'{} --device '{}' {} '{}'", kProgram, Models(true),
                                        GetParam(), options, picture));
    EXPECT_EQ(o.status, 0) << o.err;
    EXPECT_EQ(o.err, "");
    return o.out;
  }
  std::string imagemagick_;
};

TEST_P(SlowReadTextTest, ReadsOneLine) {
  EXPECT_EQ(Read("320x96", Line("Shelf 42-B", "Sans", 40, 0, "+20+20"), "png", ""), "Shelf 42-B\n");
}

TEST_P(SlowReadTextTest, ReadsLinesOfSeveralSizesFontsAndDirections) {
  if (GetParam().starts_with("reference")) GTEST_SKIP() << "the reference takes minutes";
  const std::string lines = Line("Quarterly report", "Sans-Bold", 48, 0, "+40+20") +
                            Line("Sales grew in every region,", "Serif", 30, 0, "+40+110") +
                            Line("costs did not.", "Serif", 30, 180, "+40+170") +
                            Line("small print: see page 9", "Sans", 17, 0, "+60+240") +
                            Line("Uphill", "Sans", 40, -12, "+420+160") +
                            Line("Sideways", "Sans-Bold", 34, -90, "+600+30");
  EXPECT_EQ(Read("704x320", lines, "jpg", ""),
            "Quarterly report\nSales grew in every region,\nSideways\ncosts did not.\nUphill\n"
            "small print: see page 9\n");
}

TEST_P(SlowReadTextTest, FindsNothingOnAnEmptyPage) {
  EXPECT_EQ(Read("96x64", "", "png", "--boxes"), "");
}

TEST_P(SlowReadTextTest, TellsWhereALineIs) {
  const std::string out = Read("320x96", Line("Exit", "Sans", 40, 0, "+100+20"), "png", "--boxes");
  double confidence = 0;
  int x[4] = {}, y[4] = {};
  char text[16] = "";
  ASSERT_EQ(std::sscanf(out.c_str(), "%lf %d,%d %d,%d %d,%d %d,%d %15s", &confidence, &x[0], &y[0],
                        &x[1], &y[1], &x[2], &y[2], &x[3], &y[3], text),
            10)
      << out;
  EXPECT_STREQ(text, "Exit");
  EXPECT_GT(confidence, 0.9);
  EXPECT_NEAR(x[0], 100, 8);
  EXPECT_NEAR(x[1], 100 + 76, 12);
  EXPECT_GT(y[2], y[1] + 25);
}

INSTANTIATE_TEST_SUITE_P(AllDevices, SlowReadTextTest, testing::ValuesIn(Devices()),
                         NameOfParameter);

TEST_F(ReadTextTest, PrintsItsUsage) {
  const Outcome o = Shell(kProgram + " --help");
  EXPECT_EQ(o.status, 0);
  EXPECT_THAT(o.out, HasSubstr("example: read_text"));
}

TEST_F(ReadTextTest, RefusesWrongArguments) {
  for (const auto& [arguments, part] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "--det and --rec are needed"},
           {"--det a --rec b", "no picture"},
           {"--det", "--det needs a value"},
           {"--colour x", "unknown option '--colour'"},
           {"--det a --rec b --least 2 c.png", "--least cannot be '2'"},
           {"--det a --rec b --longest-side 1e9 c.png", "--longest-side cannot be '1e9'"}}) {
    const Outcome o = Shell(kProgram + " " + arguments);
    EXPECT_EQ(o.status, 2) << arguments;
    EXPECT_THAT(o.err, HasSubstr(part));
    EXPECT_EQ(o.out, "");
  }
}

TEST_F(ReadTextTest, RefusesWhatIsNoModelAndNoPicture) {
  EXPECT_EQ(Shell(kProgram + " --device reference --det none --rec none a.png").status, 3);
  EXPECT_EQ(Shell(kProgram + " --device nonesuch:9 --det none --rec none a.png").status, 2);
  if (!ModelsAreThere()) GTEST_SKIP() << "tools/fetch-models --all has not run";
  folder_.Write("cut.png", std::string_view("\x89PNG\r\n\x1a\n"));
  const Outcome o = Shell(fmt::format("'{}'{} --device reference '{}'", kProgram, Models(false),
                                      (folder_ / "cut.png").string()));
  EXPECT_EQ(o.status, 3) << o.err;
  EXPECT_THAT(o.err, HasSubstr("cut.png"));
}

TEST_F(ReadTextTest, RefusesModelsOfAnotherKind) {
  if (!ModelsAreThere()) GTEST_SKIP() << "tools/fetch-models --all has not run";
  const std::string det = CachedModel("ppocr-det").string();
  const Outcome o =
      Shell(fmt::format("'{0}' --device reference --det '{1}' --rec '{1}' '{2}'", kProgram, det,
                        FORGE_SOURCE_DIR "/examples/fashion/pictures/bag.png"));
  EXPECT_EQ(o.status, 2) << o.err;
  EXPECT_THAT(o.err, HasSubstr("alphabet"));
}

}  // namespace
}  // namespace forge
