// SPDX-License-Identifier: Apache-2.0
// The order of the passes: from a model as imported to functions that a device can compile.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/target.h"

namespace forge {

struct LowerOptions {
  std::string function = "main";
  // Results to compute; empty: the function's own. Any value of the graph may be named.
  std::vector<std::string> outputs;
  // Told after each pass; for --dump and forge-inspect --pass.
  std::function<void(std::string_view pass, const ir::Function& after)> observe;
};

// A model made ready for one target, symbols still open. `load` computes variables that depend on
// constants alone; its results are named as those variables are.
struct Lowered {
  std::unique_ptr<ir::Module> module;
  ir::Function* load = nullptr;
  ir::Function* main = nullptr;
};

// errors: Unimplemented listing every op that cannot run there; NotFound for an unknown output
absl::StatusOr<Lowered> Lower(const ir::Module& model, const ir::Target& target,
                              const LowerOptions& options);

// The passes after binding: numbers for symbols, encodings, and the relayouts of constants moved to
// `load`.  errors: InvalidArgument where numbers do not fit
struct BoundFunctions {
  std::unique_ptr<ir::Module>
      module;  // holds what follows; its functions read variables of the lowered module too
  ir::Function* load = nullptr;  // relayouts of variables that this binding needs
  ir::Function* main = nullptr;
};
absl::StatusOr<BoundFunctions> BindLowered(const ir::Function& f, const ir::Target& target,
                                           const ir::Bindings& values, const LowerOptions& options);

// The names of the passes, in order, as `observe` and forge-inspect --pass know them.
std::span<const std::string_view> PassNames();

}  // namespace forge
