// SPDX-License-Identifier: Apache-2.0
#include "formats/images/image.h"

#include <cstdio>
// jpeglib.h needs the one above first.
#include <jpeglib.h>
#include <zlib.h>

#include <functional>

#include "formats/images/exif.h"
#include "formats/images/image_codecs.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace forge {
namespace {

using absl::StatusCode;
using ir::HostValue;
using testing::ElementsAre;

std::string BigEndian(uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
          static_cast<char>(v)};
}

std::string Chunk(std::string name, std::string_view data) {
  const auto size = static_cast<uint32_t>(data.size());
  name += data;
  const auto crc =
      static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(name.data()), name.size()));
  return BigEndian(size) + name + BigEndian(crc);
}

struct PngFile {
  uint32_t width, height;
  uint8_t depth, kind;  // kind: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGB and alpha
  std::string rows;     // each after its filter byte
  std::string more;     // chunks before the data
};

std::string Encode(const PngFile& f) {
  std::string header = BigEndian(f.width) + BigEndian(f.height);
  header += {static_cast<char>(f.depth), static_cast<char>(f.kind), '\0', '\0', '\0'};
  uLongf size = compressBound(f.rows.size());
  std::string data(size, '\0');
  compress(reinterpret_cast<Bytef*>(data.data()), &size,
           reinterpret_cast<const Bytef*>(f.rows.data()), f.rows.size());
  data.resize(size);
  return "\x89PNG\r\n\x1a\n" + Chunk("IHDR", header) + f.more + Chunk("IDAT", data) +
         Chunk("IEND", "");
}

absl::StatusOr<HostValue> Decode(const std::string& file) {
  return DecodeImage(Bytes(std::vector<uint8_t>(file.begin(), file.end())), "picture");
}

std::vector<int> Samples(const HostValue& v) { return {v.bytes().begin(), v.bytes().end()}; }

std::string Row(std::initializer_list<int> bytes) {
  std::string out(1, '\0');  // no filter
  for (int b : bytes) out += static_cast<char>(b);
  return out;
}

TEST(PngTest, DecodesEveryKind) {
  struct {
    PngFile file;
    std::vector<int64_t> shape;
    std::vector<int> samples;
  } const cases[] = {
      {{2, 2, 8, 0, Row({1, 2}) + Row({3, 4}), ""}, {2, 2, 1}, {1, 2, 3, 4}},
      {{4, 1, 2, 0, Row({0b00011011}), ""}, {1, 4, 1}, {0, 85, 170, 255}},
      {{1, 2, 16, 0, Row({200, 255}) + Row({7, 0}), ""}, {2, 1, 1}, {200, 7}},
      {{1, 1, 8, 2, Row({9, 8, 7}), ""}, {1, 1, 3}, {9, 8, 7}},
      {{1, 1, 16, 2, Row({9, 1, 8, 2, 7, 3}), ""}, {1, 1, 3}, {9, 8, 7}},
      {{2, 1, 1, 3, Row({0b01000000}), Chunk("PLTE", "abcABC")},
       {1, 2, 3},
       {'a', 'b', 'c', 'A', 'B', 'C'}},
      {{2, 1, 8, 3, Row({1, 0}), Chunk("PLTE", "abcABC") + Chunk("tRNS", "\x80")},
       {1, 2, 3},
       {'A', 'B', 'C', 'a', 'b', 'c'}},
      {{1, 1, 8, 4, Row({50, 0}), ""}, {1, 1, 1}, {50}},
      {{1, 1, 8, 6, Row({1, 2, 3, 0}), ""}, {1, 1, 3}, {1, 2, 3}},
      {{1, 1, 8, 0, Row({77}), Chunk("gAMA", BigEndian(100000))}, {1, 1, 1}, {77}},
  };
  for (const auto& c : cases) {
    FORGE_ASSERT_OK_AND_ASSIGN(const HostValue image, Decode(Encode(c.file)));
    EXPECT_THAT(image.shape(), testing::ElementsAreArray(c.shape));
    EXPECT_EQ(Samples(image), c.samples);
  }
}

TEST(PngTest, RefusesTruncationAnywhere) {
  const std::string good =
      Encode({3, 2, 8, 2, Row({1, 2, 3, 4, 5, 6, 7, 8, 9}) + Row({9, 8, 7, 6, 5, 4, 3, 2, 1}), ""});
  ASSERT_TRUE(Decode(good).ok());
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_THAT(Decode(good.substr(0, n)), Fails(StatusCode::kDataLoss, "picture")) << n;
}

