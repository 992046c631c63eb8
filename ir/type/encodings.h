// SPDX-License-Identifier: Apache-2.0
// Encodings that are not private to a device, and their names in files.
#pragma once
#include "ir/type/type.h"

namespace forge::ir {

// A layout without gaps whose axes are in an order other than row-major.
class PermutedEncoding final : public Encoding {
 public:
  // order: the axes, outermost in memory first: (0, 2, 3, 1) is channels last errors:
  // InvalidArgument (not a permutation)
  static absl::StatusOr<EncodingRef> Make(std::vector<int64_t> order);
  std::string_view name() const override { return name_; }
  absl::StatusOr<Dim> Bytes(DType t, const Dims& shape) const override;
  absl::Status Decode(DType t, std::span<const int64_t> shape, std::span<const uint8_t> in,
                      std::span<uint8_t> out) const override;
  const std::vector<int64_t>& order() const { return order_; }
  // The strides, in elements. errors: InvalidArgument (another rank)
  absl::StatusOr<std::vector<int64_t>> Strides(std::span<const int64_t> shape) const;

 private:
  explicit PermutedEncoding(std::vector<int64_t> order);
  std::vector<int64_t> order_;
  std::string name_;  // "permuted(0,2,3,1)"
};

// Returns an encoding by name. Encodings private to a device are never in files. errors:
// InvalidArgument (unknown)
absl::StatusOr<EncodingRef> EncodingNamed(std::string_view name);

}  // namespace forge::ir
