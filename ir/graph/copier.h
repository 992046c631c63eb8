// SPDX-License-Identifier: Apache-2.0
// Copying of functions, node by node: whatever writes a function after another does it with this.
#pragma once
#include <functional>

#include "ir/graph/module.h"

namespace forge::ir {

// What a copy has in the place of what the original has; the rest stays as it is.
struct Substitutes {
  const Bindings* symbols = nullptr;  // numbers for symbols, in types and attributes
  absl::flat_hash_map<const Variable*, Variable*> variables = {};
  absl::flat_hash_map<const Function*, Function*> bodies = {};
  // Gives what stands for a value of which nothing was copied or mapped. Without it variables are
  // read when they are first needed.
  std::function<Value(uint32_t value)> missing = {};
};

class Copier {
 public:
  // `out` has errors of the copy in its status().
  Copier(const Function& in, Function& out, Substitutes with = {});

  // Carries all arguments over, under other types where these are given.
  void CopyArguments(TypeSpan types = {});
  // Appends the node, or `op` in its place, to the copy.  Returns what stands for its results,
  // which keep names and encodings. A node whose operands have the types they had is not inferred
  // again.
  Values CopyNode(const Node& node);
  Values CopyNode(const Node& node, const AnyOp& op);
  // From now on `made` stands for `value`: with its name, or as it is.
  void Map(uint32_t value, Value made);
  void Set(uint32_t value, Value made) { map_[value] = made; }
  // What stands for a value; absent for kAbsent.
  Value operator[](uint32_t value);
  Values Operands(std::span<const uint32_t> values);
  // The operands of a node, then those of its runtime-valued attributes.
  Values OperandsOf(const Node& node);
  // Adds results and updates.  Returns the first error of the new function.
  absl::Status Finish();
  // All of the function, under the same value ids.
  absl::Status CopyAll();

 private:
  Variable* VariableFor(Variable* v) const;
  Type TypeOf(uint32_t value) const;
  AnyOp OpOf(const Node& node) const;
  bool HasTypesOf(const Node& node, std::span<const uint32_t> in) const;
  Values Append(const Node& node, const AnyOp& op, ValueSpan in, bool infer);
  void CarryInputs(uint32_t from, uint32_t to);

  const Function& in_;
  Function& out_;
  const Substitutes with_;
  absl::flat_hash_map<uint32_t, Value> map_;
};

// Appends the nodes of `body`, called with `in`, to `f`.  Returns the results.
Values Inline(const Function& body, Function& f, ValueSpan in);

}  // namespace forge::ir
