// SPDX-License-Identifier: Apache-2.0
// What attention and its gradients are made of. Scores are f32 or wider: 16 bits lose too much.
#pragma once
#include "ir/graph/module.h"
#include "ir/ops/product/attention_gradient.h"

namespace forge::ir {

// What scores are multiplied by; 1 where an attribute does not say it and `head` is not known.
double ScaleOfScores(const Attention& op, const Dim& head);
Value ScoresBeforeMasks(const Attention& op, Value q, Value k);
// The scores with -infinity where a key does not count; `mask` may be absent.
Value Masked(const Attention& op, Value scores, Value mask);

// The gradients of q, k and v, and of the scores that a mask was added to, from the operands of
// AttentionGradient.
Values AttentionGradientParts(const AttentionGradient& op, ValueSpan in);

}  // namespace forge::ir
