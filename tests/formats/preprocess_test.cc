// SPDX-License-Identifier: Apache-2.0
#include "formats/images/preprocess.h"

#include <array>

#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using absl::StatusCode;
using ir::HostValue;
using testing::ElementsAre;
using testing::FloatEq;

HostValue Image(std::vector<int64_t> shape, std::vector<uint8_t> samples) {
  return *HostValue::Of(DType::kU8, shape, Bytes(std::move(samples)));
}

absl::StatusOr<HostValue> Prepare(std::string_view spec, const HostValue& image) {
  FORGE_ASSIGN_OR_RETURN(const Preprocess p, ParsePreprocess(spec));
  return ApplyPreprocess(p, image);
}

std::vector<float> Floats(const HostValue& v) {
  std::vector<float> out;
  for (int64_t i = 0; i < v.elements(); ++i) out.push_back(static_cast<float>(v.f64(i)));
  return out;
}

TEST(PreprocessTest, ParsesEveryKey) {
  FORGE_ASSERT_OK_AND_ASSIGN(
      const Preprocess p,
      ParsePreprocess("resize=48x192,mean=0.5,0.4,0.3,std=0.25,layout=nhwc,color=bgr"));
  EXPECT_EQ(p.height, 48);
  EXPECT_EQ(p.width, 192);
  EXPECT_THAT(p.mean, ElementsAre(0.5, 0.4, 0.3));
  EXPECT_THAT(p.std, ElementsAre(0.25));
  EXPECT_EQ(p.layout, Preprocess::Layout::kNhwc);
  EXPECT_EQ(p.color, Preprocess::Color::kBgr);
}

TEST(PreprocessTest, RefusesWhatItCannotRead) {
  for (const char* spec :
       {"resize=48", "resize=0x5", "resize=99999x5", "resize=axb", "mean=a", "mean=1,2,3,4",
        "mean=", "mean=nan", "std=0", "layout=chw", "color=cmyk", "size=3x3", "rgb",
        "layout=nchw,1", "mean=1,mean=2", "=", "resize=3x3x3"})
    EXPECT_THAT(ParsePreprocess(spec), Fails(StatusCode::kInvalidArgument, "preprocess")) << spec;
}

TEST(PreprocessTest, NormalisesInF32) {
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue v,
                             Prepare("mean=0.25,std=0.5,color=gray", Image({1, 2, 1}, {255, 51})));
  EXPECT_EQ(v.type().ToText(), "f32[1, 1, 1, 2]");
  EXPECT_THAT(Floats(v), ElementsAre((1.0f - 0.25f) / 0.5f, (51 / 255.0f - 0.25f) / 0.5f));
}

TEST(PreprocessTest, OrdersChannelsAndAxes) {
  const HostValue image = Image({1, 2, 3}, {255, 0, 0, 0, 255, 51});
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue rgb, Prepare("", image));
  EXPECT_THAT(Floats(rgb), ElementsAre(1, 0, 0, 1, 0, FloatEq(0.2f)));
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue bgr, Prepare("color=bgr,layout=nhwc", image));
  EXPECT_EQ(bgr.type().ToText(), "f32[1, 1, 2, 3]");
  EXPECT_THAT(Floats(bgr), ElementsAre(0, 0, 1, FloatEq(0.2f), 1, 0));
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue gray, Prepare("color=gray", image));
  EXPECT_THAT(Floats(gray), ElementsAre(76 / 255.0f, 155 / 255.0f));
}

TEST(PreprocessTest, UsesAMeanForEachChannelOfTheResult) {
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue v, Prepare("mean=0,0.5,1,std=1,2,4,color=bgr",
                                                        Image({1, 1, 3}, {0, 0, 255})));
  EXPECT_THAT(Floats(v), ElementsAre(1, -0.25f, -0.25f));
}

TEST(PreprocessTest, RepeatsGreyForColour) {
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue v, Prepare("", Image({1, 1, 1}, {255})));
  EXPECT_THAT(Floats(v), ElementsAre(1, 1, 1));
}

TEST(PreprocessTest, ResizesWithHalfPixelCentres) {
  const HostValue row = Image({1, 2, 1}, {0, 255});
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue wide, Prepare("resize=1x4,color=gray", row));
  EXPECT_THAT(Floats(wide), ElementsAre(0, 0.25f, 0.75f, 1));
  const HostValue square = Image({2, 2, 1}, {0, 100, 100, 200});
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue one, Prepare("resize=1x1,color=gray", square));
  EXPECT_THAT(Floats(one), ElementsAre(FloatEq(100 / 255.0f)));
}

TEST(PreprocessTest, KeepsSamplesWhereTheSizeStays) {
  std::vector<uint8_t> samples(256);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<uint8_t>(i);
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue v,
                             Prepare("resize=16x16,color=gray", Image({16, 16, 1}, samples)));
  for (int64_t i = 0; i < 256; ++i) EXPECT_EQ(v.f64(i), static_cast<float>(i) / 255.0f);
}

TEST(PreprocessTest, RefusesMeansForOtherChannels) {
  EXPECT_THAT(Prepare("mean=1,2,3,color=gray", Image({1, 1, 1}, {0})),
              Fails(StatusCode::kInvalidArgument, "3 values for 1 channels"));
}

TEST(PreprocessTest, RefusesWhatIsNoPicture) {
  EXPECT_THAT(Prepare("", *HostValue::Zeros(DType::kF32, std::array<int64_t, 3>{1, 1, 3})),
              Fails(StatusCode::kInvalidArgument, "not a picture"));
  EXPECT_THAT(Prepare("", *HostValue::Zeros(DType::kU8, std::array<int64_t, 3>{1, 1, 2})),
              Fails(StatusCode::kInvalidArgument, "not a picture"));
}

}  // namespace
}  // namespace forge
