// SPDX-License-Identifier: Apache-2.0
// Lower() and LimitTrips() build the kernel anew, instruction by instruction, so that what they
// make is folded, shared and moved out of loops like everything else.
#include <algorithm>
#include <numeric>

#include "base/status.h"
#include "codegen/kernel/analysis.h"
#include "codegen/kernel/scalar.h"
#include "codegen/lower/semantic_rules.h"
#include "codegen/lower/vulkan_rules.h"
#include "codegen/lower/wide_rules.h"

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

class Rewriting {
 public:
  struct Changes {
    const Caps* caps = nullptr;  // what it lacks is spelled out; null: everything stays
    int64_t steps = 1;           // of an innermost loop at each trip
  };
  Rewriting(const Kernel& in, Kernel& out, const Changes& to)
      : in_(in),
        live_(in),
        b_(out),
        to_(to),
        split_(to.caps != nullptr && !to.caps->i64),
        rolled_(to.caps != nullptr && to.caps->runs_on_cpu),
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
    const Type from = args.empty() ? type : in_.TypeOf(args[0]);
    return WideRule({b_, *to_.caps}, {i, type, from}, x);
  }

  Val Value(const Inst& i, const Type& type) {
    const Vals x = Of(in_.ArgsOf(i));
    if (to_.caps == nullptr) return b_.Add(i, type, x);
    if (const Val other = SemanticRule(*to_.caps, i, type, x)) return other;
    const VulkanRules memory{b_, *to_.caps};
    const Val other = memory.Apply(i, type, x);
    return other ? other : memory.Add(i, type, x);
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
    if (i.code == Code::kForElements)
      return b_.ForElements(args, i.aux, [&](Val row, Val column, const Vals& elements) {
        Vals arguments = {row, column};
        arguments.insert(arguments.end(), elements.begin(), elements.end());
        return with(i.block, arguments);
      });
    const bool rolled = rolled_ || (i.aux & kRolled) != 0;
    const auto unroll = rolled ? Builder::Range::kNot : Builder::Range::kAsDriverLikes;
    return Loop(i, {args[0], args[1], args[2], unroll}, Vals(args.begin() + 3, args.end()),
                [&](Val counter, Vals carried) {
                  carried.insert(carried.begin(), counter);
                  return with(i.block, carried);
                });
  }

  Vals Loop(const Inst& i, const Builder::Range& r, Vals carried,
            absl::FunctionRef<Vals(Val, Vals)> body) {
    if (to_.steps == 1 || HasLoop(in_, i.block)) return b_.For(r, std::move(carried), body);
    const Val one = b_.Int(1), steps = b_.Int(to_.steps), stride = r.step * steps;
    if (b_.LiteralOf(r.end - r.begin <= stride) == 1)
      return b_.For({r.begin, r.end, r.step, Builder::Range::kWhole}, std::move(carried), body);
    carried.push_back(r.begin);  // where the next trip begins
    const auto several = [&](Val at, Vals v) {
      v.pop_back();
      v = b_.For({b_.Int(0), steps, one, Builder::Range::kWhole}, std::move(v),
                 [&](Val n, Vals inner) { return body(at + n * r.step, std::move(inner)); });
      v.push_back(at + stride);
      return v;
    };
    const Val whole = r.end - (stride - r.step);
    carried = b_.For({r.begin, whole, stride, Builder::Range::kNot}, std::move(carried), several);
    const Val rest = carried.back();
    carried.pop_back();
    return b_.For({b_.Int(0), steps - one, one}, std::move(carried), [&](Val n, const Vals& v) {
      const Val at = rest + n * r.step;
      return b_.If(at < r.end, [&] { return body(at, v); }, [&] { return v; });
    });
  }

  const Kernel& in_;
  const Liveness live_;
  Builder b_;
  const Changes to_;
  const bool split_;   // 64-bit integers are two halves
  const bool rolled_;  // no loop is to be unrolled: where a first run waits for a driver's compiler
  std::vector<Wide> map_;
};

// Views of the parts but the first, behind those of the kernel.
void AddParts(size_t view, std::vector<View>& views) {
  for (int n = 1; n < views[view].parts; ++n) {
    View part = views[view];
    part.name += fmt::format("_{}", n);
    part.operand += n;
    part.parts = 1;
    views.push_back(std::move(part));
  }
}

Kernel Rewrite(const Kernel& k, const Rewriting::Changes& to) {
  Kernel out = k;
  out.values = {}, out.operands = {}, out.blocks = {};
  if (to.caps != nullptr) {
    if (!to.caps->i64)
      std::transform(out.views.begin(), out.views.end(), out.views.begin(), HalvesView);
    MakeExchangeable(k, *to.caps, out.views);
    for (size_t v = 0; v < k.views.size(); ++v) AddParts(v, out.views);
  }
  Rewriting(k, out, to).Run();
  if (to.caps != nullptr)
    for (View& v : out.views) v.parts = 1;
  return out;
}

}  // namespace

Kernel Lower(const Kernel& k, const Caps& caps) { return Rewrite(k, {.caps = &caps}); }

Kernel LimitTrips(Kernel k, int64_t most) {
  for (int64_t least = MostTrips(k); least > most;) {
    const Kernel before = k;
    const int64_t trips = least;
    for (int64_t steps = 2; steps <= 64 && least > most; steps *= 2) {
      Kernel fewer = Rewrite(before, {.steps = steps});
      const int64_t left = MostTrips(fewer);
      if (left < least) k = std::move(fewer), least = left;
    }
    FORGE_CHECK(least < trips);  // if need be once more, with what is now innermost
  }
  return k;
}

}  // namespace forge::codegen
