// SPDX-License-Identifier: Apache-2.0
// A function whose types depend on values of a run. It is run in parts: each is a Session of its
// own; between them the host reads what decides the next part.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace forge {

// Variables of a Session that runs in parts, by name: the host keeps them between runs.
using HeldVariables = std::map<std::string, ir::HostValue>;

class StagedFunction {
 public:
  // whole, held: outlive the function; variables that `held` lacks are added
  //   errors: InvalidArgument (a function that changes a constant)
  static absl::StatusOr<std::unique_ptr<StagedFunction>> Create(const Session& whole,
                                                                const std::string& function,
                                                                HeldVariables& held);
  ~StagedFunction();

  // Runs on tensors in the order of the function's arguments and returns its results. Variables
  // change when all of it has run. Parts are kept for the newest shapes and values.
  //   errors: those of Session::Run; InvalidArgument (a value that makes a type impossible)
  absl::StatusOr<std::vector<ir::HostValue>> Run(std::span<const ir::HostValue* const> arguments);

  // With the results that are wanted; arguments and results for variables come last.
  const ir::Function& function() const { return *model_->module().Find(function_); }
  size_t inputs() const { return function().arguments().size() - variables_.read.size(); }
  size_t outputs() const { return function().results().size() - variables_.changed.size(); }
  // Adds the parts of the newest run, in order.
  void AddParts(std::vector<SessionPart>& to) const;

 private:
  struct Variant;  // for some shapes and values
  // The variables that a whole function takes and returns; a part has none.
  struct Variables {
    HeldVariables* held = nullptr;
    std::vector<std::string> read, changed;
  };
  static absl::StatusOr<Variables> TakeVariables(ir::Module& m, const std::string& function,
                                                 bool freeze, HeldVariables& held);
  class Divider;
  StagedFunction(const Session& whole, std::shared_ptr<const Model> model, std::string function,
                 std::vector<bool> read, ir::Bindings bindings);
  std::string KeyOf(std::span<const ir::HostValue* const> arguments) const;
  absl::StatusOr<std::unique_ptr<Variant>> MakeVariant(
      std::span<const ir::HostValue* const> arguments) const;
  absl::StatusOr<std::vector<ir::HostValue>> RunVariant(
      std::span<const ir::HostValue* const> arguments);

  const Session& whole_;
  const std::shared_ptr<const Model> model_;
  const std::string function_;
  const std::vector<bool> read_;  // the arguments whose elements decide types
  const ir::Bindings bindings_;   // of symbols of the functions around it
  Variables variables_ = {};
  std::vector<std::pair<std::string, std::unique_ptr<Variant>>> variants_;  // last used last
};

}  // namespace forge
