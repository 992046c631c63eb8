// SPDX-License-Identifier: Apache-2.0
// Strings as integers of the same order, so that evaluators that only move or compare elements need
// not know them.
#pragma once
#include <string_view>
#include <vector>

#include "ir/type/host_value.h"

namespace forge::ir {

class StringRanks {
 public:
  // Ranks the strings of all tensors of strings among `values`, which may contain nulls; the empty
  // string has rank 0. The values must outlive the ranks.
  explicit StringRanks(std::span<const HostValue* const> values);

  // A tensor of strings as i64, and back. Ranks that no string has become the empty string.
  absl::StatusOr<HostValue> Encode(const HostValue& strings) const;
  absl::StatusOr<HostValue> Decode(const HostValue& ranks) const;

 private:
  std::vector<std::string_view> sorted_;
};

// True when an operand is a tensor of strings; null pointers are absent operands.
bool HasStrings(std::span<const HostValue* const> values);

}  // namespace forge::ir
