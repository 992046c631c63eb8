// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/spatial/conv_integer.h"

#include "ir/op/define.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/movement/gather.h"
#include "ir/ops/movement/transpose.h"
#include "ir/ops/product/matmul_integer.h"
#include "ir/ops/spatial/window.h"

namespace forge::ir {
namespace {

Dims Spatial(const Type& t) { return Dims(t.shape().begin() + 2, t.shape().end()); }

// The elements along axis `at` that each tap of each window meets: taps * windows of them.
Value Windows(Value x, int64_t at, const WindowAxis& w, const Dim& taps, const Dim& windows) {
  Function& f = *x.fn;
  const Value tap = Along(f, DType::kI32, taps, 0, 2),
              window = Along(f, DType::kI32, windows, 1, 2);
  const Value places =
      tap * static_cast<double>(w.dilation) + window * static_cast<double>(w.stride);
  return f(Gather{.axis = at}, {x, f(Reshape{{taps * windows}}, {places})});
}

// The windows of an image as the columns of a matrix for each group: [n, g, k * taps, windows].
Value ColumnsOf(const ConvInteger& op, Value x, const Dims& taps, const Dims& windows) {
  Function& f = *x.fn;
  const Dims shape = x.type().shape();
  const Window window = WindowOver(op.unpadded(), shape.size());
  Dims apart{shape[0], op.groups, FloorDiv(shape[1], op.groups)};
  std::vector<int64_t> order{0, 1, 2};
  const auto axes = static_cast<int64_t>(taps.size());
  for (int64_t a = 0; a < axes; ++a) {
    const auto i = static_cast<size_t>(a);
    const bool whole = taps[i] == Dim(1) && window[i].stride == 1;
    if (!whole) x = Windows(x, 2 + a, window[i], taps[i], windows[i]);
    apart.push_back(taps[i]);
    apart.push_back(windows[i]);
    order.push_back(3 + 2 * a);
  }
  for (int64_t a = 0; a < axes; ++a) order.push_back(4 + 2 * a);
  const Dim depth = apart[2] * Product(taps);
  const Value columns = f(Transpose{std::move(order)}, {f(Reshape{apart}, {x})});
  return f(Reshape{{shape[0], op.groups, depth, Product(windows)}}, {columns});
}

}  // namespace

absl::StatusOr<Types> ConvInteger::infer(TypeSpan in) const {
  FORGE_ASSIGN_OR_RETURN(const Types y, unpadded().infer(in));
  return Types{y[0].With(DType::kI32)};
}

Cost ConvInteger::cost(TypeSpan in) const { return unpadded().cost(in); }

Values ConvInteger::decompose(Function& f, ValueSpan in) const {
  const Value x = in[0], w = in[1];
  const Types types{x.type(), w.type()};
  const auto y = infer(types);
  if (!y.ok()) return f.Fail(y.status()), Values{x};
  const Dims weight = w.type().shape(), taps = Spatial(w.type()), windows = Spatial(y->front());
  const Dim depth = weight[1] * Product(taps);
  if (depth.is_constant() && depth.constant() <= kExactTerms) {
    const auto f32 = [&](Value v) { return f(Cast{DType::kF32}, {v}); };
    return {f(Cast{DType::kI32}, {f(unpadded(), {f32(x), f32(w)})})};
  }
  const Value rows = f(Reshape{{groups, FloorDiv(weight[0], groups), depth}}, {w});
  const Value sums = f(MatMulInteger{}, {rows, ColumnsOf(*this, x, taps, windows)});
  return {f(Reshape{y->front().shape()}, {sums})};
}

Cases ConvInteger::cases() {
  return {{ConvInteger{}, {"u8[1,3,8,9]", "i8[4,3,3,3]"}},
          {ConvInteger{}, {"u8[2,80,4,5]", "i8[6,80,3,3]"}},
          {ConvInteger{}, {"i8[2,300,3,5]", "u8[50,300,1,1]"}},
          {ConvInteger{.strides = {2, 1}, .dilations = {1, 2}}, {"u8[1,64,9,23]", "u8[5,64,3,3]"}},
          {ConvInteger{.strides = {3, 2}}, {"u8[1,300,7,8]", "i8[4,300,1,1]"}},
          {ConvInteger{.groups = 2}, {"i8[2,260,5,19]", "i8[14,130,2,2]"}},
          {ConvInteger{.groups = 5}, {"u8[1,5,11,9]", "i8[5,1,5,5]"}},
          {ConvInteger{.strides = {2}, .dilations = {3}}, {"u8[2,150,40]", "i8[7,150,4]"}},
          {ConvInteger{}, {"u8[1,40,4,5,18]", "i8[3,40,2,2,2]"}},
          {ConvInteger{}, {"u8[1,700,3,3]", "i8[1,700,3,3]"}},
          {ConvInteger{}, {"u8[0,3,8,8]", "i8[4,3,3,3]"}},
          {ConvInteger{}, {"u8[1,0,4,4]", "i8[2,0,3,3]"}},
          {.op = ConvInteger{}, .in = {"u8[1,64,58,58]", "i8[64,64,3,3]"}, .bench = true},
          {.op = ConvInteger{}, .in = {"u8[1,256,14,14]", "i8[256,256,1,1]"}, .bench = true},
          {ConvInteger{}, {"u8[1,3,8,8]", "i8[4,2,3,3]"}, "3 channels are not 1 groups of 2"},
          {ConvInteger{}, {"u8[1,3,8,8]", "i8[4,3,9,3]"}, "does not fit"},
          {ConvInteger{}, {"f32[1,3,8,8]", "f32[4,3,3,3]"}, "f32"}};
}

FORGE_DEFINE_OP(ConvInteger)

}  // namespace forge::ir
