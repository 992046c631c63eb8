// SPDX-License-Identifier: Apache-2.0
// A function whose types depend on values of a run. It is run in parts: each is a Session of its
// own; between them the host reads what decides the next part.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace forge {

class StagedFunction {
 public:
  // whole: outlives the function
  //   errors: Unimplemented (a Session whose functions change variables)
  static absl::StatusOr<std::unique_ptr<StagedFunction>> Create(const Session& whole,
                                                                const std::string& function);
  ~StagedFunction();

  // Runs on tensors in the order of the function's arguments and returns its results. Parts are
  // kept for the newest shapes and values.
  //   errors: those of Session::Run; InvalidArgument (a value that makes a type impossible)
  absl::StatusOr<std::vector<ir::HostValue>> Run(std::span<const ir::HostValue* const> arguments);

  // With the results that are wanted.
  const ir::Function& function() const { return *model_->module().Find(function_); }
  // Adds the parts of the newest run, in order.
  void AddParts(std::vector<SessionPart>& to) const;

 private:
  struct Variant;  // for some shapes and values
  class Divider;
  StagedFunction(const Session& whole, std::shared_ptr<const Model> model, std::string function,
                 std::vector<bool> read, ir::Bindings bindings);
  std::string KeyOf(std::span<const ir::HostValue* const> arguments) const;
  absl::StatusOr<std::unique_ptr<Variant>> MakeVariant(
      std::span<const ir::HostValue* const> arguments) const;

  const Session& whole_;
  const std::shared_ptr<const Model> model_;
  const std::string function_;
  const std::vector<bool> read_;  // the arguments whose elements decide types
  const ir::Bindings bindings_;   // of symbols of the functions around it
  std::vector<std::pair<std::string, std::unique_ptr<Variant>>> variants_;  // last used last
};

}  // namespace forge
