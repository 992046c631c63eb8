// SPDX-License-Identifier: Apache-2.0
// Memory layouts of operands.
#pragma once
#include "ir/type/encodings.h"

namespace forge::cpu {

// A strided view: dense or permuted. Strides count elements.
struct View {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape, strides;
  int64_t elements() const;
  int64_t limit() const;  // elements from the first to one past the last; 0 when empty
};

// Returns the number of elements of a shape.
int64_t Product(std::span<const int64_t> shape);
// Returns the view of a bound tensor type.
//   errors: Unimplemented (an encoding other than a permutation, or dimensions that are known only
//   at each step)
absl::StatusOr<View> ViewOf(const ir::Type& t);
// Returns a row-major view.
View DenseView(DType dtype, std::vector<int64_t> shape);
// Returns true when the view is row-major.
bool IsDense(const View& v);
// Returns the axes in memory order, outermost first; axes with equal strides keep their order.
std::vector<size_t> MemoryOrder(const View& v);
// Returns true when the elements have no gaps between them.
bool IsPacked(const View& v);
// Returns how many elements lie before matrix number `matrix` of a result in a view that broadcasts
// to it. A matrix has the last two axes; the view may lack leading ones.
int64_t ElementsBefore(const View& v, std::span<const int64_t> result, int64_t matrix);

// True for the ranks of tensors [n, c, ...] with one to three spatial axes.
constexpr bool HasChannels(size_t rank) { return rank >= 3 && rank <= 5; }
// The channels-last encoding for a rank; one object per rank.
const ir::EncodingRef& ChannelsLast(size_t rank = 4);

}  // namespace forge::cpu
