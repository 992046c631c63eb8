// SPDX-License-Identifier: Apache-2.0
// Copying of functions node by node; all passes use it.
#pragma once
#include <functional>

#include "ir/graph/module.h"

namespace forge::ir {

// What a copy replaces; everything else is preserved.
struct Substitutes {
  const Bindings* symbols = nullptr;  // numbers for symbols, in types and attributes
  absl::flat_hash_map<const Variable*, Variable*> variables = {};
  absl::flat_hash_map<const Function*, Function*> bodies = {};
  // Returns the replacement of a value that was neither copied nor mapped. Without it, variables
  // are read at their first use.
  std::function<Value(uint32_t value)> missing = {};
};

class Copier {
 public:
  // Errors are kept in the status() of `out`.
  Copier(const Function& in, Function& out, Substitutes with = {});

  // Copies all arguments, with the types given, if any.
  void CopyArguments(TypeSpan types = {});
  // Appends the node, with `op` instead of its op if given, and returns its results, which keep
  // names and encodings. Types are inferred again only if the types of the operands changed.
  Values CopyNode(const Node& node);
  Values CopyNode(const Node& node, const AnyOp& op);
  // The same with results of unknown type, whatever the op would infer of its operands.
  Values CopyUntyped(const Node& node, const AnyOp& op);
  // Replaces `value` by `made` from now on. Map also copies the name.
  void Map(uint32_t value, Value made);
  void Set(uint32_t value, Value made) { map_[value] = made; }
  // The value of the copy for a value of the original; absent for kAbsent.
  Value operator[](uint32_t value);
  Values Operands(std::span<const uint32_t> values);
  // The operands of a node, then those of its runtime-valued attributes.
  Values OperandsOf(const Node& node);
  // Adds results and updates, and returns the first error of the new function.
  absl::Status Finish();
  // Copies the whole function, with the same value ids.
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

// Returns every function that nodes of `f` have as a body, directly or nested, each once, in order
// of appearance.
std::vector<const Function*> BodiesUnder(const Function& f);

// Copies a function, and those that it has as bodies, to a module of their own, with all variables.
std::unique_ptr<Module> CloneWithBodies(const Module& m, const Function& root);

// Appends the nodes of `body`, called with `in`, to `f`.  Returns the results.
Values Inline(const Function& body, Function& f, ValueSpan in);

}  // namespace forge::ir
