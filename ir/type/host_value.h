// SPDX-License-Identifier: Apache-2.0
// Tensors in host memory, for evaluators, importers, comparisons and tools; sequences of them and
// optionals without a value.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/bytes.h"
#include "base/number.h"
#include "ir/type/type.h"

namespace forge::ir {

using Index = absl::InlinedVector<int64_t, 8>;

// A dense row-major tensor. Loads convert to f64, i64 or c128, exactly where the element type
// allows; stores round half to even (floats) and wrap (integers). See docs/semantics.md.
// Strings are packed: elements() + 1 offsets of 64 bits, then the characters. A sequence has
// items() and neither shape nor elements. An optional that holds a value is that value.
class HostValue {
 public:
  HostValue() = default;
  // Returns a tensor of zeros. errors: ResourceExhausted (more than 2^40 bytes), InvalidArgument
  // (negative dimension)
  static absl::StatusOr<HostValue> Zeros(DType dtype, std::span<const int64_t> shape);
  // Returns a view of `bytes`. errors: InvalidArgument (another size)
  static absl::StatusOr<HostValue> Of(DType dtype, std::span<const int64_t> shape, Bytes bytes);
  static HostValue Scalar(DType dtype, const Number& v);
  // Returns a tensor of strings. errors: InvalidArgument (another number of them than the shape
  // has)
  static absl::StatusOr<HostValue> Strings(std::span<const int64_t> shape,
                                           std::span<const std::string> all);
  // Returns a sequence; `element` is what is known of the type of each item.
  static HostValue Sequence(Type element, std::vector<HostValue> items);
  // Returns the optional of that type that holds no value.
  static HostValue Nothing(Type element);

  bool is_tensor() const { return kind_ == Type::Kind::kTensor; }
  Type::Kind kind() const { return kind_; }
  DType dtype() const { return dtype_; }
  std::span<const int64_t> shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t dim(int axis) const { return shape_[axis]; }
  int64_t elements() const { return elements_; }
  Type type() const;
  std::span<const uint8_t> bytes() const { return bytes_.span(); }
  Bytes shared_bytes() const { return bytes_; }
  std::span<uint8_t> mutable_bytes();  // copies the bytes first when they are shared or mapped

  int64_t Flat(std::span<const int64_t> index) const;
  Index Unflat(int64_t flat) const;
  bool Has(int axis, int64_t at) const { return at >= 0 && at < shape_[axis]; }

  double f64(int64_t flat) const;
  int64_t i64(int64_t flat) const;
  std::complex<double> c128(int64_t flat) const;
  double f64(const Index& i) const { return f64(Flat(i)); }
  void Set(int64_t flat, double v);
  void SetI64(int64_t flat, int64_t v);
  void SetC128(int64_t flat, std::complex<double> v);
  // Load and store a Number. Stores convert as `cast` does: integers truncate and saturate.
  Number number(int64_t flat) const;
  void SetNumber(int64_t flat, const Number& v);
  void Set(const Index& i, double v) { Set(Flat(i), v); }
  // An element of a tensor of strings; valid while the value is.
  std::string_view string(int64_t flat) const;
  // The items of a sequence; empty for other values.
  std::span<const HostValue> items() const;

 private:
  DType dtype_ = DType::kF32;
  std::vector<int64_t> shape_;
  int64_t elements_ = 0;
  Bytes bytes_;
  std::shared_ptr<uint8_t> own_;
  Type::Kind kind_ = Type::Kind::kTensor;
  struct Items;
  std::shared_ptr<const Items> items_;  // of what is no tensor
};

// Iterates over the indices of a box in row-major order: for (Box b(extents); b; b.Next()) use(*b).
class Box {
 public:
  explicit Box(std::span<const int64_t> extents);
  explicit operator bool() const { return more_; }
  const Index& operator*() const { return at_; }
  void Next();

 private:
  Index extents_, at_;
  bool more_;
};

// The flat indices of the elements along one axis: start, start + stride ...
struct Lane {
  int64_t start, stride, n;
  int64_t operator[](int64_t i) const { return start + i * stride; }
};
std::vector<Lane> Lanes(std::span<const int64_t> shape, int axis);

}  // namespace forge::ir
