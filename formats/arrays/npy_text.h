// SPDX-License-Identifier: Apache-2.0
// Text in NumPy files: elements of type U hold a fixed number of characters in UTF-32, filled with
// zeros. Strings of tensors are UTF-8.
#pragma once
#include <string_view>

#include "ir/type/host_value.h"

namespace forge {

// Returns strings of `characters` little-endian words each.
//   errors: DataLoss (another number of bytes, no character of Unicode)
absl::StatusOr<ir::HostValue> StringsOfUtf32(std::span<const uint8_t> words, uint64_t characters,
                                             std::span<const int64_t> shape,
                                             std::string_view where);

// The elements of a tensor of strings as NumPy stores them.
struct Utf32 {
  uint64_t characters = 1;  // of the longest
  std::vector<uint8_t> bytes;
};
// errors: InvalidArgument (a string that is no UTF-8), ResourceExhausted (more than 2^32 bytes)
absl::StatusOr<Utf32> Utf32Of(const ir::HostValue& strings);

}  // namespace forge
