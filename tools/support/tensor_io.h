// SPDX-License-Identifier: Apache-2.0
// Reads inputs from --input arguments; writes outputs to files and to the terminal.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/support/dims.h"

namespace forge::tools {

// How pictures are converted to inputs and scores to labels; empty fields are taken from the
// metadata of the model.
struct Presentation {
  std::string preprocess;
  std::string labels;  // a path
  int top = 5;
};

// Reads `--input NAME=WHAT` arguments (or WHAT alone for a model with one input): .npy, .npz
// (several inputs), .png or .jpg, random[:SEED], or a number for a scalar. Several arguments for
// one input are concatenated along its first axis: a batch of pictures.
//   dims: values of symbols, needed for random inputs of dynamic shape
//   errors: InvalidArgument (no such input; open dimensions, all of them listed; `preprocess`
//   without a picture), DataLoss and NotFound (the file)
absl::StatusOr<std::vector<NamedTensor>> ReadInputs(const std::vector<std::string>& arguments,
                                                    const std::vector<Session::Port>& ports,
                                                    const DimMap& dims, const Model& model,
                                                    const Presentation& p);

// Returns a random tensor: uniform in [-1, 1) for floats, 0..9 for integers; it depends on the seed
// alone.
absl::StatusOr<ir::HostValue> RandomTensor(DType dtype, std::span<const int64_t> shape,
                                           uint64_t seed);

// Writes outputs as DIR/NAME.npy, creates DIR when absent, and returns the paths.
//   errors: Internal (cannot write), those of FileNames
absl::StatusOr<std::vector<std::filesystem::path>> WriteOutputs(
    const std::vector<NamedTensor>& outputs, const std::filesystem::path& folder);
// Letters, digits and ._:- are kept, others become _.
std::string FileName(std::string_view tensor);
// Returns the file names of tensors, without extension.
//   errors: InvalidArgument (two names are equal)
absl::StatusOr<std::vector<std::string>> FileNames(std::span<const Session::Port> tensors);

// Describes a tensor: shape, statistics and first values.
std::string Summary(const NamedTensor& t);

// Returns the class names of a model: from --labels, else from its metadata; empty when there are
// none.
absl::StatusOr<std::vector<std::string>> Labels(const Model& model, const Presentation& p);
struct Scored {
  std::string label;
  double score;
};
// Returns the best `top` classes of each row of an output [rows, classes]; empty unless all values
// lie in 0..1, as confidences do.
std::vector<std::vector<Scored>> TopClasses(const ir::HostValue& scores,
                                            const std::vector<std::string>& labels, int top);

}  // namespace forge::tools
