// SPDX-License-Identifier: Apache-2.0
#include "formats/arrays/npy.h"

#include <zlib.h>

#include <cstring>

#include "base/platform.h"
#include "tests/support/deflate.h"
#include "tests/support/ir_values.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"

namespace forge {
namespace {

using absl::StatusCode;
using ir::HostValue;

std::string Bits(auto... values) {
  std::string out;
  const auto append = [&](auto v) {
    const char* at = reinterpret_cast<const char*>(&v);
    out.append(at, sizeof(v));
  };
  (append(values), ...);
  return out;
}

std::string NpyFile(std::string_view dictionary, std::string_view data) {
  std::string text(dictionary);
  text += '\n';
  return "\x93NUMPY" + Bits(uint8_t{1}, uint8_t{0}, static_cast<uint16_t>(text.size())) + text +
         std::string(data);
}

Bytes Content(const std::string& file) {
  return Bytes(std::vector<uint8_t>(file.begin(), file.end()));
}

absl::StatusOr<HostValue> Parse(const std::string& file) {
  return ParseNpy(Content(file), "x.npy");
}

HostValue Counting(DType dtype, std::vector<int64_t> shape) {
  HostValue v = *HostValue::Zeros(dtype, shape);
  for (int64_t i = 0; i < v.elements(); ++i) v.Set(i, static_cast<double>(i % 4));
  return v;
}

TEST(NpyTest, RoundTripsEveryDType) {
  const TempFolder folder;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::kString) continue;
    const HostValue v = Counting(dtype, {2, 3});
    const auto path = folder / (std::string(Name(dtype)) + ".npy");
    ASSERT_THAT(WriteNpy(path, v), Succeeds());
    FORGE_ASSERT_OK_AND_ASSIGN(const HostValue back, ReadNpy(path));
    EXPECT_EQ(back.type(), v.type());
    EXPECT_TRUE(std::ranges::equal(back.bytes(), v.bytes())) << Name(dtype);
  }
}

TEST(NpyTest, RoundTripsScalarsAndEmptyArrays) {
  const TempFolder folder;
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {7}, {0}, {3, 0, 2}, {1, 1, 1, 1}}) {
    const HostValue v = Counting(DType::kF32, shape);
    ASSERT_THAT(WriteNpy(folder / "v.npy", v), Succeeds());
    FORGE_ASSERT_OK_AND_ASSIGN(const HostValue back, ReadNpy(folder / "v.npy"));
    EXPECT_EQ(back.type(), v.type());
  }
}

TEST(NpyTest, RemovesADescriptionThatNoLongerApplies) {
  const TempFolder folder;
  ASSERT_THAT(WriteNpy(folder / "v.npy", Counting(DType::kBF16, {4})), Succeeds());
  EXPECT_TRUE(std::filesystem::exists(folder / "v.json"));
  ASSERT_THAT(WriteNpy(folder / "v.npy", Counting(DType::kU16, {4})), Succeeds());
  EXPECT_FALSE(std::filesystem::exists(folder / "v.json"));
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue back, ReadNpy(folder / "v.npy"));
  EXPECT_EQ(back.dtype(), DType::kU16);
}

TEST(NpyTest, LeavesAJsonFileAboutSomethingElseAlone) {
  const TempFolder folder;
  folder.Write("v.json", R"({"author": "someone"})");
  ASSERT_THAT(WriteNpy(folder / "v.npy", Counting(DType::kU8, {4})), Succeeds());
  EXPECT_TRUE(std::filesystem::exists(folder / "v.json"));
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue back, ReadNpy(folder / "v.npy"));
  EXPECT_EQ(back.dtype(), DType::kU8);
}

TEST(NpyTest, RefusesADescriptionThatDoesNotFit) {
  const TempFolder folder;
  ASSERT_THAT(WriteNpy(folder / "v.npy", Counting(DType::kU8, {4})), Succeeds());
  folder.Write("v.json", R"({"dtype": "bf16"})");
  EXPECT_THAT(ReadNpy(folder / "v.npy"), Fails(StatusCode::kDataLoss, "cannot represent raw bf16"));
  folder.Write("v.json", R"({"dtype": "f99"})");
  EXPECT_THAT(ReadNpy(folder / "v.npy"), Fails(StatusCode::kDataLoss, "'f99'"));
  ASSERT_THAT(WriteNpy(folder / "w.npy", Counting(DType::kU8, {4})), Succeeds());
  folder.Write("w.json", R"({"dtype": "i2"})");
  EXPECT_THAT(ReadNpy(folder / "w.npy"), Succeeds());
  HostValue large = Counting(DType::kU8, {4});
  large.Set(2, 200);
  ASSERT_THAT(WriteNpy(folder / "x.npy", large), Succeeds());
  folder.Write("x.json", R"({"dtype": "i4"})");
  EXPECT_THAT(ReadNpy(folder / "x.npy"), Fails(StatusCode::kDataLoss, "element 2 is 200"));
}

