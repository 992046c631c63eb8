// SPDX-License-Identifier: Apache-2.0
// Greedy fusion by an op's fusion kind: a scalar expression, an index map, or neither (an anchor).
#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "ir/dim/broadcast.h"
#include "ir/graph/copier.h"
#include "ir/ops/compiler/fused.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/passes/passes.h"

namespace forge::ir {
namespace {

constexpr int kNone = -1;
// Nodes in one region: beyond this a kernel's registers, not its launches, set the pace.
constexpr size_t kMaxNodes = 48;
// Nodes and elements of what is joined although it has nothing in common: parts follow each other
// in a kernel, and a launch takes as long as so many elements. Targets number the registers of a
// region, which grow with its nodes.
constexpr size_t kMaxNodesApart = 128;
constexpr int64_t kMaxElementsApart = 1 << 16;

enum class FusionKind { kScalar, kMovement, kLiteral, kAnchor };

FusionKind FusionKindOf(const Node& node) {
  const OpDef& def = node.op.def();
  if (HasEffects(node)) return FusionKind::kAnchor;
  if (def.scalar) return FusionKind::kScalar;
  if (def.map) return node.in.empty() ? FusionKind::kLiteral : FusionKind::kMovement;
  return FusionKind::kAnchor;
}

// What moves an anchor's elements is better read moved, in the loads of the next anchor, than
// stored moved: stores get what is left. Results that others read too are joined when nothing else
// can be: the region then stores them beside its own. At last small results of one shape are
// joined, as those of an optimiser's step for many parameters, which no other node waits for.
enum class Phase { kLoads, kStores, kResults, kApart };

struct Group {
  std::vector<int> nodes;  // indices, ascending
  int anchor = kNone;
};

// One fusion of a function: groups are merged as long as the target agrees, then written.
class Fuser {
 public:
  Fuser(Module& m, const Function& in, const Target& target)
      : module_(m), in_(in), target_(target), uses_(in.UseCounts()), readers_(in.value_count()) {
    const int n = static_cast<int>(in.nodes().size());
    operands_.resize(n);
    needs_.resize(n);
    group_of_.resize(n);
    groups_.resize(n);
    for (int i = 0, effect = kNone; i < n; ++i) {
      group_of_[i] = i;
      groups_[i].nodes = {i};
      if (FusionKindOf(in.nodes()[i]) == FusionKind::kAnchor) groups_[i].anchor = i;
      for (uint32_t v : in.nodes()[i].in)
        if (v != kAbsent) operands_[i].push_back(v);
      for (const RuntimeAttribute& l : in.nodes()[i].runtime_attributes)
        operands_[i].push_back(l.value);
      for (uint32_t v : operands_[i]) {
        readers_[v].push_back(i);
        if (const int p = Producer(v); p != kNone) needs_[i].push_back(p);
      }
      if (!HasEffects(in.nodes()[i])) continue;
      if (effect != kNone) needs_[i].push_back(effect);
      effect = i;
    }
  }

  absl::StatusOr<std::vector<FusionGap>> Run(Function& out) {
    const int n = static_cast<int>(in_.nodes().size());
    for (const Phase phase : {Phase::kLoads, Phase::kStores, Phase::kResults}) {
      phase_ = phase;
      for (int i = 0; i < n; ++i)
        if (phase == Phase::kLoads || groups_[group_of_[i]].anchor == kNone) Grow(i);
    }
    JoinApart();
    FORGE_RETURN_IF_ERROR(Write(out));
    return Gaps();
  }

 private:
  const Node& node(int i) const { return in_.nodes()[i]; }
  int Producer(uint32_t value) const {
    if (value == kAbsent || in_.origin(value).kind != Function::Origin::kNode) return kNone;
    return static_cast<int>(in_.origin(value).index);
  }

  // What a field waits for has no place in a body, and effects keep their order.
  bool StandsAlone(int i) const {
    return !node(i).runtime_attributes.empty() || HasEffects(node(i));
  }

