// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/status.h"

namespace forge {

inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

inline const absl::Status& StatusOf(const absl::Status& s) { return s; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& s) {
  return s.status();
}

// EXPECT_THAT(ReadNpy(path), Fails(absl::StatusCode::kDataLoss, "byte 10"));
MATCHER_P2(Fails, code, part, "fails with a message that holds \"" + std::string(part) + "\"") {
  const absl::Status& s = StatusOf(arg);
  *result_listener << s.ToString();
  return s.code() == code && Message(s).find(part) != std::string_view::npos;
}

MATCHER(Succeeds, "succeeds") {
  const absl::Status& s = StatusOf(arg);
  *result_listener << s.ToString();
  return s.ok();
}

}  // namespace forge

// Takes the value out of a StatusOr or ends the test.
#define FORGE_ASSERT_OK_AND_ASSIGN(target, expression)                   \
  auto FORGE_CONCAT(forge_test_, __LINE__) = (expression);               \
  ASSERT_THAT(FORGE_CONCAT(forge_test_, __LINE__), ::forge::Succeeds()); \
  target = *std::move(FORGE_CONCAT(forge_test_, __LINE__))
