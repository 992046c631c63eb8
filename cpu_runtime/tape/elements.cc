// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/tape/elements.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "base/narrow_float.h"
#include "cpu_runtime/tape/conversions.h"
#include "cpu_runtime/tape/plain_scalar.h"

namespace forge::cpu {
namespace {

struct Wide {  // complex128: moved, never computed with
  uint64_t half[2];
};

// Calls f with a value of the unsigned type as wide as an element.
template <class F>
void WithWidth(size_t bytes, F f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    case 16:
      return f(Wide{});
    default:
      FORGE_CHECK(!"elements of whole bytes");
  }
}

template <class T>
T At(const uint8_t* p, int64_t i) {
  T v{};
  std::memcpy(&v, p + i * static_cast<int64_t>(sizeof v), sizeof v);
  return v;
}
template <class T>
void Put(uint8_t* p, int64_t i, T v) {
  std::memcpy(p + i * static_cast<int64_t>(sizeof v), &v, sizeof v);
}

float Widen(DType t, uint16_t bits) {
  if (t == DType::kF16) return F16ToF32(bits);
  return t == DType::kBF16 ? BF16ToF32(bits) : static_cast<float>(DecodeNarrowFloat(t, bits));
}
uint16_t Narrow(DType t, float v) {
  if (t == DType::kF16) return F32ToF16(v);
  return t == DType::kBF16 ? F32ToBF16(v) : EncodeNarrowFloat(t, v);
}

bool IsHeldWide(DType t) { return HeldAs(t) != t; }
bool IsHalf(DType t) { return t == DType::kF16 || t == DType::kBF16; }
// Element i of such a type.
float LoadNarrow(DType t, const uint8_t* p, int64_t i) {
  return Widen(t, StoredBytes(t) == 1 ? At<uint8_t>(p, i) : At<uint16_t>(p, i));
}
void StoreNarrow(DType t, float v, uint8_t* p, int64_t i) {
  const uint16_t bits = Narrow(t, v);
  if (StoredBytes(t) == 1)
    Put<uint8_t>(p, i, static_cast<uint8_t>(bits));
  else
    Put<uint16_t>(p, i, bits);
}

template <class From, class To>
void Convert(const uint8_t* in, uint8_t* out, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const auto at = static_cast<int64_t>(i);
    From v;
    if constexpr (std::is_same_v<From, bool>)
      v = in[i] != 0;
    else
      v = At<From>(in, at);
    if constexpr (std::is_same_v<To, bool>)
      out[i] = v != From{};
    else if constexpr (std::is_floating_point_v<From>)
      Put<To>(out, at, FromDouble<To>(v));
    else
      Put<To>(out, at, static_cast<To>(v));
  }
}

template <class From, DType kTo>
void ConvertNarrow(const uint8_t* in, uint8_t* out, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const auto at = static_cast<int64_t>(i);
    float v;
    if constexpr (std::is_same_v<From, bool>)
      v = in[i] != 0;
    else
      v = static_cast<float>(At<From>(in, at));
    Put<float>(out, at, Widen(kTo, Narrow(kTo, v)));
  }
}

template <class From>
ConvertLoop ConvertFrom(DType to) {
  switch (to) {
    case DType::kBool:
      return &Convert<From, bool>;
    case DType::kU8:
      return &Convert<From, uint8_t>;
    case DType::kU16:
      return &Convert<From, uint16_t>;
    case DType::kU32:
      return &Convert<From, uint32_t>;
    case DType::kU64:
      return &Convert<From, uint64_t>;
    case DType::kI8:
      return &Convert<From, int8_t>;
    case DType::kI16:
      return &Convert<From, int16_t>;
    case DType::kI32:
      return &Convert<From, int32_t>;
    case DType::kI64:
      return &Convert<From, int64_t>;
    case DType::kF16:
      return &ConvertNarrow<From, DType::kF16>;
    case DType::kBF16:
      return &ConvertNarrow<From, DType::kBF16>;
    case DType::kF8E4M3:
      return &ConvertNarrow<From, DType::kF8E4M3>;
    case DType::kF8E5M2:
      return &ConvertNarrow<From, DType::kF8E5M2>;
    case DType::kF8E4M3Fnuz:
      return &ConvertNarrow<From, DType::kF8E4M3Fnuz>;
    case DType::kF8E5M2Fnuz:
      return &ConvertNarrow<From, DType::kF8E5M2Fnuz>;
    case DType::kF32:
      return &Convert<From, float>;
    case DType::kF64:
      return &Convert<From, double>;
    default:
      return nullptr;
  }
}

}  // namespace

size_t StoredBytes(DType t) {
  const int bits = BitWidth(t);
  return bits % 8 == 0 ? static_cast<size_t>(bits / 8) : 0;
}

