// SPDX-License-Identifier: Apache-2.0
#include "ir/type/host_value.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "base/narrow_float.h"

namespace forge::ir {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 40;
constexpr int64_t kMaxElements = int64_t{1} << 43;  // of 2 bits, with room to spare

// Bounds the product of the other axes of an empty tensor too: loops run over them.
absl::StatusOr<int64_t> CountElements(std::span<const int64_t> shape) {
  int64_t n = 1;
  bool empty = false;
  for (int64_t d : shape) {
    if (d < 0) return InvalidArgument("{} is no dimension", d);
    empty |= d == 0;
    if (d != 0 && (__builtin_mul_overflow(n, d, &n) || n > kMaxElements))
      return ResourceExhausted("[{}] has more than 2^43 elements", fmt::join(shape, ", "));
  }
  return empty ? 0 : n;
}

// Of strings: the bytes without their characters.
absl::StatusOr<uint64_t> CountBytes(DType dtype, int64_t elements) {
  const auto bytes = dtype == DType::kString
                         ? std::optional((static_cast<uint64_t>(elements) + 1) * sizeof(uint64_t))
                         : BytesOf(dtype, static_cast<uint64_t>(elements));
  if (!bytes || *bytes > kMaxBytes)
    return ResourceExhausted("{} elements of {} are more than 2^40 bytes", elements, Name(dtype));
  return *bytes;
}

template <class T>
T Load(std::span<const uint8_t> bytes, int64_t i) {
  T v;
  std::memcpy(&v, bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return v;
}

// The offsets of packed strings begin at 0, never fall, and end with the characters.
absl::Status CheckStrings(std::span<const uint8_t> bytes, int64_t elements, uint64_t header) {
  if (bytes.size() < header)
    return InvalidArgument("{} strings take at least {} bytes, not {}", elements, header,
                           bytes.size());
  uint64_t before = 0;
  for (int64_t i = 0; i <= elements; ++i) {
    const auto at = Load<uint64_t>(bytes, i);
    if (at < before || at > bytes.size() - header || (i == 0 && at != 0))
      return InvalidArgument("the offset of string {} is {}", i, at);
    before = at;
  }
  if (before != bytes.size() - header)
    return InvalidArgument("{} bytes of strings, of which {} are used", bytes.size() - header,
                           before);
  return absl::OkStatus();
}

template <class T>
void Put(std::span<uint8_t> bytes, int64_t i, T v) {
  std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &v, sizeof(T));
}

// Element i of a type of 1, 2 or 4 bits; element 0 lies in the low bits.
uint8_t LoadBits(std::span<const uint8_t> bytes, int64_t i, int bits) {
  const int64_t per_byte = 8 / bits;
  const int shift = static_cast<int>(i % per_byte) * bits;
  return static_cast<uint8_t>(bytes[static_cast<size_t>(i / per_byte)] >> shift &
                              ((1 << bits) - 1));
}

void PutBits(std::span<uint8_t> bytes, int64_t i, int bits, uint64_t v) {
  const int64_t per_byte = 8 / bits;
  const int shift = static_cast<int>(i % per_byte) * bits, mask = (1 << bits) - 1;
  uint8_t& byte = bytes[static_cast<size_t>(i / per_byte)];
  byte = static_cast<uint8_t>((byte & ~(mask << shift)) |
                              (static_cast<int>(v & static_cast<uint64_t>(mask)) << shift));
}

int64_t SignExtend(uint8_t v, int bits) {
  return static_cast<int64_t>(v ^ (1u << (bits - 1))) - (int64_t{1} << (bits - 1));
}

// Toward zero; out of range saturates, NaN is 0.
template <class T>
T Saturate(double v) {
  if (std::isnan(v)) return 0;
  const double t = std::trunc(v);
  // 2^digits is exact in f64 where the type's largest value may not be.
  if (t >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
  if (t < static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(t);
}

bool IsUnsigned(DType t) { return t >= DType::kU2 && t <= DType::kU64; }

bool IsInteger(DType t) { return t >= DType::kBool && t <= DType::kI64; }

uint16_t LoadNarrow(std::span<const uint8_t> bytes, int64_t i, int bits) {
  if (bits == 16) return Load<uint16_t>(bytes, i);
  return bits == 8 ? Load<uint8_t>(bytes, i) : LoadBits(bytes, i, bits);
}

void PutNarrow(std::span<uint8_t> bytes, int64_t i, int bits, uint16_t code) {
  if (bits == 16)
    Put(bytes, i, code);
  else if (bits == 8)
    Put(bytes, i, static_cast<uint8_t>(code));
  else
    PutBits(bytes, i, bits, code);
}

int64_t LoadInteger(std::span<const uint8_t> bytes, DType t, int64_t i) {
  switch (t) {
    case DType::kBool:
      return Load<uint8_t>(bytes, i) != 0;
    case DType::kU8:
      return Load<uint8_t>(bytes, i);
    case DType::kU16:
      return Load<uint16_t>(bytes, i);
    case DType::kU32:
      return Load<uint32_t>(bytes, i);
    case DType::kI8:
      return Load<int8_t>(bytes, i);
    case DType::kI16:
      return Load<int16_t>(bytes, i);
    case DType::kI32:
      return Load<int32_t>(bytes, i);
    case DType::kU64:
    case DType::kI64:
      return Load<int64_t>(bytes, i);
    default:
      break;
  }
  const int bits = BitWidth(t);
  const uint8_t v = LoadBits(bytes, i, bits);
  return IsUnsigned(t) ? v : SignExtend(v, bits);
}

void PutInteger(std::span<uint8_t> bytes, DType t, int64_t i, uint64_t v) {
  switch (BitWidth(t)) {
    case 8:
      return Put(bytes, i, static_cast<uint8_t>(t == DType::kBool ? v != 0 : v));
    case 16:
      return Put(bytes, i, static_cast<uint16_t>(v));
    case 32:
      return Put(bytes, i, static_cast<uint32_t>(v));
    case 64:
      return Put(bytes, i, v);
    default:
      return PutBits(bytes, i, BitWidth(t), v);
  }
}

// An integer as one of type t, saturated to it.
uint64_t SaturatedTo(DType t, const Number& v) {
  if (t == DType::kBool) return v != 0;
  const int bits = BitWidth(t);
  if (IsUnsigned(t)) return std::min(v.u64(), ~uint64_t{0} >> (64 - bits));
  const int64_t high = INT64_MAX >> (64 - bits);
  return static_cast<uint64_t>(std::clamp(v.i64(), -high - 1, high));
}

// A float as an integer of type t, saturated to it.
uint64_t ToInteger(DType t, double v) {
  if (t == DType::kBool) return v != 0;
  if (t == DType::kU64) return Saturate<uint64_t>(v);
  const int bits = BitWidth(t);
  if (IsUnsigned(t)) return std::min(Saturate<uint64_t>(v), ~uint64_t{0} >> (64 - bits));
  const int64_t high = INT64_MAX >> (64 - bits);
  return static_cast<uint64_t>(std::clamp(Saturate<int64_t>(v), -high - 1, high));
}

}  // namespace

absl::StatusOr<HostValue> HostValue::Zeros(DType dtype, std::span<const int64_t> shape) {
  FORGE_ASSIGN_OR_RETURN(const int64_t elements, CountElements(shape));
  FORGE_ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(dtype, elements));
  HostValue v;
  v.dtype_ = dtype;
  v.shape_.assign(shape.begin(), shape.end());
  v.elements_ = elements;
  v.own_ = AllocateBytes(bytes);
  if (!v.own_) return ResourceExhausted("no memory for {} bytes", bytes);
  std::fill_n(v.own_.get(), bytes, uint8_t{0});
  v.bytes_ = Bytes({v.own_.get(), bytes}, v.own_);
  return v;
}

absl::StatusOr<HostValue> HostValue::Of(DType dtype, std::span<const int64_t> shape, Bytes bytes) {
  FORGE_ASSIGN_OR_RETURN(const int64_t elements, CountElements(shape));
  FORGE_ASSIGN_OR_RETURN(const uint64_t wanted, CountBytes(dtype, elements));
  if (dtype == DType::kString)
    FORGE_RETURN_IF_ERROR(CheckStrings(bytes.span(), elements, wanted));
  else if (bytes.size() != wanted)
    return InvalidArgument("{}[{}] takes {} bytes, not {}", Name(dtype), fmt::join(shape, ", "),
                           wanted, bytes.size());
  HostValue v;
  v.dtype_ = dtype;
  v.shape_.assign(shape.begin(), shape.end());
  v.elements_ = elements;
  v.bytes_ = std::move(bytes);
  return v;
}

HostValue HostValue::Scalar(DType dtype, const Number& x) {
  auto v = Zeros(dtype, {});
  FORGE_CHECK(v.ok());
  v->SetNumber(0, x);
  return *std::move(v);
}

struct HostValue::Items {
  Type element;
  std::vector<HostValue> all;
};

absl::StatusOr<HostValue> HostValue::Strings(std::span<const int64_t> shape,
                                             std::span<const std::string> all) {
  std::vector<uint8_t> bytes((all.size() + 1) * sizeof(uint64_t));
  uint64_t end = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    end += all[i].size();
    Put(bytes, static_cast<int64_t>(i) + 1, end);
  }
  bytes.reserve(bytes.size() + end);
  for (const std::string& s : all) bytes.insert(bytes.end(), s.begin(), s.end());
  return Of(DType::kString, shape, Bytes(std::move(bytes)));
}

