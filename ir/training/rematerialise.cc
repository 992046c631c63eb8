// SPDX-License-Identifier: Apache-2.0
#include "ir/training/rematerialise.h"

#include <algorithm>
#include <limits>
#include <set>

#include "ir/ops/control/optimization_barrier.h"

namespace forge::ir {
namespace {

class Planner {
 public:
  Planner(const Function& f, size_t forward, uint64_t budget, const Bindings& sizes)
      : f_(f), forward_(forward), budget_(budget), sizes_(sizes) {}

  absl::StatusOr<ActivationPlan> Run() {
    FORGE_RETURN_IF_ERROR(Measure());
    ActivationPlan best = Choose({});
    for (size_t segments = 2; segments <= kMostSegments && best.most_bytes > budget_; ++segments) {
      ActivationPlan other = Choose(Cut(segments));
      if (other.most_bytes < best.most_bytes) best = std::move(other);
    }
    KeepMore(best);
    CountFlopsAgain(best);
    return best;
  }

 private:
  static constexpr size_t kMostSegments = 64;

  bool IsForward(uint32_t v) const {
    return f_.origin(v).kind == Function::Origin::kNode && f_.origin(v).index < forward_;
  }
  // Whether its results are kept in any case: what it does cannot be repeated, or is a whole
  // function.
  static bool RunsOnce(const Node& node) {
    return HasEffects(node) || !node.runtime_attributes.empty() || !BodiesOf(node.op).empty();
  }

  absl::Status Measure() {
    bytes_.resize(f_.value_count());
    saved_.resize(f_.value_count());
    flops_.resize(forward_);
    last_reader_.resize(f_.value_count());
    for (size_t n = 0; n < f_.nodes().size(); ++n)
      for (const uint32_t v : f_.nodes()[n].in) {
        if (v == kAbsent || !IsForward(v)) continue;
        if (n < forward_)
          last_reader_[v] = n;
        else
          saved_[v] = true;
      }
    for (size_t n = 0; n < forward_; ++n) {
      const Node& node = f_.nodes()[n];
      FORGE_ASSIGN_OR_RETURN(const int64_t flops,
                             node.op.Cost(f_.TypesOf(node.in)).flops.Evaluate(sizes_));
      flops_[n] = static_cast<double>(flops);
      for (uint32_t v = node.first_out; v < node.first_out + node.outs; ++v) {
        const Type& type = f_.type(v);
        if (!type.is_tensor()) continue;
        FORGE_ASSIGN_OR_RETURN(const Dim bytes, type.bytes());
        FORGE_ASSIGN_OR_RETURN(const int64_t number, bytes.Evaluate(sizes_));
        bytes_[v] = static_cast<uint64_t>(number);
        if (saved_[v]) saved_bytes_ += bytes_[v];
      }
    }
    MeasureCrossings();
    return absl::OkStatus();
  }

  void MeasureCrossings() {
    std::vector<int64_t> change(forward_ + 1);
    for (size_t n = 0; n < forward_; ++n) {
      const Node& node = f_.nodes()[n];
      for (uint32_t v = node.first_out; v < node.first_out + node.outs; ++v) {
        if (last_reader_[v] <= n) continue;
        change[n + 1] += static_cast<int64_t>(bytes_[v]);
        change[last_reader_[v] + 1] -= static_cast<int64_t>(bytes_[v]);
      }
    }
    int64_t bytes = 0;
    for (size_t n = 0; n < forward_; ++n) crossing_.push_back(bytes += change[n]);
  }

  // Cuts the forward part where the fewest bytes go on, into segments that save about as many as
  // each other: half of their share to twice it, and of equal places the share.
  std::vector<uint32_t> Cut(size_t segments) const {
    std::vector<uint32_t> cuts;
    const uint64_t share = saved_bytes_ / segments;
    uint64_t sum = 0;
    std::optional<uint32_t> best;
    for (uint32_t n = 0; n < forward_ && cuts.size() + 1 < segments; ++n) {
      if (best && sum > 2 * share) {
        cuts.push_back(*best);
        n = *best;
        sum = 0;
        best.reset();
      } else if (2 * sum >= share && sum > 0) {
        const int64_t least = best ? crossing_[*best] : std::numeric_limits<int64_t>::max();
        if (crossing_[n] < least || (crossing_[n] == least && sum <= share)) best = n;
      }
      const Node& node = f_.nodes()[n];
      for (uint32_t v = node.first_out; v < node.first_out + node.outs; ++v)
        if (saved_[v]) sum += bytes_[v];
    }
    if (best && cuts.size() + 1 < segments) cuts.push_back(*best);
    return cuts;
  }

  ActivationPlan Choose(std::vector<uint32_t> segments) {
    ActivationPlan c{.segments = std::move(segments), .kept = std::vector<bool>(f_.value_count())};
    c.saved_bytes = saved_bytes_;
    again_.assign(c.segments.size() + 1, 0);
    kept_ = again_;
    for (size_t n = 0; n < forward_; ++n) {
      const Node& node = f_.nodes()[n];
      const size_t segment = c.SegmentOf(n);
      for (uint32_t v = node.first_out; v < node.first_out + node.outs; ++v) {
        const bool is_read = saved_[v] || last_reader_[v] > 0;
        const bool goes_on = segment == c.segments.size() || c.SegmentOf(last_reader_[v]) > segment;
        c.kept[v] = is_read && (goes_on || RunsOnce(node));
        if (c.kept[v] && (saved_[v] || segment < c.segments.size()))
          kept_[segment] += bytes_[v];
        else if (saved_[v])
          again_[segment] += bytes_[v];
      }
    }
    c.most_bytes = MostBytes();
    return c;
  }

