// SPDX-License-Identifier: Apache-2.0
#include "ir/encoding.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "ir/host_value.h"

namespace forge::ir {
namespace {

constexpr std::string_view kPermuted = "permuted(";

class PermutedEncoding final : public Encoding {
 public:
  explicit PermutedEncoding(std::vector<int64_t> order)
      : order_(std::move(order)), name_(fmt::format("{}{})", kPermuted, fmt::join(order_, ","))) {}

  std::string_view name() const override { return name_; }

  absl::StatusOr<Dim> Bytes(DType t, const Dims& shape) const override {
    if (shape.size() != order_.size())
      return InvalidArgument("{} does not fit {}", name_, ToText(shape));
    return Type::Tensor(t, shape).bytes();
  }

  absl::Status Decode(DType t, std::span<const int64_t> shape, std::span<const uint8_t> in,
                      std::span<uint8_t> out) const override {
    const size_t width = static_cast<size_t>(BitWidth(t)) / 8;
    if (width == 0) return Unimplemented("{} of {} cannot be decoded", name_, Name(t));
    FORGE_ASSIGN_OR_RETURN(const Dim bytes, Bytes(t, Dims(shape.begin(), shape.end())));
    if (!bytes.is_constant() || bytes != static_cast<int64_t>(in.size()) || in.size() != out.size())
      return InvalidArgument("{} holds {} bytes and takes {}", name_, in.size(), bytes.ToText());
    if (!in.empty()) Copy(shape, in, out, width);
    return absl::OkStatus();
  }

 private:
  void Copy(std::span<const int64_t> shape, std::span<const uint8_t> in, std::span<uint8_t> out,
            size_t width) const {
    Index extents(shape.size()), strides(shape.size());
    for (size_t i = 0; i < shape.size(); ++i) extents[i] = shape[static_cast<size_t>(order_[i])];
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      strides[i] = stride;
      stride *= shape[i];
    }
    const uint8_t* from = in.data();
    for (Box b(extents); b; b.Next(), from += width) {
      int64_t flat = 0;
      for (size_t i = 0; i < extents.size(); ++i)
        flat += (*b)[i] * strides[static_cast<size_t>(order_[i])];
      std::memcpy(out.data() + static_cast<size_t>(flat) * width, from, width);
    }
  }

  const std::vector<int64_t> order_;
  const std::string name_;
};

}  // namespace

absl::StatusOr<EncodingRef> Permuted(std::vector<int64_t> order) {
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i))
      return InvalidArgument("[{}] is no order of axes", fmt::join(order, ", "));
  return std::make_shared<PermutedEncoding>(std::move(order));
}

absl::StatusOr<EncodingRef> EncodingNamed(std::string_view name) {
  if (name.starts_with(kPermuted) && name.ends_with(')')) {
    std::vector<int64_t> order;
    const char *at = name.data() + kPermuted.size(), *end = name.data() + name.size() - 1;
    while (at < end) {
      int64_t axis = 0;
      const auto [rest, error] = std::from_chars(at, end, axis);
      if (error != std::errc() || (rest != end && *rest != ',')) break;
      order.push_back(axis);
      at = rest + 1;
    }
    if (auto encoding = Permuted(std::move(order)); encoding.ok() && (*encoding)->name() == name)
      return encoding;
  }
  return InvalidArgument("'{}' is no known encoding", name);
}

}  // namespace forge::ir
