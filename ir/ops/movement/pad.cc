// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/movement/pad.h"

#include "ir/graph/module.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/ops/complex/parts.h"

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
  if (mode != PadMode::kConstant) {
    g.fn.Fail(Unimplemented("pad has a gradient in mode constant only"));
    return {Value{}};
  }
  Pad crop;
  for (size_t a = 0; a < before.size(); ++a) {
    crop.before.push_back(0 - before[a]);
    crop.after.push_back(0 - after[a]);
  }
  return {g.fn(crop, {g.dout[0]})};
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
