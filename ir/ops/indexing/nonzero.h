// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/ops/creation/fill.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/indexing/index_arithmetic.h"
#include "ir/ops/movement/broadcast_to.h"
#include "ir/ops/movement/concat.h"
#include "ir/ops/sorting/arg_sort.h"

namespace forge::ir {

struct Nonzero {
  Dim count = 0;

  static constexpr OpInfo kInfo{
      .name = "nonzero",
      .formula = "y[a, k] = the index along axis a of the k-th element that is not 0, row by row",
      .inputs = "x: real|bool[*d]",
      .outputs = "y: i64[r, n]",
      .source = "ONNX NonZero-13; torch.nonzero gives the transpose"};
  static constexpr Field kFields[] = {
      FieldOf<&Nonzero::count>("count", "How many; where there are fewer, zeros follow in order.")};

  Values decompose(Function& f, ValueSpan in) const {
    const Dims shape = in[0].type().shape();
    const Dim n = Product(shape);
    const Value zero = f(Fill{0, in[0].type().dtype(), {}}, {});
    const Value flat = f(Reshape{{n}}, {f(NotEqual{}, {in[0], zero})});
    const Value places = f(Slice{{0}, {count}}, {f(ArgSort{.descending = true}, {flat})});
    Values rows;
    for (size_t a = 0; a < shape.size(); ++a) {
      const Value along = Along(f, DType::kI64, shape[a], static_cast<int64_t>(a),
                                static_cast<int64_t>(shape.size()));
      const Value index = f(Reshape{{n}}, {f(BroadcastTo{shape}, {along})});
      rows.push_back(f(Reshape{{1, count}}, {f(Gather{}, {index, places})}));
    }
    return {rows.empty() ? f(Fill{0, DType::kI64, {0, count}}, {}) : f.Add(Concat{}, rows)[0]};
  }
  static constexpr Zero gradient{};
  [[gnu::cold]] static Cases cases() {
    return {{Nonzero{4}, {"real[3,4] in -1..1"}},
            {Nonzero{5}, {"bool[9]"}},
            {Nonzero{2}, {"f32[2,1,3] edges"}},
            {Nonzero{0}, {"bool[4]"}},
            {Nonzero{1}, {"f32[]"}},
            {Nonzero{0}, {"f32[0,4]"}},
            {Nonzero{}, {"c64[3]"}, "x"}};
  }
};
const OpDef& DefOf(const Nonzero*);

}  // namespace forge::ir