bool IsNumberOrBool(DType t) { return Has(kRealTypes | Bit(DType::kBool), t); }

void LoadRun(DType t, const Run& from, uint8_t* block) {
  const auto n = static_cast<int64_t>(from.n);
  if (IsHalf(t) && from.stride == 1)
    return WidenHalves(t, reinterpret_cast<const uint16_t*>(from.at),
                       reinterpret_cast<float*>(block), from.n);
  if (IsHeldWide(t)) {
    for (int64_t i = 0; i < n; ++i) Put<float>(block, i, LoadNarrow(t, from.at, i * from.stride));
    return;
  }
  const size_t bytes = StoredBytes(t);
  if (from.stride == 1) {
    std::memcpy(block, from.at, from.n * bytes);
    return;
  }
  WithWidth(bytes, [&](auto width) {
    using T = decltype(width);
    if (from.stride == 0) {
      const T v = At<T>(from.at, 0);
      for (int64_t i = 0; i < n; ++i) Put<T>(block, i, v);
    } else {
      for (int64_t i = 0; i < n; ++i) Put<T>(block, i, At<T>(from.at, i * from.stride));
    }
  });
}

void StoreRun(DType t, const uint8_t* block, const MutableRun& to) {
  const auto n = static_cast<int64_t>(to.n);
  if (IsHalf(t) && to.stride == 1)
    return NarrowHalves(t, reinterpret_cast<const float*>(block),
                        reinterpret_cast<uint16_t*>(to.at), to.n);
  if (IsHeldWide(t)) {
    for (int64_t i = 0; i < n; ++i) StoreNarrow(t, At<float>(block, i), to.at, i * to.stride);
    return;
  }
  const size_t bytes = StoredBytes(t);
  if (to.stride == 1) {
    std::memcpy(to.at, block, to.n * bytes);
    return;
  }
  WithWidth(bytes, [&](auto width) {
    using T = decltype(width);
    for (int64_t i = 0; i < n; ++i) Put<T>(to.at, i * to.stride, At<T>(block, i));
  });
}

// Short rows, such as those of a pixel shuffle, or columns that lie side by side.
template <class T, class Columns>
void LoadPatch(const RunRows& from, uint8_t* block, Columns columns) {
  const auto rows = static_cast<int64_t>(from.rows), n = static_cast<int64_t>(columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < n; ++c)
      Put<T>(block, r * n + c, At<T>(from.at, r * from.row_stride + c * from.stride));
}
template <class T>
void LoadTurned(const RunRows& from, uint8_t* block) {
  const auto rows = static_cast<int64_t>(from.rows), n = static_cast<int64_t>(from.columns);
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < rows; ++r)
      Put<T>(block, r * n + c, At<T>(from.at, r * from.row_stride + c * from.stride));
}

// The first row again and again.
void LoadRepeated(DType t, const RunRows& from, uint8_t* block) {
  LoadRun(t, {from.at, from.stride, from.columns}, block);
  const size_t held = HeldBytes(t) * from.columns;
  for (size_t have = 1; have < from.rows; have *= 2)
    std::memcpy(block + have * held, block, std::min(have, from.rows - have) * held);
}

void CopyRows(const RunRows& from, size_t bytes, uint8_t* block) {
  const size_t row = from.columns * bytes;
  const int64_t step = from.row_stride * static_cast<int64_t>(bytes);
  for (size_t r = 0; r < from.rows; ++r)
    std::memcpy(block + r * row, from.at + static_cast<int64_t>(r) * step, row);
}

void LoadRows(DType t, const RunRows& from, uint8_t* block) {
  constexpr size_t kShort = 16;
  if (from.rows == 1) return LoadRun(t, {from.at, from.stride, from.columns}, block);
  if (from.row_stride == 0) return LoadRepeated(t, from, block);
  if (from.stride == 1 && !IsHeldWide(t) && from.columns > kShort)
    return CopyRows(from, StoredBytes(t), block);
  const bool turned = std::abs(from.row_stride) < std::abs(from.stride);
  if (IsHeldWide(t) || (from.columns > kShort && !turned)) {
    const auto bytes = static_cast<int64_t>(StoredBytes(t));
    for (size_t r = 0; r < from.rows; ++r)
      LoadRun(
          t,
          {from.at + static_cast<int64_t>(r) * from.row_stride * bytes, from.stride, from.columns},
          block + r * from.columns * HeldBytes(t));
    return;
  }
  WithWidth(StoredBytes(t), [&](auto width) {
    using T = decltype(width);
    if (turned && from.columns > kShort) return LoadTurned<T>(from, block);
    switch (from.columns) {
      case 2:
        return LoadPatch<T>(from, block, std::integral_constant<int, 2>());
      case 3:
        return LoadPatch<T>(from, block, std::integral_constant<int, 3>());
      case 4:
        return LoadPatch<T>(from, block, std::integral_constant<int, 4>());
      default:
        return LoadPatch<T>(from, block, from.columns);
    }
  });
}

