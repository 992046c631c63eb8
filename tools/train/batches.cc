// SPDX-License-Identifier: Apache-2.0
#include "tools/train/batches.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <numeric>

#include "tools/train/generator.h"

namespace forge::tools {
namespace {

struct Move {
  bool flip = false;
  int64_t down = 0, right = 0;
};

// Copies one picture [planes, height, width] of elements of type T.
template <class T>
void CopyMoved(const T* from, T* to, std::span<const int64_t> shape, const Move& move) {
  const int64_t height = shape[shape.size() - 2], width = shape[shape.size() - 1];
  int64_t planes = 1;
  for (size_t i = 0; i + 2 < shape.size(); ++i) planes *= shape[i];
  for (int64_t row = 0; row < planes * height; ++row) {
    const int64_t y = row % height - move.down;
    T* const out = to + row * width;
    for (int64_t x = 0; x < width; ++x) {
      const int64_t moved = x - move.right, column = move.flip ? width - 1 - moved : moved;
      const bool inside = y >= 0 && y < height && column >= 0 && column < width;
      out[x] = inside ? from[(row - move.down) * width + column] : T{};
    }
  }
}

struct Gather {
  const ir::HostValue& from;
  const BatchRequest& request;

  // The samples one after another, moved as the request asks.
  template <class T>
  absl::StatusOr<std::vector<T>> Run() const {
    const std::span<const int64_t> shape = from.shape().subspan(1);
    const bool moves = request.augment.flip || request.augment.shift > 0;
    if (moves && shape.size() < 2)
      return InvalidArgument("--augment needs pictures, not {}", from.type().ToText());
    const int64_t sample = from.elements() / from.dim(0);
    std::vector<T> out(request.at.size() * static_cast<size_t>(sample));
    const T* const elements = reinterpret_cast<const T*>(from.bytes().data());
    for (size_t i = 0; i < request.at.size(); ++i) {
      const T* const begin = elements + request.at[i] * sample;
      T* const to = out.data() + i * static_cast<size_t>(sample);
      if (moves)
        CopyMoved(begin, to, shape, MoveOf(request.at[i]));
      else
        std::copy_n(begin, sample, to);
    }
    return out;
  }

  Move MoveOf(int64_t sample) const {
    Generator g(request.seed,
                static_cast<uint64_t>(request.epoch) << 40 | static_cast<uint64_t>(sample));
    const uint64_t reach = 2 * static_cast<uint64_t>(request.augment.shift) + 1;
    Move out;
    out.flip = request.augment.flip && (g.Next() >> 63) != 0;
    out.down = static_cast<int64_t>(g.Below(reach)) - request.augment.shift;
    out.right = static_cast<int64_t>(g.Below(reach)) - request.augment.shift;
    return out;
  }
};

template <class T>
forge::Bytes BytesOfVector(std::vector<T> values) {
  auto own = std::make_shared<const std::vector<T>>(std::move(values));
  return {{reinterpret_cast<const uint8_t*>(own->data()), own->size() * sizeof(T)}, own};
}

// Bytes of pictures as the floats of an input.
absl::StatusOr<forge::Bytes> Normalised(const DataSet& set, const Gather& gather) {
  FORGE_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, gather.Run<uint8_t>());
  std::array<float, 256> table{};
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = (static_cast<float>(i) / 255.0F - set.mean) / set.std;
  std::vector<float> out(bytes.size());
  std::ranges::transform(bytes, out.begin(), [&](uint8_t b) { return table[b]; });
  return BytesOfVector(std::move(out));
}

// The samples of any element type, without augmentation.
forge::Bytes Rows(const ir::HostValue& from, std::span<const int64_t> at) {
  const size_t width = from.bytes().size() / static_cast<size_t>(from.dim(0));
  std::vector<uint8_t> out(at.size() * width);
  for (size_t i = 0; i < at.size(); ++i)
    std::copy_n(from.bytes().begin() + static_cast<int64_t>(static_cast<size_t>(at[i]) * width),
                width, out.begin() + static_cast<int64_t>(i * width));
  return forge::Bytes(std::move(out));
}

}  // namespace

absl::StatusOr<Augment> ParseAugment(std::string_view spec) {
  Augment out;
  while (!spec.empty()) {
    const std::string_view part = spec.substr(0, spec.find(','));
    spec.remove_prefix(std::min(spec.size(), part.size() + 1));
    if (part == "flip") {
      out.flip = true;
      continue;
    }
    const std::string_view number = part.substr(std::min(part.size(), size_t{6}));
    const auto r = std::from_chars(number.data(), number.data() + number.size(), out.shift);
    if (!part.starts_with("shift=") || r.ec != std::errc() ||
        r.ptr != number.data() + number.size() || out.shift < 0 || out.shift > 1000)
      return InvalidArgument("--augment: '{}' is not flip or shift=N with N in 0..1000", part);
  }
  return out;
}

std::vector<int64_t> Shuffled(int64_t n, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  Generator g(seed, ~static_cast<uint64_t>(epoch));
  for (size_t i = out.size(); i > 1; --i) std::swap(out[i - 1], out[g.Below(i)]);
  return out;
}

absl::StatusOr<std::vector<NamedTensor>> MakeBatch(const DataSet& set, const DataPorts& ports,
                                                   const BatchRequest& request) {
  std::vector<NamedTensor> out;
  const auto n = static_cast<int64_t>(request.at.size());
  for (size_t i = 0; i < set.inputs.size(); ++i) {
    const auto& [name, from] = set.inputs[i];
    std::vector<int64_t> shape(from.shape().begin(), from.shape().end());
    forge::Bytes bytes;
    if (!set.normalised) {
      shape.clear();
      for (const ir::Dim& d : ports.inputs[i].type.shape())
        shape.push_back(d.is_constant() ? d.constant() : n);
      FORGE_ASSIGN_OR_RETURN(bytes, Normalised(set, {from, request}));
    } else if (from.dtype() == DType::kF32) {
      FORGE_ASSIGN_OR_RETURN(std::vector<float> rows, (Gather{from, request}.Run<float>()));
      bytes = BytesOfVector(std::move(rows));
    } else {
      bytes = Rows(from, request.at);
    }
    shape[0] = n;
    const DType dtype = ports.inputs[i].type.dtype();
    FORGE_ASSIGN_OR_RETURN(ir::HostValue value, ir::HostValue::Of(dtype, shape, bytes));
    out.push_back({name, std::move(value)});
  }
  std::vector<int64_t> shape(set.labels.shape().begin(), set.labels.shape().end());
  shape[0] = n;
  FORGE_ASSIGN_OR_RETURN(ir::HostValue labels, ir::HostValue::Of(set.labels.dtype(), shape,
                                                                 Rows(set.labels, request.at)));
  out.push_back({"label", std::move(labels)});
  return out;
}

}  // namespace forge::tools