HostValue HostValue::Sequence(Type element, std::vector<HostValue> items) {
  HostValue v;
  v.kind_ = Type::Kind::kSequence;
  v.items_ = std::make_shared<const Items>(Items{std::move(element), std::move(items)});
  return v;
}

HostValue HostValue::Nothing(Type element) {
  HostValue v;
  v.kind_ = Type::Kind::kOptional;
  v.items_ = std::make_shared<const Items>(Items{std::move(element), {}});
  return v;
}

std::span<const HostValue> HostValue::items() const {
  return items_ == nullptr ? std::span<const HostValue>() : items_->all;
}

std::string_view HostValue::string(int64_t flat) const {
  FORGE_CHECK(dtype_ == DType::kString && is_tensor() && flat >= 0 && flat < elements_);
  const auto begin = Load<uint64_t>(bytes(), flat), end = Load<uint64_t>(bytes(), flat + 1);
  const size_t header = static_cast<size_t>(elements_ + 1) * sizeof(uint64_t);
  return {reinterpret_cast<const char*>(bytes().data()) + header + begin, end - begin};
}

Type HostValue::type() const {
  if (kind_ == Type::Kind::kSequence) return Type::Sequence(items_->element);
  if (kind_ == Type::Kind::kOptional) return Type::Optional(items_->element);
  return Type::Tensor(dtype_, Dims(shape_.begin(), shape_.end()));
}

