// SPDX-License-Identifier: Apache-2.0
// What schedules share: a launch in the making, and numbering the work of a grid.
#pragma once
#include "codegen/kernel/scalar.h"
#include "codegen/kernel/shared_memory.h"
#include "codegen/region/index.h"
#include "codegen/region/schedule.h"

namespace forge::codegen {

// One launch: kernel, builder and elements that point into it, hence not to be moved.
struct Emission {
  Emission(const Region& r, std::string name, std::array<uint32_t, 3> workgroup);
  Emission(const Emission&) = delete;
  Launch Take() &&;  // closes the kernel

  // Which workgroup this is, of `count`; lays the grid out within the device's limit. Workgroups
  // beyond `count`, of a grid with a remainder, must be told apart: see Guard.
  struct Work {
    Val index;
    ir::Dim count;
    bool exact = false;  // no workgroup lies beyond
  };
  Work Workgroups(const ir::Dim& count);
  // Which invocation of the whole grid this is, of at least `count`.
  Work Invocations(const ir::Dim& count);
  // Runs `body` with a coordinate below work.count, where there is one.
  void Guarded(const Work& work, absl::FunctionRef<void(const ir::Dim& at)> body);
  // The same for each subgroup of a grid of `count` of them. The kernel requires their size, which
  // divides the workgroup.
  void EachSubgroup(const ir::Dim& count, absl::FunctionRef<void(const ir::Dim& at)> body);
  // Calls `body` for 0 .. count - 1.
  Vals Loop(const ir::Dim& count, Vals carried,
            absl::FunctionRef<Vals(const ir::Dim& i, Vals carried)> body);
  // A view of shared memory, to be written and read.
  uint16_t AddShared(std::string name, const SharedArray& array);

  const Region& region;
  Launch launch;
  Builder b;
  Elements e;

