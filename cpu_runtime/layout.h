// SPDX-License-Identifier: Apache-2.0
// Where the elements of an operand lie.
#pragma once
#include "ir/type/encodings.h"

namespace forge::cpu {

// Elements at strides, dense or permuted. Strides count elements.
struct View {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape, strides;
  int64_t elements() const;
  int64_t limit() const;  // elements from the first to the one past the last; 0 when empty
};

// Of a bound tensor type.  errors: Unimplemented for any encoding but permuted ones and for
// dimensions that are known only at each step
absl::StatusOr<View> ViewOf(const ir::Type& t);
// Row-major.
View DenseView(DType dtype, std::vector<int64_t> shape);
// The axes from the outermost in memory to the innermost; among equal strides as they come.
std::vector<size_t> MemoryOrder(const View& v);
// All elements without gaps?
bool IsPacked(const View& v);

// Of tensors [n, c, ...] of one to three spatial axes.
constexpr bool HasChannels(size_t rank) { return rank >= 3 && rank <= 5; }
// Channels behind the spatial axes of such a rank; one object for all.
const ir::EncodingRef& ChannelsLast(size_t rank = 4);

}  // namespace forge::cpu
