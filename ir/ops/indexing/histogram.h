// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "ir/ops/creation/fill.h"
#include "ir/ops/decomposing.h"
#include "ir/ops/elementwise/elementwise.h"
#include "ir/ops/indexing/scatter.h"
#include "ir/ops/movement/pad.h"

namespace forge::ir {

struct Histogram {
  int64_t bins = 100;
  double low = 0, high = 1;

  static constexpr int64_t kMostBins = int64_t{1} << 24;
  static constexpr OpInfo kInfo{
      .name = "histogram",
      .formula =
          "y[i] = how many x have floor((x - low) * (bins / (high - low))) = i, and high "
          "is in the last bin; those outside low..high and NaN are in none",
      .inputs = "x: float[*d]",
      .outputs = "y: i64[n]",
      .source = "torch.histc"};
  static constexpr Field kFields[] = {
      FieldOf<&Histogram::bins>("bins", "How many, from 1 to 2^24."),
      FieldOf<&Histogram::low>("low", "Where the first bin begins."),
      FieldOf<&Histogram::high>("high", "Where the last bin ends; above low.")};

  double scale() const { return static_cast<double>(bins) / (high - low); }
  Values decompose(Function& f, ValueSpan in) const {
    if (absl::Status s = Check(); !s.ok()) return f.Fail(std::move(s)), Values{in[0]};
    const Value x = f(Reshape{{in[0].type().elements()}}, {Widened(in[0])});
    if (!f.status().ok()) return {x};
    const Value bin = min(f(Floor{}, {(x - low) * scale()}), static_cast<double>(bins - 1));
    const Value ends = f(Fill{high, x.type().dtype(), {}}, {});
    const Value begins = f(Fill{low, x.type().dtype(), {}}, {});
    const Value from = f(GreaterEqual{}, {x, begins}), to = f(GreaterEqual{}, {ends, x});
    // Updates whose index lies outside are dropped.
    const Value inside = f(And{}, {from, to});
    const Value index = convert(select(inside, bin, static_cast<double>(bins)), DType::kI32);
    return {convert(Counts(index), DType::kI64)};
  }
  static constexpr Zero gradient{};
  [[gnu::cold]] static Cases cases() {
    return {{Histogram{.bins = 8, .low = -4, .high = 4}, {"float[37]"}},
            {Histogram{.bins = 5, .low = -1, .high = 2}, {"float[7,3,2]"}},
            {Histogram{.bins = 1}, {"float[19] edges"}},
            {Histogram{.bins = 4, .low = 0, .high = 4}, {"f32[9] in 4..4"}},
            {Histogram{.bins = 3}, {"f32[]"}},
            {Histogram{.bins = 3}, {"f32[0,2]"}},
            {Histogram{.bins = 64, .low = -4, .high = 4}, {"f32[5003]"}},
            {Histogram{.bins = 8, .low = -4, .high = 4}, {"f32[70001]"}},
            {.op = Histogram{.bins = 256, .low = -4, .high = 4},
             .in = {"f32[16777216]"},
             .bench = true},
            {Histogram{.bins = 0}, {"f32[3]"}, "0 bins"},
            {Histogram{.low = 1}, {"f32[3]"}, "1 to 1"},
            {Histogram{}, {"i32[3]"}, "float"}};
  }

 private:
  // Many elements are counted in columns, which do not wait for each other.
  Value Counts(Value index) const {
    constexpr int64_t kColumns = 1024, kMany = 1 << 16, kMostCounts = 1 << 24;
    Function& f = *index.fn;
    if (!f.status().ok()) return index;
    const Dim n = index.type().elements();
    const bool many = n.max() >= kMany && bins <= kMostCounts / kColumns;
    const Dim columns = many ? kColumns : 1, rows = CeilDiv(n, columns);
    const Pad fill{.before = {0}, .after = {rows * columns - n}, .value = bins};
    const Value apart = f(Reshape{{rows, columns}}, {many ? f(fill, {index}) : index});
    const Value none = f(Fill{0, DType::kI32, {bins, columns}}, {});
    const Value ones = f(Fill{1, DType::kI32, {rows, columns}}, {});
    const Value counts = f(Scatter{.axis = 0, .mode = ScatterMode::kAdd}, {none, apart, ones});
    return f(Reduce{.kind = ReduceKind::kSum, .axes = {1}, .keep_dims = false}, {counts});
  }
  absl::Status Check() const {
    if (bins < 1 || bins > kMostBins) return InvalidArgument("{} bins", bins);
    if (!std::isfinite(high - low) || !(low < high) || !std::isfinite(scale()))
      return InvalidArgument("bins from {} to {}", low, high);
    return absl::OkStatus();
  }
};
const OpDef& DefOf(const Histogram*);

}  // namespace forge::ir