TEST(NpyTest, ReadsFortranOrder) {
  const std::string data = Bits(0.f, 3.f, 1.f, 4.f, 2.f, 5.f);
  FORGE_ASSERT_OK_AND_ASSIGN(
      const HostValue v,
      Parse(NpyFile("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", data)));
  EXPECT_THAT(Numbers(v), testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(NpyTest, ReadsBigEndian) {
  const std::string data("\x00\x00\x00\x01\xff\xff\xff\xfe", 8);
  FORGE_ASSERT_OK_AND_ASSIGN(
      const HostValue v,
      Parse(NpyFile("{'descr': '>i4', 'fortran_order': False, 'shape': (2,)}", data)));
  EXPECT_THAT(Numbers(v), testing::ElementsAre(1, -2));
}

TEST(NpyTest, ReadsHeadersOfVersionTwo) {
  const std::string text = "{\"shape\": (1L,), 'fortran_order': False, 'descr': '|u1'}";
  const std::string file = "\x93NUMPY" +
                           Bits(uint8_t{2}, uint8_t{0}, static_cast<uint32_t>(text.size())) + text +
                           "\x07";
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue v, Parse(file));
  EXPECT_THAT(Numbers(v), testing::ElementsAre(7));
}

TEST(NpyTest, RefusesDamagedFiles) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "wrong magic"},
      {"\x93NUMPY", "version 0"},
      {"\x93NUMPY\x09", "version 9"},
      {"\x93NUMPY" + Bits(uint8_t{1}, uint8_t{0}, uint16_t{9}) + "{", "truncated"},
      {"\x93NUMPY" + Bits(uint8_t{2}, uint8_t{0}, uint32_t{0xffffffff}) + "{}", "too long"},
      {NpyFile("", ""), "expected '{'"},
      {NpyFile("{}", ""), "missing"},
      {NpyFile("{'descr': '<f4', 'shape': (1,)}", "1234"), "missing"},
      {NpyFile("{'descr': '<f4', 'descr': '<f4'}", ""), "unexpected key 'descr'"},
      {NpyFile("{'descr': '|O', 'fortran_order': False, 'shape': ()}", ""), "'|O' is not read"},
      {NpyFile("{'descr': '<M8[s]', 'fortran_order': False, 'shape': ()}", ""), "'<M8[s]'"},
      {NpyFile("{'descr': '<U3', 'fortran_order': False, 'shape': ()}", "12345678"),
       "do not match the 8 bytes"},
      {NpyFile("{'descr': '<U99999999999999999999', 'fortran_order': False}", ""), "'<U9999"},
      {NpyFile("{'descr': '<U1', 'fortran_order': False, 'shape': ()}",
               std::string("\0\0\x11\0", 4)),
       "no character"},
      {NpyFile("{'descr': [('a', '<f4')], 'fortran_order': False}", ""), "structured"},
      {NpyFile("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", ""), "True or False"},
      {NpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", ""), "expected a dim"},
      {NpyFile("{'descr': '<f4", ""), "string without end"},
      {NpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", ""),
       "exceeds 64 bits"},
      {NpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", ""),
       "exceeds 64 bits"},
      {NpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "1234567"),
       "do not match the 7 bytes"},
      {NpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "123456789"),
       "do not match the 9 bytes"},
      {NpyFile("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\x01\x02"),
       "not a bool"},
  };
  for (const auto& [file, message] : cases)
    EXPECT_THAT(Parse(file), Fails(StatusCode::kDataLoss, message));
}

