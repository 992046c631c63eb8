// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/string_ranks.h"

#include <algorithm>
#include <string>

namespace forge::ir {
namespace {

bool IsStrings(const HostValue* v) {
  return v != nullptr && v->is_tensor() && v->dtype() == DType::kString;
}

}  // namespace

bool HasStrings(std::span<const HostValue* const> values) {
  return std::ranges::any_of(values, IsStrings);
}

StringRanks::StringRanks(std::span<const HostValue* const> values) : sorted_({""}) {
  for (const HostValue* v : values) {
    if (!IsStrings(v)) continue;
    for (int64_t i = 0; i < v->elements(); ++i) sorted_.push_back(v->string(i));
  }
  std::ranges::sort(sorted_);
  const auto rest = std::ranges::unique(sorted_);
  sorted_.erase(rest.begin(), rest.end());
}

absl::StatusOr<HostValue> StringRanks::Encode(const HostValue& strings) const {
  FORGE_ASSIGN_OR_RETURN(HostValue out, HostValue::Zeros(DType::kI64, strings.shape()));
  for (int64_t i = 0; i < strings.elements(); ++i)
    out.SetI64(i, std::ranges::lower_bound(sorted_, strings.string(i)) - sorted_.begin());
  return out;
}

absl::StatusOr<HostValue> StringRanks::Decode(const HostValue& ranks) const {
  std::vector<std::string> all;
  for (int64_t i = 0; i < ranks.elements(); ++i) {
    const int64_t rank = ranks.i64(i);
    const bool known = rank >= 0 && rank < static_cast<int64_t>(sorted_.size());
    all.emplace_back(known ? sorted_[static_cast<size_t>(rank)] : "");
  }
  return HostValue::Strings(ranks.shape(), all);
}

}  // namespace forge::ir