  // Of the moments at which gradients go back over a segment: those behind it need nothing more.
  uint64_t MostBytes() const {
    uint64_t kept = 0, most = 0;
    for (size_t s = 0; s < again_.size(); ++s) {
      kept += kept_[s];
      most = std::max(most, kept + again_[s]);
    }
    return most;
  }

  // Keeps of what would be computed again, the most costly first.
  void KeepMore(ActivationPlan& c) {
    Choose(c.segments);
    std::vector<uint32_t> left;
    for (uint32_t v = 0; v < f_.value_count(); ++v)
      if (saved_[v] && !c.kept[v] && bytes_[v] > 0) left.push_back(v);
    const auto worth = [&](uint32_t v) {
      return flops_[f_.origin(v).index] / static_cast<double>(bytes_[v]);
    };
    std::ranges::stable_sort(left, std::ranges::greater(), worth);
    for (const uint32_t v : left) {
      const size_t segment = c.SegmentOf(f_.origin(v).index);
      kept_[segment] += bytes_[v];
      again_[segment] -= bytes_[v];
      c.kept[v] = MostBytes() <= budget_;
      if (c.kept[v]) continue;
      kept_[segment] -= bytes_[v];
      again_[segment] += bytes_[v];
    }
    c.most_bytes = MostBytes();
  }

  // What the gradients read and is not kept, and what that is computed of.
  void CountFlopsAgain(ActivationPlan& c) const {
    std::vector<bool> again(forward_);
    for (size_t n = forward_; n-- > 0;) {
      const Node& node = f_.nodes()[n];
      c.flops += flops_[n];
      for (uint32_t v = node.first_out; v < node.first_out + node.outs; ++v)
        again[n] = again[n] || (saved_[v] && !c.kept[v]);
      if (!again[n]) continue;
      c.flops_again += flops_[n];
      for (const uint32_t v : node.in)
        if (v != kAbsent && IsForward(v) && !c.kept[v]) again[f_.origin(v).index] = true;
    }
  }

  const Function& f_;
  const size_t forward_;
  const uint64_t budget_;
  const Bindings& sizes_;
  std::vector<uint64_t> bytes_;      // by value
  std::vector<bool> saved_;          // by value: of the forward part, read by gradients
  std::vector<size_t> last_reader_;  // by value: the last node of the forward part; 0: none
  std::vector<double> flops_;        // by node
  uint64_t saved_bytes_ = 0;
  std::vector<int64_t>
      crossing_;  // by node: bytes of what was made before it and is read from it on
  // Of the last choice, by segment: bytes of what is kept, and of what is computed again.
  std::vector<uint64_t> kept_, again_;
};

}  // namespace

size_t ActivationPlan::SegmentOf(size_t node) const {
  return static_cast<size_t>(std::ranges::upper_bound(segments, node) - segments.begin());
}

absl::StatusOr<ActivationPlan> PlanActivations(const Function& f, size_t forward, uint64_t budget,
                                               const Bindings& sizes) {
  FORGE_RETURN_IF_ERROR(f.status());
  return Planner(f, forward, budget, sizes).Run();
}

Values Rematerialiser::ValuesFor(size_t node, ValueSpan values) {
  const size_t segment = activations_.SegmentOf(node);
  if (segment != segment_) {
    again_.clear();
    barriers_.clear();
    segment_ = segment;
  }
  Values out;
  for (const Value& v : values) {
    if (v && !IsKept(v.id)) Append(v.id);
    const auto again = v ? again_.find(v.id) : again_.end();
    out.push_back(again == again_.end() ? v : again->second);
  }
  return out;
}

bool Rematerialiser::IsKept(uint32_t v) const {
  const Function::Origin& origin = f_.origin(v);
  return origin.kind != Function::Origin::kNode || activations_.kept[v] ||
         activations_.SegmentOf(origin.index) == activations_.segments.size();
}

// Appends the value and all it needs that is not there.
void Rematerialiser::Append(uint32_t v) {
  std::set<uint32_t> nodes;
  std::vector<uint32_t> left = {v};
  while (!left.empty()) {
    const uint32_t next = left.back();
    left.pop_back();
    if (next == kAbsent || IsKept(next) || again_.contains(next)) continue;
    const uint32_t n = f_.origin(next).index;
    if (!nodes.insert(n).second) continue;
    left.insert(left.end(), f_.nodes()[n].in.begin(), f_.nodes()[n].in.end());
  }
  for (const uint32_t n : nodes) {
    const Node& node = f_.nodes()[n];
    const Function::Scope scope(f_, MadeBy("recompute", {&node.from, 1}));
    Values in;
    for (const uint32_t operand : node.in)
      in.push_back(operand == kAbsent ? Value{} : OperandOf(operand));
    const Values made = f_.Add(node.op, in);
    for (uint32_t k = 0; k < node.outs; ++k) again_[node.first_out + k] = made[k];
  }
}

// Behind a barrier, so that nothing is merged with what was computed before.
Value Rematerialiser::OperandOf(uint32_t v) {
  if (const auto again = again_.find(v); again != again_.end()) return again->second;
  const Variable* const variable = f_.VariableOf(v);
  if (variable != nullptr && variable->role != Variable::Role::kState) return f_.value(v);
  const auto [at, is_new] = barriers_.try_emplace(v);
  if (is_new) at->second = f_(OptimizationBarrier{}, {f_.value(v)});
  return at->second;
}

}  // namespace forge::ir