// NumPy writes the same bytes: np.save(f, np.array([["tea", "größer"], ["", "\N{DUCK}"]]))
TEST(NpyTest, WritesStringsAsText) {
  const TempFolder folder;
  const std::string all[] = {"tea", "größer", "", "\xf0\x9f\xa6\x86"};
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue v,
                             HostValue::Strings(std::array<int64_t, 2>{2, 2}, all));
  ASSERT_TRUE(WriteNpy(folder / "v.npy", v).ok());
  FORGE_ASSERT_OK_AND_ASSIGN(const Bytes file, MapFile(folder / "v.npy"));
  EXPECT_EQ(file.size(), 128 + 4 * 6 * 4U);
  FORGE_ASSERT_OK_AND_ASSIGN(const HostValue back, ReadNpy(folder / "v.npy"));
  EXPECT_EQ(back.type().ToText(), "string[2, 2]");
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(back.string(i), all[i]);
}

TEST(NpyTest, RefusesToWriteStringsThatAreNoUtf8) {
  const TempFolder folder;
  for (const char* bad : {"\xff", "\xc3", "\xed\xa0\x80", "\xc0\x80"}) {
    FORGE_ASSERT_OK_AND_ASSIGN(const HostValue v,
                               HostValue::Strings({}, std::array{std::string(bad)}));
    EXPECT_THAT(WriteNpy(folder / "v.npy", v), Fails(StatusCode::kInvalidArgument, "no UTF-8"));
  }
}

TEST(NpyTest, SaysWhichFileIsMissing) {
  EXPECT_THAT(ReadNpy("/nonexistent/a.npy"), Fails(StatusCode::kNotFound, "a.npy"));
}

TEST(NpyTest, LeavesNothingWhereItCannotWrite) {
  const TempFolder folder;
  EXPECT_THAT(WriteNpy(folder / "none" / "v.npy", Counting(DType::kF32, {2})),
              Fails(StatusCode::kInternal, "v.npy"));
}

// ---- archives -----------------------------------------------------------------------------------

struct Entry {
  std::string name, content;
  bool deflate = false, wide = false;  // wide: sizes in a ZIP64 field
  uint16_t flags = 0, method = 0;      // method: when it is neither of the two
};

std::string Archive(const std::vector<Entry>& entries, std::string_view comment = "") {
  std::string body, directory;
  for (const Entry& e : entries) {
    const std::string packed = e.deflate ? Deflated(e.content) : e.content;
    const auto crc = static_cast<uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(e.content.data()), e.content.size()));
    const uint16_t method = e.method != 0 ? e.method : e.deflate ? 8 : 0;
    const auto local = static_cast<uint32_t>(body.size());
    const auto name = static_cast<uint16_t>(e.name.size());
    const auto size = static_cast<uint32_t>(e.content.size());
    const auto packed_size = static_cast<uint32_t>(packed.size());
    body += Bits(uint32_t{0x04034b50}, uint16_t{20}, e.flags, method, uint32_t{0}, crc, packed_size,
                 size, name, uint16_t{0}) +
            e.name + packed;
    const std::string extra =
        e.wide ? Bits(uint16_t{1}, uint16_t{16}, uint64_t{size}, uint64_t{packed_size}) : "";
    directory += Bits(uint32_t{0x02014b50}, uint16_t{20}, uint16_t{20}, e.flags, method,
                      uint32_t{0}, crc, e.wide ? UINT32_MAX : packed_size,
                      e.wide ? UINT32_MAX : size, name, static_cast<uint16_t>(extra.size()),
                      uint16_t{0}, uint16_t{0}, uint16_t{0}, uint32_t{0}, local) +
                 e.name + extra;
  }
  const auto count = static_cast<uint16_t>(entries.size());
  return body + directory +
         Bits(uint32_t{0x06054b50}, uint32_t{0}, count, count,
              static_cast<uint32_t>(directory.size()), static_cast<uint32_t>(body.size()),
              static_cast<uint16_t>(comment.size())) +
         std::string(comment);
}

std::string SomeArray(float value) {
  return NpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", Bits(value));
}

TEST(NpzTest, ReadsStoredAndDeflatedEntries) {
  const TempFolder folder;
  const auto path = folder.Write(
      "a.npz", Archive({{.name = "x.npy", .content = SomeArray(1)},
                        {.name = "folder/", .content = ""},
                        {.name = "y", .content = SomeArray(2), .deflate = true},
                        {.name = "z.npy", .content = SomeArray(3), .deflate = true, .wide = true}},
                       "a comment"));
  FORGE_ASSERT_OK_AND_ASSIGN(const auto arrays, ReadNpz(path));
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_EQ(arrays[0].first, "x");
  EXPECT_EQ(arrays[1].first, "y");
  EXPECT_EQ(arrays[2].first, "z");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(arrays[i].second.f64(0), static_cast<double>(i + 1));
}

