// SPDX-License-Identifier: Apache-2.0
#include "codegen/uniform.h"

#include <algorithm>

namespace forge::codegen {
namespace {

Uniform OfBuiltin(BuiltinKind kind) {
  switch (kind) {
    case BuiltinKind::kWorkgroupX:
    case BuiltinKind::kWorkgroupY:
    case BuiltinKind::kWorkgroupZ:
      return Uniform::kWorkgroup;
    case BuiltinKind::kSubgroup:
      return Uniform::kSubgroup;
    default:
      return Uniform::kInvocation;
  }
}

// Without a race, all who read an element of shared memory between two barriers read the same.
Uniform OfLoad(const View& v, Uniform index) {
  if (v.space == Space::kPrivate) return Uniform::kInvocation;
  if (v.space == Space::kShared) return std::min(index, Uniform::kWorkgroup);
  return v.writes ? Uniform::kInvocation : index;
}

std::span<const Id> YieldOf(const Kernel& k, BlockId block) {
  return k.ArgsOf(k.blocks[block].insts.back());
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
    const Uniform yes = k.values[YieldOf(k, i.block)[n]].uniform;
    const Uniform no = k.values[YieldOf(k, i.block + 1)[n]].uniform;
    k.values[i.result + n].uniform = std::min({condition, yes, no});
  }
}

void PropagateFor(Kernel& k, const Inst& i) {
  const std::span<const Id> args = k.ArgsOf(i);
  const std::span<const Id> arguments = k.blocks[i.block].arguments;
  const std::span<const Id> carried = arguments.subspan(1);
  auto uniform = [&](Id v) { return k.values[v].uniform; };
  k.values[arguments[0]].uniform = std::min(uniform(args[0]), uniform(args[2]));
  for (size_t n = 0; n < carried.size(); ++n) k.values[carried[n]].uniform = uniform(args[3 + n]);
  do PropagateUniform(k, i.block);
  while (Lower(k, carried, YieldOf(k, i.block)));
  const Uniform trips = UniformOfControl(k, i);
  for (size_t n = 0; n < carried.size(); ++n)
    k.values[i.result + n].uniform = std::min(trips, uniform(carried[n]));
}

void PropagateWhile(Kernel& k, const Inst& i) {
  const std::span<const Id> args = k.ArgsOf(i);
  const std::span<const Id> test = k.blocks[i.block].arguments;
  const std::span<const Id> body = k.blocks[i.block + 1].arguments;
  auto set = [&](std::span<const Id> to, std::span<const Id> from) {
    for (size_t n = 0; n < to.size(); ++n) k.values[to[n]].uniform = k.values[from[n]].uniform;
  };
  set(test, args);
  do {
    set(body, test);
    PropagateUniform(k, i.block);
    PropagateUniform(k, i.block + 1);
  } while (Lower(k, test, YieldOf(k, i.block + 1)));
  const Uniform trips = UniformOfControl(k, i);
  for (size_t n = 0; n < args.size(); ++n)
    k.values[i.result + n].uniform = std::min(trips, k.values[test[n]].uniform);
}

}  // namespace

Uniform UniformOfControl(const Kernel& k, const Inst& i) {
  if (i.code == Code::kForElements) return Uniform::kInvocation;  // some hold more elements
  std::span<const Id> by = k.ArgsOf(i);
  if (i.code == Code::kFor) by = by.first(3);
  if (i.code == Code::kWhile) by = YieldOf(k, i.block);
  Uniform least = Uniform::kGrid;
  for (Id v : by) least = std::min(least, k.values[v].uniform);
  return least;
}

Uniform UniformOf(const Kernel& k, const Inst& i) {
  Uniform least = Uniform::kGrid;
  for (Id arg : k.ArgsOf(i)) least = std::min(least, k.values[arg].uniform);
  switch (i.code) {
    case Code::kBuiltin:
      return OfBuiltin(static_cast<BuiltinKind>(i.aux));
    case Code::kLoad:
      return OfLoad(k.views[i.view], least);
    case Code::kAtomic:
    case Code::kSubgroupScan:
    case Code::kMatrixLoad:
    case Code::kMatrixMulAdd:
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

void PropagateUniform(Kernel& k, const Inst& i) {
  if (i.code == Code::kIf) PropagateIf(k, i);
  if (i.code == Code::kFor) PropagateFor(k, i);
  if (i.code == Code::kWhile) PropagateWhile(k, i);
  if (i.code == Code::kForElements) PropagateUniform(k, i.block);
}

void PropagateUniform(Kernel& k, BlockId block) {
  for (const Inst& i : k.blocks[block].insts) {
    if (Info(i.code).effect == Effect::kControl) {
      PropagateUniform(k, i);
    } else if (i.result_count == 1) {
      k.values[i.result].uniform = UniformOf(k, i);
    }
  }
}

}  // namespace forge::codegen
