// SPDX-License-Identifier: Apache-2.0
// Weights in a blocked layout that oneDNN chooses.
#pragma once
#include "cpu_runtime/onednn/library.h"

namespace forge::cpu {

// A blocked layout of the elements as oneDNN computes with them: f16 and bf16 are widened to f32.
// oneDNN may view the tensor with other axes than the IR (a group axis, a transposition), so both
// descriptors are kept.
class PackedEncoding final : public ir::Encoding {
 public:
  // Creates an encoding.
  //   plain: the descriptor of the dense tensor, whose elements are widened
  static ir::EncodingRef Make(dnnl::memory::desc plain, dnnl::memory::desc packed);
  std::string_view name() const override { return name_; }
  absl::StatusOr<ir::Dim> Bytes(DType t, const ir::Dims& shape) const override;
  absl::Status Decode(DType t, std::span<const int64_t> shape, std::span<const uint8_t> in,
                      std::span<uint8_t> out) const override;
  const dnnl::memory::desc& plain() const { return plain_; }
  const dnnl::memory::desc& packed() const { return packed_; }

 private:
  PackedEncoding(dnnl::memory::desc plain, dnnl::memory::desc packed);
  dnnl::memory::desc plain_, packed_;
  std::string name_;  // "onednn:...", unique for each layout
};

// The packed encoding of a type; null when it has another encoding.
const PackedEncoding* PackedOf(const ir::Type& t);

}  // namespace forge::cpu
