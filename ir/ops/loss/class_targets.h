// SPDX-License-Identifier: Apache-2.0
// Targets that are the index of a class.
#pragma once
#include "ir/ops/decomposing.h"

namespace forge::ir {

// Scores x [n, c, *d] and targets [n, *d], or [c] and []. Fails `f` where they do not match.
struct ClassTargets {
  ClassTargets(Function& f, Value x, Value target);
  // The axis of the classes; the shape of one number for each class, [1, c, 1..], and of one for
  // each target, [n, 1, *d].
  int64_t axis = 0;
  Dims along, column;
  Value hit;     // bool, of the shape of x: the class is the target
  Value inside;  // bool, of the shape of the target: it is a class

  // The element of each target; 0 where that is no class. `x` has the shape of the scores, or
  // broadcasts to it.
  Value Pick(Value x) const;
  // The weights [c] of classes at each target, 0 where `counted` is false; ones without weights.
  Value WeightsAt(Value weight, Value counted, DType t) const;
};

}  // namespace forge::ir