void StoreRows(DType t, const uint8_t* block, const MutableRunRows& to) {
  const auto bytes = static_cast<int64_t>(StoredBytes(t));
  if (to.stride == 1 && !IsHeldWide(t)) {
    const size_t row = to.columns * static_cast<size_t>(bytes);
    for (size_t r = 0; r < to.rows; ++r)
      std::memcpy(to.at + static_cast<int64_t>(r) * to.row_stride * bytes, block + r * row, row);
    return;
  }
  for (size_t r = 0; r < to.rows; ++r)
    StoreRun(t, block + r * to.columns * HeldBytes(t),
             {to.at + static_cast<int64_t>(r) * to.row_stride * bytes, to.stride, to.columns});
}

void LoadAt(DType t, const uint8_t* tensor, const int64_t* address, uint64_t limit, size_t n,
            uint8_t* block) {
  const auto count = static_cast<int64_t>(n);
  auto inside = [&](int64_t i) { return static_cast<uint64_t>(address[i]) < limit; };
  if (IsHeldWide(t)) {
    for (int64_t i = 0; i < count; ++i)
      Put<float>(block, i, inside(i) ? LoadNarrow(t, tensor, address[i]) : 0.0f);
    return;
  }
  WithWidth(StoredBytes(t), [&](auto width) {
    using T = decltype(width);
    for (int64_t i = 0; i < count; ++i)
      Put<T>(block, i, inside(i) ? At<T>(tensor, address[i]) : T{});
  });
}

void SelectElements(const Choice& from, size_t bytes, size_t n, uint8_t* out) {
  const auto count = static_cast<int64_t>(n);
  WithWidth(bytes, [&](auto width) {
    using T = decltype(width);
    for (int64_t i = 0; i < count; ++i) {
      const T a = At<T>(from.a, i), b = At<T>(from.b, i);
      Put<T>(out, i, from.mask[i] ? a : b);
    }
  });
}

void HeldNumber(DType t, const Number& v, uint8_t* out) {
  if (t == DType::kI64 || t == DType::kU64) {  // not every one is an f64
    const uint64_t bits = t == DType::kU64 ? v.u64() : static_cast<uint64_t>(v.i64());
    std::memcpy(out, &bits, sizeof bits);
  } else if (ConvertLoop loop = FindConvertLoop(DType::kF64, t)) {
    const double x = t == DType::kF32 ? v.f32() : v.f64();
    uint8_t in[sizeof x];
    std::memcpy(in, &x, sizeof x);
    loop(in, out, 1);
  } else if (t == DType::kC64) {
    Put<std::complex<float>>(out, 0, std::complex<float>(v.c128()));
  } else if (t == DType::kC128) {
    Put<std::complex<double>>(out, 0, v.c128());
  } else {
    std::memset(out, 0, HeldBytes(t));
  }
}

ConvertLoop FindConvertLoop(DType from, DType to) {
  const DType held = HeldAs(from);
  if (held == DType::kF32 && to == DType::kU8) return &F32ToU8;
  if (held == DType::kF32 && to == DType::kI8) return &F32ToI8;
  if (held == DType::kU8 && to == DType::kF32) return &U8ToF32;
  if (held == DType::kI8 && to == DType::kF32) return &I8ToF32;
  if (held == DType::kF32 && to == DType::kI32) return &F32ToI32;
  if (held == DType::kI32 && to == DType::kF32) return &I32ToF32;
  switch (held) {
    case DType::kBool:
      return ConvertFrom<bool>(to);
    case DType::kU8:
      return ConvertFrom<uint8_t>(to);
    case DType::kU16:
      return ConvertFrom<uint16_t>(to);
    case DType::kU32:
      return ConvertFrom<uint32_t>(to);
    case DType::kU64:
      return ConvertFrom<uint64_t>(to);
    case DType::kI8:
      return ConvertFrom<int8_t>(to);
    case DType::kI16:
      return ConvertFrom<int16_t>(to);
    case DType::kI32:
      return ConvertFrom<int32_t>(to);
    case DType::kI64:
      return ConvertFrom<int64_t>(to);
    case DType::kF32:
      return ConvertFrom<float>(to);
    case DType::kF64:
      return ConvertFrom<double>(to);
    default:
      return nullptr;
  }
}

}  // namespace forge::cpu
