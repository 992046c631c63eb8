// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"

#include <fmt/format.h>

#include <limits>

namespace forge {

int64_t Number::i64() const {
  if (kind_ == Kind::kI64) return static_cast<int64_t>(bits_);
  const double v = f64();
  if (v >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (v < -0x1p63) return std::numeric_limits<int64_t>::min();
  return v == v ? static_cast<int64_t>(v) : 0;
}

uint64_t Number::u64() const {
  if (kind_ == Kind::kU64) return bits_;
  if (kind_ == Kind::kI64) return static_cast<int64_t>(bits_) < 0 ? 0 : bits_;
  const double v = f64();
  if (v >= 0x1p64) return std::numeric_limits<uint64_t>::max();
  return v > 0 ? static_cast<uint64_t>(v) : 0;
}

std::string Number::ToText() const {
  switch (kind_) {
    case Kind::kI64:
      return fmt::format("{}", static_cast<int64_t>(bits_));
    case Kind::kU64:
      return fmt::format("{}", bits_);
    case Kind::kF64:
      return fmt::format("{}", f64());
    case Kind::kC128:
      break;
  }
  return fmt::format("({}, {})", c128().real(), c128().imag());
}

}  // namespace forge
