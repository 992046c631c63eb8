// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/ops.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "formats/onnx/builders/families.h"

namespace forge::formats {
namespace {

using OperatorName = std::pair<std::string_view, std::string_view>;  // domain, name

constexpr std::span<const OnnxOp> (*kFamilies[])() = {
    ActivationOps,  AlongAxisOps,
    AttentionOps,   CastOps,
    ConstantOps,    ControlOps,
    CreationOps,    DeformConvOps,
    ElementwiseOps, GatherOps,
    LossOps,        MicrosoftAttentionOps,
    MicrosoftOps,   MicrosoftQuantisedOps,
    MlOps,          MovementCompositesOps,
    MovementOps,    NnOps,
    NormOps,        PlacementOps,
    QuantiseOps,    QuantisedProductsOps,
    RecurrentOps,   ReduceOps,
    ResizeOps,      SampleOps,
    ScatterOps,     SelectionOps,
    SignalOps,      TrainingOps,
    WindowOps,      SequenceOps,
    TextOps,        RandomOps,
    TreeOps,        LabelOps,
    LinearOps,
};

std::vector<OnnxOp> SortedOnnxOps() {
  std::vector<OnnxOp> all;
  for (const auto family : kFamilies) all.insert(all.end(), family().begin(), family().end());
  std::ranges::sort(all, {},
                    [](const OnnxOp& op) { return std::tie(op.domain, op.name, op.since); });
  return all;
}

// The versions of each operator, oldest first.
const auto& VersionsByName() {
  static const auto& versions = *[] {
    auto* out = new absl::flat_hash_map<OperatorName, std::span<const OnnxOp>>;
    const std::span<const OnnxOp> all = OnnxOps();
    for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      const OperatorName name{all[begin].domain, all[begin].name};
      while (end < all.size() && OperatorName{all[end].domain, all[end].name} == name) ++end;
      out->emplace(name, all.subspan(begin, end - begin));
    }
    return out;
  }();
  return versions;
}

}  // namespace

std::span<const OnnxOp> OnnxOps() {
  static const auto& all = *new std::vector<OnnxOp>(SortedOnnxOps());
  return all;
}

const OnnxOp* FindOnnxOp(std::string_view domain, std::string_view name, int64_t opset) {
  if (domain == "ai.onnx") domain = "";
  const auto versions = VersionsByName().find(OperatorName{domain, name});
  if (versions == VersionsByName().end()) return nullptr;
  const OnnxOp* found = nullptr;
  for (const OnnxOp& op : versions->second)
    if (op.since <= opset) found = &op;
  return found;
}

}  // namespace forge::formats
