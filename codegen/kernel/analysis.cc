// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernel/analysis.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace forge::codegen {
namespace {

Uniform OfBuiltin(BuiltinKind kind) {
  if (kind <= BuiltinKind::kWorkgroupZ) return Uniform::kWorkgroup;
  return kind == BuiltinKind::kSubgroup ? Uniform::kSubgroup : Uniform::kInvocation;
}

// Without a race, all who read an element of shared memory between two barriers read the same.
Uniform OfLoad(const View& v, Uniform index) {
  if (v.space == Space::kPrivate) return Uniform::kInvocation;
  if (v.space == Space::kShared) return std::min(index, Uniform::kWorkgroup);
  return v.writes ? Uniform::kInvocation : index;
}

// Of what a plain instruction (no If, For, While) makes of its operands.
Uniform UniformOf(const Kernel& k, const Inst& i) {
  Uniform least = Uniform::kGrid;
  for (Id arg : k.ArgsOf(i)) least = std::min(least, k.values[arg].uniform);
  switch (i.code) {
    case Code::kBuiltin:
      return OfBuiltin(static_cast<BuiltinKind>(i.aux));
    case Code::kLoad:
      return OfLoad(k.views[i.view], least);
    case Code::kAtomic:
    case Code::kCompareExchange:
    case Code::kSubgroupScan:
    case Code::kMatrixLoad:
    case Code::kMatrixMulAdd:
    case Code::kMatrixWait:
    case Code::kMatrixReduce:
    case Code::kMatrixConvert:
      return Uniform::kInvocation;
    case Code::kSubgroupReduce:
    case Code::kBallot:
      return Uniform::kSubgroup;  // subgroups may differ in size
    case Code::kShuffle:          // a lane that all agree on, or a value that all have
      return std::max(k.values[k.ArgsOf(i)[0]].uniform,
                      std::min(k.values[k.ArgsOf(i)[1]].uniform, Uniform::kSubgroup));
    default:
      return least;
  }
}

// Everything below `block`, whose arguments are known.
void PropagateUniform(Kernel& k, BlockId block) {
  for (const Inst& i : k.blocks[block].insts) PropagateUniform(k, i);
}

// Lowers each carried value to what is carried into the next iteration; says whether any fell.
bool Lower(Kernel& k, std::span<const Id> carried, std::span<const Id> next) {
  bool fell = false;
  for (size_t n = 0; n < carried.size(); ++n) {
    Uniform& u = k.values[carried[n]].uniform;
    fell |= k.values[next[n]].uniform < u;
    u = std::min(u, k.values[next[n]].uniform);
  }
  return fell;
}

void PropagateIf(Kernel& k, const Inst& i) {
  PropagateUniform(k, i.block);
  PropagateUniform(k, i.block + 1);
  const Uniform condition = UniformOfControl(k, i);
  for (uint32_t n = 0; n < i.result_count; ++n) {
    const Uniform yes = k.values[k.YieldOf(i.block)[n]].uniform;
    const Uniform no = k.values[k.YieldOf(i.block + 1)[n]].uniform;
    k.values[i.result + n].uniform = std::min({condition, yes, no});
  }
}

void Assign(Kernel& k, std::span<const Id> to, std::span<const Id> from) {
  for (size_t n = 0; n < to.size(); ++n) k.values[to[n]].uniform = k.values[from[n]].uniform;
}

// For and While: their last block is the body, a While's first is its test.
void PropagateLoop(Kernel& k, const Inst& i) {
  const auto uniform = [&](Id v) -> Uniform& { return k.values[v].uniform; };
  const BlockId body = i.block + i.block_count - 1;
  std::span<const Id> first = k.ArgsOf(i), carried = k.blocks[i.block].arguments;
  if (i.code == Code::kFor) {
    uniform(carried[0]) = std::min(uniform(first[0]), uniform(first[2]));
    first = first.subspan(3), carried = carried.subspan(1);
  }
  Assign(k, carried, first);
  do {
    if (i.code == Code::kWhile) Assign(k, k.blocks[body].arguments, carried);
    for (BlockId b = i.block; b <= body; ++b) PropagateUniform(k, b);
  } while (Lower(k, carried, k.YieldOf(body)));
  const Uniform trips = UniformOfControl(k, i);
  for (size_t n = 0; n < carried.size(); ++n)
    uniform(i.result + static_cast<Id>(n)) = std::min(trips, uniform(carried[n]));
}

struct Collector {
  const Kernel& k;
  std::set<Id> used, made;
  std::set<uint16_t> views;

