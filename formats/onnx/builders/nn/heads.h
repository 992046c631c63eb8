// SPDX-License-Identifier: Apache-2.0
// Heads of attention as an axis of their own.
#pragma once
#include "formats/onnx/node.h"

namespace forge::formats {

// These return their operand where an error, of the node or its function, forbids to go on.

// [b, s, heads * e] as [b, heads, s, e], and back.
ir::Value HeadsOf(OnnxNode& n, ir::Value x, int64_t heads);
ir::Value HeadsTogether(OnnxNode& n, ir::Value x);
// Each head of [b, h, s, e] `times` times in a row.
ir::Value RepeatedHeads(OnnxNode& n, ir::Value x, int64_t times);

// Rows of `cache` [positions, half] at the positions [1 or b, s], as [1 or b, 1, s, half]. Without
// positions the cache has the rows already, [b, s, half].
ir::Value AnglesAt(OnnxNode& n, ir::Value cache, ir::Value positions);

struct Rotation {
  ir::Value cos, sin;        // [1 or b, 1, s, size / 2]
  ir::Dim size;              // of the part of each head that is turned
  bool interleaved = false;  // pairs are neighbours; otherwise halves of the part
};
// The first elements of each head [b, h, s, e], turned in pairs.
ir::Value Rotated(OnnxNode& n, ir::Value x, const Rotation& r);

}  // namespace forge::formats
