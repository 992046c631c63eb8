// SPDX-License-Identifier: Apache-2.0
// The headers that most decompositions use.
#pragma once
#include "ir/graph/module.h"
#include "ir/op/axes.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/movement/reshape.h"
#include "ir/ops/movement/slice.h"
#include "ir/ops/reduction/reduce.h"
