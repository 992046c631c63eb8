// SPDX-License-Identifier: Apache-2.0
// Element-wise and movement regions that read an operand along another axis than they write: blocks
// that are read in vectors along one axis and written in vectors along the last, turned in
// registers.
#include "codegen/schedules/emission.h"

namespace forge::codegen {
namespace {

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

// The axis along which an operand of many elements lies, where it is not the last; -1: none.
int ReadAxis(const Region& r) {
  if (r.anchor() != nullptr) return -1;
  const int last = r.anchor_output().rank() - 1;
  for (int axis = last - 1; axis >= 0; --axis)
    if (r.LiesAlong(static_cast<size_t>(axis), static_cast<size_t>(last), kLanes)) return axis;
  return -1;
}

bool Takes(const Region& r) { return ReadAxis(r) >= 0; }

// The largest of `sizes` that divides `extent`, else 1.
int64_t LargestOf(std::initializer_list<int64_t> sizes, const Dim& extent) {
  for (int64_t size : sizes)
    if (extent.divisor() % size == 0) return size;
  return 1;
}

TransposeBlocks Defaults(const Region& r) {
  const Dims& shape = r.anchor_output().shape();
  const Dim& read = shape[static_cast<size_t>(ReadAxis(r))];
  TransposeBlocks t;
  if (r.caps().runs_on_cpu) {  // which reads and writes half a line and as much as it can of a page
    t.depth = LargestOf({8, 4}, read);
    t.width = LargestOf({2}, FloorDiv(shape.back(), kLanes));
  }
  t.along = LargestOf({r.caps().runs_on_cpu ? 16 : 8, 8, 4}, FloorDiv(read, t.depth));
  t.across = LargestOf({8, 4}, FloorDiv(shape.back(), kLanes * t.width));
  return t;
}

Verdict Fits(const Region& r, const TransposeBlocks& t) {
  const Dims& shape = r.anchor_output().shape();
  const Dim& read = shape[static_cast<size_t>(ReadAxis(r))];
  if (read.divisor() % (t.depth * t.along) != 0 ||
      shape.back().divisor() % (kLanes * t.width * t.across) != 0)
    return Verdict::No("blocks do not divide the axes");
  return WorkgroupFits(t.workgroup, r.caps());
}

Program Emit(const Region& r, const TransposeBlocks& t) {
  const auto axis = static_cast<size_t>(ReadAxis(r));
  Emission m(r, fmt::format("transpose_{}x{}", t.depth, t.width * kLanes),
             {static_cast<uint32_t>(t.workgroup), 1, 1});
  m.e.ShareVectors();
  const Dims& shape = r.anchor_output().shape();
  // Invocations next to each other, then blocks along the axis that is read, then along the last.
  Dims space;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    if (i != axis) space.push_back(shape[i]);
  const size_t outer = space.size();
  for (const Dim& d : {FloorDiv(shape.back(), kLanes * t.width * t.across),
                       FloorDiv(shape[axis], t.depth * t.along), Dim(t.across), Dim(t.along)})
    space.push_back(d);
  m.Guarded(m.Invocations(ir::Product(space)), [&](const Dim& at) {
    const Dims place = Unflatten(at, space);
    Dims index(place.begin(), place.begin() + static_cast<ptrdiff_t>(outer));
    const Dim block = place[outer + 1] * t.along + place[outer + 3];
    index.insert(index.begin() + static_cast<ptrdiff_t>(axis), block * t.depth);
    const Dim left = (place[outer] * t.across + place[outer + 2]) * t.width;
    const Dim top = index[axis];
    index.emplace_back();
    for (int64_t i = 0; i < t.depth * t.width; ++i) {
      index[axis] = top + i / t.width;
      index.back() = (left + i % t.width) * kLanes + m.e.Lane(kLanes);
      m.e.Finish(index, {}, kLanes);
    }
  });
  return OneLaunch(std::move(m).Take());
}

}  // namespace

const Schedule kTranspose = ScheduleOf<TransposeBlocks, Takes, Defaults, Fits, Emit>("transpose");

}  // namespace forge::codegen
