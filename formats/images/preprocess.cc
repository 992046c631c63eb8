// SPDX-License-Identifier: Apache-2.0
#include "formats/images/preprocess.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace forge {
namespace {

constexpr int64_t kMaxExtent = 1 << 15, kMaxPixels = int64_t{1} << 28;

// ---- the specification ----------------------------------------------------------------------

template <class T>
absl::StatusOr<T> ParseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return InvalidArgument("preprocess: '{}' is not a number", text);
  return value;
}

absl::Status ParseSize(std::string_view text, Preprocess& p) {
  const size_t x = text.find('x');
  if (x == std::string_view::npos)
    return InvalidArgument("preprocess: resize={} is not HEIGHTxWIDTH", text);
  FORGE_ASSIGN_OR_RETURN(p.height, ParseNumber<int64_t>(text.substr(0, x)));
  FORGE_ASSIGN_OR_RETURN(p.width, ParseNumber<int64_t>(text.substr(x + 1)));
  if (p.height < 1 || p.width < 1 || p.height > kMaxExtent || p.width > kMaxExtent ||
      p.height * p.width > kMaxPixels)
    return InvalidArgument("preprocess: resize={} is out of range", text);
  return absl::OkStatus();
}

absl::Status ParseChannels(std::string_view key, std::string_view text, std::vector<double>& out) {
  FORGE_ASSIGN_OR_RETURN(const double value, ParseNumber<double>(text));
  if (!std::isfinite(value) || (key == "std" && value == 0))
    return InvalidArgument("preprocess: {}={} is out of range", key, text);
  if (out.size() == 3) return InvalidArgument("preprocess: {} has more than 3 values", key);
  out.push_back(value);
  return absl::OkStatus();
}

template <class E, size_t kCount>
absl::Status ParseChoice(std::string_view key, std::string_view text,
                         const std::array<std::string_view, kCount>& names, E& out) {
  const auto at = std::ranges::find(names, text);
  if (at == names.end()) return InvalidArgument("preprocess: unknown value {}={}", key, text);
  out = static_cast<E>(at - names.begin());
  return absl::OkStatus();
}

absl::Status ParsePart(std::string_view key, std::string_view text, Preprocess& p) {
  if (key == "resize") return ParseSize(text, p);
  if (key == "mean") return ParseChannels(key, text, p.mean);
  if (key == "std") return ParseChannels(key, text, p.std);
  if (key == "layout")
    return ParseChoice(key, text, std::to_array<std::string_view>({"nchw", "nhwc"}), p.layout);
  if (key == "color")
    return ParseChoice(key, text, std::to_array<std::string_view>({"rgb", "bgr", "gray"}), p.color);
  return InvalidArgument(
      "preprocess: unknown key '{}'; the keys are resize, mean, std, layout, color", key);
}

// ---- the picture ----------------------------------------------------------------------------

// Samples of one colour model, interleaved.
struct Plane {
  int64_t height, width, channels;
  std::vector<float> samples;
  float at(int64_t y, int64_t x, int64_t c) const {
    return samples[static_cast<size_t>((y * width + x) * channels + c)];
  }
};

Plane Convert(const ir::HostValue& image, Preprocess::Color color) {
  const std::span<const uint8_t> in = image.bytes();
  const size_t have = static_cast<size_t>(image.dim(2));
  const bool gray = color == Preprocess::Color::kGray;
  Plane out{image.dim(0), image.dim(1), gray ? 1 : 3, {}};
  const size_t pixels = in.size() / have, want = static_cast<size_t>(out.channels);
  out.samples.resize(pixels * want);
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* from = &in[i * have];
    float* to = &out.samples[i * want];
    if (have == 1)
      std::fill_n(to, want, from[0]);
    else if (gray)
      to[0] = static_cast<float>((299 * from[0] + 587 * from[1] + 114 * from[2] + 500) / 1000);
    else
      for (size_t c = 0; c < 3; ++c) to[color == Preprocess::Color::kBgr ? 2 - c : c] = from[c];
  }
  return out;
}

// Where a sample of the result lies between two of the source.
struct Tap {
  int64_t low, high;
  float weight;  // of `high`
};

