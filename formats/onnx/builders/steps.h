// SPDX-License-Identifier: Apache-2.0
// Small steps that builders of several families share. Operands are tensors of the rank stated.
#pragma once
#include "absl/functional/function_ref.h"
#include "formats/onnx/node.h"

namespace forge::formats {

// Returns false, and fails, where operand `i` is no tensor of that rank.
bool HasRank(OnnxNode& n, size_t i, int64_t least, int64_t most);
// False where what made `x` has failed; fails where its rank is another.
bool IsOfRank(OnnxNode& n, ir::Value x, int64_t rank);
ir::Value ReshapedTo(OnnxNode& n, ir::Value x, ir::Dims shape);
ir::Value Permuted(OnnxNode& n, ir::Value x, std::vector<int64_t> permutation);
// Elements begin .. end - 1 of an axis, every `step`-th.
ir::Value Part(OnnxNode& n, ir::Value x, int64_t axis, const ir::Dim& begin, const ir::Dim& end,
               int64_t step = 1);
ir::Value Joined(OnnxNode& n, const ir::Values& parts, int64_t axis);
// 0, 1 ... `count` - 1 in i32, along axis `axis` of `rank` axes.
ir::Value Places(OnnxNode& n, const ir::Dim& count, int64_t axis, int64_t rank);
// `x` as the standard casts it: floats that an 8-bit float cannot hold saturate, or become infinity
// or NaN; those that an integer of less than a byte cannot hold wrap.
ir::Value CastTo(OnnxNode& n, ir::Value x, DType to, bool saturate);
ir::Value Converted(OnnxNode& n, ir::Value x, DType to);
ir::Value Zeros(OnnxNode& n, DType dtype, ir::Dims shape);
// `make` of two operands of which each may be a vector.
ir::Value ProductOf(OnnxNode& n, ir::Value a, ir::Value b,
                    absl::FunctionRef<ir::Value(ir::Value, ir::Value)> make);
// The element type that attribute `name` states; `fallback` where it is absent or 0.
DType TypeAttribute(OnnxNode& n, std::string_view name, DType fallback);
// Lists that the node itself gives, as constants.
ir::Value StringsConstant(OnnxNode& n, const std::vector<std::string>& list);
ir::Value IntsConstant(OnnxNode& n, const std::vector<int64_t>& list);

}  // namespace forge::formats
