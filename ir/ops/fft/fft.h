// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of complex and real signals, over any axes.
#pragma once
#include "ir/ops/fft/axis_transform.h"

namespace forge::ir {

struct Fft {
  std::vector<int64_t> axes = {-1};
  Dims sizes = {};
  FftNorm norm = FftNorm::kBackward;
  bool inverse = false;

  static constexpr OpInfo kInfo{
      .name = "fft",
      .formula = "the discrete Fourier transform over axes, or its inverse",
      .inputs = "x: complex[*d]",
      .outputs = "y: =x[*r]",
      .source = "torch.fft.fftn, torch.fft.ifftn; numpy.fft"};
  static constexpr Field kFields[] = {FieldOf<&Fft::axes>("axes", kFftAxesHelp),
                                      FieldOf<&Fft::sizes>("sizes", kFftSizesHelp),
                                      FieldOf<&Fft::norm>("norm", kFftNormHelp, kFftNorms),
                                      FieldOf<&Fft::inverse>("inverse", "The inverse transform.")};

  Values decompose(Function& f, ValueSpan in) const {
    AxisTransform t(f, {axes, sizes, norm, inverse});
    return {Joined(t.All(PartsOf(in[0])))};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Fft{}, {"complex[2,6]"}},
            {Fft{.norm = FftNorm::kOrtho, .inverse = true}, {"c64[3,5]"}},
            {Fft{.axes = {0, -1}, .norm = FftNorm::kForward}, {"c128[4,2,3]"}},
            {Fft{.axes = {1}, .sizes = {7}}, {"c64[2,4,3]"}},
            {Fft{.axes = {0}, .sizes = {3}, .inverse = true}, {"c128[5]"}},
            {Fft{.norm = FftNorm::kNone, .inverse = true}, {"c64[4]"}},
            {.op = Fft{}, .in = {"c64[512,1024]"}, .bench = true},
            {.op = Fft{.axes = {0, 1}}, .in = {"c64[512,512]"}, .bench = true},
            {Fft{.axes = {1, 0, 2}, .inverse = true}, {"c64[6,16,35]"}},
            {Fft{.axes = {0}, .norm = FftNorm::kOrtho}, {"c128[48,3]"}},
            {Fft{.axes = {0, 1}}, {"c64[1,37]"}},
            {Fft{}, {"c64[0,4]"}},
            {Fft{.axes = {2}}, {"c64[2,4]"}, "axis 2 is outside rank 2"},
            {Fft{.sizes = {3, 4}}, {"c64[2,4]"}, "2 sizes for 1 axes"},
            {Fft{}, {"f32[2,4]"}, "complex"}};
  }
};
const OpDef& DefOf(const Fft*);

struct Rfft {
  std::vector<int64_t> axes = {-1};
  Dims sizes = {};
  FftNorm norm = FftNorm::kBackward;

  static constexpr OpInfo kInfo{
      .name = "rfft",
      .formula = "fft of a real signal; of the last axis, of n elements, the first n / 2 + 1",
      .inputs = "x: f32|f64[*d]",
      .outputs = "y: complex(x)[*r]",
      .source = "torch.fft.rfftn"};
  static constexpr Field kFields[] = {FieldOf<&Rfft::axes>("axes", kFftAxesHelp),
                                      FieldOf<&Rfft::sizes>("sizes", kFftSizesHelp),
                                      FieldOf<&Rfft::norm>("norm", kFftNormHelp, kFftNorms)};

  Values decompose(Function& f, ValueSpan in) const {
    return {Joined(AxisTransform(f, {axes, sizes, norm, false}).OfReal(in[0]))};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Rfft{}, {"f32[2,6]"}},
            {Rfft{.norm = FftNorm::kOrtho}, {"f64[3,5]"}},
            {Rfft{.axes = {0, 1}, .sizes = {3, 8}}, {"f64[4,5,2]"}},
            {Rfft{.axes = {0}, .norm = FftNorm::kForward}, {"f32[9,2]"}},
            {Rfft{}, {"f64[1]"}},
            {Rfft{}, {"f32[3,2,98]"}},
            {Rfft{}, {"f64[2]"}},
            {Rfft{.norm = FftNorm::kForward}, {"f64[2,240]"}},
            {Rfft{.axes = {1}}, {"f32[2,74]"}},
            {.op = Rfft{}, .in = {"f32[512,1024]"}, .bench = true},
            {Rfft{.axes = {1}}, {"f32[4]"}, "axis 1 is outside rank 1"},
            {Rfft{}, {"f32[2,0]"}, "axis 1 has 0 elements, not at least one"},
            {Rfft{}, {"c64[2,4]"}, "f32"}};
  }
};
const OpDef& DefOf(const Rfft*);

struct Irfft {
  std::vector<int64_t> axes = {-1};
  Dims sizes = {};
  FftNorm norm = FftNorm::kBackward;

  static constexpr OpInfo kInfo{
      .name = "irfft",
      .formula =
          "the real signal whose rfft is x; without sizes the last axis, of m elements, "
          "becomes 2 (m - 1)",
      .inputs = "x: complex[*d]",
      .outputs = "y: real(x)[*r]",
      .source = "torch.fft.irfftn"};
  static constexpr Field kFields[] = {FieldOf<&Irfft::axes>("axes", kFftAxesHelp),
                                      FieldOf<&Irfft::sizes>("sizes", kFftSizesHelp),
                                      FieldOf<&Irfft::norm>("norm", kFftNormHelp, kFftNorms)};

  Values decompose(Function& f, ValueSpan in) const {
    return {AxisTransform(f, {axes, sizes, norm, true}).ToReal(PartsOf(in[0]))};
  }
  [[gnu::cold]] static Cases cases() {
    return {{Irfft{}, {"c64[2,4]"}},
            {Irfft{.sizes = {5}, .norm = FftNorm::kOrtho}, {"c128[3,3]"}},
            {Irfft{.axes = {0, 1}, .sizes = {3, 8}}, {"c128[4,5,2]"}},
            {Irfft{.axes = {0}, .sizes = {7}, .norm = FftNorm::kForward}, {"c64[4,2]"}},
            {Irfft{.axes = {1}}, {"c64[4]"}, "axis 1 is outside rank 1"},
            {Irfft{}, {"c64[2,0]"}, "axis 1 has -2 elements, not at least one"},
            {Irfft{}, {"f32[2,4]"}, "complex"}};
  }
};
const OpDef& DefOf(const Irfft*);

}  // namespace forge::ir
