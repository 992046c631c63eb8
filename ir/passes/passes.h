// SPDX-License-Identifier: Apache-2.0
// The passes of a model's way to a device. Each reads one function and writes another of the same
// module; what it writes verifies. Their order is in runtime/plan/lower.cc.
#pragma once
#include "ir/graph/target.h"

namespace forge::ir {

// Marks parameters as constants: inference may then fold, hoist and pack them.
void Freeze(Module& m);

// Resolves runtime-valued attributes whose values are known, evaluates small constant subgraphs,
// turns shape arithmetic into dimensions and one-element constants into fills, drops what changes
// nothing, folds batch norms into the convolutions before them.
//   errors: InvalidArgument where a resolved shape refuses, with the node's name
absl::Status Fold(Module& m, const Function& in, Function& out);

// Replaces exporters' idioms by the op they spell: hard-swish.
absl::Status Recognise(const Function& in, Function& out);

// A node that a target has neither a kernel nor parts for.
struct Refusal {
  std::string op;
  Types in;                    // an absent operand is a Type of nothing
  std::string from;            // the node's provenance; may be empty
  std::string why;             // in the target's words
  std::string ToText() const;  // "conv2d(f64[1, 4, 6, 6], f64[4, 4, 3, 3]) from Conv_3: no fp64"
};

// Leaves only what `target` supports: a kernel, else the op's decomposition.
//   refused: receives the nodes that have neither; may be null
//   errors: Unimplemented, one line for each such node
absl::Status Legalise(const Function& in, Function& out, const Target& target,
                      std::vector<Refusal>* refused = nullptr);

// Applies algebra that is exact for NaN, infinities and zeros of either sign (x * 1, a transpose of
// a transpose), and computes once what several nodes compute alike, unless it is cheaper to compute
// again than to load.
absl::Status Simplify(const Function& in, Function& out);

// Joins matrix products of one value with several constants into one.
absl::Status Join(const Function& in, Function& out);

// Moves what depends on constants alone from `in` to `load`, whose results become variables of
// `out`, named as load's results are.  Returns how many nodes moved.
absl::StatusOr<int> Hoist(Module& m, const Function& in, Function& load, Function& out);

// Why a node reads what another makes from memory: labels of both, as provenance names them.
struct FusionGap {
  std::string from, to, why;
};

// Gathers an anchor (anything with a kernel of its own) with the element-wise and movement ops
// around it into fused nodes, greedily, as far as `target` says yes.  Returns what is left between
// the nodes of `out`, one gap for each pair.
absl::StatusOr<std::vector<FusionGap>> Fuse(Module& m, const Function& in, Function& out,
                                            const Target& target);

// Replaces symbols by numbers in types, attributes and bodies, and infers everything again.
//   errors: InvalidArgument where numbers do not fit, with the node's name
absl::Status Bind(Module& m, const Function& in, Function& out, const Bindings& values);

// Fuses again, with numbers, what each fused node computes that `target` does not support: what was
// fused while extents were symbols may not be one program where one of them turns out to be 1.
absl::Status Split(Module& m, const Function& in, Function& out, const Target& target);

// Chooses encodings and inserts relayouts, by the target's prices. Types must be bound.
absl::Status AssignEncodings(const Function& in, Function& out, const Target& target);

}  // namespace forge::ir