std::span<uint8_t> HostValue::mutable_bytes() {
  constexpr long kOnlyOurs = 2;  // own_ and the owner within bytes_
  if (own_ == nullptr || own_.use_count() != kOnlyOurs) {
    std::shared_ptr<uint8_t> copy = AllocateBytes(bytes().size());
    if (!copy) throw std::bad_alloc();
    std::copy(bytes().begin(), bytes().end(), copy.get());
    bytes_ = Bytes({copy.get(), bytes().size()}, copy);
    own_ = std::move(copy);
  }
  return {own_.get(), bytes().size()};
}

int64_t HostValue::Flat(std::span<const int64_t> index) const {
  FORGE_CHECK(index.size() == shape_.size());
  int64_t flat = 0;
  for (size_t i = 0; i < index.size(); ++i) flat = flat * shape_[i] + index[i];
  return flat;
}

Index HostValue::Unflat(int64_t flat) const {
  Index out(shape_.size());
  for (size_t i = shape_.size(); i-- > 0;) {
    out[i] = flat % shape_[i];
    flat /= shape_[i];
  }
  return out;
}

double HostValue::f64(int64_t i) const {
  const auto b = bytes();
  switch (dtype_) {
    case DType::kF32:
    case DType::kC64:
      return Load<float>(b, dtype_ == DType::kC64 ? 2 * i : i);
    case DType::kF64:
    case DType::kC128:
      return Load<double>(b, dtype_ == DType::kC128 ? 2 * i : i);
    case DType::kF16:
      return F16ToF32(Load<uint16_t>(b, i));
    case DType::kBF16:
      return BF16ToF32(Load<uint16_t>(b, i));
    case DType::kU64:
      return static_cast<double>(Load<uint64_t>(b, i));
    default:
      break;
  }
  if (IsInteger(dtype_)) return static_cast<double>(LoadInteger(b, dtype_, i));
  return DecodeNarrowFloat(dtype_, LoadNarrow(b, i, BitWidth(dtype_)));
}

