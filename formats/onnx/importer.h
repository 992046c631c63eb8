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

struct OnnxOptions {
  // Shapes to give to inputs by name: numbers, or names of dimensions that stay open ("1,3,H,W").
  std::map<std::string, std::vector<std::string>> shapes = {};
  std::function<void(size_t done, size_t total)> progress = {};  // told of nodes imported
};

// Reads a model file; data in other files is mapped and must lie in the model's own folder.
// Initialisers become parameters and Constant nodes constants; every node keeps the file's name for
// it, every value too. A dimension that is -1, "?" or missing becomes a symbol named INPUT.AXIS,
// equal names become one symbol.
//   errors: NotFound, DataLoss (damaged, inconsistent, or with operators that are not supported,
//   all of them listed), InvalidArgument (options that do not fit the model) source: onnx.proto, IR
//   versions 3 to 14; operators of opsets 1 to 28
absl::StatusOr<std::unique_ptr<ir::Module>> ImportOnnx(const std::filesystem::path& path,
                                                       const OnnxOptions& options = {});

// The same for a model in memory.
//   where: names it in messages     folder: holds its external data; empty: it may have none
absl::StatusOr<std::unique_ptr<ir::Module>> ImportOnnx(const Bytes& model, std::string_view where,
                                                       const std::filesystem::path& folder,
                                                       const OnnxOptions& options = {});

// How a model uses one operator.
struct OnnxOperatorUse {
  std::string domain, name;
  int64_t opset = 0;       // what the model asks for
  int since = 0;           // the version it is imported as; 0: not supported
  int64_t count = 0;       // nodes, those of bodies included
  std::string first_node;  // a node that uses it
};

// An operator that models may have, and the opsets from which it means something else.
struct OnnxOperator {
  std::string domain, name;
  std::vector<int> versions;  // rising
};
std::vector<OnnxOperator> KnownOnnxOperators();  // sorted by domain and name

// Every operator of the model, sorted by domain and name.  errors: NotFound, DataLoss
absl::StatusOr<std::vector<OnnxOperatorUse>> ListOnnxOperators(const std::filesystem::path& path);

}  // namespace forge
