// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/op/op.h"

namespace forge::ir {

struct MaxPool {
  std::vector<int64_t> kernel, strides, dilations, padding;  // empty: see window.h
  bool ceil_mode = false;

  static constexpr OpInfo kInfo{
      .name = "max_pool",
      .formula = "y and indices as `pool` of max with indices",
      .inputs = "x: float[n, c, *d]",
      .outputs = "y: =x[n, c, *p]; indices: i64[n, c, *p]",
      .source = "ONNX MaxPool-12; torch.nn.functional.max_pool1d to 3d with return_indices"};
  static constexpr Field kFields[] = {FieldOf<&MaxPool::kernel>("kernel", "As of `pool`."),
                                      FieldOf<&MaxPool::strides>("strides", "As of `pool`."),
                                      FieldOf<&MaxPool::dilations>("dilations", "As of `pool`."),
                                      FieldOf<&MaxPool::padding>("padding", "As of `pool`."),
                                      FieldOf<&MaxPool::ceil_mode>("ceil_mode", "As of `pool`.")};

  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const MaxPool*);

struct MaxUnpool {
  Dims sizes = {};

  static constexpr OpInfo kInfo{
      .name = "max_unpool",
      .formula =
          "y[n,c] is 0, but element indices[n,c,p...] of it, in row-major order, is "
          "x[n,c,p...], the last of several",
      .inputs = "x: real[n, c, *p]; indices: i32|i64[n, c, *p]",
      .outputs = "y: =x[n, c, *d]",
      .source = "ONNX MaxUnpool-11; torch.nn.functional.max_unpool1d to 3d"};
  static constexpr Field kFields[] = {
      FieldOf<&MaxUnpool::sizes>("sizes", "Spatial extents of y: 1 to 3.")};

  absl::StatusOr<Types> infer(TypeSpan in) const;
  Values decompose(Function& f, ValueSpan in) const;
  [[gnu::cold]] static Cases cases();
};
const OpDef& DefOf(const MaxUnpool*);

// Adds `updates` [n, c, *p] to zeros of `shape` [n, c, *d] at indices of each plane.
Value AddedIntoPlanes(const Dims& shape, Value indices, Value updates);

}  // namespace forge::ir
