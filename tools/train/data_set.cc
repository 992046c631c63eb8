// SPDX-License-Identifier: Apache-2.0
#include "tools/train/data_set.h"

#include <algorithm>
#include <cstring>

#include "base/platform.h"
#include "formats/arrays/idx.h"
#include "formats/arrays/npy.h"
#include "formats/images/image.h"

namespace forge::tools {
namespace {

namespace fs = std::filesystem;

// The elements of one sample, where all extents but the first are numbers; 0: unknown.
int64_t SampleElements(const ir::Type& t) {
  int64_t n = 1;
  for (int axis = 1; axis < t.rank(); ++axis) {
    const ir::Dim& d = t.shape()[axis];
    n *= d.is_constant() ? d.constant() : 0;
  }
  return n;
}

// Labels of any integer type as i64.
absl::StatusOr<ir::HostValue> ClassLabels(const ir::HostValue& labels, const DataPorts& ports,
                                          const std::string& where) {
  if (labels.rank() != 1 || !Has(kIntTypes, labels.dtype()))
    return DataLoss("{}: labels are {}, not a list of integers", where, labels.type().ToText());
  FORGE_ASSIGN_OR_RETURN(ir::HostValue out, ir::HostValue::Zeros(DType::kI64, labels.shape()));
  for (int64_t i = 0; i < labels.elements(); ++i) {
    const int64_t label = labels.i64(i);
    if (label < 0 || label >= ports.classes)
      return DataLoss("{}: label {} of sample {} is not one of the model's {} classes (0..{})",
                      where, label, i, ports.classes, ports.classes - 1);
    out.SetI64(i, label);
  }
  return out;
}

// Checks the extents of one sample against those of the input, where these are numbers.
absl::Status CheckSample(const DataSet& set, const DataPorts& ports) {
  for (size_t i = 0; set.normalised && i < set.inputs.size(); ++i) {
    const ir::HostValue& value = set.inputs[i].value;
    const ir::Type& type = ports.inputs[i].type;
    bool fits = value.rank() == type.rank();
    for (int axis = 1; fits && axis < type.rank(); ++axis) {
      const ir::Dim& d = type.shape()[axis];
      fits = !d.is_constant() || d.constant() == value.dim(axis);
    }
    if (!fits)
      return InvalidArgument("{}: samples are {}, and input '{}' is {}", set.name,
                             value.type().ToText(), set.inputs[i].name, type.ToText());
  }
  return absl::OkStatus();
}

absl::Status CheckLengths(const DataSet& set) {
  if (set.labels.rank() == 0 || set.size() == 0)
    return DataLoss("{}: there is no sample", set.name);
  for (const NamedTensor& t : set.inputs)
    if (t.value.rank() == 0 || t.value.dim(0) != set.size())
      return DataLoss("{}: '{}' is {}, but there are {} labels", set.name, t.name,
                      t.value.type().ToText(), set.size());
  return absl::OkStatus();
}

absl::StatusOr<DataSet> ReadIdxPair(const std::string& what, const DataPorts& ports) {
  const size_t comma = what.find(',');
  if (ports.inputs.size() != 1 || ports.classes == 0)
    return InvalidArgument("IDX files are for models with one input that name classes");
  DataSet out{.name = what};
  FORGE_ASSIGN_OR_RETURN(ir::HostValue images, ReadIdx(what.substr(0, comma)));
  const std::string label_file = what.substr(comma + 1);
  FORGE_ASSIGN_OR_RETURN(const ir::HostValue labels, ReadIdx(label_file));
  FORGE_ASSIGN_OR_RETURN(out.labels, ClassLabels(labels, ports, label_file));
  if (images.dtype() != DType::kU8 || images.rank() != 3)
    return DataLoss("{}: pictures are {}, not bytes [n, height, width]", what.substr(0, comma),
                    images.type().ToText());
  const Session::Port& port = ports.inputs[0];
  if (port.type.dtype() != DType::kF32 ||
      SampleElements(port.type) != images.dim(1) * images.dim(2))
    return InvalidArgument("input '{}' is {}, which pictures of {}x{} do not fill", port.name,
                           port.type.ToText(), images.dim(1), images.dim(2));
  FORGE_ASSIGN_OR_RETURN(const Preprocess how, ParsePreprocess(ports.preprocess));
  if (how.mean.size() != 1 || how.std.size() != 1)
    return InvalidArgument("IDX pictures have one channel, and --preprocess gives {} means",
                           how.mean.size());
  out.normalised = false;
  out.mean = static_cast<float>(how.mean[0]);
  out.std = static_cast<float>(how.std[0]);
  out.inputs.push_back({port.name, std::move(images)});
  return out;
}

absl::StatusOr<DataSet> ReadArchive(const std::string& what, const DataPorts& ports) {
  FORGE_ASSIGN_OR_RETURN(NamedValues arrays, ReadNpz(what));
  DataSet out{.name = what};
  const auto take = [&](const std::string& name) -> absl::StatusOr<ir::HostValue> {
    const auto found = std::ranges::find(arrays, name, &NamedValues::value_type::first);
    if (found == arrays.end()) return DataLoss("{} has no array '{}'", what, name);
    return found->second;
  };
  for (const Session::Port& port : ports.inputs) {
    FORGE_ASSIGN_OR_RETURN(ir::HostValue value, take(port.name));
    if (value.dtype() != port.type.dtype() || value.rank() != port.type.rank())
      return InvalidArgument("{}: '{}' is {}, and the input is {}", what, port.name,
                             value.type().ToText(), port.type.ToText());
    out.inputs.push_back({port.name, std::move(value)});
  }
  FORGE_ASSIGN_OR_RETURN(out.labels, take("label"));
  if (ports.classes > 0) {
    FORGE_ASSIGN_OR_RETURN(out.labels, ClassLabels(out.labels, ports, what));
  } else if (out.labels.dtype() != ports.label.dtype() || out.labels.rank() != ports.label.rank()) {
    return InvalidArgument("{}: 'label' is {}, and the prediction is {}", what,
                           out.labels.type().ToText(), ports.label.ToText());
  }
  return out;
}

// The entries of a folder by name, without hidden ones.
absl::StatusOr<std::vector<fs::path>> Entries(const fs::path& folder, bool folders) {
  std::error_code error;
  std::vector<fs::path> out;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    if (i->is_directory(error) == folders && !i->path().filename().string().starts_with('.'))
      out.push_back(i->path());
  if (error) return DataLoss("{}: {}", folder.string(), error.message());
  std::ranges::sort(out);
  return out;
}

// The pictures of a folder, one after another.
struct Pictures {
  std::vector<uint8_t> bytes;
  std::vector<int64_t> shape;  // of one, with a first extent of 1
  std::vector<int64_t> labels;

