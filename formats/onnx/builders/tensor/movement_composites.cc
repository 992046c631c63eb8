// SPDX-License-Identifier: Apache-2.0
// Operators that move elements in several steps.
#include "formats/onnx/builders/families.h"
#include "ir/op/axes.h"
#include "ir/ops/movement/blocks.h"
#include "ir/ops/movement/diagonal.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/movement/tile.h"

namespace forge::formats {
namespace {

// The sizes of the parts of an axis of that extent: those that the node gives, or equal ones, of
// which the last may be smaller.
std::optional<ir::Dims> PartsOf(OnnxNode& n, const ir::Dim& extent) {
  if (n.HasInput(1)) {
    std::optional<ir::Dims> given = n.Contents(1);
    if (!given) n.Fail("its list of sizes is not known before the model runs");
    return given;
  }
  const std::vector<int64_t> sizes = n.since() < 13 ? n.Ints("split") : std::vector<int64_t>();
  if (!sizes.empty()) return ir::Dims(sizes.begin(), sizes.end());
  const auto count = static_cast<int64_t>(n.outputs());
  if (n.since() >= 18 && n.Int("num_outputs", count) != count)
    n.Fail("num_outputs is not the number of its results");
  const ir::Dim each = CeilDiv(extent, count);
  ir::Dims parts(static_cast<size_t>(count), each);
  parts.back() = extent - each * (count - 1);
  if (parts.back().max() < 0) n.Fail("{} elements give no {} parts", extent.ToText(), count);
  return parts;
}

ir::BlockOrder OrderOf(OnnxNode& n) {
  const std::string mode = n.since() < 11 ? "DCR" : n.String("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.Fail("unknown mode '{}'", mode);
  return mode == "CRD" ? ir::BlockOrder::kChannelFirst : ir::BlockOrder::kChannelLast;
}

ir::Values BuildSplit(OnnxNode& n) {
  const ir::Type x = n.type(0);
  if (!x.is_tensor()) n.Fail("the rank of its operand is not known before the model runs");
  if (!n.status().ok()) return {};
  const absl::StatusOr<int64_t> axis = ir::NormalAxis(n.Int("axis", 0), x.rank());
  if (!axis.ok()) n.Fail("{}", Message(axis.status()));
  if (!axis.ok()) return {};
  const std::optional<ir::Dims> parts = PartsOf(n, x.shape()[static_cast<size_t>(*axis)]);
  if (!parts) return {};
  ir::Values out;
  ir::Dim begin = 0;
  for (const ir::Dim& part : *parts) {
    if (part.max() < 0) n.Fail("a part of {} elements", part.ToText());
    out.push_back(
        n.fn()(ir::Slice{.begin = {begin}, .end = {begin + part}, .axes = {*axis}}, {n.in(0)}));
    begin = begin + part;
  }
  const ir::Dim& extent = x.shape()[static_cast<size_t>(*axis)];
  if (!ir::Unify(begin, extent).ok())
    n.Fail("its parts have {} elements of {}", begin.ToText(), extent.ToText());
  if (out.size() < n.outputs()) n.Fail("{} sizes for {} results", out.size(), n.outputs());
  return out;
}

// Until version 6 one axis was repeated.
ir::Values BuildTile1(OnnxNode& n) {
  const std::optional<Number> times = n.ConstantNumber(1), along = n.ConstantNumber(2);
  if (!times || !along) n.Fail("its axis is not known before the model runs");
  if (!n.type(0).is_tensor()) n.Fail("the rank of its operand is not known before the model runs");
  if (!n.status().ok()) return {};
  const absl::StatusOr<int64_t> axis = ir::NormalAxis(along->i64(), n.type(0).rank());
  if (!axis.ok()) n.Fail("{}", Message(axis.status()));
  if (!axis.ok()) return {};
  ir::Dims repeats(n.type(0).shape().size(), 1);
  repeats[static_cast<size_t>(*axis)] = times->i64();
  return n.fn().Add(ir::Tile{repeats}, std::array{n.in(0)});
}

ir::Values BuildTile(OnnxNode& n) {
  const std::optional<ir::Dims> repeats = n.Contents(1);
  if (repeats) {
    if (n.type(0).is_tensor() && static_cast<int64_t>(repeats->size()) != n.type(0).rank())
      n.Fail("{} repeats for {}", repeats->size(), n.type(0).ToText());
    return n.fn().Add(ir::Tile{*repeats}, std::array{n.in(0)});
  }
  const ir::Function::RuntimeField runtime[] = {{"repeats", n.in(1)}};
  return n.fn().AddRuntimeValued(ir::Tile{}, std::array{n.in(0)}, runtime);
}

ir::Values BuildDepthToSpace(OnnxNode& n) {
  return {n.fn()(ir::DepthToSpace{.block = n.Int("blocksize", 0), .order = OrderOf(n)}, {n.in(0)})};
}

ir::Values BuildSpaceToDepth(OnnxNode& n) {
  return {n.fn()(ir::SpaceToDepth{.block = n.Int("blocksize", 0)}, {n.in(0)})};
}

ir::Values BuildTrilu(OnnxNode& n) {
  ir::Triangle op{.upper = n.Flag("upper", true)};
  const std::optional<Number> k = n.HasInput(1) ? n.ConstantNumber(1) : Number();
  if (k) {
    op.diagonal = k->i64();
    return {n.fn()(op, {n.in(0)})};
  }
  const ir::Function::RuntimeField runtime[] = {{"diagonal", n.in(1)}};
  return n.fn().AddRuntimeValued(op, std::array{n.in(0)}, runtime);
}

constexpr OnnxOp kMovementCompositesOps[] = {
    {"", "DepthToSpace", 1, 1, 1, BuildDepthToSpace},
    {"", "DepthToSpace", 11, 1, 1, BuildDepthToSpace},
    {"", "SpaceToDepth", 1, 1, 1, BuildSpaceToDepth},
    {"", "Split", 1, 1, 2, BuildSplit},
    {"", "Split", 2, 1, 1, BuildSplit},
    {"", "Split", 13, 1, 2, BuildSplit},
    {"", "Split", 18, 1, 2, BuildSplit},
    {"", "Tile", 1, 3, 3, BuildTile1},
    {"", "Tile", 6, 2, 2, BuildTile},
    {"", "Trilu", 14, 1, 2, BuildTrilu},
};

}  // namespace

std::span<const OnnxOp> MovementCompositesOps() { return kMovementCompositesOps; }

}  // namespace forge::formats