  void Block(BlockId block) {
    made.insert(k.blocks[block].arguments.begin(), k.blocks[block].arguments.end());
    for (const Inst& i : k.blocks[block].insts) {
      used.insert(k.ArgsOf(i).begin(), k.ArgsOf(i).end());
      for (uint32_t n = 0; n < i.result_count; ++n) made.insert(i.result + n);
      if (Info(i.code).effect == Effect::kReads || Info(i.code).effect == Effect::kWrites)
        views.insert(i.view);
      if (i.code == Code::kCopyAsync) views.insert(static_cast<uint16_t>(i.literal));
      for (uint32_t n = 0; n < i.block_count; ++n) Block(i.block + n);
    }
  }
};

void NeedArithmetic(Needs& n, DType t) {
  if (t == DType::kF16) n.f16 = true;
  if (t == DType::kF32) n.f32 = true;
  if (t == DType::kI8 || t == DType::kU8) n.i8 = true;
  if (t == DType::kI16 || t == DType::kU16) n.i16 = true;
}

// These have no form that only stores.
void NeedWide(Needs& n, DType t) {
  if (t == DType::kF64) n.f64 = true;
  if (IsWide({t})) n.i64 = true;
}

void NeedView(Needs& n, const View& v) {
  NeedWide(n, v.elem.elem);
  if (v.space != Space::kGlobal) return NeedArithmetic(n, v.elem.elem);
  const int width = BitWidth(v.elem.elem);
  n.storage8 |= width == 8;
  n.storage16 |= width == 16;
}

constexpr CodeTable<bool Needs::*> kFeatures = {
    {Code::kShuffle, &Needs::subgroup_shuffle},
    {Code::kShuffleXor, &Needs::subgroup_shuffle},
    {Code::kSubgroupReduce, &Needs::subgroup_arithmetic},
    {Code::kSubgroupScan, &Needs::subgroup_arithmetic},
    {Code::kBallot, &Needs::subgroup_ballot},
    {Code::kDot4, &Needs::int_dot},
    {Code::kForElements, &Needs::matrix_elements},
    {Code::kMatrixReduce, &Needs::matrix_values},
    {Code::kMatrixConvert, &Needs::matrix_values},
    {Code::kCopyAsync, &Needs::async_copies},
};

void NeedInst(Needs& n, const Kernel& k, const Inst& i) {
  if (const auto feature = kFeatures[i.code]) n.*feature = true;
  const auto builtin = static_cast<BuiltinKind>(i.aux);
  const bool crosses_lanes = IsOneOf(
      i.code, {Code::kShuffle, Code::kShuffleXor, Code::kSubgroupReduce, Code::kSubgroupScan});
  n.subgroup_i64 |= crosses_lanes && IsWide(k.TypeOf(i.result));
  n.matrix_values |= i.code == Code::kForElements && i.result_count > 0;
  n.f32_atomics |= i.code == Code::kAtomic && k.TypeOf(i.result) == kF32;
  n.subgroup_basic |= i.code == Code::kBuiltin && builtin >= BuiltinKind::kLane;
  // A narrow literal is made by converting a wide one where it is all there is.
  if (IsOneOf(i.code, {Code::kLoad, Code::kStore, Code::kConvert, Code::kLiteral})) return;
  for (Id a : k.ArgsOf(i)) NeedArithmetic(n, k.TypeOf(a).elem);
  for (uint32_t r = 0; r < i.result_count; ++r) NeedArithmetic(n, k.TypeOf(i.result + r).elem);
}

class LoopsBeforeSubgroups {
 public:
  explicit LoopsBeforeSubgroups(const Kernel& k) : k_(k) {}

