// SPDX-License-Identifier: Apache-2.0
// The parts that the schedules of scatter share.
#pragma once
#include "codegen/region/element.h"
#include "codegen/schedules/emission.h"
#include "ir/ops/indexing/scatter.h"

namespace forge::codegen {

// The anchor, with its axis counted from the front.
struct ScatterForm {
  const ir::Scatter& op;
  size_t axis;
  const ir::Dims &x, &indices, &updates;  // shapes
  DType dtype;
  const ir::Dim& extent() const { return x[axis]; }
  const ir::Dim& count() const { return updates[axis]; }
  ir::Dims columns() const;  // the updates' shape without the axis
};
std::optional<ScatterForm> ScatterFormOf(const Region& r);

// Whether the result may be written in parts: it holds x already, or a launch copies x first.
Verdict ScatterStands(const Region& r);
// Whether there are enough columns to give each an invocation.
bool HasManyColumns(const Region& r, const ScatterForm& s);
// Whether scratch of this many bytes fits a storage buffer.
Verdict ScratchFits(const Region& r, const ir::Dim& bytes);

// Emits `body` with the element of x that the update at `at` belongs to, unless it is dropped.
void ForTarget(Emission& m, const ScatterForm& s, const ir::Dims& at,
               absl::FunctionRef<void(const ir::Dims& to)> body);
// A launch with an invocation for each update: calls `body` with its index, its element of x and
// the number of that.
struct ScatterPlace {
  ir::Dims at, to;
  ir::Dim flat;
};
Launch ForUpdates(const Region& r, const ScatterForm& s, std::string name, int64_t workgroup,
                  absl::FunctionRef<void(Emission& m, const ScatterPlace& p)> body);
// Loads elements of the result as they are before the launch; `vector` counts vectors of `lanes`.
Val ElementBefore(Emission& m, const ScatterForm& s, const ir::Dim& vector, int lanes = 1);
// What an element becomes by an update, both of compute type.
Val Updated(const ScatterForm& s, Val element, Val update);
// The program of these launches, after one that copies x where the result does not hold it.
Program ScatterProgram(const Region& r, std::vector<Launch> launches,
                       std::vector<int64_t> scratch_bytes);

}  // namespace forge::codegen
