// SPDX-License-Identifier: Apache-2.0
// From a node to the kernels of its program: by the choice that is asked for, the preferred one, or
// the default. A backend compiles the kernels.
#pragma once
#include "codegen/region/schedule.h"
#include "codegen/target/node_body.h"
#include "codegen/target/tuned.h"

namespace forge::codegen {

// How to make a program.
struct PlanOptions {
  std::string choice = {};   // one of Planner::Choices; empty: the preferred one
  bool once = false;         // prefer short compilation to fast execution
  bool approximate = false;  // as Kernel::approximate
};

// The kernels of a node.
struct PlannedNode {
  NodeBody body;
  Program made;
};

// May be used from any thread.
class Planner {
 public:
  // `caps` must outlive the planner and what it plans.
  Planner(const Caps& caps, std::shared_ptr<TunedChoices> tuned)
      : caps_(caps), tuned_(std::move(tuned)) {}

  // errors: those of BodyOf, ParseChoice and Generate; Unimplemented (open dimensions that no
  // kernel serves)
  absl::StatusOr<PlannedNode> Plan(const ir::Candidate& node, const PlanOptions& options) const;
  // The same for a node whose body the caller has.
  absl::StatusOr<PlannedNode> Plan(const ir::Candidate& node, NodeBody body,
                                   const PlanOptions& options) const;
  // The choices for a node in words, at most `most`, the default first; empty where there are none.
  std::vector<std::string> Choices(const ir::Candidate& node, size_t most) const;
  // Makes `choice` the default for equal nodes, now and in later processes.
  //   errors: as ParseChoice
  absl::Status Prefer(const ir::Candidate& node, const std::string& choice) const;

 private:
  absl::StatusOr<Program> Make(const Region& region, const PlanOptions& options) const;

  const Caps& caps_;
  std::shared_ptr<TunedChoices> tuned_;
};

}  // namespace forge::codegen
