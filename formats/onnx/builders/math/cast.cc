// SPDX-License-Identifier: Apache-2.0
// Conversions between element types.
#include <cmath>

#include "base/narrow_float.h"
#include "formats/onnx/builders/families.h"
#include "formats/onnx/builders/steps.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/host/strings.h"
#include "ir/ops/movement/bit_cast.h"

namespace forge::formats {
namespace {

constexpr double kLargestF8E5M2 = 57344;

// NaN where x rounds to more than the largest number of an 8-bit float without infinity.
ir::Value NanBeyond(OnnxNode& n, ir::Value x, DType to) {
  const double half_way = to == DType::kF8E4M3 ? 464 : to == DType::kF8E4M3Fnuz ? 248 : 61440;
  const ir::Value size = n.fn()(ir::Abs{}, {x});
  // The largest of f8e4m3 is even, so that the number half-way beyond it is rounded down.
  const ir::Value beyond = to == DType::kF8E4M3 ? size > half_way : ~(size < half_way);
  return ir::select(beyond, NAN, x);
}

}  // namespace

ir::Value CastTo(OnnxNode& n, ir::Value x, DType to, bool saturate) {
  if (to == DType::kString || x.type().dtype() == DType::kString)
    return n.fn()(ir::StringCast{to}, {x});
  const bool is_float = Has(kAllFloatTypes, x.type().dtype());
  if (Has(kTinyIntTypes, to) && is_float) x = n.fn()(ir::Cast{DType::kI32}, {x});
  if (!Has(kFloat8Types, to)) return n.fn()(ir::Cast{to}, {x});
  if (!Has(kFloatTypes, x.type().dtype())) x = n.fn()(ir::Cast{DType::kF32}, {x});
  if (to == DType::kF8E5M2 && saturate)
    x = n.fn()(ir::Clamp{.low = -kLargestF8E5M2, .high = kLargestF8E5M2}, {x});
  if (to != DType::kF8E5M2 && !saturate) x = NanBeyond(n, x, to);
  return n.fn()(ir::Cast{to}, {x});
}

namespace {

ir::Values BuildCast1(OnnxNode& n) {
  const absl::StatusOr<DType> to = OnnxDType(std::string_view(n.String("to", "")));
  if (!to.ok()) n.Fail("attribute 'to': {}", Message(to.status()));
  return to.ok() ? ir::Values{CastTo(n, n.in(0), *to, true)} : ir::Values();
}

ir::Values BuildCast6(OnnxNode& n) {
  const bool saturate = n.Int("saturate", 1) != 0;  // of 8-bit floats
  n.Ignore("round_mode");                           // of f8e8m0, which Cast does not make
  const int64_t code = n.Int("to", 0);
  const absl::StatusOr<DType> to =
      OnnxDType(code == static_cast<int32_t>(code) ? static_cast<int32_t>(code) : 0);
  if (!to.ok()) n.Fail("attribute 'to': {}", Message(to.status()));
  if (!to.ok()) return {};
  return {CastTo(n, n.in(0), *to, saturate)};
}

ir::Values BuildCastLike(OnnxNode& n) {
  const bool saturate = n.Int("saturate", 1) != 0;
  n.Ignore("round_mode");  // of f8e8m0
  return {CastTo(n, n.in(0), n.type(1).dtype(), saturate)};
}

ir::Values BuildBitCast(OnnxNode& n) {
  const absl::StatusOr<DType> to = OnnxDType(static_cast<int32_t>(n.Int("to", 0)));
  if (!to.ok()) n.Fail("attribute 'to': {}", Message(to.status()));
  return to.ok() ? ir::Values{n.fn()(ir::BitCast{*to}, {n.in(0)})} : ir::Values();
}

constexpr OnnxOp kCastOps[] = {
    {"", "BitCast", 26, 1, 1, BuildBitCast},
    {"", "Cast", 1, 1, 1, BuildCast1},
    {"", "Cast", 6, 1, 1, BuildCast6},
    {"", "CastLike", 15, 2, 2, BuildCastLike},
};

}  // namespace

std::span<const OnnxOp> CastOps() { return kCastOps; }

}  // namespace forge::formats
