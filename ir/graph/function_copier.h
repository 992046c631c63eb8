// SPDX-License-Identifier: Apache-2.0
// Copies functions value by value, with other variables and bodies; private to ir/*.cc.
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

class FunctionCopier {
 public:
  using Bodies = absl::flat_hash_map<const Function*, Function*>;
  absl::flat_hash_map<const Variable*, Variable*> variables;
  Bodies bodies;

  // Makes `to` equal to `from`, value ids included; what the maps lack stays as it is.
  void Copy(const Function& from, Function& to) const;
  // Puts other bodies into the ops of `f`.
  static void MapBodies(Function& f, const Bodies& bodies);
  // Puts the nodes of `f` in `order`, in which every operand still comes first, and numbers results
  // anew, behind all other values.
  static void Reorder(Function& f, std::span<const uint32_t> order);
  // The variable's value in `f`, with its type bound.
  static Value ReadAs(Function& f, Variable* v, Type type) { return f.ReadAs(v, std::move(type)); }

 private:
  Variable* Map(Variable* v) const;
};

// The functions that an op has as attributes.
std::vector<Function*> BodiesOf(const AnyOp& op);

}  // namespace forge::ir
