// SPDX-License-Identifier: Apache-2.0
// Runs passes over functions of a module and over the bodies that their ops call, bodies first. The
// bodies of fused nodes are not visited, because they belong to one device.
#pragma once
#include <functional>
#include <string>

#include "ir/graph/module.h"

namespace forge::ir {

class PassDriver {
 public:
  struct Options {
    bool verify = false;  // verify the output of each pass; an error names the pass
    // Called with each function after each pass.
    std::function<void(std::string_view pass, const Function& after)> observe = {};
  };
  using Pass = absl::FunctionRef<absl::Status(const Function& in, Function& out)>;

  // roots: names of functions of `m`
  PassDriver(Module& m, std::vector<std::string> roots, Options options)
      : module_(m), roots_(std::move(roots)), options_(std::move(options)) {}

  // Replaces each function by the output of `pass`.
  absl::Status Run(std::string_view name, Pass pass);
  // Verifies and observes the output of a pass that changed the module itself.
  absl::Status Check(std::string_view name) const;

 private:
  std::vector<std::string> Reached() const;
  absl::Status Check(std::string_view name, const Function& f) const;

  Module& module_;
  const std::vector<std::string> roots_;
  const Options options_;
};

}  // namespace forge::ir
