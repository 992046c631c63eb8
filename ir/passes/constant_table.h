// SPDX-License-Identifier: Apache-2.0
// Constants of a function under construction: what follows from constants and extents is computed
// on the host, once, in f64. Values of more than 4,096 elements are left to the device.
#pragma once
#include <optional>

#include "ir/analysis/dim_values.h"
#include "ir/type/host_value.h"

namespace forge::ir {

class ConstantTable {
 public:
  // New constants become variables of `m`.
  ConstantTable(Module& m, Function& out) : module_(m), out_(out), contents_(out) {}

  // The variable that holds a stored constant; null where `v` is none.
  Variable* VariableOf(Value v) const;
  // The elements of a small constant, a variable's or a fill's; nullopt where `v` is none.
  std::optional<HostValue> HostOf(Value v) const;
  // The results of an op on small constants, as constants; nullopt where an operand or a result is
  // none.
  //   results: their types
  std::optional<Values> Evaluated(const AnyOp& op, ValueSpan in, const Types& results);
  // Integers whose elements are numbers by now, as a constant; nullopt where they are not.
  std::optional<Value> FromContents(Value v);
  // The op of `node` with every runtime-valued attribute filled in; nullopt while one is unknown.
  //   runtime: the values of these attributes    errors: of SetFromDims
  absl::StatusOr<std::optional<AnyOp>> Filled(const Node& node, const AnyOp& op, ValueSpan runtime);
  Value Add(const HostValue& v, std::string_view name);
  DimValues& contents() { return contents_; }

 private:
  Module& module_;
  Function& out_;
  DimValues contents_;
};

// Is it the type of a constant that is computed here?
bool IsSmallConstant(const Type& t);

}  // namespace forge::ir
