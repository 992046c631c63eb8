// SPDX-License-Identifier: Apache-2.0
// The order of the passes: from a model as imported to functions that a device can compile.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/graph/target.h"
#include "ir/passes/passes.h"

namespace forge {

#ifdef NDEBUG
inline constexpr bool kVerifyPasses = false;
#else
inline constexpr bool kVerifyPasses = true;
#endif

struct LowerOptions {
  std::vector<std::string> functions = {"main"};
  // Results of functions[0] to compute; empty: the function's own. Any value of the graph may be
  // named.
  std::vector<std::string> outputs;
  bool freeze = true;           // parameters become constants
  bool fuse = true;             // false: each node stays a step by itself
  bool verify = kVerifyPasses;  // what each pass writes
  // Told after each pass; for --dump and forge-inspect --pass.
  std::function<void(std::string_view pass, const ir::Function& after)> observe;
};

// Functions of a model made ready for one target, symbols still open. `load` computes variables
// that depend on constants alone, for all of them; its results are named as those variables are.
struct Lowered {
  std::unique_ptr<ir::Module> module;
  ir::Function* load = nullptr;
  std::vector<ir::Function*> functions;  // as asked for
  std::vector<ir::FusionGap> gaps;       // between the nodes of all of them
};

// errors: Unimplemented listing every op that cannot run there; InvalidArgument for an unknown
// function or output, or a function asked for twice
absl::StatusOr<Lowered> Lower(const ir::Module& model, const ir::Target& target,
                              const LowerOptions& options);

// The passes after binding: numbers for symbols, encodings, and the relayouts of constants moved to
// `load`.  errors: InvalidArgument where numbers do not fit
struct BoundFunctions {
  std::unique_ptr<ir::Module> module;  // holds what follows; its base is the lowered module
  ir::Function* load = nullptr;        // relayouts of variables that this binding needs
  ir::Function* main = nullptr;
};
absl::StatusOr<BoundFunctions> BindLowered(const ir::Function& f, const ir::Target& target,
                                           const ir::Bindings& values, const LowerOptions& options);

// A copy of `in` that computes these of its results only, in the order given.
//   errors: InvalidArgument for a name that none has
absl::Status KeepResults(const ir::Function& in, ir::Function& out,
                         const std::vector<std::string>& names);

// The names of the passes, in order, as `observe` and forge-inspect --pass know them.
std::span<const std::string_view> PassNames();

}  // namespace forge