  // Tries to join node i's group with those of its operands, the deepest first: that one is
  // computed last anyway, and the others become its operands.
  void Grow(int i) {
    if (FusionKindOf(node(i)) == FusionKind::kLiteral || StandsAlone(i)) return;
    std::vector<int> producers;
    for (uint32_t v : node(i).in) {
      int p = Producer(v);
      if (p != kNone && FusionKindOf(node(p)) != FusionKind::kLiteral && !StandsAlone(p))
        producers.push_back(p);
    }
    std::sort(producers.rbegin(), producers.rend());
    for (int p : producers) {
      const int a = group_of_[p], b = group_of_[i];
      if (a == b || (phase_ == Phase::kStores && groups_[a].anchor == kNone)) continue;
      // The reasons of the phases before say more than that of the last.
      if (Verdict v = TryJoin(a, b); !v && phase_ != Phase::kResults) refusals_[{p, i}] = v.text();
    }
  }

  // Each group joins the last one of its shape.
  void JoinApart() {
    phase_ = Phase::kApart;
    std::vector<int> last;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const int b = static_cast<int>(g);
      if (!IsSmallEnd(b)) continue;
      const auto a = std::ranges::find_if(last, [&](int l) { return AlikeInEachElement(l, b); });
      if (a == last.end()) {
        last.push_back(b);
        continue;
      }
      (void)TryJoin(*a, b);  // where they stay apart, the next one joins b
      *a = b;
    }
  }

  // Element-wise ops of a small shape, of which no other node reads a result.
  bool IsSmallEnd(int g) const {
    const std::vector<int>& nodes = groups_[g].nodes;
    if (nodes.empty() || StandsAlone(nodes[0]) || !AlikeInEachElement(g, g)) return false;
    if (in_.type(node(nodes[0]).first_out).elements().max() > kMaxElementsApart) return false;
    for (int i : nodes)
      for (int reader : readers_[node(i).first_out])
        if (group_of_[reader] != g) return false;
    return true;
  }

  Verdict TryJoin(int a, int b) {
    const size_t most = phase_ == Phase::kApart ? kMaxNodesApart : kMaxNodes;
    if (groups_[a].nodes.size() + groups_[b].nodes.size() > most)
      return Verdict::No(fmt::format("together they have more than {} ops", most));
    const bool two_anchors = groups_[a].anchor != kNone && groups_[b].anchor != kNone;
    if (two_anchors && !OnlyReader(a, b)) return Verdict::No("others read the first too");
    if (Verdict v = two_anchors ? Verdict::Yes() : FitsTogether(a, b); !v) return v;
    if (DependsThroughOthers(a, b))
      return Verdict::No("a third needs the first and feeds the second");
    Group merged = groups_[a];
    merged.nodes.insert(merged.nodes.end(), groups_[b].nodes.begin(), groups_[b].nodes.end());
    std::sort(merged.nodes.begin(), merged.nodes.end());
    merged.anchor = std::max(groups_[a].anchor, groups_[b].anchor);
    Function body("candidate", &module_);
    std::vector<uint32_t> operands, results;
    if (absl::Status s = BuildBody(merged, body, operands, results); !s.ok())
      return Verdict::No(std::string(Message(s)));
    if (Verdict v = two_anchors ? target_.FusesAnchors(body) : target_.Fuses(body); !v) return v;
    for (int n : groups_[a].nodes) group_of_[n] = b;
    groups_[a] = {};
    groups_[b] = std::move(merged);
    return Verdict::Yes();
  }

  // Whether `b` can compute what it needs of `a` element by element without doing it many times
  // over.
  Verdict FitsTogether(int a, int b) const {
    if (phase_ == Phase::kApart) return Verdict::Yes();
    if (phase_ == Phase::kResults)
      return AlikeInEachElement(a, b) ? Verdict::Yes() : Verdict::No("they are not element-wise");
    if (groups_[a].anchor != kNone)
      return EpilogueFits(a, b)
                 ? Verdict::Yes()
                 : Verdict::No("the second needs other elements than the one at hand");
    if (!OnlyReader(a, b)) return Verdict::No("others read the value too");
    const int anchor = groups_[b].anchor;
    if (anchor == kNone || IsMovementOnly(a) || Reads(anchor, a, 1) ||
        (IsCheap(a) && Reads(anchor, a, target_.Recomputes().reads)))
      return Verdict::Yes();
    return Verdict::No("elements would be computed for each of many reads");
  }

