// SPDX-License-Identifier: Apache-2.0
// Writing one function after another, node by node, for passes that a Rewriter's rule cannot
// express.
#pragma once
#include "ir/graph/module.h"

namespace forge::ir {

class Copier {
 public:
  // Carries arguments over, and variables when something is found to read them.
  Copier(const Function& in, Function& out);
  Value operator[](uint32_t value);
  // The new values of operands; absent ones stay absent.
  Values Operands(std::span<const uint32_t> values);
  // From now on `value` is `made`, which takes its name.
  void Map(uint32_t value, Value made);
  void CopyNode(const Node& node);
  // Adds results and updates.  Returns the first error of the new function.
  absl::Status Finish();

 private:
  const Function& in_;
  Function& out_;
  std::vector<Value> map_;
};

// Gives `made` the layout of `value`, which inference does not know.
void KeepEncoding(const Function& in, uint32_t value, Function& out, Value made);

}  // namespace forge::ir
