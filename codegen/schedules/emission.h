// SPDX-License-Identifier: Apache-2.0
// Helpers of schedules: a launch under construction, and the distribution of work over a grid.
#pragma once
#include "codegen/kernel/scalar.h"
#include "codegen/kernel/shared_memory.h"
#include "codegen/region/index.h"
#include "codegen/region/schedule.h"

namespace forge::codegen {

// A launch under construction. Builder and elements point into it, so it cannot be moved.
struct Emission {
  Emission(const Region& r, std::string name, std::array<uint32_t, 3> workgroup);
  Emission(const Emission&) = delete;
  Launch Take() &&;  // closes the kernel

  // Sets a grid of at least `count` workgroups within the device's limits and returns the number of
  // this one. Workgroups beyond `count` must do nothing: see Guarded.
  struct Work {
    Val index;
    ir::Dim count;
    bool exact = false;  // the grid has no workgroup beyond `count`
  };
  Work Workgroups(const ir::Dim& count);
  // The same for invocations: returns the number of this one in a grid of at least `count`.
  Work Invocations(const ir::Dim& count);
  // Emits `body` with the coordinate of this piece of work, under a test unless the grid is exact.
  void Guarded(const Work& work, absl::FunctionRef<void(const ir::Dim& at)> body);
  // The same for each subgroup of a grid of `count` subgroups. Kernel::subgroup must be set; it
  // divides the workgroup.
  void EachSubgroup(const ir::Dim& count, absl::FunctionRef<void(const ir::Dim& at)> body);
  // Emits a loop over 0 .. count - 1.
  Vals Loop(const ir::Dim& count, Vals carried,
            absl::FunctionRef<Vals(const ir::Dim& i, Vals carried)> body);
  // Adds shared memory and returns its view.
  uint16_t AddShared(std::string name, const SharedArray& array);

  const Region& region;
  Launch launch;
  Builder b;
  Elements e;

