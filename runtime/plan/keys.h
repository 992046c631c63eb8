// SPDX-License-Identifier: Apache-2.0
// Texts that are equal where what they stand for is: by them programs and variables are shared.
#pragma once
#include <map>
#include <string>

#include "ir/text/key.h"

namespace forge {

// Of a node that is compiled: the op and the types around it.
std::string KeyOf(const ir::AnyOp& op, ir::TypeSpan in, ir::TypeSpan out);

// Keys of variables by what they hold.
class VariableKeys {
 public:
  // The results of `load` are the values of `owner`'s variables of their names.
  void AddComputed(const ir::Module& owner, const ir::Function& load);
  // Computed ones by the ops that make them and the keys of the operands, stored ones by address,
  // type and box of their bytes (whoever keeps the key keeps the bytes), states and parameters by
  // name, other constants, which are zeros, by type.
  std::string Of(const ir::Variable& v) const;

 private:
  std::map<const ir::Variable*, std::string> computed_;
};

}  // namespace forge