TEST(PngTest, SurvivesEveryBitFlip) {
  const std::string good = Encode({2, 2, 8, 3, Row({0, 1}) + Row({1, 0}), Chunk("PLTE", "abcABC")});
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const auto image = Decode(flipped);
    EXPECT_TRUE(image.ok() || image.status().code() == StatusCode::kDataLoss) << bit;
  }
}

// What it does not look at may claim anything: the chunk's bytes are not there, and not asked for.
TEST(PngTest, SkipsWhatItIgnores) {
  PngFile file{1, 1, 8, 2, Row({9, 8, 7}), Chunk("iCCP", "nonsense") + Chunk("sPLT", "nonsense")};
  EXPECT_THAT(Decode(Encode(file)), Succeeds());
  file.more = BigEndian(0x54000013) + "sPLT";
  EXPECT_THAT(Decode(Encode(file)), Fails(StatusCode::kDataLoss, "ends early"));
}

TEST(PngTest, RefusesSizesThatNothingFills) {
  EXPECT_THAT(Decode(Encode({1u << 30, 1u << 30, 8, 2, "", ""})),
              Fails(StatusCode::kDataLoss, "picture"));
  EXPECT_THAT(Decode(Encode({20000, 20000, 8, 2, Row({1, 2, 3}), ""})),
              Fails(StatusCode::kDataLoss, "cannot come out of"));
  EXPECT_THAT(Decode(Encode({0, 5, 8, 0, "", ""})), Fails(StatusCode::kDataLoss, "picture"));
}

TEST(ImageTest, HasPixels) {
  for (const auto& [height, width] : {std::pair(0, 4), {4, 0}, {0, 0}})
    EXPECT_THAT(EmptyImage(height, width, 3, "here"),
                Fails(absl::StatusCode::kDataLoss, "here: the picture has no pixels"));
  EXPECT_EQ(EmptyImage(2, 3, 1, "here")->elements(), 6);
}

TEST(ImageTest, RefusesWhatIsNoPicture) {
  for (const char* content : {"", "P9 1 1 255 a", "GIF89a", "\x89PN", "\xff\xd8"})
    EXPECT_THAT(Decode(content), Fails(StatusCode::kDataLoss, "not a PNG, JPEG"));
}

TEST(ImageTest, ReadsPnm) {
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue grey, Decode("P5 # a comment\n2 1\n255\nab"));
  EXPECT_THAT(grey.shape(), ::testing::ElementsAre(1, 2, 1));
  EXPECT_THAT(grey.bytes(), ::testing::ElementsAre('a', 'b'));
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue color, Decode("P6 1 1 255 abc"));
  EXPECT_THAT(color.shape(), ::testing::ElementsAre(1, 1, 3));
}

// Sizes that would be allocated before a row is missed.
TEST(ImageTest, RefusesPlainPicturesThatTheFileDoesNotHold) {
  const std::string bmp(
      "BM\0\0\0\0\0\0\0\0\x1a\0\0\0\x28\0\0\0\x10\x27\0\0\x10\x27\0\0\1\0\x18\0\0\0\0\0", 34);
  EXPECT_THAT(Decode(bmp), Fails(StatusCode::kDataLoss, "holds no 10000 rows of 10000 pixels"));
  EXPECT_THAT(Decode("P6 9000 9000 255 abc"), Fails(StatusCode::kDataLoss, "holds no 9000 rows"));
  EXPECT_THAT(Decode("P5 2 2 65535 abc"), Fails(StatusCode::kDataLoss, "header is damaged"));
}

TEST(ImageTest, SaysWhichFileIsMissing) {
  const TempFolder folder;
  EXPECT_THAT(ReadImage(folder / "a.png"), Fails(StatusCode::kNotFound, "a.png"));
}

// ---- JPEG ---------------------------------------------------------------------------------------

std::string EncodeJpeg(int width, int height, J_COLOR_SPACE space, int channels, uint8_t value,
                       bool progressive = false) {
  jpeg_compress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;  // NOLINT: the library's type
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = channels;
  jpeg.in_color_space = space;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<JSAMPLE> row(static_cast<size_t>(width * channels), value);
  JSAMPROW rows[] = {row.data()};
  while (jpeg.next_scanline < jpeg.image_height) jpeg_write_scanlines(&jpeg, rows, 1);
  jpeg_finish_compress(&jpeg);
  std::string file(reinterpret_cast<char*>(out), size);
  jpeg_destroy_compress(&jpeg);
  free(out);  // NOLINT: the library allocates with malloc
  return file;
}

