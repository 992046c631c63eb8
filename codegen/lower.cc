// SPDX-License-Identifier: Apache-2.0
// Lower() builds the kernel anew, instruction by instruction, so that what the rules make is
// folded, shared and moved out of loops like everything else.
#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "codegen/lower_rules.h"

namespace forge::codegen {
namespace {

// The values that something outside the kernel depends on, found from the end to the beginning.
class Liveness {
 public:
  explicit Liveness(const Kernel& k) : k_(k), live_(k.values.size()) { Walk(0); }
  bool operator()(const Inst& i) const { return HasEffect(i) || AnyLive(i.result, i.result_count); }

 private:
  bool HasEffect(const Inst& i) const {
    if ((IsSilent(i.code) && i.code != Code::kYield) || Info(i.code).effect == Effect::kWrites)
      return true;
    for (BlockId b = i.block; b < i.block + i.block_count; ++b)
      for (const Inst& inner : k_.blocks[b].insts)
        if (HasEffect(inner)) return true;
    return false;
  }
  bool AnyLive(Id first, uint32_t count) const {
    return std::find(live_.begin() + first, live_.begin() + first + count, true) !=
           live_.begin() + first + count;
  }
  void Walk(BlockId b) {
    const std::vector<Inst>& insts = k_.blocks[b].insts;
    for (auto i = insts.rbegin(); i != insts.rend(); ++i) {
      if (i->code != Code::kYield && !(*this)(*i)) continue;
      for (Id a : k_.ArgsOf(*i)) live_[a] = true;
      for (uint32_t n = i->block_count; n > 0; --n) Walk(i->block + n - 1);
    }
  }

  const Kernel& k_;
  std::vector<bool> live_;
};

class Lowering {
 public:
  Lowering(const Kernel& in, Kernel& out, const Caps& caps)
      : in_(in),
        live_(in),
        b_(out),
        rules_{b_, caps},
        split_(!caps.i64),
        rolled_(caps.runs_on_cpu),
        map_(in.values.size()) {
    b_.set_precise(false);  // flags come with the instructions
  }
  void Run() {
    Block(0);
    b_.Finish();
  }

 private:
  bool Split(Id v) const { return split_ && IsWide(in_.TypeOf(v)); }
  bool Split(const Inst& i) const {
    const std::span<const Id> args = in_.ArgsOf(i);
    return (i.result_count == 1 && Split(i.result)) ||
           std::any_of(args.begin(), args.end(), [&](Id a) { return Split(a); });
  }
  // What stands for these values, one after the other: a split one is two.
  Vals Of(std::span<const Id> ids) const {
    Vals out;
    for (Id id : ids) {
      out.push_back(map_[id].lo);
      if (Split(id)) out.push_back(map_[id].hi);
    }
    return out;
  }
  void Map(std::span<const Id> ids, std::span<const Val> to) {
    size_t n = 0;
    for (Id id : ids) {
      map_[id].lo = to[n++];
      if (Split(id)) map_[id].hi = to[n++];
    }
  }

  // What the block yields.
  Vals Block(BlockId b) {
    const std::vector<Inst>& insts = in_.blocks[b].insts;
    for (const Inst& i : insts)
      if (i.code != Code::kYield && live_(i)) One(i);
    return Of(in_.ArgsOf(insts.back()));
  }

  void One(const Inst& i) {
    if (Info(i.code).effect == Effect::kControl) {
      std::vector<Id> results(i.result_count);
      std::iota(results.begin(), results.end(), i.result);
      Map(results, Control(i));
      return;
    }
    const Type type = IsSilent(i.code) ? Type{} : in_.TypeOf(i.result);
    const Wide made = Split(i) ? Halved(i, type) : Wide{Value(i, type), {}};
    if (!IsSilent(i.code)) map_[i.result] = made;
  }

  Wide Halved(const Inst& i, const Type& type) {
    const std::span<const Id> args = in_.ArgsOf(i);
    std::vector<Wide> x;
    for (Id a : args) x.push_back(map_[a]);
    return rules_.Apply({i, type, args.empty() ? type : in_.TypeOf(args[0])}, x);
  }

  Val Value(const Inst& i, const Type& type) {
    const Vals x = Of(in_.ArgsOf(i));
    const Val other = rules_.Apply(i, type, x);
    return other ? other : b_.Add(i, type, x);
  }

  Vals Control(const Inst& i) {
    const Vals args = Of(in_.ArgsOf(i));
    if (i.code == Code::kIf)
      return b_.If(args[0], [&] { return Block(i.block); }, [&] { return Block(i.block + 1); });
    const auto with = [&](BlockId b, const Vals& arguments) {
      Map(in_.blocks[b].arguments, arguments);
      return Block(b);
    };
    if (i.code == Code::kWhile)
      return b_.While(
          args, [&](const Vals& carried) { return with(i.block, carried)[0]; },
          [&](const Vals& carried) { return with(i.block + 1, carried); });
    if (i.code == Code::kForElements) {
      b_.ForElements(args[0], [&](Val row, Val column, Val v) { with(i.block, {row, column, v}); });
      return {};
    }
    const bool rolled = rolled_ || (i.aux & kRolled) != 0;
    const auto unroll = rolled ? Builder::Range::kNot : Builder::Range::kAsDriverLikes;
    return b_.For({args[0], args[1], args[2], unroll}, Vals(args.begin() + 3, args.end()),
                  [&](Val counter, Vals carried) {
                    carried.insert(carried.begin(), counter);
                    return with(i.block, carried);
                  });
  }

  const Kernel& in_;
  const Liveness live_;
  Builder b_;
  const LowerRules rules_;
  const bool split_;   // 64-bit integers are two halves
  const bool rolled_;  // no loop is to be unrolled: where a first run waits for a driver's compiler
  std::vector<Wide> map_;
};

}  // namespace

Kernel Lower(const Kernel& k, const Caps& caps) {
  Kernel out = k;
  out.values = {}, out.operands = {}, out.blocks = {};
  if (!caps.i64) std::transform(out.views.begin(), out.views.end(), out.views.begin(), HalvesView);
  MakeExchangeable(k, caps, out.views);
  Lowering(k, out, caps).Run();
  return out;
}

}  // namespace forge::codegen