std::vector<Tap> Taps(int64_t from, int64_t to) {
  std::vector<Tap> taps(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double at =
        (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    const double inside = std::clamp(at, 0.0, static_cast<double>(from - 1));
    const auto low = static_cast<int64_t>(inside);
    taps[static_cast<size_t>(i)] = {low, std::min(low + 1, from - 1),
                                    static_cast<float>(inside - static_cast<double>(low))};
  }
  return taps;
}

Plane Resize(const Plane& in, int64_t height, int64_t width) {
  Plane out{height, width, in.channels, {}};
  out.samples.reserve(static_cast<size_t>(height * width * in.channels));
  const std::vector<Tap> rows = Taps(in.height, height), columns = Taps(in.width, width);
  for (const Tap& y : rows) {
    for (const Tap& x : columns) {
      for (int64_t c = 0; c < in.channels; ++c) {
        const float a = in.at(y.low, x.low, c), b = in.at(y.low, x.high, c);
        const float d = in.at(y.high, x.low, c), e = in.at(y.high, x.high, c);
        const float top = a + (b - a) * x.weight, bottom = d + (e - d) * x.weight;
        out.samples.push_back(top + (bottom - top) * y.weight);
      }
    }
  }
  return out;
}

// One value for each channel, as f32.
std::vector<float> Spread(const std::vector<double>& values, int64_t channels) {
  std::vector<float> out;
  for (int64_t c = 0; c < channels; ++c)
    out.push_back(static_cast<float>(values[values.size() == 1 ? 0 : static_cast<size_t>(c)]));
  return out;
}

absl::Status CheckChannels(std::string_view key, const std::vector<double>& values,
                           int64_t channels) {
  if (values.size() == 1 || static_cast<int64_t>(values.size()) == channels)
    return absl::OkStatus();
  return InvalidArgument("preprocess: {} has {} values for {} channels", key, values.size(),
                         channels);
}

}  // namespace

absl::StatusOr<Preprocess> ParsePreprocess(std::string_view spec) {
  Preprocess p;
  std::string_view key;
  std::vector<std::string_view> seen;
  for (size_t begin = 0; begin < spec.size();) {
    const size_t end = std::min(spec.find(',', begin), spec.size());
    std::string_view part = spec.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = part.find('=');
    if (equals != std::string_view::npos) {
      key = part.substr(0, equals);
      part.remove_prefix(equals + 1);
      if (std::ranges::count(seen, key) > 0)
        return InvalidArgument("preprocess: '{}' is given twice", key);
      seen.push_back(key);
      if (key == "mean") p.mean.clear();
      if (key == "std") p.std.clear();
    } else if (key != "mean" && key != "std") {
      return InvalidArgument("preprocess: '{}' is not of the form KEY=VALUE", part);
    }
    FORGE_RETURN_IF_ERROR(ParsePart(key, part, p));
  }
  return p;
}

absl::StatusOr<ir::HostValue> ApplyPreprocess(const Preprocess& p, const ir::HostValue& image) {
  if (image.dtype() != DType::kU8 || image.rank() != 3 || image.elements() == 0 ||
      (image.dim(2) != 1 && image.dim(2) != 3))
    return InvalidArgument("preprocess: {} is not a picture", image.type().ToText());
  Plane plane = Convert(image, p.color);
  FORGE_RETURN_IF_ERROR(CheckChannels("mean", p.mean, plane.channels));
  FORGE_RETURN_IF_ERROR(CheckChannels("std", p.std, plane.channels));
  if (p.height != 0 && (p.height != plane.height || p.width != plane.width))
    plane = Resize(plane, p.height, p.width);

  const bool planar = p.layout == Preprocess::Layout::kNchw;
  const int64_t h = plane.height, w = plane.width, c = plane.channels;
  const int64_t nchw[] = {1, c, h, w}, nhwc[] = {1, h, w, c};
  FORGE_ASSIGN_OR_RETURN(ir::HostValue out,
                         ir::HostValue::Zeros(DType::kF32, planar ? nchw : nhwc));
  const std::vector<float> mean = Spread(p.mean, c), std = Spread(p.std, c);
  const std::span<uint8_t> bytes = out.mutable_bytes();
  for (size_t i = 0; i < plane.samples.size(); ++i) {
    const size_t channel = i % mean.size(), pixel = i / mean.size();
    const float value = (plane.samples[i] / 255.0f - mean[channel]) / std[channel];
    const size_t to = planar ? channel * static_cast<size_t>(h * w) + pixel : i;
    std::memcpy(&bytes[to * sizeof(float)], &value, sizeof(float));
  }
  return out;
}

}  // namespace forge
