// SPDX-License-Identifier: Apache-2.0
// Pooling: an invocation computes neighbours along the last axis, whose windows share loads.
#include "ir/ops/spatial/pool.h"

#include <limits>

#include "codegen/schedules/window/window.h"

namespace forge::codegen {
namespace {
namespace pool {

using ir::Dim;
using ir::Dims;

struct Pool {
  int64_t workgroup = 64;
  int64_t columns = 1;
  static constexpr Field kFields[] = {
      FieldOf<&Pool::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128"),
      FieldOf<&Pool::columns>("columns", "Output columns to an invocation.", "1|2|4|8")};
};

bool Takes(const Region& r) { return r.AnchorAs<ir::Pool>() != nullptr; }
// On GPUs more columns leave lanes without work where results are small, and loads are cached.
Pool Defaults(const Region& r) {
  Pool t;
  if (r.caps().runs_on_cpu) t.columns = WholeTile(r.anchor_output().shape().back(), 4, 1);
  return t;
}

// An axis after the other reads the sum of a large window's extents instead of their product.
constexpr int64_t kMostTaps = 128;

Verdict Fits(const Region& r, const Pool& t) {
  int64_t taps = 1, wide = 0;
  for (int64_t k : r.AnchorAs<ir::Pool>()->kernel) {
    taps = k > kMostTaps / std::min(taps, kMostTaps) ? kMostTaps + 1 : taps * k;
    wide += k > 1;
  }
  if (taps > kMostTaps && wide > 1)
    return Verdict::No("a large window is pooled along one axis after the other");
  return WorkgroupFits(t.workgroup, r.caps());
}

// How many taps of the window at `out` lie in x, and in its padding where that is counted.
Val Covered(Emission& m, const WindowAxis& axis, const Dim& out, bool padded) {
  const int64_t before = padded ? axis.before : 0, after = padded ? axis.after : 0;
  Val n = m.b.Int(0);
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const Position g = Guard(m, axis.At(out, tap) + before, axis.extent + before + after);
    n = n + Where(g.inside, m.b.Int(1), 0);
  }
  return n;
}

// The results of a tile; `index`: of its places, but for the last axis.
class PoolTile {
 public:
  PoolTile(Emission& m, const Dims& index, const TiledAxis& axis, const Dim& tile)
      : m_(m),
        op_(*m.region.AnchorAs<ir::Pool>()),
        window_(WindowOf(m.region, op_, ir::ForEachAxis(op_.kernel, index.size() - 1, 1))),
        index_(index),
        columns_(m, window_, axis, tile) {}

  void Run() {
    Vals all = Folded();
    for (size_t j = 0; !largest_ && j < all.size(); ++j) all[j] = Mean(all[j], OutAt(j));
    columns_.Finish(index_, all);
  }

 private:
  Dims OutAt(size_t column) const {
    Dims out(index_.begin() + 2, index_.end());
    out.push_back(columns_.at(column));
    return out;
  }

  Vals Folded() {
    const double start = largest_ ? -std::numeric_limits<double>::infinity() : 0;
    const Vals none(columns_.size(), m_.b.Literal(type_, start));
    return ForTaps(m_, window_, none, [&](const Dims& tap, Vals all) {
      for (size_t j = 0; j < all.size(); ++j) {
        const Dims index = IndexOf(window_, index_[0], index_[1], OutAt(j), tap);
        const Val x = columns_.Load(index, tap, j, start);
        all[j] = largest_ ? max(all[j], x) : all[j] + x;
      }
      return all;
    });
  }

  Val Mean(Val sum, const Dims& out) {
    Val n = Covered(m_, window_[0], out[0], op_.count_include_pad);
    for (size_t a = 1; a < window_.size(); ++a)
      n = n * Covered(m_, window_[a], out[a], op_.count_include_pad);
    return select(n == 0, m_.b.Literal(type_, 0), sum / convert(max(n, 1), type_.elem));
  }

  Emission& m_;
  const ir::Pool& op_;
  const Window window_;
  const Dims& index_;
  const ColumnTile columns_;
  const Type type_ = AccumulatorOf(m_.region.anchor_output().dtype());
  const bool largest_ = op_.kind == ir::PoolKind::kMax;
};

Program Emit(const Region& r, const Pool& t) {
  Dims space = r.anchor_output().shape();
  const TiledAxis axis{space.back(), t.columns};
  space.back() = axis.count();
  const std::string name = t.columns == 1 ? "pool" : fmt::format("pool_{}", t.columns);
  return OneLaunch(ForPlacesApart(r, name, t.workgroup, space, [&](Emission& m, const Dims& place) {
    const Dims index(place.begin(), place.end() - 1);
    PoolTile(m, index, axis, place.back()).Run();
  }));
}

}  // namespace pool
}  // namespace

const Schedule kPool =
    ScheduleOf<pool::Pool, pool::Takes, pool::Defaults, pool::Fits, pool::Emit>("pool");

}  // namespace forge::codegen
