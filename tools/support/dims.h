// SPDX-License-Identifier: Apache-2.0
// Values of open dimensions, from --dim and --shape.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace forge::tools {

using DimMap = std::map<std::string, int64_t>;
using Shapes = std::map<std::string, std::vector<std::string>>;  // by input

// Parses "SYMBOL=N" arguments of --dim.
//   errors: InvalidArgument (malformed, or a symbol given twice)
absl::StatusOr<DimMap> ParseDims(const std::vector<std::string>& arguments);

// Parses "NAME=1,3,H,W" arguments of --shape: numbers, and names of dimensions that stay open.
//   errors: InvalidArgument (malformed, or an input given twice)
absl::StatusOr<Shapes> ParseShapes(const std::vector<std::string>& arguments);

// Combines --dim and --shape for a model: a shape binds the open dimensions of its input.
//   errors: InvalidArgument (no such input, another rank, a number that contradicts the model or
//   another argument)
absl::StatusOr<DimMap> DimsOf(const std::vector<std::string>& dims,
                              const std::vector<std::string>& shapes, const ir::Function& main);

// Checks that all dimensions of `ports` are bound.
//   errors: InvalidArgument (lists every open dimension of `ports` that `dims` lacks)
absl::Status CheckBound(const std::vector<Session::Port>& ports, const DimMap& dims);

}  // namespace forge::tools
