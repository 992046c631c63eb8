// SPDX-License-Identifier: Apache-2.0
#include "ir/op/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace forge::ir {

std::vector<double> Doubles(const HostValue& v) {
  std::vector<double> out(static_cast<size_t>(v.elements()));
  if (v.dtype() == DType::kF32) {
    const uint8_t* bytes = v.bytes().data();
    for (size_t i = 0; i < out.size(); ++i) {
      float x;
      std::memcpy(&x, bytes + i * sizeof x, sizeof x);
      out[i] = x;
    }
    return out;
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = v.f64(static_cast<int64_t>(i));
  return out;
}

std::vector<int64_t> Integers(const HostValue& v) {
  std::vector<int64_t> out(static_cast<size_t>(v.elements()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = v.i64(static_cast<int64_t>(i));
  return out;
}

std::vector<std::complex<double>> Complexes(const HostValue& v) {
  std::vector<std::complex<double>> out(static_cast<size_t>(v.elements()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = v.c128(static_cast<int64_t>(i));
  return out;
}

void Store(std::span<const std::complex<double>> from, HostValue& to) {
  for (size_t i = 0; i < from.size(); ++i) to.SetC128(static_cast<int64_t>(i), from[i]);
}

void Store(std::span<const double> from, HostValue& to) {
  if (to.dtype() == DType::kF32) {
    uint8_t* bytes = to.mutable_bytes().data();
    for (size_t i = 0; i < from.size(); ++i) {
      const float x = static_cast<float>(from[i]);
      std::memcpy(bytes + i * sizeof x, &x, sizeof x);
    }
    return;
  }
  for (size_t i = 0; i < from.size(); ++i) to.Set(static_cast<int64_t>(i), from[i]);
}

std::pair<double, double> RangeOf(DType t) {
  const int bits = BitWidth(t);
  if (Has(kUnsignedTypes, t)) return {0, std::ldexp(1.0, bits) - 1};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

int64_t SaturatedI64(double v) {
  if (std::isnan(v)) return 0;
  if (v >= 0x1p63) return std::numeric_limits<int64_t>::max();
  return v <= -0x1p63 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(v);
}

uint64_t SaturatedU64(double v) {
  if (v >= 0x1p64) return std::numeric_limits<uint64_t>::max();
  return v > 0 ? static_cast<uint64_t>(v) : 0;
}

absl::Status CheckHolds(DType t, const Number& v) {
  if (!v.is_complex() || Has(kComplexTypes, t)) return absl::OkStatus();
  return InvalidArgument("{} is complex, {} is not", v.ToText(), Name(t));
}

Index Strides(std::span<const int64_t> shape) {
  Index strides(shape.size());
  int64_t step = 1;
  for (size_t a = shape.size(); a-- > 0;) {
    strides[a] = step;
    step *= shape[a];
  }
  return strides;
}

Index BroadcastStrides(std::span<const int64_t> shape, std::span<const int64_t> out) {
  const Index own = Strides(shape);
  Index strides(out.size(), 0);
  const size_t skipped = out.size() - shape.size();
  for (size_t a = 0; a < shape.size(); ++a)
    if (shape[a] != 1) strides[skipped + a] = own[a];
  return strides;
}

}  // namespace forge::ir
