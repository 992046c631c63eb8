// SPDX-License-Identifier: Apache-2.0
// Reduction of a model to a minimal part on which two devices differ.
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
  std::array<DeviceRef, 2> devices;                       // the second is the device under test
  Against against = Against::kReference;                  // see Compare
  ir::Precision precision;                                // on all devices but the reference
  std::function<void(size_t left, size_t all)> progress;  // called with numbers of nodes
};

struct ReducedModel {
  std::unique_ptr<ir::Module> module;  // all dimensions are numbers
  std::vector<NamedTensor> inputs;     // computed by the reference in the whole model
  std::string difference;              // describes the remaining difference
  size_t nodes = 0, nodes_before = 0, tried = 0;
};

// Removes nodes from main, after folding and with dimensions bound, while the devices still differ
// or the second still fails with the same code; values that a part reads from outside become
// arguments. The result is minimal: without any one of its nodes there is no difference. All inner
// values are held in memory.
//   errors: InvalidArgument (the devices agree on the whole model; a node with bodies), those of
//   the first device
absl::StatusOr<ReducedModel> ReduceModel(const ReduceRequest& request);

// Writes the model, and its inputs as OUT.inputs/NAME.npy; returns that folder.
absl::StatusOr<std::filesystem::path> WriteReduced(const ReducedModel& reduced,
                                                   const std::filesystem::path& out);

}  // namespace forge::tools
