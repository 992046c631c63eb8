// SPDX-License-Identifier: Apache-2.0
// Numbers for open dimensions, from --dim and --shape.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace forge::tools {

using DimMap = std::map<std::string, int64_t>;
using Shapes = std::map<std::string, std::vector<std::string>>;  // by input

// "SYMBOL=N" arguments of --dim.  errors: InvalidArgument; a symbol given twice is one
absl::StatusOr<DimMap> ParseDims(const std::vector<std::string>& arguments);

// "NAME=1,3,H,W" arguments of --shape: numbers, and names of dimensions that stay open.
//   errors: InvalidArgument; an input given twice is one
absl::StatusOr<Shapes> ParseShapes(const std::vector<std::string>& arguments);

// Both together for a model as it is: a shape binds the open dimensions of its input.
//   errors: InvalidArgument (no such input, another rank, a number that contradicts the model or
//   another argument)
absl::StatusOr<DimMap> DimsOf(const std::vector<std::string>& dims,
                              const std::vector<std::string>& shapes, const ir::Function& main);

// errors: InvalidArgument that lists every open dimension of `ports` that `dims` lacks
absl::Status CheckBound(const std::vector<Session::Port>& ports, const DimMap& dims);

}  // namespace forge::tools
