// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/complex/products.h"

#include <bit>

#include "ir/graph/module.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/slice.h"

namespace forge::ir {
namespace {

// The elements begin .. end - 1 of the last axis.
ComplexParts Between(ComplexParts z, int64_t begin, int64_t end) {
  Function& f = *z.re.fn;
  const Slice part{.begin = {begin}, .end = {end}, .axes = {-1}};
  const Value re = f(part, {z.re});
  return {re, f(part, {z.im})};
}

// Ones before and behind the elements of the last axis.
ComplexParts WithOnes(ComplexParts z, int64_t before, int64_t after) {
  Function& f = *z.re.fn;
  Pad pad{.before = Dims(z.re.type().shape().size(), 0), .after = {}};
  pad.after = pad.before;
  pad.before.back() = before;
  pad.after.back() = after;
  const Value im = f(pad, {z.im});
  pad.value = 1;
  return {f(pad, {z.re}), im};
}

// The element `distance` before each, or behind it; 1 where there is none.
ComplexParts Shifted(ComplexParts z, int64_t n, int64_t distance, bool reverse) {
  if (reverse) return Between(WithOnes(z, 0, distance), distance, n + distance);
  return Between(WithOnes(z, distance, 0), 0, n);
}

// nullopt, and an error in the status of the function, where the extent is not known.
std::optional<int64_t> LastExtent(ComplexParts z) {
  Function& f = *z.re.fn;
  if (!f.status().ok()) return std::nullopt;
  const Dim& n = z.re.type().shape().back();
  if (n.is_constant()) return n.constant();
  f.Fail(Unimplemented("a product of {} complex numbers, whose number must be known", n.ToText()));
  return std::nullopt;
}

}  // namespace

ComplexParts ProductAlongLast(ComplexParts z) {
  const std::optional<int64_t> n = LastExtent(z);
  if (!n) return z;
  auto width = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(*n)));
  if (width > *n) z = WithOnes(z, 0, width - *n);
  for (; width > 1; width /= 2) {
    const ComplexParts left = Between(z, 0, width / 2);
    z = left * Between(z, width / 2, width);
  }
  return z;
}

ComplexParts ProductsAlongLast(ComplexParts z, const RunningProduct& how) {
  const std::optional<int64_t> n = LastExtent(z);
  if (!n) return z;
  if (how.exclusive) z = Shifted(z, *n, 1, how.reverse);
  for (int64_t distance = 1; distance < *n; distance *= 2)
    z = z * Shifted(z, *n, distance, how.reverse);
  return z;
}

}  // namespace forge::ir
