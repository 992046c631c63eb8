// SPDX-License-Identifier: Apache-2.0
// Batches of a data set: order, augmentation, and the tensors of each.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/train/data_set.h"

namespace forge::tools {

// Random changes of pictures, the same for one seed, epoch and sample on every platform.
struct Augment {
  bool flip = false;  // mirrors half of the pictures left to right
  int shift = 0;      // moves each by up to so many pixels in each direction; zeros come in
};
// Parses "flip,shift=2".  errors: InvalidArgument
absl::StatusOr<Augment> ParseAugment(std::string_view spec);

// Returns the order of `n` samples in an epoch: Fisher-Yates with splitmix64, which depends on its
// arguments alone.
std::vector<int64_t> Shuffled(int64_t n, uint64_t seed, int64_t epoch);

// Returns the inputs and "label" of the samples `at`, of the types that the model takes.
//   shapes: of one sample of each input, without the batch
//   errors: InvalidArgument (augmentation of what is no picture)
struct BatchRequest {
  std::span<const int64_t> at;
  Augment augment = {};
  uint64_t seed = 0;
  int64_t epoch = 0;
};
absl::StatusOr<std::vector<NamedTensor>> MakeBatch(const DataSet& set, const DataPorts& ports,
                                                   const BatchRequest& request);

}  // namespace forge::tools
