// SPDX-License-Identifier: Apache-2.0
#include "base/record.h"

#include <gtest/gtest.h>

namespace forge {
namespace {

enum class Mode : uint8_t { kOff, kOn };

struct Settings {
  bool flag = false;
  int64_t count = 3;
  double scale = 0.5;
  Mode mode = Mode::kOn;
  std::vector<int64_t> axes = {1, 2};

  static constexpr Field kFields[] = {FieldOf<&Settings::flag>("flag", "A flag."),
                                      FieldOf<&Settings::count>("count", "A number."),
                                      FieldOf<&Settings::scale>("scale", "A factor."),
                                      FieldOf<&Settings::mode>("mode", "Off or on.", "off|on"),
                                      FieldOf<&Settings::axes>("axes", "Some axes.")};
};

TEST(RecordTest, FieldsKnowTheirKind) {
  constexpr FieldKind kKinds[] = {FieldKind::kBool, FieldKind::kInt, FieldKind::kFloat,
                                  FieldKind::kEnum, FieldKind::kInts};
  for (size_t i = 0; i < std::size(kKinds); ++i)
    EXPECT_EQ(Settings::kFields[i].kind, kKinds[i]) << Settings::kFields[i].name;
}

TEST(RecordTest, FieldsReachTheirMemberOfAnyRecord) {
  Settings a, b;
  const Field& count = Settings::kFields[1];
  *static_cast<int64_t*>(count.at(&a)) = 7;
  EXPECT_EQ(a.count, 7);
  EXPECT_EQ(*static_cast<const int64_t*>(count.at_const(&b)), 3);
  EXPECT_EQ(Settings::kFields[4].at_const(&a), &a.axes);
}

TEST(RecordTest, EnumsLieInOneByte) {
  const Settings s;
  const Field& mode = Settings::kFields[3];
  EXPECT_EQ(*static_cast<const uint8_t*>(mode.at_const(&s)), 1);
  EXPECT_EQ(mode.choices, "off|on");
}

// What keeps a new member out of no list.
static_assert(FieldCount<Settings>() == std::size(Settings::kFields));
struct Pair {
  int64_t a, b;
};
static_assert(FieldCount<Pair>() == 2);
struct None {};
static_assert(FieldCount<None>() == 0);

}  // namespace
}  // namespace forge
