// SPDX-License-Identifier: Apache-2.0
// Element-wise and movement regions that read an operand along another axis than they write: blocks
// that are read in vectors along one axis and written in vectors along the last, turned in
// registers.
#include "codegen/schedules/emission.h"

namespace forge::codegen {
namespace {
namespace transpose {

using ir::Dim;
using ir::Dims;

constexpr int kLanes = 4;  // of a vector, along either axis

struct TransposeBlocks {
  int64_t workgroup = 64;
  int64_t depth = 4;              // of an invocation's block along the axis that is read
  int64_t width = 1;              // of the same along the last axis, in vectors
  int64_t across = 4, along = 8;  // invocations side by side: along the last axis, and that one
  static constexpr Field kFields[] = {
      FieldOf<&TransposeBlocks::workgroup>("workgroup", "Invocations in a workgroup.",
                                           "32|64|128|256"),
      FieldOf<&TransposeBlocks::depth>("depth", "Of a block along the axis that is read.",
                                       "4|8|16|32"),
      FieldOf<&TransposeBlocks::width>("width", "Vectors of a block along the last axis.", "1|2|4"),
      FieldOf<&TransposeBlocks::across>("across", "Invocations along the last axis.", "1|4|8|16"),
      FieldOf<&TransposeBlocks::along>("along", "Invocations along the axis that is read.",
                                       "1|4|8|16")};
};

// The axis along which an operand of many elements lies, where it is not the last.
std::optional<size_t> ReadAxisOf(const Region& r) {
  if (r.anchor() != nullptr) return std::nullopt;
  const int last = r.anchor_output().rank() - 1;
  for (int axis = last - 1; axis >= 0; --axis)
    if (r.LiesAlong(static_cast<size_t>(axis), static_cast<size_t>(last), kLanes)) return axis;
  return std::nullopt;
}

// The largest of `sizes` that divides `extent`, else 1.
int64_t LargestOf(std::initializer_list<int64_t> sizes, const Dim& extent) {
  for (int64_t size : sizes)
    if (extent.divisor() % size == 0) return size;
  return 1;
}

TransposeBlocks Defaults(const Region& r, size_t axis) {
  const Dims& shape = r.anchor_output().shape();
  const Dim& read = shape[axis];
  TransposeBlocks t;
  if (r.caps().runs_on_cpu) {  // which reads and writes half a line and as much as it can of a page
    t.depth = LargestOf({8, 4}, read);
    t.width = LargestOf({2}, FloorDiv(shape.back(), kLanes));
  }
  t.along = LargestOf({r.caps().runs_on_cpu ? 16 : 8, 8, 4}, FloorDiv(read, t.depth));
  t.across = LargestOf({8, 4}, FloorDiv(shape.back(), kLanes * t.width));
  return t;
}

Verdict Fits(const Region& r, size_t axis, const TransposeBlocks& t) {
  const Dims& shape = r.anchor_output().shape();
  const Dim& read = shape[axis];
  if (read.divisor() % (t.depth * t.along) != 0 ||
      shape.back().divisor() % (kLanes * t.width * t.across) != 0)
    return Verdict::No("blocks do not divide the axes");
  return WorkgroupFits(t.workgroup, r.caps());
}

Program Emit(const Region& r, size_t axis, const TransposeBlocks& t) {
  const Dims& shape = r.anchor_output().shape();
  // Invocations next to each other, then blocks along the axis that is read, then along the last.
  Dims space(shape.begin(), shape.end() - 1);
  space.erase(space.begin() + static_cast<ptrdiff_t>(axis));
  const size_t outer = space.size();
  for (const Dim& d : {FloorDiv(shape.back(), kLanes * t.width * t.across),
                       FloorDiv(shape[axis], t.depth * t.along), Dim(t.across), Dim(t.along)})
    space.push_back(d);
  const auto turn = [&](Emission& m, const Dims& place) {
    m.e.ShareVectors();
    Dims index(place.begin(), place.begin() + static_cast<ptrdiff_t>(outer));
    const Dim top = (place[outer + 1] * t.along + place[outer + 3]) * t.depth;
    const Dim left = (place[outer] * t.across + place[outer + 2]) * t.width;
    index.insert(index.begin() + static_cast<ptrdiff_t>(axis), top);
    index.emplace_back();
    for (int64_t i = 0; i < t.depth * t.width; ++i) {
      index[axis] = top + i / t.width;
      index.back() = (left + i % t.width) * kLanes + m.e.Lane(kLanes);
      m.e.Finish(index, {}, kLanes);
    }
  };
  return OneLaunch(ForPlaces(r, fmt::format("transpose_{}x{}", t.depth, t.width * kLanes),
                             t.workgroup, space, turn));
}

}  // namespace transpose
}  // namespace

const Schedule kTranspose =
    ScheduleOn<transpose::TransposeBlocks, transpose::ReadAxisOf, transpose::Defaults,
               transpose::Fits, transpose::Emit>("transpose");

}  // namespace forge::codegen