  // An epilogue works on the anchor's own elements, one for one: shapes may be equal and nothing
  // moves, or nothing made of them has more elements, and the target says whether it can store
  // them.
  bool EpilogueFits(int a, int b) const {
    if (phase_ == Phase::kStores) return RepeatsNothing(a, b);
    const Dims& shape = in_.type(node(groups_[a].anchor).first_out).shape();
    for (int i : groups_[b].nodes)
      if (FusionKindOf(node(i)) != FusionKind::kScalar ||
          !MayEqualBroadcast(shape, in_.type(node(i).first_out).shape()))
        return false;
    for (int i : groups_[a].nodes)
      if (i > groups_[a].anchor && FusionKindOf(node(i)) == FusionKind::kMovement) return false;
    return true;
  }

  bool RepeatsNothing(int a, int b) const {
    const Type& anchor = in_.type(node(groups_[a].anchor).first_out);
    std::vector<bool> made(in_.value_count());  // of the anchor's elements
    for (int i : groups_[a].nodes)
      for (uint16_t k = 0; k < node(i).outs; ++k)
        made[node(i).first_out + k] = i >= groups_[a].anchor;
    for (int i : groups_[b].nodes) {
      const auto& in = operands_[i];
      if (std::none_of(in.begin(), in.end(), [&](uint32_t v) { return made[v]; })) continue;
      const Type& type = in_.type(node(i).first_out);
      if (!MayEqualBroadcast(anchor.shape(), type.shape()) &&
          (anchor.elements() - type.elements()).min() < 0)
        return false;
      made[node(i).first_out] = true;
    }
    return true;
  }

  // Element-wise ops on tensors of one shape, in both groups.
  bool AlikeInEachElement(int a, int b) const {
    const Dims& shape = in_.type(node(groups_[b].nodes.back()).first_out).shape();
    for (const int g : {a, b})
      for (int i : groups_[g].nodes)
        if (FusionKindOf(node(i)) != FusionKind::kScalar ||
            in_.type(node(i).first_out).shape() != shape)
          return false;
    return true;
  }

  bool IsMovementOnly(int g) const {
    return std::all_of(groups_[g].nodes.begin(), groups_[g].nodes.end(),
                       [&](int i) { return FusionKindOf(node(i)) == FusionKind::kMovement; });
  }

  // Does nobody but group b read what group a makes?
  bool OnlyReader(int a, int b) const {
    for (int i : groups_[a].nodes) {
      for (uint16_t k = 0; k < node(i).outs; ++k) {
        const uint32_t v = node(i).first_out + k;
        int inside = 0;
        for (int reader : readers_[v]) inside += group_of_[reader] == a || group_of_[reader] == b;
        if (inside != uses_[v]) return false;
      }
    }
    return true;
  }

  // Is an element of what group g makes computed faster than loaded? Ops that round once are an
  // instruction or two, and all but one operand are small.
  bool IsCheap(int g) const {
    const Dim all = in_.type(node(groups_[g].nodes.back()).first_out).elements();
    int ops = 0, large = 0;
    for (int i : groups_[g].nodes) {
      if (FusionKindOf(node(i)) != FusionKind::kScalar) continue;
      const auto& in = operands_[i];
      // What only changes the type is part of the load.
      ops += in.size() > 1 || in_.type(in[0]).dtype() == in_.type(node(i).first_out).dtype();
      if (node(i).op.def().scalar->info.ulps > 0 || ops > target_.Recomputes().ops) return false;
      for (uint32_t v : operands_[i]) {
        const int p = Producer(v);
        large += (p == kNone || group_of_[p] != g) && in_.type(v).elements() == all;
      }
    }
    return large <= 1;
  }

  // Does the anchor touch each element of the operand made by group g at most about `times` (once:
  // a reduction, not a convolution)? Work per operand element is the measure.
  bool Reads(int anchor, int g, int64_t times) const {
    const Node& a = node(anchor);
    const Types types = in_.TypesOf(a.in);
    const Cost cost = a.op.Cost(types);
    const Dim work = cost.terms * in_.type(a.first_out).elements();
    for (size_t k = 0; k < a.in.size(); ++k) {
      int p = Producer(a.in[k]);
      if (p == kNone || group_of_[p] != g) continue;
      const Dim once =
          types[k].elements() *
          (types[k].elements() == in_.type(a.first_out).elements() ? cost.terms : Dim(1));
      if (!(once == work) && (once * times - work).min() < 0) return false;
    }
    return true;
  }