int64_t HostValue::i64(int64_t i) const {
  return IsInteger(dtype_) ? LoadInteger(bytes(), dtype_, i) : Saturate<int64_t>(f64(i));
}

std::complex<double> HostValue::c128(int64_t i) const {
  if (dtype_ == DType::kC64) return {Load<float>(bytes(), 2 * i), Load<float>(bytes(), 2 * i + 1)};
  if (dtype_ == DType::kC128)
    return {Load<double>(bytes(), 2 * i), Load<double>(bytes(), 2 * i + 1)};
  return f64(i);
}

void HostValue::Set(int64_t i, double v) {
  const auto b = mutable_bytes();
  if (dtype_ == DType::kF32) return Put(b, i, static_cast<float>(v));
  if (dtype_ == DType::kF64) return Put(b, i, v);
  if (forge::Has(kComplexTypes, dtype_)) return SetC128(i, v);
  if (IsInteger(dtype_)) return PutInteger(b, dtype_, i, ToInteger(dtype_, v));
  PutNarrow(b, i, BitWidth(dtype_), EncodeNarrowFloat(dtype_, v));
}

void HostValue::SetI64(int64_t i, int64_t v) {
  if (IsInteger(dtype_)) return PutInteger(mutable_bytes(), dtype_, i, static_cast<uint64_t>(v));
  Set(i, static_cast<double>(v));
}

void HostValue::SetC128(int64_t i, std::complex<double> v) {
  const auto b = mutable_bytes();
  if (dtype_ == DType::kC64) {
    Put(b, 2 * i, static_cast<float>(v.real()));
    Put(b, 2 * i + 1, static_cast<float>(v.imag()));
  } else if (dtype_ == DType::kC128) {
    Put(b, 2 * i, v.real());
    Put(b, 2 * i + 1, v.imag());
  } else {
    Set(i, v.real());
  }
}

Number HostValue::number(int64_t i) const {
  if (dtype_ == DType::kU64) return static_cast<uint64_t>(i64(i));
  if (IsInteger(dtype_)) return i64(i);
  return forge::Has(kComplexTypes, dtype_) ? Number(c128(i)) : Number(f64(i));
}

void HostValue::SetNumber(int64_t i, const Number& v) {
  if (forge::Has(kComplexTypes, dtype_)) return SetC128(i, v.c128());
  if (dtype_ == DType::kF32) return Put(mutable_bytes(), i, v.f32());
  if (!IsInteger(dtype_) || !v.is_integer()) return Set(i, v.f64());
  PutInteger(mutable_bytes(), dtype_, i, SaturatedTo(dtype_, v));
}

Box::Box(std::span<const int64_t> extents)
    : extents_(extents.begin(), extents.end()),
      at_(extents.size(), 0),
      more_(std::all_of(extents.begin(), extents.end(), [](int64_t e) { return e > 0; })) {}

void Box::Next() {
  for (size_t i = at_.size(); i-- > 0;) {
    if (++at_[i] < extents_[i]) return;
    at_[i] = 0;
  }
  more_ = false;
}

std::vector<Lane> Lanes(std::span<const int64_t> shape, int axis) {
  FORGE_CHECK(axis >= 0 && static_cast<size_t>(axis) < shape.size());
  for (int64_t d : shape.subspan(0, static_cast<size_t>(axis)))
    if (d == 0) return {};
  int64_t inner = 1, outer = 1;
  for (int64_t d : shape.subspan(static_cast<size_t>(axis) + 1)) {
    if (d == 0) return {};
    inner *= d;
  }
  for (int64_t d : shape.subspan(0, static_cast<size_t>(axis))) outer *= d;
  const int64_t n = shape[static_cast<size_t>(axis)];
  std::vector<Lane> out;
  out.reserve(static_cast<size_t>(outer * inner));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) out.push_back({o * n * inner + i, inner, n});
  return out;
}

}  // namespace forge::ir
