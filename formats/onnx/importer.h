// SPDX-License-Identifier: Apache-2.0
// Imports ONNX models.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/module.h"

namespace forge {

// How to import a model.
struct OnnxOptions {
  // Shapes of inputs by name: numbers, or names of dimensions that stay open ("1,3,H,W").
  std::map<std::string, std::vector<std::string>> shapes = {};
  // Called with the number of nodes imported.
  std::function<void(size_t done, size_t total)> progress = {};
};

// Imports a model file. External data is mapped and must lie in the folder of the model.
// Initialisers become parameters and Constant nodes become constants; nodes and values keep their
// names. A dimension that is -1, "?" or missing becomes a symbol named INPUT.AXIS; equal names
// become one symbol.
//   errors: NotFound, DataLoss (damaged, inconsistent, or with unsupported operators, all of which
//   are listed), InvalidArgument (options that do not fit the model)
//   source: onnx.proto, IR versions 3 to 14; operators of opsets 1 to 28
absl::StatusOr<std::unique_ptr<ir::Module>> ImportOnnx(const std::filesystem::path& path,
                                                       const OnnxOptions& options = {});

// Imports a model in memory.
//   where: the name used in messages     folder: of its external data; empty: external data is an
//   error
absl::StatusOr<std::unique_ptr<ir::Module>> ImportOnnx(const Bytes& model, std::string_view where,
                                                       const std::filesystem::path& folder,
                                                       const OnnxOptions& options = {});

// The use of one operator by a model.
struct OnnxOperatorUse {
  std::string domain, name;
  int64_t opset = 0;       // the opset of the model
  int since = 0;           // the operator version that is imported; 0: not supported
  int64_t count = 0;       // number of nodes, including those of subgraphs
  std::string first_node;  // the first node that uses it
};

// A supported operator, with the opsets in which its definition changes.
struct OnnxOperator {
  std::string domain, name;
  std::vector<int> versions;  // ascending
};
std::vector<OnnxOperator> KnownOnnxOperators();  // sorted by domain and name

// Lists the operators of a model, sorted by domain and name.
//   errors: NotFound, DataLoss
absl::StatusOr<std::vector<OnnxOperatorUse>> ListOnnxOperators(const std::filesystem::path& path);

}  // namespace forge
