// SPDX-License-Identifier: Apache-2.0
// The smallest part of a model on which two devices still differ.
#pragma once
#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runtime/plan/compare.h"
#include "runtime/session.h"

namespace forge::tools {

struct ReduceRequest {
  const ir::Module& model;
  std::span<const NamedTensor> inputs;
  std::array<DeviceRef, 2> devices;                       // the second is suspected
  Against against = Against::kReference;                  // as of Compare
  std::function<void(size_t left, size_t all)> progress;  // told of nodes
};

struct ReducedModel {
  std::unique_ptr<ir::Module> module;  // its dimensions are numbers
  std::vector<NamedTensor> inputs;     // as the reference evaluators make them in the whole model
  std::string difference;              // a sentence on what still differs
  size_t nodes = 0, nodes_before = 0, tried = 0;
};

// Takes nodes out of main, after folding and with numbers for its dimensions, as long as the
// devices differ or the second one fails with the same code; what a part reads from outside are
// arguments. Without any one of the nodes that are left there is no difference. All inner values
// are in memory meanwhile.
//   errors: InvalidArgument (the devices agree on the whole model; a node with bodies); what the
//   first device fails with
absl::StatusOr<ReducedModel> ReduceModel(const ReduceRequest& request);

// Writes the model, and its inputs as OUT.inputs/NAME.npy; returns that folder.
absl::StatusOr<std::filesystem::path> WriteReduced(const ReducedModel& reduced,
                                                   const std::filesystem::path& out);

}  // namespace forge::tools
