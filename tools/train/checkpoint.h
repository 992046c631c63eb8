// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a training: a safetensors file with all variables, and where the training is.
#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "runtime/device/named_tensor.h"

namespace forge::tools {

// Where a training is. Order and augmentation follow from seed, epoch and sample, so no generator
// has a position of its own.
struct Position {
  int64_t step = 0;              // steps done
  int64_t epoch = 0;             // epochs done
  int64_t sample = 0;            // samples done of the current epoch
  double loss = 0, correct = 0;  // sums over those samples
};

struct Checkpoint {
  Position at;
  std::map<std::string, std::string> options;  // that a training must share to continue this one
  std::vector<NamedTensor> variables;
};

// Writes FOLDER/checkpoint.safetensors atomically; creates the folder.
//   errors: Internal (cannot write; an older checkpoint stays)
absl::Status WriteCheckpoint(const std::filesystem::path& folder, const Checkpoint& c);

// Reads a checkpoint, or that of a folder.
//   options: those of the training to continue
//   errors: NotFound, DataLoss (damaged, or not a checkpoint), InvalidArgument (names the first
//   option that differs)
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::filesystem::path& path,
                                          const std::map<std::string, std::string>& options);

}  // namespace forge::tools
