// SPDX-License-Identifier: Apache-2.0
#include "ir/type/type.h"

#include <algorithm>

#include "base/quote.h"
#include "ir/dim/broadcast.h"

namespace forge::ir {
namespace {

// May `d` take the value `c`?
bool Allows(const Dim& d, int64_t c) {
  return c >= d.min() && c <= d.max() && c % d.divisor() == 0;
}

bool NeverEqual(const Dim& a, const Dim& b) {
  if (a.is_constant()) return !Allows(b, a.constant());
  if (b.is_constant()) return !Allows(a, b.constant());
  const Dim difference = a - b;
  return difference.min() > 0 || difference.max() < 0;
}

absl::StatusOr<Dim> BroadcastAxis(const std::span<const Dims* const> shapes, size_t from_end,
                                  size_t rank) {
  Dim out = 1;
  for (const Dims* s : shapes) {
    if (s->size() < from_end) continue;
    auto d = Broadcast(out, (*s)[s->size() - from_end]);
    if (!d.ok()) return Annotate(d.status(), fmt::format("axis {}", rank - from_end));
    out = *d;
  }
  return out;
}

}  // namespace

absl::StatusOr<Dim> Unify(const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (NeverEqual(a, b)) return InvalidArgument("{} and {} should be equal", a.ToText(), b.ToText());
  return b.is_constant() ? b : a;
}

bool MayEqual(std::span<const Dim> a, std::span<const Dim> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Dim& x, const Dim& y) { return Unify(x, y).ok(); });
}

absl::StatusOr<Dim> Broadcast(const Dim& a, const Dim& b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  const bool a_may_be_1 = Allows(a, 1), b_may_be_1 = Allows(b, 1);
  if (NeverEqual(a, b)) {
    if (!a_may_be_1 && !b_may_be_1)
      return InvalidArgument("{} and {} do not broadcast", a.ToText(), b.ToText());
    return a_may_be_1 && b_may_be_1 ? a * b : a_may_be_1 ? b : a;
  }
  if (a.is_constant() || !a_may_be_1) return b.is_constant() ? b : a;
  return !b_may_be_1 ? b : BroadcastExtent(a, b);
}

absl::StatusOr<Dims> BroadcastShapes(std::span<const Dims* const> shapes) {
  size_t rank = 0;
  for (const Dims* s : shapes) rank = std::max(rank, s->size());
  Dims out(rank);
  for (size_t i = 0; i < rank; ++i) {
    auto d = BroadcastAxis(shapes, rank - i, rank);
    if (!d.ok()) return d.status();
    out[i] = *std::move(d);
  }
  return out;
}

std::string ToText(const Dims& d) {
  std::string out = "[";
  for (const Dim& x : d) out += (out.size() > 1 ? ", " : "") + x.ToText();
  return out + "]";
}

Dim Product(std::span<const Dim> d) {
  Dim out = 1;
  for (const Dim& x : d) out = out * x;
  return out;
}

bool AllConstant(const Dims& d) {
  return std::all_of(d.begin(), d.end(), [](const Dim& x) { return x.is_constant(); });
}

std::vector<int64_t> Constants(const Dims& d) {
  std::vector<int64_t> out;
  out.reserve(d.size());
  for (const Dim& x : d) out.push_back(x.constant());
  return out;
}

Type Type::Tensor(DType dtype, Dims shape, EncodingRef encoding) {
  Type t;
  t.kind_ = Kind::kTensor;
  t.dtype_ = dtype;
  t.shape_ = std::move(shape);
  t.encoding_ = std::move(encoding);
  return t;
}

Type Type::Unranked(DType dtype) {
  Type t;
  t.kind_ = Kind::kUnranked;
  t.dtype_ = dtype;
  return t;
}

Type Type::Unknown() {
  Type t;
  t.kind_ = Kind::kUnknown;
  return t;
}

Type Type::Sequence(Type element) {
  Type t;
  t.kind_ = Kind::kSequence;
  t.element_ = std::make_shared<const Type>(std::move(element));
  return t;
}

Type Type::Optional(Type element) {
  Type t = Sequence(std::move(element));
  t.kind_ = Kind::kOptional;
  return t;
}

Dim Type::elements() const { return Product(shape_); }

absl::StatusOr<Dim> Type::bytes() const {
  if (kind_ != Kind::kTensor) return InvalidArgument("{} has no size in bytes", ToText());
  const int bits = BitWidth(dtype_);
  if (bits == 0) return InvalidArgument("strings have no size in bytes");
  Dim size;
  if (encoding_ != nullptr) {
    FORGE_ASSIGN_OR_RETURN(size, encoding_->Bytes(dtype_, shape_));
  } else {
    size = bits >= 8 ? elements() * (bits / 8) : CeilDiv(elements(), 8 / bits);
  }
  if (AllConstant(shape_) && !size.is_constant())
    return OutOfRange("the size of {} overflows 64 bits", ToText());
  return size;
}

Type Type::With(DType d) const {
  Type t = *this;
  t.dtype_ = d;
  return t;
}

Type Type::With(Dims s) const {
  Type t = *this;
  t.shape_ = std::move(s);
  return t;
}

Type Type::With(EncodingRef e) const {
  Type t = *this;
  t.encoding_ = std::move(e);
  return t;
}

Type Type::Bind(const Bindings& values) const {
  Type t = *this;
  for (Dim& d : t.shape_) d = d.Bind(values);
  if (element_ != nullptr) t.element_ = std::make_shared<const Type>(element_->Bind(values));
  return t;
}

bool AreRanked(TypeSpan types) {
  return std::none_of(types.begin(), types.end(), [](const Type& t) {
    return t.kind() == Type::Kind::kUnranked || t.kind() == Type::Kind::kUnknown;
  });
}

std::string Type::ToText() const {
  switch (kind_) {
    case Kind::kAbsent:
      return "none";
    case Kind::kTensor:
      break;
    case Kind::kUnranked:
      return fmt::format("{}[*]", Name(dtype_));
    case Kind::kUnknown:
      return "unknown";
    case Kind::kSequence:
      return fmt::format("sequence<{}>", element_->ToText());
    case Kind::kOptional:
      return fmt::format("optional<{}>", element_->ToText());
  }
  std::string out = fmt::format("{}{}", Name(dtype_), ir::ToText(shape_));
  return encoding_ != nullptr ? fmt::format("{} as {}", out, NameText(encoding_->name())) : out;
}

bool operator==(const Type& a, const Type& b) {
  if (a.kind_ != b.kind_) return false;
  switch (a.kind_) {
    case Type::Kind::kAbsent:
    case Type::Kind::kUnknown:
      return true;
    case Type::Kind::kTensor:
      break;
    case Type::Kind::kUnranked:
      return a.dtype_ == b.dtype_;
    case Type::Kind::kSequence:
    case Type::Kind::kOptional:
      return *a.element_ == *b.element_;
  }
  if (a.dtype_ != b.dtype_ || a.shape_ != b.shape_) return false;
  if (a.encoding_ == b.encoding_) return true;
  return a.encoding_ != nullptr && b.encoding_ != nullptr &&
         a.encoding_->name() == b.encoding_->name();
}

}  // namespace forge::ir
