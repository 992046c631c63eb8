// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/fft/dft.h"

#include <bit>
#include <numbers>

#include "ir/op/define.h"
#include "ir/ops/complex/parts.h"
#include "ir/ops/creation/iota.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/movement/pad.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul.h"

namespace forge::ir {
namespace {

// Lengths that are one matrix product.
constexpr int64_t kDirect = 32;
// The radix of longer ones, where it divides them.
constexpr int64_t kRadix = 16;

// The largest divisor of n up to the radix, else up to kDirect; 1: there is none.
int64_t RadixOf(int64_t n) {
  for (int64_t r = kRadix; r > 1; --r)
    if (n % r == 0) return r;
  for (int64_t r = kRadix + 1; r <= kDirect; ++r)
    if (n % r == 0) return r;
  return 1;
}

// Exchanges an axis with the last one.
Value WithLast(Value x, int64_t axis) {
  const int64_t last = x.type().rank() - 1;
  if (axis == last) return x;
  Transpose op;
  for (int64_t a = 0; a <= last; ++a)
    op.permutation.push_back(a == axis ? last : a == last ? axis : a);
  return (*x.fn)(op, {x});
}

// Transforms of tensors [batch, n] in the type of `t`.
class Transform {
 public:
  Transform(Function& f, DType t, bool inverse) : f_(f), type_(t), sign_(inverse ? 1 : -1) {}
  ComplexParts Of(ComplexParts x, int64_t n, const Dim& batch) const;

 private:
  ComplexParts Direct(ComplexParts x, int64_t n) const;
  ComplexParts ByFactors(ComplexParts x, int64_t radix, int64_t rest, const Dim& batch) const;
  ComplexParts ByConvolution(ComplexParts x, int64_t n) const;
  // A transform of another length, which may have a kernel.
  ComplexParts Other(ComplexParts x, bool inverse) const {
    const Values y = f_.Add(Dft{.inverse = inverse}, Values{x.re, x.im});
    return {y[0], y[1]};
  }
  Value Numbers(int64_t count, DType t = DType::kI64) const {
    return f_(Iota{.dtype = t, .count = count}, {});
  }
  // i * j for i < rows, j < columns: both are small enough for i32.
  Value Products(int64_t rows, int64_t columns) const {
    const Value i = f_(Reshape{{rows, 1}}, {Numbers(rows, DType::kI32)});
    return i * Numbers(columns, DType::kI32);
  }
  // exp(sign 2 pi i turns / n) of integers.
  ComplexParts Roots(Value turns, int64_t n, int sign) const;
  ComplexParts Each(ComplexParts x, absl::FunctionRef<Value(Value)> move) const {
    const Value re = move(x.re);
    return {re, x.im ? move(x.im) : Value{}};
  }
  ComplexParts Reshaped(ComplexParts x, const Dims& shape) const {
    return Each(x, [&](Value v) { return f_(Reshape{shape}, {v}); });
  }
  ComplexParts Swapped(ComplexParts x) const {  // of the last two of three axes
    return Each(x, [&](Value v) { return f_(Transpose{.permutation = {0, 2, 1}}, {v}); });
  }

  Function& f_;
  DType type_;
  int sign_;
};

ComplexParts Transform::Of(ComplexParts x, int64_t n, const Dim& batch) const {
  if (n <= kDirect) return Direct(x, n);
  const int64_t radix = RadixOf(n);
  return radix > 1 ? ByFactors(x, radix, n / radix, batch) : ByConvolution(x, n);
}

ComplexParts Transform::Roots(Value turns, int64_t n, int sign) const {
  const Value whole = f_(Remainder{}, {turns, (turns * 0.0) + static_cast<double>(n)});
  // Half a turn at most on either side, so that the angle keeps its digits.
  const Value folded =
      select(whole * 2.0 > static_cast<double>(n), whole - static_cast<double>(n), whole);
  const Value angle =
      convert(folded, type_) * (sign * 2 * std::numbers::pi / static_cast<double>(n));
  const Value re = cos(angle);
  return {re, sin(angle)};
}

// [re, im] times [[c, s], [-s, c]].
ComplexParts Transform::Direct(ComplexParts x, int64_t n) const {
  if (n == 1) return {x.re, x.im ? x.im : ZeroLike(x.re)};
  const ComplexParts w = Roots(Products(n, n), n, sign_);
  const Value top = f_(Concat{.axis = 1}, {w.re, w.im});
  Value matrix = top, operand = x.re;
  if (x.im) {
    const Value bottom = f_(Concat{.axis = 1}, {-w.im, w.re});
    matrix = f_(Concat{.axis = 0}, {top, bottom});
    operand = f_(Concat{.axis = -1}, {x.re, x.im});
  }
  const Value y = f_(MatMul{}, {operand, matrix});
  const Value re = f_(Slice{.begin = {0}, .end = {n}, .axes = {-1}}, {y});
  return {re, f_(Slice{.begin = {n}, .end = {2 * n}, .axes = {-1}}, {y})};
}

// j = rest j1 + j2 and k = k1 + radix k2: transforms over j1, a factor for each j2 and k1, and
// transforms over j2.  source: Cooley and Tukey, 1965
ComplexParts Transform::ByFactors(ComplexParts x, int64_t radix, int64_t rest,
                                  const Dim& batch) const {
  const ComplexParts columns = Swapped(Reshaped(x, {batch, radix, rest}));
  const ComplexParts inner = Direct(columns, radix);  // [batch, j2, k1]
  const ComplexParts turned = inner * Roots(Products(rest, radix), radix * rest, sign_);
  const ComplexParts rows = Reshaped(Swapped(turned), {batch * radix, rest});
  const ComplexParts outer = rest > kDirect ? Other(rows, sign_ > 0) : Direct(rows, rest);
  return Reshaped(Swapped(Reshaped(outer, {batch, radix, rest})), {batch, radix * rest});
}

// j k = (j^2 + k^2 - (k - j)^2) / 2 makes it a convolution with exp(-sign pi i j^2 / n), which is
// a product of transforms of a power of two.  source: Bluestein, 1970
ComplexParts Transform::ByConvolution(ComplexParts x, int64_t n) const {
  const auto length = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1)));
  const auto extended = [&](Value v) {
    return f_(Pad{.before = {0, 0}, .after = {0, length - n}}, {v});
  };
  const Value j = Numbers(n);
  const ComplexParts chirp = Roots(j * j, 2 * n, sign_);
  const ComplexParts scaled =
      x.im ? chirp * x : Each(chirp, [&](Value part) { return x.re * part; });
  // The distance of each place from the first, in a ring.
  const Value at = Numbers(length), back = static_cast<double>(length) - at;
  const Value distance = min(at, back);
  const ComplexParts falling = Roots(distance * distance, 2 * n, -sign_);
  const Value within = distance < static_cast<double>(n);
  const auto kernel =
      Each(falling, [&](Value v) { return f_(Reshape{{1, length}}, {select(within, v, 0.0)}); });
  const ComplexParts of_kernel = Other(kernel, false);
  const ComplexParts ring = Other(Other(Each(scaled, extended), false) * of_kernel, true);
  const ComplexParts y = Each(ring, [&](Value v) {
    const Value first = f_(Slice{.begin = {0}, .end = {n}, .axes = {1}}, {v});
    return first * (1.0 / static_cast<double>(length));
  });
  return y * chirp;
}

}  // namespace

