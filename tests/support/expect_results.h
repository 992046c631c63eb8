// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include "ir/cases/bounds.h"

namespace forge {

// Expects each result of an op within its bound of the evaluator's.
inline void ExpectResults(const ir::AnyOp& op, std::span<const ir::HostValue* const> in,
                          std::span<const ir::HostValue> expected,
                          std::span<const ir::HostValue> results) {
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    const absl::Status s = ir::CompareResult(op, in, expected[i], results[i], i);
    EXPECT_TRUE(s.ok()) << s;
  }
}

}  // namespace forge
