// SPDX-License-Identifier: Apache-2.0
// Encodings that every device may use, and their names in files.
#pragma once
#include "ir/type/type.h"

namespace forge::ir {

// All elements without gaps, axes in another order than row-major.
class PermutedEncoding final : public Encoding {
 public:
  // `order` names each axis once, the outermost in memory first: (0, 2, 3, 1) keeps channels last.
  //   errors: InvalidArgument where it is no permutation
  static absl::StatusOr<EncodingRef> Make(std::vector<int64_t> order);
  std::string_view name() const override { return name_; }
  absl::StatusOr<Dim> Bytes(DType t, const Dims& shape) const override;
  absl::Status Decode(DType t, std::span<const int64_t> shape, std::span<const uint8_t> in,
                      std::span<uint8_t> out) const override;
  const std::vector<int64_t>& order() const { return order_; }
  // Elements between neighbours along each axis.  errors: InvalidArgument where ranks differ
  absl::StatusOr<std::vector<int64_t>> Strides(std::span<const int64_t> shape) const;

 private:
  explicit PermutedEncoding(std::vector<int64_t> order);
  std::vector<int64_t> order_;
  std::string name_;  // "permuted(0,2,3,1)"
};

// The encoding of that name; a device's own encodings never stand in files.
//   errors: InvalidArgument when there is none
absl::StatusOr<EncodingRef> EncodingNamed(std::string_view name);

}  // namespace forge::ir
