// SPDX-License-Identifier: Apache-2.0
// Changes ONNX models as messages rather than as bytes, so that most results still parse.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace forge::fuzz {

// Changes a few fields of the model that the first `size` bytes of `file` hold: numbers, names,
// messages left out, repeated or taken from elsewhere in it. The result, which depends on `seed`
// alone, is written in its place; returns its size, or 0 where there is no model or it does not
// fit.
size_t MutateOnnx(std::span<uint8_t> file, size_t size, unsigned seed);

}  // namespace forge::fuzz