// An archive of two entries, of which the second is what the first holds.
std::string EntryInsideAnother() {
  const auto directory_of = [](const std::string& archive) {
    const size_t begin = archive.rfind("PK\x01\x02");
    return archive.substr(begin, archive.rfind("PK\x05\x06") - begin);
  };
  const std::string inner = Archive({{.name = "b", .content = std::string(4000, 'x')}});
  const std::string held = inner.substr(0, inner.rfind("PK\x01\x02"));
  std::string outer = Archive({{.name = "a", .content = held}});
  std::string record = directory_of(inner);
  record[42] = 31;  // where its header lies: behind the header and the name of "a"
  const size_t end = outer.rfind("PK\x05\x06");
  outer[end + 8] = outer[end + 10] = 2;
  outer[end + 12] = static_cast<char>(outer[end + 12] + static_cast<char>(record.size()));
  return outer.insert(end, record);
}

TEST(NpzTest, RefusesDamagedArchives) {
  const std::string good = Archive({{.name = "x.npy", .content = SomeArray(1), .deflate = true}});
  std::string wrong_checksum = good, wrong_checksums = good, far_directory = good, cut_data = good,
              wrong_offset = good;
  wrong_checksum[wrong_checksum.rfind("PK\x01\x02") + 16] ^= 1;
  wrong_checksums[14] ^= 1;
  wrong_checksums[wrong_checksums.rfind("PK\x01\x02") + 16] ^= 1;
  far_directory[far_directory.size() - 6] = '\x7f';
  cut_data[cut_data.rfind("PK\x01\x02") + 20] ^= 4;
  wrong_offset[wrong_offset.rfind("PK\x01\x02") + 42] = 5;
  const std::pair<std::string, std::string> cases[] = {
      {"", "damaged archive"},
      {"PK", "Not a zip archive"},
      {good.substr(0, good.size() - 1), "damaged archive"},
      {good.substr(10), "damaged archive"},
      {wrong_checksum, "damaged archive"},
      {wrong_checksums, "CRC error"},
      {far_directory, "damaged archive"},
      {cut_data, "damaged"},
      {wrong_offset, "damaged archive"},
      {EntryInsideAnother(), "inside another"},
      // Deflated: stored bytes that are encrypted are 12 more than they say here.
      {Archive({{.name = "x", .content = "abc", .deflate = true, .flags = 1}}), "encrypted"},
      {Archive({{.name = "x", .content = "abc", .method = 14}}), "method 14"},
      {Archive({{.name = "x", .content = "abc"}}), "not a .npy file"},
  };
  for (const auto& [content, message] : cases)
    EXPECT_THAT(ParseNpz(Content(content), "a.npz"), Fails(StatusCode::kDataLoss, message));
}

TEST(NpzTest, RefusesAnEntryThatClaimsMoreThanItCanHold) {
  std::string bomb = Archive({{.name = "x", .content = std::string(4000, 'a'), .deflate = true}});
  const size_t record = bomb.rfind("PK\x01\x02");
  const std::string size = Bits(uint32_t{0x7fffffff});
  bomb.replace(record + 24, 4, size);
  bomb.replace(22, 4, size);
  EXPECT_THAT(ParseNpz(Content(bomb), "a.npz"), Fails(StatusCode::kDataLoss, "declares"));
}

TEST(NpzTest, SurvivesEveryTruncationAndBitFlip) {
  const std::string good = Archive({{.name = "x.npy", .content = SomeArray(1), .deflate = true},
                                    {.name = "y.npy", .content = SomeArray(2), .wide = true}});
  for (size_t n = 0; n < good.size(); ++n)
    EXPECT_FALSE(ParseNpz(Content(good.substr(0, n)), "a.npz").ok()) << n;
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    const auto read = ParseNpz(Content(flipped), "a.npz");
    EXPECT_TRUE(read.ok() || read.status().code() == StatusCode::kDataLoss) << bit;
  }
}

}  // namespace
}  // namespace forge