 private:
  // Which part of a workgroup this is, of at least `count`: `parts` to each, told apart by `which`.
  Work PartsOfWorkgroups(const ir::Dim& count, int64_t parts, BuiltinKind which);
};

// A launch in which each invocation has a place in `space`; `workgroup`: invocations.
Launch ForPlaces(const Region& r, std::string name, int64_t workgroup, const ir::Dims& space,
                 absl::FunctionRef<void(Emission& m, const ir::Dims& place)> body);

// The same of a body that tests what its windows read. Where it pays, workgroups of the interior
// and of the edge have bodies of their own, and that of the interior tests nothing that is certain
// there.
Launch ForPlacesApart(const Region& r, const std::string& name, int64_t workgroup,
                      const ir::Dims& space,
                      absl::FunctionRef<void(Emission& m, const ir::Dims& place)> body);

// A position that may lie outside of its axis: itself where inside, else one that exists.
struct Position {
  ir::Dim at;
  Val inside;  // null: always
};
Position Guard(Emission& m, const ir::Dim& position, const ir::Dim& extent);
// Both hold; either may be null.
Val Both(Val a, Val b);
// Runs `body` where `inside`, which may be null.
void IfInside(Builder& b, Val inside, absl::FunctionRef<void()> body);
// `v` where `inside`, else `other`; `inside` may be null.
Val Where(Val inside, Val v, double other);

// An axis cut into tiles of `size`; the last one may reach beyond.
struct TiledAxis {
  ir::Dim extent = 1;
  int64_t size = 1;
  ir::Dim count() const { return CeilDiv(extent, size); }
  bool exact() const { return extent.divisor() % size == 0; }
  // Elements of tile `tile`; beyond the extent the last one.
  std::vector<Position> All(Emission& m, const ir::Dim& tile) const;
};
// Hands a row of a tile over, whose columns are `at`, in vectors where they are whole.
void FinishRow(Emission& m, const TiledAxis& columns, std::span<const Position> at,
               std::span<const Val> row,
               absl::FunctionRef<void(const ir::Dim& first, Val neighbours)> finish);
// A size up to `most` for tiles of this axis: a divisor where that costs little.
int64_t TileSize(const ir::Dim& extent, int64_t most);

// The schedule whose parameters are a T: made by kDefaults(region), given to kFits(region, t) and
// kEmit(region, t).
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
// The schedule of anchors that have a form of their own: kForm(region), nullopt where they do not,
// which the others are given.
template <class T, auto kForm, auto kDefaults, auto kFits, auto kEmit>
constexpr Schedule ScheduleOn(std::string_view name) {
  return ScheduleOf<T, [](const Region& r) { return kForm(r).has_value(); },
                    [](const Region& r) { return kDefaults(r, *kForm(r)); },
                    [](const Region& r, const T& t) { return kFits(r, *kForm(r), t); },
                    [](const Region& r, const T& t) { return kEmit(r, *kForm(r), t); }>(name);
}
// The same schedule, of regions with a reduction too, where tiles of the anchor alone serve.
constexpr Schedule Reducing(Schedule s) {
  s.reduces = s.fits;
  return s;
}
// Every schedule, one file each.
extern const Schedule kTranspose, kElementwise;
extern const Schedule kReduceRows, kReduceOutputs;
extern const Schedule kSoftmaxSplit, kSoftmaxSubgroup, kSoftmaxRows, kSoftmaxSerial;
extern const Schedule kLayerNormSubgroup, kLayerNormRows, kLayerNormSerial;
extern const Schedule kMatmulColumns, kMatmulDots;
extern const Schedule kMatmulMatrix, kMatmulShuffle, kMatmulShared, kMatmulSimple;
extern const Schedule kConvDepthwise, kConvWinograd, kWinogradKernels, kConvDirect;
extern const Schedule kPool;
extern const Schedule kAttentionShuffle, kAttentionShared, kUpdateSlice;

// Adds the launch that keeps the statistics of Region::norm() for the others, so many bytes for a
// row.
int64_t NormScratchBytes(const ir::Type& rows);
void PrependNorm(const Region& r, Program& program);

// A program that is one launch, by the name of its kernel.
Program OneLaunch(Launch launch);

// Some place on an axis, a multiple of `divisor`, of which nothing else is known.
ir::Dim Any(const ir::Dim& extent, int64_t divisor);
// How many neighbours of an anchor's operand are loaded at once along an axis: 4, 2 or 1; the first
// is a multiple of that. `index` gives the operand's index at a place on the axis.
int LanesAlong(const Region& r, int operand, const ir::Dim& extent,
               absl::FunctionRef<ir::Dims(const ir::Dim& at)> index);
// The same along its last axis.
int LanesAlongLast(const Region& r, int operand);
// Appends the elements of a vector.
void Unpack(Val v, Vals& out);
// The vector of these elements; itself where it is one.
Val Packed(std::span<const Val> parts);
// Adds a[i] * b[j] to each sums[i][j].
using MultiplyAdd = absl::FunctionRef<Val(Val a, Val b, Val sum)>;
void AddProducts(std::span<const Val> a, std::span<const Val> b, Vals& sums,
                 MultiplyAdd by = static_cast<Val (*)(Val, Val, Val)>(fma));
// The widest vector, 4, 2 or 1, that divides `extent`.
int LanesFor(const ir::Dim& extent);
// Of one dimension, within the device's limits.
Verdict WorkgroupFits(int64_t invocations, const Caps& caps,
                      std::span<const SharedArray> shared = {});
// Whether schedules that exchange by shuffles are quick on the device: it runs on a CPU, in small
// subgroups of one size.
Verdict ShufflesAreQuick(const Caps& caps);
// How many vectors of a matrix's row an invocation of a CPU sees, where those of a subgroup lie
// side by side and there are `strips` of them: a page costs as much to touch as to read, so as many
// as leave work for each core, from `least` to `most`, powers of two.
int64_t VectorsOfPage(const Caps& caps, const ir::Dim& strips, int64_t least, int64_t most);
// What `load` gives at a place of a matrix, 0 where one of the coordinates lies outside of it.
struct Coordinate {
  ir::Dim at, extent;
};
Val LoadWithin(Emission& m, const Coordinate& row, const Coordinate& column,
               absl::FunctionRef<Val(const ir::Dim& row, const ir::Dim& column)> load);
// What sums of elements of `t` are kept in: the type they are computed in.
inline Type AccumulatorOf(DType t) { return Type{ComputeType(t)}; }

}  // namespace forge::codegen
