// SPDX-License-Identifier: Apache-2.0
// The passes that lower a model for a device. Each reads one function and writes another one of the
// same module, which passes Verify. runtime/plan/lower.cc defines their order.
#pragma once
#include "ir/graph/target.h"

namespace forge::ir {

// Marks parameters as constants, so that other passes can fold, hoist and pack them.
void Freeze(Module& m);

// Resolves runtime-valued attributes whose values are known, evaluates small constant subgraphs,
// turns shape arithmetic into dimensions and one-element constants into fills, drops what changes
// nothing, folds batch norms into the convolutions before them.
//   errors: InvalidArgument where a resolved shape refuses, with the node's name
absl::Status Fold(Module& m, const Function& in, Function& out);

// Replaces groups of nodes that exporters write for an op, such as GELU or softmax, by the op.
absl::Status Recognise(const Function& in, Function& out);

// Replaces products and convolutions of dequantised numbers with dequantised constants by those of
// the numbers themselves, where `target` multiplies bytes.
absl::Status MultiplyIntegers(const Function& in, Function& out, const Target& target);

// Replaces what is computed element by element of one 8-bit number by a table, where `target` has a
// kernel for `lookup`.
absl::Status Tabulate(const Function& in, Function& out, const Target& target);

// Rounds the operands of products (OpInfo::product) of f32 to `precision`: kF16, kBF16, or kF32,
// which changes nothing. Their results are f32 again.
absl::Status RoundProducts(const Function& in, Function& out, DType precision);

// A node for which a target has neither a kernel nor a decomposition it supports.
struct Refusal {
  std::string op;
  Types in;                    // an absent operand is a Type of nothing
  std::string from;            // the node's provenance; may be empty
  std::string why;             // the reason of the target
  std::string ToText() const;  // "conv2d(f64[1, 4, 6, 6], f64[4, 4, 3, 3]) from Conv_3: no fp64"
};

// Replaces nodes that `target` does not support by their decomposition.
//   refused: receives the nodes that have neither; may be null
//   errors: Unimplemented, one line for each such node
absl::Status Legalise(const Function& in, Function& out, const Target& target,
                      std::vector<Refusal>* refused = nullptr);

// Applies algebraic rules that are exact for NaN, infinities and signed zeros (x * 1, a transpose
// of a transpose), drops saved results without users, and merges equal nodes, of which one may have
// saved results that the other lacks, unless computing them again is cheaper than loading them.
absl::Status Simplify(const Function& in, Function& out);

// Merges matrix products of one value with several constants into one product.
absl::Status Join(const Function& in, Function& out);

// Moves nodes that depend on constants alone from `in` to `load`. Results of `load` become
// variables of `out` with the same names. Returns the number of nodes moved.
absl::StatusOr<int> Hoist(Module& m, const Function& in, Function& load, Function& out);

// Why two nodes are not fused, so that one reads the result of the other from memory. Labels are
// those of their provenance.
struct FusionGap {
  std::string from, to, why;
};

// Fuses anchors with the element-wise and movement ops around them, greedily, wherever `target`
// agrees. Returns a gap for each pair of dependent nodes of `out`.
absl::StatusOr<std::vector<FusionGap>> Fuse(Module& m, const Function& in, Function& out,
                                            const Target& target);

// Replaces symbols by numbers in types, attributes and bodies, and infers all types again.
//   errors: InvalidArgument with the name of the node for which the numbers are invalid
absl::Status Bind(Module& m, const Function& in, Function& out, const Bindings& values);

// Fuses the ops of each fused node again if `target` no longer supports it: a region that was valid
// for symbolic extents may be invalid for bound ones, such as 1.
absl::Status Split(Module& m, const Function& in, Function& out, const Target& target);

// Chooses encodings by the target's estimated times and inserts relayouts. Types must be bound.
absl::Status AssignEncodings(const Function& in, Function& out, const Target& target);

}  // namespace forge::ir