  // The last place up to `from` that no group spans: what lies before it needs nothing after it.
  // Nodes after `last` stand alone.
  int Frontier(int from, int last) const {
    for (int i = last; i >= from; --i) from = std::min(from, groups_[group_of_[i]].nodes.front());
    return from;
  }

  // Would joining a and b close a cycle: does b read something outside that needs a?
  bool DependsThroughOthers(int a, int b) const {
    const int first = Frontier(groups_[a].nodes.front(), groups_[b].nodes.back());
    std::vector<int> stack;
    std::vector<bool> seen(node_count(), false);
    auto push_operands = [&](int i) {
      for (int p : needs_[i]) {
        if (p < first || seen[p]) continue;
        seen[p] = true;
        stack.push_back(p);
      }
    };
    for (int i : groups_[b].nodes) push_operands(i);
    // Direct reads of a by b are what joining is about; only detours count.
    std::vector<int> start;
    for (int p : stack)
      if (group_of_[p] != a && group_of_[p] != b) start.push_back(p);
    stack = start;
    std::fill(seen.begin(), seen.end(), false);
    while (!stack.empty()) {
      const int i = stack.back();
      stack.pop_back();
      if (group_of_[i] == a) return true;
      // Whoever needs one node of a group needs the whole of it.
      for (int member : groups_[group_of_[i]].nodes) push_operands(member);
    }
    return false;
  }

  size_t node_count() const { return in_.nodes().size(); }

  // Writes the region of `group` into `body`; operands and results are value ids of the function.
  absl::Status BuildBody(const Group& group, Function& body, std::vector<uint32_t>& operands,
                         std::vector<uint32_t>& results) const {
    std::vector<bool> member(node_count(), false);
    for (int i : group.nodes) member[i] = true;
    const auto operand = [&](uint32_t v) -> Value {
      if (const int p = Producer(v); p != kNone && FusionKindOf(node(p)) == FusionKind::kLiteral) {
        const Function::Scope scope(body, node(p).from);
        return body.Add(node(p).op, {})[0];
      }
      operands.push_back(v);
      return body.Argument(fmt::format("a{}", operands.size() - 1), in_.type(v));
    };
    Copier copy(in_, body, {.missing = operand});
    for (int i : group.nodes) copy.CopyNode(node(i));
    for (int i : group.nodes) {
      for (uint16_t k = 0; k < node(i).outs; ++k) {
        const uint32_t v = node(i).first_out + k;
        int inside = 0;
        for (int reader : readers_[v]) inside += member[reader];
        if (inside == uses_[v]) continue;
        results.push_back(v);
        body.Return(fmt::format("r{}", results.size() - 1), copy[v]);
      }
    }
    return body.status();
  }

  // Groups in an order in which every operand comes first; earliest node first among the ready.
  std::vector<int> Order() const {
    std::vector<int> waiting(node_count(), 0);
    std::vector<std::vector<int>> readers(node_count());
    for (size_t g = 0; g < groups_.size(); ++g) {
      std::vector<int> needs;
      for (int i : groups_[g].nodes)
        for (int p : needs_[i])
          if (group_of_[p] != static_cast<int>(g)) needs.push_back(group_of_[p]);
      std::sort(needs.begin(), needs.end());
      needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
      waiting[g] = static_cast<int>(needs.size());
      for (int need : needs) readers[need].push_back(static_cast<int>(g));
    }
    using Entry = std::pair<int, int>;  // first node, group
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (size_t g = 0; g < groups_.size(); ++g)
      if (!groups_[g].nodes.empty() && waiting[g] == 0) ready.emplace(groups_[g].nodes.front(), g);
    std::vector<int> order;
    while (!ready.empty()) {
      const int g = ready.top().second;
      ready.pop();
      order.push_back(g);
      for (int r : readers[g])
        if (--waiting[r] == 0) ready.emplace(groups_[r].nodes.front(), r);
    }
    return order;
  }

