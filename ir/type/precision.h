// SPDX-License-Identifier: Apache-2.0
// How f32 is computed.
#pragma once
#include "base/dtype.h"
#include "base/status.h"

namespace forge::ir {

struct Precision {
  // What the operands of products and convolutions are rounded to: kF32 (they are not), kF16 or
  // kBF16. Their sums, and all else, stay in f32.
  DType products = DType::kF32;
  // Whether a device may compute as it does soonest: products of operands that are rounded to as
  // few bits as bf16 has (tf32 on NVIDIA's matrix units), and approximate functions.
  bool fast = false;

  bool operator==(const Precision&) const = default;
  // The coarsest type that products are computed in.
  DType coarsest() const { return fast ? DType::kBF16 : products; }
};

// Parses "exact", "f16", "bf16" or "fast".
//   errors: InvalidArgument (lists the names)
absl::StatusOr<Precision> ParsePrecision(std::string_view name);
std::string_view NameOf(const Precision& precision);

}  // namespace forge::ir
