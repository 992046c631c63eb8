// SPDX-License-Identifier: Apache-2.0
#include "ir/type/precision.h"

#include <algorithm>

#include "base/alternatives.h"

namespace forge::ir {
namespace {

struct NamedPrecision {
  std::string_view name;
  Precision precision;
};
constexpr NamedPrecision kPrecisions[] = {{"exact", {}},
                                          {"f16", {.products = DType::kF16}},
                                          {"bf16", {.products = DType::kBF16}},
                                          {"fast", {.fast = true}}};

}  // namespace

absl::StatusOr<Precision> ParsePrecision(std::string_view name) {
  const auto* const known = std::ranges::find(kPrecisions, name, &NamedPrecision::name);
  if (known != std::end(kPrecisions)) return known->precision;
  return InvalidArgument("precision '{}' is not {}", name,
                         Alternatives(kPrecisions, &NamedPrecision::name));
}

std::string_view NameOf(const Precision& precision) {
  const auto* const known = std::ranges::find(kPrecisions, precision, &NamedPrecision::precision);
  return known == std::end(kPrecisions) ? "mixed" : known->name;
}

}  // namespace forge::ir
