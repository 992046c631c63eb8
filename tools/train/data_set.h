// SPDX-License-Identifier: Apache-2.0
// Sets of labelled samples in memory, from files or folders.
#pragma once
#include <string>
#include <vector>

#include "formats/images/preprocess.h"
#include "runtime/session.h"

namespace forge::tools {

// Samples along axis 0 of every tensor.
struct DataSet {
  std::string name;                 // what was read, for messages
  std::vector<NamedTensor> inputs;  // u8 [n, height, width] of an IDX file, else as the model takes
  bool normalised = true;           // false: bytes / 255, less mean, by std, are the input
  float mean = 0, std = 1;          // where they are not
  ir::HostValue labels;             // i64 [n], or a tensor of the prediction's type
  int64_t size() const { return labels.dim(0); }
};

// What a data set must fit.
struct DataPorts {
  std::vector<Session::Port> inputs;
  ir::Type label;       // i64 [batch], or float
  int64_t classes = 0;  // labels lie in 0..classes-1; 0: labels are no classes
  std::string preprocess;
};

// Reads a data set: "IMAGES.idx,LABELS.idx", each perhaps gzipped; a .npz with one array for each
// input by its name, and "label"; or a folder of pictures with one sub-folder for each class, in
// the order of their names.
//   errors: NotFound and DataLoss (files; labels beyond the classes, unequal lengths, no sample),
//   InvalidArgument (none of these; another shape than the inputs')
absl::StatusOr<DataSet> ReadDataSet(const std::string& what, const DataPorts& ports);

}  // namespace forge::tools