  // In the block, or in what is behind a loop of those already seen.
  bool Meet(BlockId block) {
    const std::vector<Inst>& insts = k_.blocks[block].insts;
    return std::any_of(insts.begin(), insts.end(), [&](const Inst& i) { return Meets(i); });
  }

 private:
  bool Meets(const Inst& i) {
    const bool convergent = Info(i.code).effect == Effect::kConvergent && i.code != Code::kBarrier;
    if (convergent || i.code == Code::kForElements) return left_early_;
    const bool loop = IsOneOf(i.code, {Code::kFor, Code::kWhile});
    // What is at the end of a body comes before what is at its beginning, at the next trip.
    for (int trip = 0; trip < (loop ? 2 : 1); ++trip)
      for (uint32_t n = 0; n < i.block_count; ++n)
        if (Meet(i.block + n)) return true;
    left_early_ |= loop && UniformOfControl(k_, i) < Uniform::kSubgroup;
    return false;
  }

  const Kernel& k_;
  bool left_early_ = false;  // a loop, by some invocations of a subgroup
};

// The least and greatest value of i32s, as far as arithmetic says.
struct Bounds {
  int64_t low = INT32_MIN, high = INT32_MAX;
};

class TripCount {
 public:
  explicit TripCount(const Kernel& k) : k_(k), bounds_(k.values.size()) {}

  int64_t Of(BlockId block) {
    int64_t trips = 0;
    for (const Inst& i : k_.blocks[block].insts) {
      if (i.code == Code::kFor)
        trips += OfLoop(i);
      else if (i.code == Code::kIf)
        trips += std::max(Of(i.block), Of(i.block + 1));
      else if (i.result_count == 1 && k_.TypeOf(i.result) == kI32)
        bounds_[i.result] = BoundsOf(i);
    }
    return trips;
  }

 private:
  Bounds Argument(const Inst& i, int n) const { return bounds_[k_.ArgsOf(i)[n]]; }

  int64_t OfLoop(const Inst& i) {
    const Bounds begin = Argument(i, 0), end = Argument(i, 1), step = Argument(i, 2);
    bounds_[k_.blocks[i.block].arguments[0]] = {begin.low, std::max(begin.low, end.high)};
    const int64_t inner = 1 + Of(i.block);
    if (end.high == INT32_MAX) return inner;
    const int64_t by = std::max<int64_t>(step.low, 1);
    return std::max<int64_t>((end.high - std::max<int64_t>(begin.low, 0) + by - 1) / by, 0) * inner;
  }

  Bounds OfBuiltin(const Inst& i) const {
    const auto kind = static_cast<BuiltinKind>(i.aux);
    if (kind <= BuiltinKind::kWorkgroupZ) return {0, INT32_MAX};
    if (kind <= BuiltinKind::kLocalZ)
      return {0, k_.workgroup[i.aux - static_cast<uint8_t>(BuiltinKind::kLocalX)] - 1};
    return {0, int64_t{k_.workgroup[0]} * k_.workgroup[1] * k_.workgroup[2] - 1};
  }

  Bounds BoundsOf(const Inst& i) const {
    switch (i.code) {
      case Code::kLiteral:
        return {static_cast<int32_t>(i.literal), static_cast<int32_t>(i.literal)};
      case Code::kScalar:
        return Wrapped({k_.scalars[i.literal].min(), k_.scalars[i.literal].max()});
      case Code::kBuiltin:
        return OfBuiltin(i);
      case Code::kAdd:
      case Code::kSub:
      case Code::kMul:
      case Code::kMin:
      case Code::kMax:
        return OfArithmetic(i.code, Argument(i, 0), Argument(i, 1));
      case Code::kSelect:
        return {std::min(Argument(i, 1).low, Argument(i, 2).low),
                std::max(Argument(i, 1).high, Argument(i, 2).high)};
      default:
        return {};
    }
  }