absl::StatusOr<Types> Dft::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const int64_t along, NormalAxis(axis, in[0].rank()));
  const Type y = Type::Tensor(in[0].dtype(), in[0].shape());
  if (y.shape()[static_cast<size_t>(along)] == Dim(0))
    return InvalidArgument("a transform has at least one element");
  return Types{y, y};
}

Cost Dft::cost(TypeSpan in) const {
  const Dims& shape = in[0].shape();
  const int64_t n = shape[static_cast<size_t>(axis < 0 ? axis + in[0].rank() : axis)].max();
  const auto stages = static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(n)));
  return {Product(shape) * (5 * stages), n};
}

Values Dft::decompose(Function& f, ValueSpan in) const {
  const Dims& original = in[0].type().shape();
  const int64_t along = axis < 0 ? axis + in[0].type().rank() : axis;
  const Dim& extent = original[static_cast<size_t>(along)];
  if (!extent.is_constant() || extent.constant() > kLongestDft) {
    f.Fail(
        Unimplemented("a transform of {} elements: without a kernel the length must be known, "
                      "and at most {}",
                      extent.ToText(), kLongestDft));
    return {in[0], in[0]};
  }
  ComplexParts x{WithLast(in[0], along), in[1] ? WithLast(in[1], along) : Value{}};
  const Dims shape = x.re.type().shape();
  const Dim batch = Product(std::span(shape).first(shape.size() - 1));
  const int64_t n = extent.constant();
  const Dims flat = {batch, n};
  x.re = f(Reshape{flat}, {x.re});
  if (x.im) x.im = f(Reshape{flat}, {x.im});
  const ComplexParts y = Transform(f, in[0].type().dtype(), inverse).Of(x, n, batch);
  const Value re = WithLast(f(Reshape{shape}, {y.re}), along);
  return {re, WithLast(f(Reshape{shape}, {y.im}), along)};
}

Cases Dft::cases() {
  Cases cases = {{Dft{}, {"f32[3,5]", "f32[3,5]"}},
                 {Dft{.inverse = true}, {"f64[2,8]", "f64[2,8]"}},
                 {Dft{}, {"f32[7]"}},
                 {Dft{}, {"f64[1]"}},
                 {Dft{}, {"f64[38,1] edges"}},
                 {Dft{}, {"f64[2,3,48]"}},
                 {Dft{.inverse = true}, {"f32[2,96]", "f32[2,96]"}},
                 {Dft{.inverse = true}, {"f32[3,250]"}},
                 {Dft{}, {"f64[1,37]", "f64[1,37]"}},
                 {Dft{}, {"f32[2,2,91]", "f32[2,2,91]"}},
                 {Dft{.axis = 0}, {"f32[12,5]", "f32[12,5]"}},
                 {Dft{.axis = 1, .inverse = true}, {"f64[2,64,35]"}},
                 {Dft{.axis = -2}, {"f32[3,1,2]", "f32[3,1,2]"}},
                 {Dft{.axis = 0}, {"f32[41,2]"}},
                 {Dft{}, {"f32[2,1024]", "f32[2,1024]"}},
                 {Dft{}, {"f64[512]", "f64[512]"}},
                 {Dft{}, {"f32[0,4]"}},
                 {Dft{}, {"f32[2,0]"}, "at least one element"},
                 {Dft{.axis = 2}, {"f32[2,3]"}, "axis 2 is outside rank 2"},
                 {Dft{}, {"f32[2,4]", "f32[2,5]"}, "im"},
                 {Dft{}, {"i32[2,4]"}, "f32"}};
  for (const std::string shape :
       {"[2048,256]", "[1280,400]", "[512,1024]", "[128,4096]", "[8,65536]"})
    cases.push_back({.op = Dft{}, .in = {"f32" + shape, "f32" + shape}, .bench = true});
  cases.push_back({.op = Dft{}, .in = {"f64[256,1024]", "f64[256,1024]"}, .bench = true});
  return cases;
}

FORGE_DEFINE_OP(Dft)

}  // namespace forge::ir
