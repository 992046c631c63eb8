// SPDX-License-Identifier: Apache-2.0
// Keys by which programs and variables are shared: equal keys mean equal content.
#pragma once
#include <map>
#include <string>

#include "ir/text/key.h"

namespace forge {

// The key of a node to compile: the op and the types of its operands and results.
std::string KeyOf(const ir::AnyOp& op, ir::TypeSpan in, ir::TypeSpan out);

// The keys of variables, by content.
class VariableKeys {
 public:
  // Adds the variables of `owner` that `load` computes: each result is the value of the variable of
  // the same name.
  void AddComputed(const ir::Module& owner, const ir::Function& load);
  // Returns the key of a variable. A computed variable is identified by the ops that compute it and
  // the keys of their operands; a stored one by the address, type and box of its bytes (the holder
  // of the key keeps the bytes alive); states and parameters by name; other constants, which are
  // zeros, by type.
  std::string Of(const ir::Variable& v) const;

 private:
  std::map<const ir::Variable*, std::string> computed_;
};

}  // namespace forge