 private:
  // Numbers `parts` parts of each workgroup, by the builtin `which`; at least `count` in the grid.
  Work PartsOfWorkgroups(const ir::Dim& count, int64_t parts, BuiltinKind which);
};

// A launch with one invocation for each place of `space`; `workgroup` is its number of invocations.
Launch ForPlaces(const Region& r, std::string name, int64_t workgroup, const ir::Dims& space,
                 absl::FunctionRef<void(Emission& m, const ir::Dims& place)> body);

// The same with border peeling, for bodies with bounds tests: where it is faster, workgroups of the
// interior have a body of their own, without the tests that always hold there.
Launch ForPlacesApart(const Region& r, const std::string& name, int64_t workgroup,
                      const ir::Dims& space,
                      absl::FunctionRef<void(Emission& m, const ir::Dims& place)> body);

// A position on an axis, replaced by a valid one if it is out of bounds.
struct Position {
  ir::Dim at;
  Val inside;  // null: always in bounds
};
Position Guard(Emission& m, const ir::Dim& position, const ir::Dim& extent);
// The conjunction of two conditions, of which either may be null (true).
Val Both(Val a, Val b);
// Emits `body` under the condition `inside`, which may be null (true).
void IfInside(Builder& b, Val inside, absl::FunctionRef<void()> body);
// Selects `v` if `inside`, else `other`; `inside` may be null (true).
Val Where(Val inside, Val v, double other);

// An axis divided into tiles of `size`; the last one may exceed the extent.
struct TiledAxis {
  ir::Dim extent = 1;
  int64_t size = 1;
  ir::Dim count() const { return CeilDiv(extent, size); }
  bool exact() const { return extent.divisor() % size == 0; }
  // The positions of a tile; positions beyond the extent are clamped to the last element.
  std::vector<Position> All(Emission& m, const ir::Dim& tile) const;
};
// Calls `finish` for a row of a tile with columns `at`: with vectors if the tiles divide the axis.
void FinishRow(Emission& m, const TiledAxis& columns, std::span<const Position> at,
               std::span<const Val> row,
               absl::FunctionRef<void(const ir::Dim& first, Val neighbours)> finish);
// A tile size of at most `most` for this axis; a divisor of the extent if one is nearly as large.
int64_t TileSize(const ir::Dim& extent, int64_t most);

// A schedule with parameters of type T, from kTakes(region), kDefaults(region), kFits(region, t)
// and kEmit(region, t).
template <class T, auto kTakes, auto kDefaults, auto kFits, auto kEmit>
constexpr Schedule ScheduleOf(std::string_view name) {
  return {
      .name = name,
      .parameters = T::kFields,
      .takes = kTakes,
      .defaults = [](const Region& r) -> std::shared_ptr<void> {
        return std::make_shared<T>(kDefaults(r));
      },
      .fits = [](const Region& r, const void* p) { return kFits(r, *static_cast<const T*>(p)); },
      .emit = [](const Region& r, const void* p) { return kEmit(r, *static_cast<const T*>(p)); }};
}
// The same with a normal form of the anchor: kForm(region), nullopt if the schedule does not
// support it; the other functions receive the form.
template <class T, auto kForm, auto kDefaults, auto kFits, auto kEmit>
constexpr Schedule ScheduleOn(std::string_view name) {
  return ScheduleOf<T, [](const Region& r) { return kForm(r).has_value(); },
                    [](const Region& r) { return kDefaults(r, *kForm(r)); },
                    [](const Region& r, const T& t) { return kFits(r, *kForm(r), t); },
                    [](const Region& r, const T& t) { return kEmit(r, *kForm(r), t); }>(name);
}
// The same schedule for regions with a reduction as well, if the tiles of the anchor alone allow
// it.
constexpr Schedule Reducing(Schedule s) {
  s.reduces = s.fits;
  return s;
}
// All schedules.
extern const Schedule kTranspose, kElementwise;
extern const Schedule kReduceRows, kReduceOutputs;
extern const Schedule kArgReduceRows, kArgReduceOutputs, kScanRows, kScanColumns;
extern const Schedule kSort, kTopK, kFourier;
extern const Schedule kSoftmaxSplit, kSoftmaxSubgroup, kSoftmaxRows, kSoftmaxSerial;
extern const Schedule kSoftmaxStatisticsSubgroup, kSoftmaxStatisticsRows;
extern const Schedule kSoftmaxStatisticsSerial;
extern const Schedule kLayerNormSubgroup, kLayerNormRows, kLayerNormSerial;
extern const Schedule kLayerNormGradientSubgroup, kLayerNormGradientRows;
extern const Schedule kLayerNormGradientSerial;
extern const Schedule kMatmulColumns, kMatmulDots;
extern const Schedule kMatmulWorkgroup, kMatmulMatrix, kMatmulShuffle, kMatmulShared, kMatmulSimple;
extern const Schedule kConvDepthwise, kConvWinograd, kWinogradKernels, kConvDirect;
extern const Schedule kPool;
extern const Schedule kAttentionMatrix, kAttentionShuffle, kAttentionShared, kAttentionGradient;
extern const Schedule kUpdateSlice, kRecurrentSteps, kStepsGradient;
extern const Schedule kScatterSum, kScatterWords, kScatterColumns;

// PrependNorm adds the launch that stores the statistics of Region::norm() in scratch;
// NormScratchBytes is their size for each row.
int64_t NormScratchBytes(const ir::Type& rows);
void PrependNorm(const Region& r, Program& program);

// A program of one launch, named after its kernel.
Program OneLaunch(Launch launch);

// An unknown position on an axis, a multiple of `divisor`.
ir::Dim Any(const ir::Dim& extent, int64_t divisor);
// The widest vector load of an operand of the anchor along an axis, 4, 2 or 1, at positions that
// are multiples of it. `index` maps a position on the axis to the operand's index.
int LanesAlong(const Region& r, int operand, const ir::Dim& extent,
               absl::FunctionRef<ir::Dims(const ir::Dim& at)> index);
// The same along its last axis.
int LanesAlongLast(const Region& r, int operand);
// Appends the elements of a vector to `out`.
void Unpack(Val v, Vals& out);
// The vector of these elements; a single element stays a scalar.
Val Packed(std::span<const Val> parts);
// Adds a[i] * b[j] to each sums[i][j].
using MultiplyAdd = absl::FunctionRef<Val(Val a, Val b, Val sum)>;
void AddProducts(std::span<const Val> a, std::span<const Val> b, Vals& sums,
                 MultiplyAdd by = static_cast<Val (*)(Val, Val, Val)>(fma));
// The widest vector, 4, 2 or 1, that divides `extent`.
int LanesFor(const ir::Dim& extent);
// Whether a one-dimensional workgroup and its shared memory are within the device's limits.
//   most_shared: bytes, where that is not Caps::max_shared_bytes
Verdict WorkgroupFits(int64_t invocations, const Caps& caps,
                      std::span<const SharedArray> shared = {},
                      std::optional<int64_t> most_shared = {});
// Whether subgroup shuffles are fast: on CPUs with small subgroups of one size.
Verdict ShufflesAreQuick(const Caps& caps);
// On CPUs: how many vectors of a matrix row an invocation reads, a power of two from `least` to
// `most`, if a subgroup reads adjacent ones and the row has `strips` of such groups. Touching a
// page costs as much as reading it, so an invocation reads as many as leave work for each core.
int64_t VectorsOfPage(const Caps& caps, const ir::Dim& strips, int64_t least, int64_t most);
// Returns `load` at a position of a matrix, 0 if a coordinate is out of bounds.
struct Coordinate {
  ir::Dim at, extent;
};
Val LoadWithin(Emission& m, const Coordinate& row, const Coordinate& column,
               absl::FunctionRef<Val(const ir::Dim& row, const ir::Dim& column)> load);
// The type in which elements of `t` are accumulated.
inline Type AccumulatorOf(DType t) { return Type{ComputeType(t)}; }

}  // namespace forge::codegen