  absl::Status Write(Function& out) {
    Copier copy(in_, out);
    copy.CopyArguments();
    for (int g : Order()) {
      const bool literal = groups_[g].nodes.size() == 1 &&
                           FusionKindOf(node(groups_[g].nodes[0])) == FusionKind::kLiteral;
      if (literal && !LiteralIsNeeded(node(groups_[g].nodes[0]).first_out)) continue;
      FORGE_RETURN_IF_ERROR(WriteGroup(groups_[g], out, copy));
    }
    return copy.Finish();
  }

  // A literal is copied into every region that reads it; alone it is needed by plain nodes and
  // results.
  bool LiteralIsNeeded(uint32_t value) const {
    size_t in_regions = 0;
    for (int reader : readers_[value]) in_regions += IsRegion(groups_[group_of_[reader]]);
    return in_regions < static_cast<size_t>(uses_[value]);
  }

  // A node alone stays as it is, unless it reads literals, which a region can hold.
  bool IsRegion(const Group& g) const {
    if (g.nodes.size() > 1) return true;
    const Node& only = node(g.nodes[0]);
    if (FusionKindOf(only) == FusionKind::kLiteral || StandsAlone(g.nodes[0])) return false;
    return std::any_of(only.in.begin(), only.in.end(),
                       [&](uint32_t v) {
                         int p = Producer(v);
                         return p != kNone && FusionKindOf(node(p)) == FusionKind::kLiteral;
                       }) &&
           RegionIsTaken(g);
  }

  bool RegionIsTaken(const Group& g) const {
    Function body("candidate", &module_);
    std::vector<uint32_t> operands, results;
    return BuildBody(g, body, operands, results).ok() && static_cast<bool>(target_.Fuses(body));
  }

  // What stands between two groups: a value that one of them stores and the other loads.
  std::vector<FusionGap> Gaps() const {
    std::vector<FusionGap> out;
    std::set<std::pair<int, int>> seen;
    for (const auto& [edge, why] : refusals_) {
      const int a = group_of_[edge.first], b = group_of_[edge.second];
      if (a != b && seen.insert({a, b}).second)
        out.push_back({LabelOf(groups_[a]), LabelOf(groups_[b]), why});
    }
    return out;
  }

  std::string LabelOf(const Group& g) const {
    const Node& first = node(g.nodes[0]);
    const ProvenanceRef from = IsRegion(g) ? From(g) : first.from;
    return from ? from->ToText() : std::string(first.op.name());
  }

  ProvenanceRef From(const Group& g) const {
    std::vector<ProvenanceRef> parts;
    for (int i : g.nodes) parts.push_back(node(i).from);
    return MadeBy("fuse", parts);
  }

  absl::Status WriteGroup(const Group& g, Function& out, Copier& copy) {
    if (!IsRegion(g)) {
      copy.CopyNode(node(g.nodes[0]));
      return out.status();
    }
    Function* body = module_.AddFunction(in_.name() + ".fused");
    std::vector<uint32_t> operands, results;
    FORGE_RETURN_IF_ERROR(BuildBody(g, *body, operands, results));
    Function::Scope scope(out, From(g));
    const Values made = out.Add(Fused{.body = body}, copy.Operands(operands));
    FORGE_RETURN_IF_ERROR(out.status());
    for (size_t k = 0; k < made.size(); ++k) copy.Map(results[k], made[k]);
    return absl::OkStatus();
  }

  Module& module_;
  const Function& in_;
  const Target& target_;
  std::vector<int> uses_;
  std::vector<std::vector<uint32_t>> operands_;  // by node, those of runtime-valued attributes too
  std::vector<std::vector<int>> needs_;          // by node: those that come first
  std::vector<std::vector<int>> readers_;        // by value
  std::vector<int> group_of_;
  std::vector<Group> groups_;
  Phase phase_ = Phase::kLoads;
  std::map<std::pair<int, int>, std::string> refusals_;  // by producer and consumer: the last
};

}  // namespace

absl::StatusOr<std::vector<FusionGap>> Fuse(Module& m, const Function& in, Function& out,
                                            const Target& target) {
  return Fuser(m, in, target).Run(out);
}

}  // namespace forge::ir
