// SPDX-License-Identifier: Apache-2.0
// Which results of the forward part of a training step are kept for its gradients, and which are
// computed again when the gradients need them.
#pragma once
#include "absl/container/flat_hash_map.h"
#include "ir/graph/module.h"

namespace forge::ir {

// The forward part in segments. Gradients go back over the segments from the last to the first, and
// compute again what they need of a segment from what is kept; all of the last segment is.
struct ActivationPlan {
  std::vector<uint32_t> segments;  // the first node of each but the first
  std::vector<bool> kept;          // by value, of the results of these nodes
  // By the types of values: fusion leaves some of them out of memory.
  uint64_t saved_bytes = 0;           // what gradients need of the forward part
  uint64_t most_bytes = 0;            // what is kept and computed again at one moment
  double flops = 0, flops_again = 0;  // of the forward part

  size_t SegmentOf(size_t node) const;
};

// Chooses the fewest segments with which `most_bytes` is at most `budget`, and keeps what costs
// most to compute in the rest of it. Where no choice fits, the one with the smallest `most_bytes`.
//   f: a function with its gradients, of which the first `forward` nodes are the forward part
//   sizes: of the symbols in its types
//   errors: InvalidArgument (a symbol without a size), OutOfRange (sizes overflow)
absl::StatusOr<ActivationPlan> PlanActivations(const Function& f, size_t forward, uint64_t budget,
                                               const Bindings& sizes);

// Appends what is not kept to the function once more, where gradients ask for it.
class Rematerialiser {
 public:
  Rematerialiser(Function& f, const ActivationPlan& activations)
      : f_(f), activations_(activations) {}

  // The values as a gradient of that node of the forward part reads them. Nodes are visited from
  // the last to the first.
  Values ValuesFor(size_t node, ValueSpan values);

 private:
  bool IsKept(uint32_t v) const;
  void Append(uint32_t v);
  Value OperandOf(uint32_t v);

  Function& f_;
  const ActivationPlan& activations_;
  size_t segment_ = SIZE_MAX;
  absl::flat_hash_map<uint32_t, Value> again_;     // values of this segment
  absl::flat_hash_map<uint32_t, Value> barriers_;  // of what they are computed of
};

}  // namespace forge::ir
