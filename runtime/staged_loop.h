// SPDX-License-Identifier: Apache-2.0
// A loop that the host runs: a body that may change the types of what it carries, called again and
// again.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "runtime/staged_function.h"

namespace forge {

class StagedLoop {
 public:
  struct Form {
    bool has_steps = false, has_condition = false;
    size_t carried = 0;
    int64_t steps = -1;   // how many the loop states; -1: it does not
    ir::Types rows = {};  // of one step, as far as they are known
  };
  StagedLoop(std::unique_ptr<StagedFunction> body, Form form)
      : body_(std::move(body)), form_(std::move(form)) {}
  const StagedFunction& body() const { return *body_; }

  // Runs on the operands that the loop has, in the order of ir::Loop. Returns what is carried after
  // the last step, then the rows of all steps.
  //   errors: those of the body; ResourceExhausted (more than `most_steps`), Aborted (cancelled)
  absl::StatusOr<std::vector<ir::HostValue>> Run(std::span<const ir::HostValue* const> operands,
                                                 uint64_t most_steps,
                                                 const std::atomic<bool>* cancel);

 private:
  struct State;
  absl::Status Step(State& state, int64_t step);

  const std::unique_ptr<StagedFunction> body_;
  const Form form_;
};

}  // namespace forge
