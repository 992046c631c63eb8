// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/kernels/fourier/fourier_stages.h"

#include <cmath>
#include <numbers>

namespace forge::cpu {
namespace {

// Steps of which a vector holds several.
constexpr int64_t kShortStep = 4;

// Fours first, which have the fastest stages while neighbours are few.
int64_t RadixOf(int64_t n) {
  if (n % 4 == 0) return 4;
  int64_t radix = 2;
  while (n % radix != 0) ++radix;
  return radix;
}

// exp(-2 pi i turns / n)
template <class T>
void Append(std::vector<T>& to, int64_t turns, int64_t n) {
  const double angle =
      -2 * std::numbers::pi * static_cast<double>(turns % n) / static_cast<double>(n);
  to.push_back(static_cast<T>(std::cos(angle)));
  to.push_back(static_cast<T>(std::sin(angle)));
}

template <class T>
std::vector<T> Spread(const FourierStage<T>& s) {
  std::vector<T> out;
  const int64_t each = 2 * (s.radix - 1);
  out.reserve(static_cast<size_t>(each * s.count * s.step));
  for (int64_t part = 0; part < each; ++part)
    for (int64_t p = 0; p < s.count; ++p)
      out.insert(out.end(), static_cast<size_t>(s.step),
                 s.turns[static_cast<size_t>(p * each + part)]);
  return out;
}

}  // namespace

template <class T>
std::vector<FourierStage<T>> FourierStagesOf(int64_t n) {
  std::vector<FourierStage<T>> stages;
  for (int64_t left = n, step = 1; left > 1;) {
    FourierStage<T> s{.radix = RadixOf(left), .step = step};
    s.count = left / s.radix;
    for (int64_t i = 0; i < s.radix; ++i) Append(s.roots, s.radix - i, s.radix);
    for (int64_t p = 0; p < s.count; ++p)
      for (int64_t k = 1; k < s.radix; ++k) Append(s.turns, p * k, left);
    if (s.radix == 4 && step <= kShortStep) s.spread = Spread(s);
    step *= s.radix;
    left = s.count;
    stages.push_back(std::move(s));
  }
  return stages;
}

template <class T>
RealSignal<T>::RealSignal(int64_t half_length) : half(half_length) {
  for (int64_t k = 0; k < half; ++k) {
    const double angle = -std::numbers::pi * static_cast<double>(k) / static_cast<double>(half);
    turns_re.push_back(static_cast<T>(std::cos(angle)));
    turns_im.push_back(static_cast<T>(std::sin(angle)));
  }
}

template RealSignal<float>::RealSignal(int64_t half_length);
template RealSignal<double>::RealSignal(int64_t half_length);
template std::vector<FourierStage<float>> FourierStagesOf<float>(int64_t n);
template std::vector<FourierStage<double>> FourierStagesOf<double>(int64_t n);

}  // namespace forge::cpu
