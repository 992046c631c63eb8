// SPDX-License-Identifier: Apache-2.0
// The pass pipeline: from an imported model to functions that a device can compile.
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

// What to lower, and how.
struct LowerOptions {
  std::vector<std::string> functions = {"main"};
  // Results of functions[0] to compute, which may be any values of the graph; empty: the function's
  // own results.
  std::vector<std::string> outputs;
  bool freeze = true;             // parameters become constants
  bool fuse = true;               // false: each node is a separate step
  DType precision = DType::kF32;  // of products, see ir::RoundProducts
  bool verify = kVerifyPasses;    // verify the function after each pass
  // Called after each pass; for --dump and forge-inspect --pass.
  std::function<void(std::string_view pass, const ir::Function& after)> observe;
};

// Functions of a model lowered for one target, with symbols still unbound. `load` computes, for all
// functions, the variables that depend on constants alone; each of its results has the name of its
// variable.
struct Lowered {
  std::unique_ptr<ir::Module> module;
  ir::Function* load = nullptr;
  std::vector<ir::Function*> functions;  // in the order of LowerOptions::functions
  std::vector<ir::FusionGap> gaps;       // of all functions
};

// Runs the passes before binding.
//   errors: Unimplemented (lists every op that cannot run on the target), InvalidArgument (an
//   unknown function or output, or a function given twice)
absl::StatusOr<Lowered> Lower(const ir::Module& model, const ir::Target& target,
                              const LowerOptions& options);

// The result of the passes after binding: symbols replaced by numbers, encodings assigned,
// relayouts of constants moved to `load`.
struct BoundFunctions {
  std::unique_ptr<ir::Module> module;  // owns the functions below; its base is the lowered module
  ir::Function* load = nullptr;        // relayouts of variables for this binding
  ir::Function* main = nullptr;
};
// Runs the passes after binding.
//   errors: InvalidArgument (the numbers do not fit the function)
absl::StatusOr<BoundFunctions> BindLowered(const ir::Function& f, const ir::Target& target,
                                           const ir::Bindings& values, const LowerOptions& options);

// Copies `in` to `out` and keeps only these results, in the order given.
//   errors: InvalidArgument (no value has that name)
absl::Status KeepResults(const ir::Function& in, ir::Function& out,
                         const std::vector<std::string>& names);

// The names of the passes in order, as LowerOptions::observe and forge-inspect --pass use them.
std::span<const std::string_view> PassNames();

}  // namespace forge
