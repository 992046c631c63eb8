// SPDX-License-Identifier: Apache-2.0
#include "ir/type/encodings.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "ir/type/host_value.h"

namespace forge::ir {

PermutedEncoding::PermutedEncoding(std::vector<int64_t> order)
    : order_(std::move(order)), name_(fmt::format("permuted({})", fmt::join(order_, ","))) {}

absl::StatusOr<EncodingRef> PermutedEncoding::Make(std::vector<int64_t> order) {
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i))
      return InvalidArgument("({}) does not name each of {} axes once", fmt::join(order, ","),
                             order.size());
  return EncodingRef(new PermutedEncoding(std::move(order)));
}

absl::StatusOr<Dim> PermutedEncoding::Bytes(DType t, const Dims& shape) const {
  if (shape.size() != order_.size())
    return InvalidArgument("{} lays out {} axes, not {}", name_, order_.size(), shape.size());
  return Type::Tensor(t, shape).bytes();
}

absl::StatusOr<std::vector<int64_t>> PermutedEncoding::Strides(
    std::span<const int64_t> shape) const {
  if (shape.size() != order_.size())
    return InvalidArgument("{} lays out {} axes, not {}", name_, order_.size(), shape.size());
  std::vector<int64_t> strides(shape.size());
  int64_t step = 1;
  for (size_t i = order_.size(); i-- > 0;) {
    const auto axis = static_cast<size_t>(order_[i]);
    strides[axis] = step;
    if (__builtin_mul_overflow(step, shape[axis], &step))
      return InvalidArgument("the extents of {} overflow 64 bits", name_);
  }
  return strides;
}

absl::Status PermutedEncoding::Decode(DType t, std::span<const int64_t> shape,
                                      std::span<const uint8_t> in, std::span<uint8_t> out) const {
  if (BitWidth(t) == 0 || BitWidth(t) % 8 != 0)
    return Unimplemented("{} of {}: elements are not whole bytes", name_, Name(t));
  FORGE_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, Strides(shape));
  FORGE_ASSIGN_OR_RETURN(const Dim size, Bytes(t, Dims(shape.begin(), shape.end())));
  const size_t bytes = static_cast<size_t>(BitWidth(t) / 8);
  const size_t needed = static_cast<size_t>(size.constant());
  if (in.size() < needed || out.size() < needed)
    return InvalidArgument("{}: {} bytes are needed, {} given and room for {}", name_, needed,
                           in.size(), out.size());
  uint8_t* to = out.data();
  for (Box at(shape); at; at.Next(), to += bytes) {
    int64_t from = 0;
    for (size_t a = 0; a < strides.size(); ++a) from += (*at)[a] * strides[a];
    std::memcpy(to, in.data() + static_cast<size_t>(from) * bytes, bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<EncodingRef> EncodingNamed(std::string_view name) {
  constexpr std::string_view kPermuted = "permuted(";
  std::vector<int64_t> order;
  if (name.starts_with(kPermuted) && name.ends_with(')')) {
    const char *at = name.data() + kPermuted.size(), *end = name.data() + name.size() - 1;
    while (at < end) {
      int64_t axis = 0;
      const auto [rest, error] = std::from_chars(at, end, axis);
      if (error != std::errc() || (rest != end && *rest != ',')) break;
      order.push_back(axis);
      at = rest + 1;
    }
    auto encoding = PermutedEncoding::Make(std::move(order));
    if (encoding.ok() && (*encoding)->name() == name) return encoding;
  }
  return InvalidArgument("'{}' is no known encoding", name);
}

}  // namespace forge::ir
