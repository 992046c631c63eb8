// SPDX-License-Identifier: Apache-2.0
// Encodings and types: immutable values, compared by content.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/dim/dim.h"

namespace forge::ir {

// The storage format of a tensor. The null encoding is dense and row-major; all others (permuted
// layouts, the blocked layouts of a library, quantised blocks) implement this interface. `relayout`
// converts between encodings; a device may also decode in a load.
class Encoding {
 public:
  virtual ~Encoding() = default;
  virtual std::string_view name()
      const = 0;  // "permuted(0,2,3,1)", "onednn:..."; encodings with equal names are equal
  virtual absl::StatusOr<Dim> Bytes(DType t, const Dims& shape) const = 0;
  // Converts to dense elements. Unimplemented for the opaque layouts of a device, which exist only
  // inside a plan.
  virtual absl::Status Decode(DType t, std::span<const int64_t> shape, std::span<const uint8_t> in,
                              std::span<uint8_t> out) const = 0;
};
using EncodingRef = std::shared_ptr<const Encoding>;

class Type {
 public:
  enum class Kind : uint8_t { kAbsent, kTensor, kUnranked, kSequence, kOptional, kUnknown };
  Type() = default;  // absent: an optional operand that is not given, or a result after an error
  static Type Tensor(DType dtype, Dims shape, EncodingRef encoding = nullptr);
  static Type Unranked(DType dtype);  // only before binding
  static Type Unknown();              // only before binding: the result of a deferred node
  static Type Sequence(Type element);
  static Type Optional(Type element);
  explicit operator bool() const { return kind_ != Kind::kAbsent; }
  Kind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == Kind::kTensor; }
  DType dtype() const { return dtype_; }
  const Dims& shape() const { return shape_; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  const EncodingRef& encoding() const { return encoding_; }
  const Type& element() const { return *element_; }
  Dim elements() const;
  absl::StatusOr<Dim> bytes() const;  // errors: overflow, strings
  bool is_constant() const { return kind_ == Kind::kTensor && AllConstant(shape_); }
  Type With(DType d) const;
  Type With(Dims s) const;
  Type With(EncodingRef e) const;
  Type Bind(const Bindings& values) const;
  std::string ToText() const;  // "f32[n, 3, 48, 192]"
  friend bool operator==(const Type&, const Type&);

 private:
  Kind kind_ = Kind::kAbsent;
  DType dtype_ = DType::kF32;
  Dims shape_;
  EncodingRef encoding_;
  std::shared_ptr<const Type> element_;
};
using Types = std::vector<Type>;
using TypeSpan = std::span<const Type>;
// True when no type is unranked or unknown, so shape() may be called on all tensors.
bool AreRanked(TypeSpan types);

}  // namespace forge::ir