  static Bounds OfArithmetic(Code code, Bounds a, Bounds b) {
    if (code == Code::kMin) return {std::min(a.low, b.low), std::min(a.high, b.high)};
    if (code == Code::kMax) return {std::max(a.low, b.low), std::max(a.high, b.high)};
    if (code == Code::kAdd) return Wrapped({a.low + b.low, a.high + b.high});
    if (code == Code::kSub) return Wrapped({a.low - b.high, a.high - b.low});
    const auto [low, high] =
        std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    return Wrapped({low, high});
  }
  // Whatever where it may be beyond an i32.
  static Bounds Wrapped(Bounds b) { return b.low < INT32_MIN || b.high > INT32_MAX ? Bounds{} : b; }

  const Kernel& k_;
  std::vector<Bounds> bounds_;
};

}  // namespace

Uniform UniformOfControl(const Kernel& k, const Inst& i) {
  if (i.code == Code::kForElements) return Uniform::kInvocation;  // some hold more elements
  std::span<const Id> by = k.ArgsOf(i);
  if (i.code == Code::kFor) by = by.first(3);
  if (i.code == Code::kWhile) by = k.YieldOf(i.block);
  Uniform least = Uniform::kGrid;
  for (Id v : by) least = std::min(least, k.values[v].uniform);
  return least;
}

bool ReadsStepValues(const Kernel& k) {
  return std::any_of(k.scalars.begin(), k.scalars.end(),
                     [](const ir::Dim& d) { return d.when() == ir::When::kStep; });
}

bool JoinsSubgroupsBehindLoops(const Kernel& k) { return LoopsBeforeSubgroups(k).Meet(0); }

void PropagateUniform(Kernel& k, const Inst& i) {
  if (i.code == Code::kIf) return PropagateIf(k, i);
  if (IsOneOf(i.code, {Code::kFor, Code::kWhile})) return PropagateLoop(k, i);
  if (i.code == Code::kForElements) return PropagateUniform(k, i.block);
  if (i.result_count == 1) k.values[i.result].uniform = UniformOf(k, i);
}

Captures CapturesOf(const Kernel& k, BlockId block) {
  Collector c{k, {}, {}, {}};
  c.Block(block);
  Captures out;
  std::set_difference(c.used.begin(), c.used.end(), c.made.begin(), c.made.end(),
                      std::back_inserter(out.values));
  out.views.assign(c.views.begin(), c.views.end());
  return out;
}

bool HasLoop(const Kernel& k, BlockId block) {
  const std::vector<Inst>& insts = k.blocks[block].insts;
  return std::any_of(insts.begin(), insts.end(), [&](const Inst& i) {
    bool loop = IsOneOf(i.code, {Code::kFor, Code::kWhile});
    for (uint32_t n = 0; n < i.block_count; ++n) loop |= HasLoop(k, i.block + n);
    return loop;
  });
}

int64_t MostTrips(const Kernel& k) { return TripCount(k).Of(0); }

Needs NeedsOf(const Kernel& k) {
  Needs n;
  for (const View& v : k.views) NeedView(n, v);
  for (const ValueInfo& v : k.values) {
    NeedWide(n, v.type.elem);
    n.matrices |= v.type.is_matrix();
  }
  for (const Block& b : k.blocks)
    for (const Inst& i : b.insts) NeedInst(n, k, i);
  n.memory_model = k.vulkan_memory || n.matrices;
  return n;
}

bool HasHalves(const Kernel& k) {
  for (const Block& block : k.blocks)
    for (const Inst& i : block.insts)
      if (IsOneOf(i.code, {Code::kMulHigh, Code::kAtomic, Code::kCompareExchange,
                           Code::kSubgroupReduce, Code::kSubgroupScan}) &&
          IsWide(k.TypeOf(i.result)))
        return false;
  return true;
}

}  // namespace forge::codegen
