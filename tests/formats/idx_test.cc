// SPDX-License-Identifier: Apache-2.0
#include "formats/arrays/idx.h"

#include <gmock/gmock.h>

#include "formats/arrays/gzip.h"
#include "tests/support/deflate.h"
#include "tests/support/status_matchers.h"

namespace forge {
namespace {

using ::testing::HasSubstr;

Bytes Of(const std::string& s) { return Bytes(std::vector<uint8_t>(s.begin(), s.end())); }

// u8[2, 3]
std::string Small() {
  return std::string("\0\0\x08\x02\0\0\0\x02\0\0\0\x03", 12) + std::string("\1\2\3\4\5\xff", 6);
}

std::string ErrorOf(const std::string& file) {
  const auto value = ParseIdx(Of(file), "a.idx");
  EXPECT_EQ(value.status().code(), absl::StatusCode::kDataLoss);
  return std::string(Message(value.status()));
}

TEST(IdxTest, ReadsBytes) {
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue v, ParseIdx(Of(Small()), "a.idx"));
  EXPECT_EQ(v.type().ToText(), "u8[2, 3]");
  EXPECT_EQ(v.i64(0), 1);
  EXPECT_EQ(v.i64(5), 255);
}

TEST(IdxTest, ReadsBigEndianFloats) {
  const std::string file =
      std::string("\0\0\x0d\x01\0\0\0\x01", 8) + std::string("\x3f\xc0\0\0", 4);
  FORGE_ASSERT_OK_AND_ASSIGN(const ir::HostValue v, ParseIdx(Of(file), "a.idx"));
  EXPECT_EQ(v.type().ToText(), "f32[1]");
  EXPECT_EQ(v.f64(0), 1.5);
}

TEST(IdxTest, ReadsGzippedFilesOfSeveralMembers) {
  FORGE_ASSERT_OK_AND_ASSIGN(
      const ir::HostValue v,
      ParseIdx(Of(Gzipped(Small().substr(0, 7)) + Gzipped(Small().substr(7))), "a.idx.gz"));
  EXPECT_EQ(v.type().ToText(), "u8[2, 3]");
  EXPECT_EQ(v.i64(4), 5);
}

TEST(IdxTest, RefusesEveryTruncation) {
  for (size_t n = 0; n < Small().size(); ++n) EXPECT_NE(ErrorOf(Small().substr(0, n)), "") << n;
  const std::string packed = Gzipped(Small());
  for (size_t n = 2; n < packed.size(); ++n) EXPECT_NE(ErrorOf(packed.substr(0, n)), "") << n;
}

TEST(IdxTest, NamesWhatIsWrong) {
  EXPECT_THAT(ErrorOf("PK\3\4...."), HasSubstr("not an IDX file"));
  EXPECT_THAT(ErrorOf(std::string("\0\0\x07\x01\0\0\0\0", 8)), HasSubstr("element type 0x07"));
  EXPECT_THAT(ErrorOf(std::string("\0\0\x08\x00", 4)), HasSubstr("0 axes"));
  EXPECT_THAT(ErrorOf(std::string("\0\0\x08\x09", 4)), HasSubstr("9 axes"));
  EXPECT_THAT(ErrorOf(Small() + "x"), HasSubstr("need 6 bytes, 7 follow"));
  EXPECT_THAT(ErrorOf(std::string("\0\0\x0e\x03", 4) + std::string(12, '\xff')),
              HasSubstr("declares more than"));
  std::string damaged = Gzipped(Small());
  damaged[damaged.size() - 6] ^= 1;  // of the checksum
  EXPECT_THAT(ErrorOf(damaged), HasSubstr("damaged gzip file"));
  EXPECT_THAT(ErrorOf(Gzipped(Gzipped(Small()))), HasSubstr("gzipped twice"));
}

TEST(GzipTest, StopsAtTheLimit) {
  const std::string packed = Gzipped(std::string(1 << 22, 'a'));
  EXPECT_TRUE(Gunzip(Of(packed), "a.gz", 1 << 22).ok());
  const auto result = Gunzip(Of(packed), "a.gz", (1 << 22) - 1);
  EXPECT_THAT(std::string(Message(result.status())), HasSubstr("unpacks to more than 4194303"));
}

}  // namespace
}  // namespace forge
