// SPDX-License-Identifier: Apache-2.0
// Writes an update where it lies in a tensor whose other elements the result holds already.
#include "ir/ops/movement/update_slice.h"

#include "codegen/region/index.h"
#include "codegen/region/storage.h"
#include "codegen/schedules/emission.h"
#include "ir/analysis/in_place.h"

namespace forge::codegen {
namespace {
namespace update_slice {

struct UpdateElements {
  int64_t workgroup = 64;
  int64_t lanes = 4;
  static constexpr Field kFields[] = {
      FieldOf<&UpdateElements::workgroup>("workgroup", "Invocations in a workgroup.",
                                          "32|64|128|256"),
      FieldOf<&UpdateElements::lanes>("lanes", "Neighbours to an invocation.", "1|2|4")};
};

const ir::Type& UpdateType(const Region& r) { return r.anchor_inputs()[1]; }

// Of the update; lanes lie side by side in both tensors.
ir::Dims IndexIn(const Region& r, ir::Dims index) {
  const ir::Dims& begin = r.AnchorAs<ir::UpdateSlice>()->begin;
  for (size_t axis = 0; axis < index.size(); ++axis) index[axis] = index[axis] + begin[axis];
  return index;
}

bool Takes(const Region& r) { return r.AnchorAs<ir::UpdateSlice>() != nullptr; }

UpdateElements Defaults(const Region& r) {
  const ir::Dims& update = UpdateType(r).shape();
  const ir::Dims& begin = r.AnchorAs<ir::UpdateSlice>()->begin;
  int64_t lanes = update.empty() ? 1 : 4;
  while (lanes > 1 &&
         (update.back().divisor() % lanes != 0 || begin.back().divisor() % lanes != 0 ||
          r.anchor_output().shape().back().divisor() % lanes != 0))
    lanes /= 2;
  return UpdateElements{.lanes = lanes};
}

Verdict Fits(const Region& r, const UpdateElements& t) {
  if (!ir::UpdateOf(r.body()))
    return Verdict::No("others read the tensor that is updated, or what is made of it");
  if (Defaults(r).lanes % t.lanes != 0) return Verdict::No("lanes do not divide the last axis");
  const ir::SymbolRef lane = NewCoordinate("lane", t.lanes - 1);
  if (!VectorAt(UpdateType(r).dtype(), ir::Dim(lane), lane, static_cast<int>(t.lanes), r.caps()))
    return Verdict::No("elements share words with those that stay");
  return WorkgroupFits(t.workgroup, r.caps());
}

Program Emit(const Region& r, const UpdateElements& t) {
  const int lanes = static_cast<int>(t.lanes);
  const ir::Type& update = UpdateType(r);
  return OneLaunch(
      ForPlaces(r, fmt::format("update_slice_x{}", lanes), t.workgroup,
                {FloorDiv(update.elements(), lanes)}, [&](Emission& m, const ir::Dims& at) {
                  const ir::Dims index = Unflatten(at[0] * lanes + m.e.Lane(lanes), update.shape());
                  m.e.Finish(IndexIn(r, index), m.e.At(1, index, lanes), lanes);
                }));
}

}  // namespace update_slice
}  // namespace

const Schedule kUpdateSlice =
    ScheduleOf<update_slice::UpdateElements, update_slice::Takes, update_slice::Defaults,
               update_slice::Fits, update_slice::Emit>("update_slice");

}  // namespace forge::codegen
