// SPDX-License-Identifier: Apache-2.0
// Element-wise and movement regions: the elements of the first result in row-major order, some
// neighbours to an invocation.
#include "codegen/schedules/emission.h"

namespace forge::codegen {
namespace {
namespace elementwise {

struct Elementwise {
  int64_t workgroup = 64;
  int64_t lanes = 4;
  static constexpr Field kFields[] = {
      FieldOf<&Elementwise::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128|256"),
      FieldOf<&Elementwise::lanes>("lanes", "Neighbours to an invocation.", "1|2|4")};
};

bool Takes(const Region& r) { return r.anchor() == nullptr; }

Elementwise Defaults(const Region& r) {
  return Elementwise{.workgroup = 64, .lanes = LanesFor(r.anchor_output().elements())};
}

Verdict Fits(const Region& r, const Elementwise& t) {
  if (r.anchor_output().elements().divisor() % t.lanes != 0)
    return Verdict::No(fmt::format("{} does not divide the elements", t.lanes));
  return WorkgroupFits(t.workgroup, r.caps());
}

Program Emit(const Region& r, const Elementwise& t) {
  const int lanes = static_cast<int>(t.lanes);
  const ir::Type& out = r.anchor_output();
  return OneLaunch(
      ForPlaces(r, fmt::format("elementwise_x{}", lanes), t.workgroup,
                {FloorDiv(out.elements(), lanes)}, [&](Emission& m, const ir::Dims& at) {
                  m.e.Finish(Unflatten(at[0] * lanes + m.e.Lane(lanes), out.shape()), {}, lanes);
                }));
}

}  // namespace elementwise
}  // namespace

const Schedule kElementwise =
    ScheduleOf<elementwise::Elementwise, elementwise::Takes, elementwise::Defaults,
               elementwise::Fits, elementwise::Emit>("elementwise");

}  // namespace forge::codegen