  absl::Status Add(const fs::path& file, const Preprocess& how, int64_t label) {
    FORGE_ASSIGN_OR_RETURN(const ir::HostValue image, ReadImage(file));
    FORGE_ASSIGN_OR_RETURN(const ir::HostValue value, ApplyPreprocess(how, image));
    const std::vector<int64_t> found(value.shape().begin(), value.shape().end());
    if (shape.empty()) shape = found;
    if (shape != found)
      return DataLoss(
          "{}: its size differs from that of the first picture; give "
          "--preprocess resize=HxW",
          file.string());
    bytes.insert(bytes.end(), value.bytes().begin(), value.bytes().end());
    labels.push_back(label);
    return absl::OkStatus();
  }
};

absl::StatusOr<DataSet> ReadFolders(const std::string& what, const DataPorts& ports) {
  if (ports.inputs.size() != 1 || ports.classes == 0)
    return InvalidArgument("folders of pictures are for models with one input that name classes");
  FORGE_ASSIGN_OR_RETURN(const Preprocess how, ParsePreprocess(ports.preprocess));
  FORGE_ASSIGN_OR_RETURN(const std::vector<fs::path> classes, Entries(what, true));
  if (classes.empty()) return DataLoss("{} has no sub-folder, one for each class", what);
  if (static_cast<int64_t>(classes.size()) > ports.classes)
    return DataLoss("{} has {} sub-folders, and the model has {} classes", what, classes.size(),
                    ports.classes);
  Pictures pictures;
  for (size_t label = 0; label < classes.size(); ++label) {
    FORGE_ASSIGN_OR_RETURN(const std::vector<fs::path> files, Entries(classes[label], false));
    for (const fs::path& file : files)
      FORGE_RETURN_IF_ERROR(pictures.Add(file, how, static_cast<int64_t>(label)));
  }
  if (pictures.labels.empty()) return DataLoss("{}: there is no sample", what);
  pictures.shape[0] = static_cast<int64_t>(pictures.labels.size());
  DataSet out{.name = what};
  FORGE_ASSIGN_OR_RETURN(
      ir::HostValue values,
      ir::HostValue::Of(DType::kF32, pictures.shape, forge::Bytes(std::move(pictures.bytes))));
  FORGE_ASSIGN_OR_RETURN(out.labels, ir::HostValue::Zeros(DType::kI64, {{pictures.shape[0]}}));
  for (int64_t i = 0; i < out.size(); ++i)
    out.labels.SetI64(i, pictures.labels[static_cast<size_t>(i)]);
  out.inputs.push_back({ports.inputs[0].name, std::move(values)});
  return out;
}

}  // namespace

absl::StatusOr<DataSet> ReadDataSet(const std::string& what, const DataPorts& ports) {
  std::error_code ignored;
  absl::StatusOr<DataSet> out = fs::is_directory(what, ignored) ? ReadFolders(what, ports)
                                : what.ends_with(".npz")        ? ReadArchive(what, ports)
                                : what.find(',') != std::string::npos
                                    ? ReadIdxPair(what, ports)
                                    : absl::StatusOr<DataSet>(InvalidArgument(
                                          "'{}' is not IMAGES.idx,LABELS.idx, a .npz or a "
                                          "folder with one sub-folder a class",
                                          what));
  if (!out.ok()) return out;
  FORGE_RETURN_IF_ERROR(CheckLengths(*out));
  FORGE_RETURN_IF_ERROR(CheckSample(*out, ports));
  return out;
}

}  // namespace forge::tools
