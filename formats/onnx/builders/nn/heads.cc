// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/builders/nn/heads.h"

#include "formats/onnx/builders/steps.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/gather.h"

namespace forge::formats {

ir::Value HeadsOf(OnnxNode& n, ir::Value x, int64_t heads) {
  if (!IsOfRank(n, x, 3)) return x;
  const ir::Dims shape = x.type().shape();
  const ir::Dim each = ir::FloorDiv(shape[2], heads);
  return Permuted(n, ReshapedTo(n, x, {shape[0], shape[1], heads, each}), {0, 2, 1, 3});
}

ir::Value HeadsTogether(OnnxNode& n, ir::Value x) {
  if (!IsOfRank(n, x, 4)) return x;
  const ir::Dims s = x.type().shape();
  return ReshapedTo(n, Permuted(n, x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

ir::Value RepeatedHeads(OnnxNode& n, ir::Value x, int64_t times) {
  if (times == 1 || !IsOfRank(n, x, 4)) return x;
  const ir::Dims s = x.type().shape();
  const ir::Value one = ReshapedTo(n, x, {s[0], s[1], 1, s[2], s[3]});
  const ir::Value all = n.fn()(ir::BroadcastTo{{s[0], s[1], times, s[2], s[3]}}, {one});
  return ReshapedTo(n, all, {s[0], s[1] * times, s[2], s[3]});
}

ir::Value AnglesAt(OnnxNode& n, ir::Value cache, ir::Value positions) {
  if (positions) cache = n.fn()(ir::Gather{.axis = 0}, {cache, positions});
  if (!IsOfRank(n, cache, 3)) return cache;
  const ir::Dims s = cache.type().shape();
  return ReshapedTo(n, cache, {s[0], 1, s[1], s[2]});
}

ir::Value Rotated(OnnxNode& n, ir::Value x, const Rotation& r) {
  if (!IsOfRank(n, x, 4)) return x;
  const ir::Dim half = ir::FloorDiv(r.size, 2), all = x.type().shape()[3];
  const ir::Value turned = Part(n, x, 3, 0, r.size);
  const ir::Value a =
      r.interleaved ? Part(n, turned, 3, 0, r.size, 2) : Part(n, turned, 3, 0, half);
  const ir::Value b =
      r.interleaved ? Part(n, turned, 3, 1, r.size, 2) : Part(n, turned, 3, half, r.size);
  const ir::Value re = a * r.cos - b * r.sin, im = a * r.sin + b * r.cos;
  if (!n.fn().status().ok()) return x;
  ir::Value y;
  if (r.interleaved) {
    ir::Dims shape = re.type().shape();
    shape.push_back(1);
    y = Joined(n, {ReshapedTo(n, re, shape), ReshapedTo(n, im, shape)}, 4);
    shape.pop_back();
    shape[3] = r.size;
    y = ReshapedTo(n, y, shape);
  } else {
    y = Joined(n, {re, im}, 3);
  }
  return r.size == all ? y : Joined(n, {y, Part(n, x, 3, r.size, all)}, 3);
}

}  // namespace forge::formats
