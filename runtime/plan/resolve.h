// SPDX-License-Identifier: Apache-2.0
// Functions whose types depend on values of a run: attributes that values give, symbols that the
// run binds, nodes that their importer deferred, branches and loops, host steps. A run resolves
// them step by step, as it learns the values.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph/module.h"
#include "ir/type/host_value.h"

namespace forge {

// True when the host holds values of the type on every device: strings, sequences, optionals.
bool IsHostType(const ir::Type& t);

// True when nodes of `function` still wait for values of a run after folding, or run on the host.
//   freeze: parameters count as constants
absl::StatusOr<bool> WaitsForValues(const ir::Module& model, const std::string& function,
                                    bool freeze);

// A function after Resolve. Nodes that still wait have results of unknown type; so have those that
// depend on them.
struct Resolved {
  ir::Function* function = nullptr;
  // Values to read before the next nodes can be built. If there are none, `calls` come next.
  std::vector<uint32_t> numbers;
  // Loops and host steps, in order; their operands are known, or results of those before them.
  std::vector<const ir::Node*> calls;
  bool complete() const { return numbers.empty() && calls.empty(); }
};

// One argument of a function to resolve.
struct ResolveArgument {
  ir::Type type;
  const ir::HostValue* value = nullptr;  // it becomes this constant, and no argument; may be null
};

// Replaces `function` of `m` by a copy with these arguments, in which every node is built whose
// types follow from them.
//   bindings: numbers of the symbols of the arguments; those that nodes bind are added
//   errors: DataLoss, InvalidArgument (a node that cannot be built, by its name)
absl::StatusOr<Resolved> Resolve(ir::Module& m, const std::string& function,
                                 std::span<const ResolveArgument> arguments,
                                 ir::Bindings& bindings);

// Replaces `function` of `m` by the part that computes `results` of it from `arguments`.
//   arguments, results: values of the function, which are named after their numbers
absl::Status Extract(ir::Module& m, const std::string& function,
                     std::span<const uint32_t> arguments, std::span<const uint32_t> results);
// Replaces `function` of `m` by what is left of it once `arguments` are known.
absl::Status ExtractRest(ir::Module& m, const std::string& function,
                         std::span<const uint32_t> arguments);

// The values of known type that nodes of unknown type, or results, read: what must outlive the part
// of the function that can run now. Values in `made` count as known. Variables are left out.
std::vector<uint32_t> LiveValues(const ir::Function& f, std::span<const uint32_t> made);

// True when `values` follow from arguments and constants by little arithmetic, which the host does.
bool IsHostArithmetic(const ir::Function& f, std::span<const uint32_t> values);

}  // namespace forge
