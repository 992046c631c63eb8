// SPDX-License-Identifier: Apache-2.0
// The models that forge-train trains: files, and the descriptions that it has itself.
#pragma once
#include <memory>
#include <string>

#include "ir/graph/module.h"

namespace forge::tools {

// Returns a model to train.
//   model: "mnist-mlp" (784-256-10), "mnist-cnn" (two convolutions of 16 and 32 channels with
//   pooling, 128, 10), or the path of a model.bin or .onnx
//   seed: of the parameters of the descriptions, which are initialised as torch.nn.Linear and
//   Conv2d are: uniform within 1 / sqrt(fan in)
//   errors: those of LoadModel
absl::StatusOr<std::unique_ptr<ir::Module>> ModelToTrain(const std::string& model, uint64_t seed);

}  // namespace forge::tools
