// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/movement/pad.h"

#include <algorithm>

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/complex/parts.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/slice.h"

namespace forge::ir {
namespace {

// Can the elements put before and after an axis be found in its `extent`? Bounds of dimensions
// decide; what is not known is checked when it is bound.
absl::Status CheckSource(const Pad& op, size_t axis, const Dim& extent) {
  if (op.mode == PadMode::kConstant) return absl::OkStatus();
  for (const Dim& pad : {op.before[axis], op.after[axis]}) {
    const Dim most = op.mode == PadMode::kReflect ? extent - 1 : extent;
    const bool too_many = op.mode == PadMode::kReflect && (pad - most).min() > 0;
    if (pad.min() > 0 && (extent.max() < 1 || too_many))
      return InvalidArgument("axis {} of extent {} has not {} elements to pad with", axis,
                             extent.ToText(), pad.ToText());
  }
  return absl::OkStatus();
}

// The element that stands at `i`, which may lie outside.
Dim SourceOf(PadMode mode, const Dim& i, const Dim& extent) {
  switch (mode) {
    case PadMode::kReflect: {
      const Dim mirrored = Max(i, 0 - i);
      return Min(mirrored, 2 * (extent - 1) - mirrored);
    }
    case PadMode::kEdge:
      return Min(Max(i, 0), extent - 1);
    case PadMode::kWrap:
      return Mod(i, Max(extent, 1));
    case PadMode::kConstant:
      break;
  }
  return i;
}

// An axis that a tensor is padded along with its own elements.
struct Padding {
  PadMode mode = PadMode::kConstant;
  size_t axis = 0;
  Dim extent, before, after;
};

// Elements begin..end of `dy`, from the last to the first where `flip`, at `at` of an axis of zeros
// of that extent.
struct PaddedPart {
  int64_t begin, end, at;
  bool flip = false;
};
Value Placed(Value dy, size_t axis, const Dim& extent, const PaddedPart& part) {
  Function& f = *dy.fn;
  const auto along = static_cast<int64_t>(axis);
  Value v = f(Slice{.begin = {part.begin}, .end = {part.end}, .axes = {along}}, {dy});
  if (part.flip) v = f(Slice{{-1}, {INT64_MIN}, {along}, {-1}}, {v});
  if (!f.status().ok()) return v;
  Pad zeros{.before = Dims(v.type().shape().size(), 0), .after = {}};
  zeros.after = zeros.before;
  zeros.before[axis] = part.at;
  zeros.after[axis] = extent - part.at - (part.end - part.begin);
  return f(zeros, {v});
}

// What stands before and behind the tensor, by where it was taken from.
std::vector<PaddedPart> PaddedPartsOf(const Padding& p, int64_t n, int64_t before, int64_t after) {
  std::vector<PaddedPart> parts;
  if (p.mode == PadMode::kWrap) {
    const int64_t end = n + before + after;
    for (int64_t begin = 0; begin < end && n > 0;) {
      const int64_t at = ((begin - before) % n + n) % n, stop = std::min(end, begin + n - at);
      parts.push_back({begin, stop, at});
      begin = stop;
    }
    return parts;
  }
  const int64_t lead = std::max<int64_t>(before, 0), first = std::max<int64_t>(-before, 0);
  const int64_t kept = n - first - std::max<int64_t>(-after, 0);
  parts.push_back({lead, lead + kept, first});
  if (p.mode == PadMode::kReflect) {
    if (before > 0) parts.push_back({0, before, 1, true});
    if (after > 0) parts.push_back({lead + kept, lead + kept + after, n - 1 - after, true});
    return parts;
  }
  for (int64_t i = 0; i < before; ++i) parts.push_back({i, i + 1, 0});
  for (int64_t i = 0; i < after; ++i)
    parts.push_back({lead + kept + i, lead + kept + i + 1, n - 1});
  return parts;
}

// The gradient of padding along one axis.
Value Folded(Value dy, const Padding& p) {
  if (p.before == Dim(0) && p.after == Dim(0)) return dy;
  if (!p.extent.is_constant() || !p.before.is_constant() || !p.after.is_constant()) {
    dy.fn->Fail(Unimplemented("pad has a gradient of open extents in mode constant only"));
    return dy;
  }
  Value sum;
  for (const PaddedPart& part :
       PaddedPartsOf(p, p.extent.constant(), p.before.constant(), p.after.constant())) {
    const Value v = Placed(dy, p.axis, p.extent, part);
    sum = sum ? sum + v : v;
  }
  return sum;
}

}  // namespace

absl::StatusOr<Types> Pad::infer(TypeSpan in) const {
  FORGE_RETURN_IF_ERROR(CheckHolds(in[0].dtype(), value));
  const Dims& from = in[0].shape();
  if (before.size() != from.size() || after.size() != from.size())
    return InvalidArgument("{} before and {} after do not match rank {}", before.size(),
                           after.size(), from.size());
  Dims shape;
  for (size_t a = 0; a < from.size(); ++a) {
    shape.push_back(from[a] + before[a] + after[a]);
    if (shape[a].max() < 0)
      return InvalidArgument("axis {} is cropped by more than its extent {}", a, from[a].ToText());
    FORGE_RETURN_IF_ERROR(CheckSource(*this, a, from[a]));
  }
  return Types{Type::Tensor(in[0].dtype(), std::move(shape))};
}

IndexMap Pad::map(TypeSpan in, const Dims& at) const {
  IndexMap::Piece inside{.operand = 0, .index = {}};
  for (size_t a = 0; a < at.size(); ++a) {
    inside.index.push_back(at[a] - before[a]);
    if (before[a] == 0 && after[a] == 0) continue;
    if (mode != PadMode::kConstant)
      inside.index[a] = SourceOf(mode, inside.index[a], in[0].shape()[a]);
    else
      inside.when.push_back({.value = inside.index[a], .low = 0, .high = in[0].shape()[a]});
  }
  return {.pieces = {std::move(inside)}, .fill = value};
}

Values Pad::decompose(Function& f, ValueSpan in) const {
  if (!Has(kComplexTypes, in[0].type().dtype())) return {};
  const ComplexParts x = PartsOf(in[0]);
  Pad of_re = *this, of_im = *this;
  of_re.value = value.c128().real();
  of_im.value = value.c128().imag();
  const Value re = f(of_re, {x.re});
  return {Joined({re, f(of_im, {x.im})})};
}

Values Pad::gradient(const GradArgs& g) const {
  const Dims& shape = g.in[0].type().shape();
  Pad crop{.before = Dims(shape.size(), 0), .after = Dims(shape.size(), 0)};
  Value dx = g.dout[0];
  for (size_t a = 0; a < shape.size(); ++a) {
    if (mode != PadMode::kConstant && g.fn.status().ok())
      dx = Folded(dx, {mode, a, shape[a], before[a], after[a]});
    else
      crop.before[a] = 0 - before[a], crop.after[a] = 0 - after[a];
  }
  return {mode == PadMode::kConstant ? g.fn(crop, {dx}) : dx};
}

Cases Pad::cases() {
  return {{Pad{{1, 0}, {2, 3}}, {"real|bool[2,3]"}},
          {Pad{{0, 0, 1, 1}, {0, 0, 1, 1}, -1.5}, {"float[1,2,3,3]"}},
          {Pad{{-1, 2}, {0, -2}, 7}, {"real[3,4]"}},
          {Pad{{1}, {2}, INT64_MIN + 1}, {"i64[2]"}},
          {Pad{{1}, {2}, UINT64_MAX - 1}, {"u64[2]"}},
          {Pad{{1, 0}, {2, 1}, std::complex(1.5, -2.0)}, {"complex[2,3]"}},
          {Pad{{1}, {2}, 0, PadMode::kWrap}, {"c64[3]"}},
          {Pad{{-2}, {-3}}, {"f32[5]"}},
          {Pad{{0, 2}, {0, 0}, 1}, {"f32[0,3]"}},
          {Pad{{2}, {1}, 1}, {"f32[0]"}},
          {Pad{{}, {}}, {"f32[]"}},
          {.op = Pad{{0, 0, 3, 3}, {0, 0, 3, 3}}, .in = {"f32[8,64,112,112]"}, .bench = true},
          {Pad{{1, 0}, {2, 3}, 0, PadMode::kReflect}, {"real|bool[3,4]"}},
          {Pad{{0, 4, 0}, {0, 4, 2}, 0, PadMode::kReflect}, {"f32[2,5,3]"}},
          {Pad{{-1}, {2}, 0, PadMode::kReflect}, {"f32[7]"}},
          {Pad{{2, 3}, {0, 5}, 0, PadMode::kEdge}, {"real|bool[3,1]"}},
          {Pad{{0, 0, 1, 1}, {0, 0, 1, 2}, 0, PadMode::kEdge}, {"float[1,2,3,3]"}},
          {Pad{{2, -1}, {3, 4}, 0, PadMode::kWrap}, {"real|bool[2,5]"}},
          {Pad{{7}, {3}, 0, PadMode::kWrap}, {"f32[3]"}},
          {Pad{{0, 1}, {0, 1}, 0, PadMode::kReflect}, {"f32[0,3]"}},
          {.op = Pad{{0, 0, 3, 3}, {0, 0, 3, 3}, 0, PadMode::kReflect},
           .in = {"f32[8,64,112,112]"},
           .bench = true},
          {Pad{{0, 3}, {0, 0}, 0, PadMode::kReflect}, {"f32[2,3]"}, "elements to pad with"},
          {Pad{{1}, {0}, 0, PadMode::kReflect}, {"f32[1]"}, "elements to pad with"},
          {Pad{{1}, {0}, 0, PadMode::kEdge}, {"f32[0]"}, "elements to pad with"},
          {Pad{{1}, {0}, 0, PadMode::kWrap}, {"f32[0]"}, "elements to pad with"},
          {Pad{{1}, {1}}, {"f32[2,3]"}, "do not match rank 2"},
          {Pad{{-2, 0}, {-1, 0}}, {"f32[2,3]"}, "cropped"}};
}

FORGE_DEFINE_OP(Pad)

}  // namespace forge::ir
