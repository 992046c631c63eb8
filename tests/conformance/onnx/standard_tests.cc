// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/onnx/standard_tests.h"

#include <onnx/onnx-data_pb.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "absl/strings/str_split.h"
#include "base/platform.h"
#include "formats/onnx/tensor.h"

namespace forge {
namespace {

namespace fs = std::filesystem;

// As onnx.backend.test.runner has them.
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

template <class Message>
absl::StatusOr<Message> ReadMessage(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  Message message;
  if (!file || !message.ParseFromIstream(&file)) return DataLoss("{} is damaged", path.string());
  return message;
}

absl::StatusOr<ir::HostValue> ValueOf(onnx::TensorProto tensor) {
  formats::ExternalFiles no_files{fs::path()};
  return formats::TakeOnnxTensor(tensor, no_files);
}

absl::StatusOr<ir::HostValue> ValueOf(const onnx::SequenceProto& sequence) {
  if (sequence.elem_type() != onnx::SequenceProto::TENSOR && sequence.tensor_values_size() == 0)
    return ir::HostValue::Sequence(ir::Type::Unknown(), {});
  std::vector<ir::HostValue> items;
  for (const onnx::TensorProto& tensor : sequence.tensor_values()) {
    FORGE_ASSIGN_OR_RETURN(items.emplace_back(), ValueOf(tensor));
  }
  const ir::Type item = items.empty() ? ir::Type::Unknown() : ir::Type::Unranked(items[0].dtype());
  return ir::HostValue::Sequence(item, std::move(items));
}

absl::StatusOr<ir::HostValue> ValueOf(const onnx::OptionalProto& optional) {
  if (optional.has_tensor_value()) return ValueOf(optional.tensor_value());
  if (optional.has_sequence_value()) return ValueOf(optional.sequence_value());
  return ir::HostValue::Nothing(ir::Type::Unknown());
}

absl::StatusOr<ir::HostValue> ReadValue(const fs::path& path, const onnx::TypeProto& type) {
  if (type.has_optional_type()) {
    FORGE_ASSIGN_OR_RETURN(const auto optional, ReadMessage<onnx::OptionalProto>(path));
    return ValueOf(optional);
  }
  if (type.has_sequence_type()) {
    FORGE_ASSIGN_OR_RETURN(const auto sequence, ReadMessage<onnx::SequenceProto>(path));
    return ValueOf(sequence);
  }
  FORGE_ASSIGN_OR_RETURN(onnx::TensorProto tensor, ReadMessage<onnx::TensorProto>(path));
  return ValueOf(std::move(tensor));
}

absl::StatusOr<std::vector<ir::HostValue>> ReadOutputs(const onnx::GraphProto& graph,
                                                       const std::string& prefix) {
  std::vector<ir::HostValue> outputs;
  for (int i = 0; i < graph.output_size(); ++i) {
    FORGE_ASSIGN_OR_RETURN(
        outputs.emplace_back(),
        ReadValue(fmt::format("{}output_{}.pb", prefix, i), graph.output(i).type()));
  }
  return outputs;
}

absl::StatusOr<StandardData> ReadSet(const fs::path& folder, const onnx::GraphProto& graph) {
  StandardData set;
  for (int i = 0; i < graph.input_size(); ++i) {
    const fs::path path = folder / fmt::format("input_{}.pb", i);
    if (!fs::exists(path)) break;
    FORGE_ASSIGN_OR_RETURN(ir::HostValue value, ReadValue(path, graph.input(i).type()));
    set.inputs.push_back({graph.input(i).name(), std::move(value)});
  }
  FORGE_ASSIGN_OR_RETURN(set.outputs, ReadOutputs(graph, (folder / "").string()));
  return set;
}

// As onnx.backend.test.runner makes them.
absl::StatusOr<StandardData> MakeLightSet(const fs::path& model, const onnx::GraphProto& graph) {
  std::set<std::string> weights;
  for (const onnx::TensorProto& weight : graph.initializer()) weights.insert(weight.name());
  StandardData set;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (weights.contains(input.name())) continue;
    std::vector<int64_t> shape;
    for (const auto& dim : input.type().tensor_type().shape().dim())
      shape.push_back(dim.dim_value());
    FORGE_ASSIGN_OR_RETURN(auto value, ir::HostValue::Zeros(DType::kF32, shape));
    for (int64_t i = 0; i < value.elements(); ++i)
      value.Set(i, static_cast<double>(i) / static_cast<double>(value.elements()));
    set.inputs.push_back({input.name(), std::move(value)});
  }
  const std::string stem = fs::path(model).replace_extension().string();
  FORGE_ASSIGN_OR_RETURN(set.outputs, ReadOutputs(graph, stem + "_"));
  return set;
}

bool Agree(std::complex<double> want, std::complex<double> have) {
  const auto part = [](double w, double h) {
    if (std::isnan(w) || std::isnan(h)) return std::isnan(w) && std::isnan(h);
    return w == h || std::abs(w - h) <= kAbsolute + kRelative * std::abs(w);
  };
  return part(want.real(), have.real()) && part(want.imag(), have.imag());
}

absl::Status CompareCollections(const ir::HostValue& want, const ir::HostValue& have) {
  if (want.kind() != have.kind() || want.items().size() != have.items().size())
    return absl::FailedPreconditionError(fmt::format("{} of {} items instead of {} of {}",
                                                     have.type().ToText(), have.items().size(),
                                                     want.type().ToText(), want.items().size()));
  for (size_t i = 0; i < want.items().size(); ++i)
    if (absl::Status s = CompareAsStandard(want.items()[i], have.items()[i]); !s.ok())
      return Annotate(s, fmt::format("item {}", i));
  return absl::OkStatus();
}

absl::Status CompareStrings(const ir::HostValue& want, const ir::HostValue& have) {
  for (int64_t i = 0; i < want.elements(); ++i)
    if (want.string(i) != have.string(i))
      return absl::FailedPreconditionError(
          fmt::format("element {} is '{}' instead of '{}'", i, have.string(i), want.string(i)));
  return absl::OkStatus();
}

}  // namespace

