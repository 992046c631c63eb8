// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and what is computed around them.
#include <cmath>
#include <numbers>

#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/op/axes.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/fft/dft.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/slice.h"

namespace forge::formats {
namespace {

struct Spectrum {
  ir::Value re, im;  // im: absent where numbers are real
};

// The parts that the last axis holds, with `axis` as their last one.
Spectrum PartsAlong(OnnxNode& n, ir::Value x, int64_t axis) {
  const auto rank = static_cast<size_t>(x.type().rank());
  std::vector<int64_t> order;
  for (size_t a = 0; a + 1 < rank; ++a)
    if (static_cast<int64_t>(a) != axis) order.push_back(static_cast<int64_t>(a));
  order.push_back(axis);
  ir::Dims shape = x.type().shape();
  const bool is_complex = shape.back() == ir::Dim(2);
  shape.pop_back();
  const auto part = [&](int64_t which) {
    const ir::Value one = Part(n, x, static_cast<int64_t>(rank) - 1, which, which + 1);
    return Permuted(n, ReshapedTo(n, one, shape), order);
  };
  return {part(0), is_complex ? part(1) : ir::Value()};
}

// The other way round: `axis` takes its place again, and parts are the last axis.
ir::Value WithParts(OnnxNode& n, const Spectrum& s, int64_t axis) {
  ir::Values parts;
  for (const ir::Value& v : {s.re, s.im}) {
    if (!v) continue;
    std::vector<int64_t> order;
    for (int64_t a = 0; a + 1 < v.type().rank(); ++a) order.push_back(a);
    order.insert(order.begin() + axis, v.type().rank() - 1);
    ir::Value moved = Permuted(n, v, order);
    ir::Dims shape = moved.type().shape();
    shape.push_back(1);
    parts.push_back(ReshapedTo(n, moved, std::move(shape)));
  }
  return parts.size() == 1 ? parts[0] : Joined(n, parts, parts[0].type().rank() - 1);
}

// The first `length` elements of the last axis, with zeros where there are fewer.
ir::Value OfLength(OnnxNode& n, ir::Value x, const ir::Dim& length) {
  if (!x || x.type().shape().back() == length) return x;
  ir::Pad pad;
  pad.before.assign(x.type().shape().size(), 0);
  pad.after = pad.before;
  pad.after.back() = length - x.type().shape().back();
  return n.fn()(pad, {x});
}

// Half a spectrum of `length` real numbers, made whole: the rest is conjugate and in reverse.
Spectrum Mirrored(OnnxNode& n, const Spectrum& half, int64_t length) {
  const int64_t axis = half.re.type().rank() - 1, rest = length - (length / 2 + 1);
  if (rest <= 0) return half;
  const auto whole = [&](ir::Value v, bool negate) {
    const ir::Slice back{.begin = {rest}, .end = {0}, .axes = {axis}, .steps = {-1}};
    const ir::Value tail = n.fn()(back, {v});
    return Joined(n, {v, negate ? -tail : tail}, axis);
  };
  return {whole(half.re, false), half.im ? whole(half.im, true) : ir::Value()};
}

struct Transform {
  bool inverse = false, onesided = false;
  std::optional<int64_t> length;
};

// A transform along the last axis of its operands.
Spectrum Transformed(OnnxNode& n, Spectrum s, const Transform& t) {
  const ir::Dim have = s.re.type().shape().back();
  const bool from_half = t.inverse && t.onesided;
  if (!t.length && !have.is_constant()) {
    n.Fail("the length of the transform is not known before the model runs");
    return s;
  }
  const int64_t usual = t.length ? 0 : from_half ? 2 * (have.constant() - 1) : have.constant();
  const int64_t length = t.length.value_or(usual);
  if (length < 1) {
    n.Fail("a transform of {} elements", length);
    return s;
  }
  const int64_t half = length / 2 + 1;
  s = {OfLength(n, s.re, from_half ? half : length), OfLength(n, s.im, from_half ? half : length)};
  if (from_half) s = Mirrored(n, s, length);
  ir::Values y = n.fn().Add(ir::Dft{.inverse = t.inverse}, std::array{s.re, s.im});
  if (!n.fn().status().ok()) return s;
  if (t.inverse)
    for (ir::Value& v : y) v = v * (1.0 / static_cast<double>(length));
  if (from_half) return {y[0], {}};
  if (!t.onesided) return {y[0], y[1]};
  const int64_t last = y[0].type().rank() - 1;
  return {Part(n, y[0], last, 0, half), Part(n, y[1], last, 0, half)};
}

// Operand `i`, a number that must be known.
std::optional<int64_t> KnownNumber(OnnxNode& n, size_t i, std::string_view name) {
  if (!n.HasInput(i)) return std::nullopt;
  const std::optional<std::vector<int64_t>> list = n.ConstantInts(i);
  if (!list || list->size() != 1) {
    n.Fail("its {} is not known before the model runs", name);
    return std::nullopt;
  }
  return list->front();
}

// Is the last axis that of the parts of a number?
bool HasParts(OnnxNode& n, size_t i) {
  if (!HasRank(n, i, 2, 64)) return false;
  const ir::Dim& parts = n.type(i).shape().back();
  if (parts == ir::Dim(1) || parts == ir::Dim(2)) return true;
  n.Fail("the last axis of {} holds neither a real nor a complex number", n.type(i).ToText());
  return false;
}

// Until version 20 the axis was an attribute.
ir::Values BuildDft(OnnxNode& n) {
  const Transform t{.inverse = n.Flag("inverse"),
                    .onesided = n.Flag("onesided"),
                    .length = KnownNumber(n, 1, "length")};
  int64_t given = n.since() < 20 ? n.Int("axis", 1) : -2;
  if (n.since() >= 20) given = KnownNumber(n, 2, "axis").value_or(given);
  if (!n.status().ok() || !HasParts(n, 0)) return {};
  const int64_t rank = n.type(0).rank();
  const absl::StatusOr<int64_t> axis = ir::NormalAxis(given, rank);
  if (!axis.ok() || *axis == rank - 1) {
    n.Fail("axis {} is no axis of numbers", given);
    return {};
  }
  const DType dtype = n.type(0).dtype();
  const Spectrum x = PartsAlong(n, ir::Widened(n.in(0)), *axis);
  if (t.onesided && !t.inverse && x.im) n.Fail("onesided is set, but its numbers are complex");
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  const Spectrum y = Transformed(n, x, t);
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  return {Converted(n, WithParts(n, y, *axis), dtype)};
}

// [batch, length] in frames, [batch, frames, frame length].
ir::Value Framed(OnnxNode& n, ir::Value x, int64_t step, int64_t length) {
  if (!x) return x;
  const ir::Dim frames = ir::FloorDiv(x.type().shape()[1] - length, step) + 1;
  const ir::Value first = Places(n, frames, 0, 2) * static_cast<double>(step);
  return n.fn()(ir::Gather{.axis = 1}, {x, first + Places(n, length, 1, 2)});
}

ir::Values BuildStft(OnnxNode& n) {
  const Transform t{.inverse = false, .onesided = n.Flag("onesided", true), .length = {}};
  const int64_t step = KnownNumber(n, 1, "frame_step").value_or(1);
  std::optional<int64_t> length = KnownNumber(n, 3, "frame_length");
  if (n.HasInput(2) && HasRank(n, 2, 1, 1) && !length) {
    const ir::Dim& taps = n.type(2).shape()[0];
    if (taps.is_constant()) length = taps.constant();
  }
  if (!n.status().ok() || !HasRank(n, 0, 2, 3)) return {};
  const ir::Dims shape = n.type(0).shape();
  const bool is_real = shape.size() == 2;  // without an axis for the parts of numbers
  if (!is_real && !HasParts(n, 0)) return {};
  if (!length || *length < 1 || step < 1) {
    n.Fail("it has no frames of a length known before the model runs");
    return {};
  }
  const DType dtype = n.type(0).dtype();
  Spectrum x =
      is_real ? Spectrum{ir::Widened(n.in(0)), {}} : PartsAlong(n, ir::Widened(n.in(0)), 1);
  if (t.onesided && x.im) n.Fail("onesided is set, but its numbers are complex");
  x = {Framed(n, x.re, step, *length), Framed(n, x.im, step, *length)};
  if (n.HasInput(2)) {
    const ir::Value window = ir::Widened(n.in(2));
    x = {x.re * window, x.im ? x.im * window : ir::Value()};
  }
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  const Spectrum y = Transformed(n, x, t);
  if (!n.status().ok() || !n.fn().status().ok()) return {};
  return {Converted(n, WithParts(n, y, 2), dtype)};
}

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n)
struct CosineSum {
  double a0, a1, a2;
};

ir::Values WindowOf(OnnxNode& n, const CosineSum& sum) {
  const bool periodic = n.Flag("periodic", true);
  const DType dtype = TypeAttribute(n, "output_datatype", DType::kF32);
  const std::optional<ir::Dims> size = n.Contents(0);
  if (!size || size->size() != 1) n.Fail("its size is not known before the model runs");
  if (!n.status().ok()) return {};
  const DType wide = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const ir::Value i = n.fn()(ir::Iota{.dtype = wide, .count = size->front()}, {});
  const ir::Dim period = periodic ? size->front() : ir::Max(size->front() - 1, 1);
  const ir::Value angle = i * (2 * std::numbers::pi) / ir::ScalarOf(n.fn(), period, wide);
  ir::Value y = sum.a0 - ir::cos(angle) * sum.a1;
  if (sum.a2 != 0) y = y + ir::cos(angle * 2.0) * sum.a2;
  return {Converted(n, y, dtype)};
}

ir::Values BuildHannWindow(OnnxNode& n) { return WindowOf(n, {0.5, 0.5, 0}); }
ir::Values BuildHammingWindow(OnnxNode& n) { return WindowOf(n, {25.0 / 46, 21.0 / 46, 0}); }
ir::Values BuildBlackmanWindow(OnnxNode& n) { return WindowOf(n, {0.42, 0.5, 0.08}); }

// Triangles between neighbours of frequencies that are evenly spaced in mels.
ir::Values BuildMelWeightMatrix(OnnxNode& n) {
  constexpr int64_t kMostWeights = int64_t{1} << 24;
  const DType dtype = TypeAttribute(n, "output_datatype", DType::kF32);
  if (!Has(kRealTypes, dtype)) n.Fail("attribute 'output_datatype' is {}", Name(dtype));
  double number[5];
  for (size_t i = 0; i < 5; ++i) {
    const std::optional<Number> given = n.ConstantNumber(i);
    if (!given) n.Fail("input {} is not known before the model runs", i);
    number[i] = given.value_or(Number(1.0)).f64();
  }
  const auto bins = static_cast<int64_t>(number[0]), length = static_cast<int64_t>(number[1]);
  if (bins < 1 || length < 1 || length / 2 + 1 > kMostWeights / bins || !(number[2] > 0))
    n.Fail("{} bins for a transform of {} at a rate of {}", number[0], number[1], number[2]);
  if (!n.status().ok()) return {};
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(number[3]), step = (mel(number[4]) - low) / static_cast<double>(bins + 2);
  std::vector<int64_t> edge;  // in elements of the spectrum
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (low + static_cast<double>(i) * step) / 2595) - 1);
    edge.push_back(static_cast<int64_t>(std::floor((number[1] + 1) * hertz / number[2])));
  }
  const int64_t rows = length / 2 + 1;
  ir::HostValue out = *ir::HostValue::Zeros(dtype, std::array{rows, bins});
  for (int64_t b = 0; b < bins; ++b) {
    const auto at = static_cast<size_t>(b);
    const int64_t begin = edge[at], top = edge[at + 1], end = edge[at + 2];
    const auto put = [&](int64_t row, int64_t part, int64_t all) {
      if (row >= 0 && row < rows)
        out.Set(row * bins + b, static_cast<double>(part) / static_cast<double>(all));
    };
    if (top == begin) put(top, 1, 1);
    for (int64_t i = std::max<int64_t>(begin, 0); i <= std::min(top, rows) && top != begin; ++i)
      put(i, i - begin, top - begin);
    for (int64_t i = std::max<int64_t>(top, 0); i < std::min(end, rows) && end != top; ++i)
      put(i, end - i, end - top);
  }
  n.Define(std::move(out));
  return {};
}

constexpr OnnxOp kSignalOps[] = {
    {"", "BlackmanWindow", 17, 1, 1, BuildBlackmanWindow},
    {"", "DFT", 17, 1, 2, BuildDft},
    {"", "DFT", 20, 1, 3, BuildDft},
    {"", "HammingWindow", 17, 1, 1, BuildHammingWindow},
    {"", "HannWindow", 17, 1, 1, BuildHannWindow},
    {"", "MelWeightMatrix", 17, 5, 5, BuildMelWeightMatrix},
    {"", "STFT", 17, 2, 4, BuildStft},
};

}  // namespace

std::span<const OnnxOp> SignalOps() { return kSignalOps; }

}  // namespace forge::formats
