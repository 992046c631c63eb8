// SPDX-License-Identifier: Apache-2.0
// Runs passes over a module: over the functions asked for and over the bodies that their ops call,
// bodies first. Bodies of fused nodes are what a pass made for one device; no other pass sees them.
#pragma once
#include <functional>
#include <string>

#include "ir/graph/module.h"

namespace forge::ir {

class PassDriver {
 public:
  struct Options {
    bool verify = false;  // what each pass writes; an error names the pass
    // Told of each function after each pass.
    std::function<void(std::string_view pass, const Function& after)> observe = {};
  };
  using Pass = absl::FunctionRef<absl::Status(const Function& in, Function& out)>;

  // `roots`: names of functions of `m`.
  PassDriver(Module& m, std::vector<std::string> roots, Options options)
      : module_(m), roots_(std::move(roots)), options_(std::move(options)) {}

  // Puts what `pass` writes in the place of each function.
  absl::Status Run(std::string_view name, Pass pass);
  // Verifies and shows what a pass has written into the module by itself.
  absl::Status Check(std::string_view name) const;

 private:
  std::vector<std::string> Reached() const;
  absl::Status Check(std::string_view name, const Function& f) const;

  Module& module_;
  const std::vector<std::string> roots_;
  const Options options_;
};

}  // namespace forge::ir