fs::path StandardTestFolder() { return CacheFolder() / "onnx-tests"; }

std::vector<std::string> StandardTests(const std::string& suite) {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(StandardTestFolder() / suite, absent))
    if (entry.is_directory() || entry.path().extension() == ".onnx")
      names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

fs::path StandardModel(const std::string& test) {
  const fs::path path = StandardTestFolder() / test;
  return test.starts_with("light/") ? fs::path(path).replace_extension(".onnx")
                                    : path / "model.onnx";
}

absl::StatusOr<std::vector<StandardData>> ReadStandardData(const std::string& test) {
  const fs::path path = StandardModel(test);
  FORGE_ASSIGN_OR_RETURN(const auto model, ReadMessage<onnx::ModelProto>(path));
  std::vector<StandardData> sets;
  if (test.starts_with("light/")) {
    FORGE_ASSIGN_OR_RETURN(sets.emplace_back(), MakeLightSet(path, model.graph()));
    return sets;
  }
  for (int i = 0;; ++i) {
    const fs::path set = path.parent_path() / fmt::format("test_data_set_{}", i);
    if (!fs::exists(set)) return sets;
    FORGE_ASSIGN_OR_RETURN(sets.emplace_back(), ReadSet(set, model.graph()));
  }
}

bool DrawsNumbers(std::string_view test) {
  return test.starts_with("node/test_bernoulli") ||
         (test.starts_with("node/test_training_dropout") &&
          test.find("zero_ratio") == std::string_view::npos);
}

absl::Status CompareTypes(const ir::HostValue& want, const ir::HostValue& have) {
  if (want.kind() == have.kind() && want.dtype() == have.dtype() &&
      std::ranges::equal(want.shape(), have.shape()))
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{} instead of {}", have.type().ToText(), want.type().ToText()));
}

absl::Status CompareAsStandard(const ir::HostValue& want, const ir::HostValue& have) {
  if (!want.is_tensor() || !have.is_tensor()) return CompareCollections(want, have);
  FORGE_RETURN_IF_ERROR(CompareTypes(want, have));
  if (want.dtype() == DType::kString) return CompareStrings(want, have);
  for (int64_t i = 0; i < want.elements(); ++i)
    if (!Agree(want.c128(i), have.c128(i)))
      return absl::FailedPreconditionError(fmt::format("element {} is {}{:+}i instead of {}{:+}i",
                                                       i, have.c128(i).real(), have.c128(i).imag(),
                                                       want.c128(i).real(), want.c128(i).imag()));
  return absl::OkStatus();
}

std::string ExpectedFailures::CauseOf(const std::string& test, std::string_view device) const {
  const auto [begin, end] = rows_.equal_range(test);
  for (auto row = begin; row != end; ++row)
    if (row->second.backend == "*" || device.starts_with(row->second.backend))
      return row->second.cause;
  return "";
}

std::vector<std::string> ExpectedFailures::tests() const {
  std::vector<std::string> out;
  for (const auto& [test, row] : rows_) out.push_back(test);
  return out;
}

ExpectedFailures ReadExpectedFailures(const fs::path& path) {
  std::ifstream file(path);
  FORGE_CHECK(file.good());
  ExpectedFailures out;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    FORGE_CHECK(fields.size() == 3 && !fields[2].empty());
    out.rows_.insert({fields[0], {fields[1], fields[2]}});
  }
  return out;
}

}  // namespace forge
