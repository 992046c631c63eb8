// SPDX-License-Identifier: Apache-2.0
// Inputs from --input arguments, outputs to files and to the screen.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/support/dims.h"

namespace forge::tools {

// How pictures become inputs and scores become names; empty fields come from the model's metadata.
struct Presentation {
  std::string preprocess;
  std::string labels;  // a path
  int top = 5;
};

// One `--input NAME=WHAT` (or WHAT alone for a model with one input): .npy, .npz (several inputs),
// .png or .jpg, random[:SEED], or a number for a scalar. Given again, an input grows along its
// first axis: a batch of pictures.
//   dims: values for symbols, needed for random inputs of dynamic shape
//   errors: InvalidArgument (no such input, open dimensions, all of them listed; `preprocess` where
//   no input is a picture), DataLoss and NotFound (the file)
absl::StatusOr<std::vector<NamedTensor>> ReadInputs(const std::vector<std::string>& arguments,
                                                    const std::vector<Session::Port>& ports,
                                                    const DimMap& dims, const Model& model,
                                                    const Presentation& p);

// Uniform in [-1, 1) for floats, 0..9 for integers; the same for a seed everywhere.
absl::StatusOr<ir::HostValue> RandomTensor(DType dtype, std::span<const int64_t> shape,
                                           uint64_t seed);

// Writes outputs as DIR/NAME.npy, made when absent; returns the paths.
//   errors: Internal (cannot write), those of FileNames
absl::StatusOr<std::vector<std::filesystem::path>> WriteOutputs(
    const std::vector<NamedTensor>& outputs, const std::filesystem::path& folder);
std::string FileName(std::string_view tensor);  // letters, digits and ._:- kept, others '_'
// The file names of several tensors, without extension.  errors: InvalidArgument (two are the same)
absl::StatusOr<std::vector<std::string>> FileNames(std::span<const Session::Port> tensors);

// Shape, statistics and first values.
std::string Summary(const NamedTensor& t);

// The class names of a model: of --labels, else of its metadata; empty when there are none.
absl::StatusOr<std::vector<std::string>> Labels(const Model& model, const Presentation& p);
struct Scored {
  std::string label;
  double score;
};
// The best `top` classes of each row of an output [rows, classes]; none unless all of it lies in
// 0..1, as confidences do.
std::vector<std::vector<Scored>> TopClasses(const ir::HostValue& scores,
                                            const std::vector<std::string>& labels, int top);

}  // namespace forge::tools