TEST(JpegTest, DecodesGreyAndColour) {
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue grey, Decode(EncodeJpeg(3, 2, JCS_GRAYSCALE, 1, 100)));
  EXPECT_THAT(grey.shape(), ElementsAre(2, 3, 1));
  EXPECT_THAT(Samples(grey), testing::Each(100));
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue color, Decode(EncodeJpeg(2, 3, JCS_RGB, 3, 50, true)));
  EXPECT_THAT(color.shape(), ElementsAre(3, 2, 3));
  EXPECT_THAT(Samples(color), testing::Each(50));
}

// What the library writes from inks has Adobe's marker: 50 is light of 50 / 255 in each of four.
TEST(JpegTest, MakesLightOfInks) {
  const std::string adobe = EncodeJpeg(2, 2, JCS_CMYK, 4, 50);
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue light, Decode(adobe));
  EXPECT_THAT(light.shape(), ElementsAre(2, 2, 3));
  EXPECT_THAT(Samples(light), testing::Each(10));
  const size_t marker = adobe.find("Adobe");
  ASSERT_NE(marker, std::string::npos);
  std::string plain = adobe;
  plain[marker] = 'x';
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue ink, Decode(plain));
  EXPECT_THAT(Samples(ink), testing::Each(165));  // 205 * 205 / 255
}

std::string Exif(std::string_view order, uint8_t orientation) {
  std::string out = "Exif" + std::string(2, '\0') + std::string(order);
  const auto put = [&](uint32_t v, int size) {
    for (int i = 0; i < size; ++i)
      out += static_cast<char>(v >> 8 * (order == "MM" ? size - 1 - i : i));
  };
  put(42, 2), put(8, 4), put(2, 2);                 // the directory has two entries
  put(0x010F, 2), put(2, 2), put(1, 4), put(0, 4);  // the maker
  put(0x0112, 2), put(3, 2), put(1, 4), put(orientation, 2), put(0, 2);
  return out;
}

std::string WithExif(const std::string& jpeg, const std::string& exif) {
  const auto size = static_cast<uint16_t>(exif.size() + 2);
  const std::string head = {'\xff', '\xe1', static_cast<char>(size >> 8), static_cast<char>(size)};
  return jpeg.substr(0, 2) + head + exif + jpeg.substr(2);
}

TEST(JpegTest, TurnsPicturesUpright) {
  const std::string flat = EncodeJpeg(3, 2, JCS_GRAYSCALE, 1, 100);
  for (const char* order : {"II", "MM"}) {
    FORGE_ASSERT_OK_AND_ASSIGN(const HostValue turned, Decode(WithExif(flat, Exif(order, 6))));
    EXPECT_THAT(turned.shape(), ElementsAre(3, 2, 1)) << order;
  }
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue mirrored, Decode(WithExif(flat, Exif("II", 2))));
  EXPECT_THAT(mirrored.shape(), ElementsAre(2, 3, 1));
  const std::string whole = Exif("II", 6);
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_THAT(Decode(WithExif(flat, whole.substr(0, n))), Succeeds()) << n;
}

TEST(ExifTest, HasEightOrientations) {
  // 1 2 3 / 4 5 6
  const int64_t shape[] = {2, 3, 1};
  FORGE_ASSERT_OK_AND_ASSIGN(HostValue image, HostValue::Zeros(DType::kU8, shape));
  for (int i = 0; i < 6; ++i) image.mutable_bytes()[i] = static_cast<uint8_t>(i + 1);
  const std::vector<int> expected[] = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                       {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                       {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const HostValue upright = Upright(image, orientation);
    EXPECT_EQ(upright.dim(0), orientation >= 5 ? 3 : 2);
    EXPECT_EQ(Samples(upright), expected[orientation - 1]) << orientation;
  }
}

TEST(JpegTest, RefusesSizesThatNothingFills) {
  std::string file = EncodeJpeg(16, 16, JCS_RGB, 3, 50);
  const size_t frame = file.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  file.replace(frame + 5, 4, "\x3e\x80\x3e\x80");  // 16000 x 16000
  EXPECT_THAT(Decode(file), Fails(StatusCode::kDataLoss, "cannot come out of"));
}

TEST(JpegTest, RefusesTruncationAnywhere) {
  const std::string good = EncodeJpeg(16, 16, JCS_RGB, 3, 50);
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_THAT(Decode(good.substr(0, n)), Fails(StatusCode::kDataLoss, "picture")) << n;
}

TEST(JpegTest, SurvivesEveryBitFlip) {
  const std::string good = EncodeJpeg(8, 8, JCS_GRAYSCALE, 1, 50, true);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const auto image = Decode(flipped);
    EXPECT_TRUE(image.ok() || image.status().code() == StatusCode::kDataLoss) << bit;
  }
}

}  // namespace
}  // namespace forge
