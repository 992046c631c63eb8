// SPDX-License-Identifier: Apache-2.0
// Channels to blocks of an image and back.
#pragma once
#include "ir/ops/decomposing.h"
#include "ir/ops/movement/transpose.h"

namespace forge::ir {

// What counts fastest in the larger number of channels.
enum class BlockOrder : uint8_t { kChannelLast, kChannelFirst };

// Fails where a block has no elements, or more than a product of 64 bits counts.
inline bool IsBlock(Function& f, int64_t block) {
  constexpr int64_t kMost = 1 << 15;
  if (block < 1) f.Fail(InvalidArgument("block {} is below 1", block));
  if (block > kMost) f.Fail(InvalidArgument("block {} is above {}", block, kMost));
  return f.status().ok();
}

struct DepthToSpace {
  int64_t block = 1;
  BlockOrder order = BlockOrder::kChannelLast;

  static constexpr OpInfo kInfo{
      .name = "depth_to_space",
      .formula =
          "y[n, c, h * block + i, w * block + j] = x[n, (i * block + j) * C + c, h, w], or "
          "x[n, (c * block + i) * block + j, h, w]",
      .inputs = "x: any[n, c, h, w]",
      .outputs = "y: =x[n, *r]",
      .source = "ONNX DepthToSpace-13; torch.pixel_shuffle"};
  static constexpr Field kFields[] = {
      FieldOf<&DepthToSpace::block>("block", "Its height and width, at least 1."),
      FieldOf<&DepthToSpace::order>("order", "ONNX: DCR or CRD; PyTorch: the latter.", "dcr|crd")};

  Values decompose(Function& f, ValueSpan in) const {
    const Dims& d = in[0].type().shape();
    if (!IsBlock(f, block)) return {in[0]};
    if (d[1].is_constant() && d[1].constant() % (block * block) != 0)
      f.Fail(InvalidArgument("{} channels are no blocks of {} x {}", d[1].ToText(), block, block));
    if (!f.status().ok()) return {in[0]};
    const Dim c = FloorDiv(d[1], block * block);
    const bool dcr = order == BlockOrder::kChannelLast;
    const Dims split =
        dcr ? Dims{d[0], block, block, c, d[2], d[3]} : Dims{d[0], c, block, block, d[2], d[3]};
    const Transpose mix{dcr ? std::vector<int64_t>{0, 3, 4, 1, 5, 2}
                            : std::vector<int64_t>{0, 1, 4, 2, 5, 3}};
    const Value y = f(mix, {f(Reshape{split}, {in[0]})});
    return {f(Reshape{{d[0], c, d[2] * block, d[3] * block}}, {y})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{DepthToSpace{.block = 2}, {"any[2,8,3,2]"}},
            {DepthToSpace{.block = 3, .order = BlockOrder::kChannelFirst}, {"float[1,18,2,3]"}},
            {DepthToSpace{}, {"f32[1,3,2,2]"}},
            {DepthToSpace{.block = 2}, {"f32[0,4,3,3]"}},
            {.op = DepthToSpace{.block = 2}, .in = {"f32[8,64,56,56]"}, .bench = true},
            {DepthToSpace{.block = 2}, {"f32[1,6,2,2]"}, "6 channels are no blocks of 2 x 2"},
            {DepthToSpace{.block = 0}, {"f32[1,6,2,2]"}, "block 0 is below 1"},
            {DepthToSpace{.block = int64_t{1} << 62}, {"f32[1,6,2,2]"}, "is above 32768"}};
  }
};
const OpDef& DefOf(const DepthToSpace*);

struct SpaceToDepth {
  int64_t block = 1;
  BlockOrder order = BlockOrder::kChannelLast;

  static constexpr OpInfo kInfo{.name = "space_to_depth",
                                .formula = "the inverse of depth_to_space",
                                .inputs = "x: any[n, c, h, w]",
                                .outputs = "y: =x[n, *r]",
                                .source = "ONNX SpaceToDepth-13; torch.pixel_unshuffle"};
  static constexpr Field kFields[] = {
      FieldOf<&SpaceToDepth::block>("block", "Its height and width, at least 1."),
      FieldOf<&SpaceToDepth::order>("order", "ONNX: the former; PyTorch: the latter.", "dcr|crd")};

  Values decompose(Function& f, ValueSpan in) const {
    const Dims& d = in[0].type().shape();
    if (!IsBlock(f, block)) return {in[0]};
    for (const Dim& extent : {d[2], d[3]})
      if (extent.is_constant() && extent.constant() % block != 0)
        f.Fail(InvalidArgument("{} elements are no blocks of {}", extent.ToText(), block));
    if (!f.status().ok()) return {in[0]};
    const Dim h = FloorDiv(d[2], block), w = FloorDiv(d[3], block);
    const bool dcr = order == BlockOrder::kChannelLast;
    const Transpose mix{dcr ? std::vector<int64_t>{0, 3, 5, 1, 2, 4}
                            : std::vector<int64_t>{0, 1, 3, 5, 2, 4}};
    const Value y = f(mix, {f(Reshape{{d[0], d[1], h, block, w, block}}, {in[0]})});
    return {f(Reshape{{d[0], d[1] * (block * block), h, w}}, {y})};
  }
  [[gnu::cold]] static Cases cases() {
    return {{SpaceToDepth{.block = 2}, {"any[2,3,4,6]"}},
            {SpaceToDepth{.block = 3, .order = BlockOrder::kChannelFirst}, {"float[1,2,6,3]"}},
            {SpaceToDepth{}, {"f32[1,3,2,2]"}},
            {SpaceToDepth{.block = 2}, {"f32[0,4,4,2]"}},
            {SpaceToDepth{.block = 2}, {"f32[1,6,2,3]"}, "3 elements are no blocks of 2"},
            {SpaceToDepth{.block = 0}, {"f32[1,6,2,2]"}, "block 0 is below 1"}};
  }
};
const OpDef& DefOf(const SpaceToDepth*);

}  // namespace forge::ir
