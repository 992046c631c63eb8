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

struct PoolForm {
  bool largest, indexed, count_padding;
  Window window;
};

std::optional<PoolForm> FormOf(const Region& r) {
  const auto* op = r.AnchorAs<ir::Pool>();
  if (op == nullptr) return std::nullopt;
  const size_t axes = r.anchor_output().shape().size() - 2;
  return PoolForm{.largest = op->kind == ir::PoolKind::kMax,
                  .indexed = op->finds_places(),
                  .count_padding = op->count_include_pad,
                  .window = WindowOf(r, *op, ir::ForEachAxis(op->kernel, axes, 1))};
}

struct Pool {
  int64_t workgroup = 64;
  int64_t columns = 1;
  static constexpr Field kFields[] = {
      FieldOf<&Pool::workgroup>("workgroup", "Invocations in a workgroup.", "32|64|128"),
      FieldOf<&Pool::columns>("columns", "Output columns to an invocation.", "1|2|4|8")};
};

// On GPUs more columns leave lanes without work where results are small, and loads are cached.
Pool Defaults(const Region& r, const PoolForm&) {
  Pool t;
  if (r.caps().runs_on_cpu) t.columns = WholeTile(r.anchor_output().shape().back(), 4, 1);
  return t;
}

// An axis after the other reads the sum of a large window's extents instead of their product.
constexpr int64_t kMostTaps = 128;

Verdict Fits(const Region& r, const PoolForm& f, const Pool& t) {
  int64_t taps = 1, wide = 0;
  for (const WindowAxis& axis : f.window) {
    taps = axis.kernel > kMostTaps / std::min(taps, kMostTaps) ? kMostTaps + 1 : taps * axis.kernel;
    wide += axis.kernel > 1;
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
  PoolTile(Emission& m, const PoolForm& f, const Dims& index, const TiledAxis& axis,
           const Dim& tile)
      : m_(m), f_(f), index_(index), columns_(m, f.window, axis, tile) {}

  void Run() {
    Vals all = Folded();
    const std::span<Val> values = std::span(all).first(columns_.size());
    for (size_t j = 0; !f_.largest && j < values.size(); ++j) values[j] = Mean(values[j], OutAt(j));
    columns_.Finish(index_, values);
    if (!f_.indexed) return;
    const std::span<Val> places = std::span(all).subspan(columns_.size());
    for (size_t j = 0; j < places.size(); ++j) places[j] = Index(places[j], OutAt(j));
    columns_.Finish(index_, places, 1);
  }

 private:
  Dims OutAt(size_t column) const {
    Dims out(index_.begin() + 2, index_.end());
    out.push_back(columns_.at(column));
    return out;
  }

  // The sums or the largest elements of the columns; then how far behind the first tap of its
  // window the latter lie, in the row-major order of x.
  Vals Folded() {
    const double start = f_.largest ? -std::numeric_limits<double>::infinity() : 0;
    Vals all(columns_.size(), m_.b.Literal(type_, start));
    for (size_t j = 0; f_.indexed && j < columns_.size(); ++j) all.push_back(FirstInside(OutAt(j)));
    return ForTaps(m_, f_.window, all, [&](const Dims& tap, Vals next) {
      const Dim behind = f_.indexed ? Behind(tap) : Dim(0);
      for (size_t j = 0; j < columns_.size(); ++j) {
        const Dims index = IndexOf(f_.window, index_[0], index_[1], OutAt(j), tap);
        const Val x = columns_.Load(index, tap, j, start);
        if (f_.indexed) {
          Val& place = next[columns_.size() + j];
          const Val wins = (x > next[j]) | isnan(x);
          place = select(wins, m_.e.Value(behind), place);
          next[j] = select(wins, x, next[j]);
        } else {
          next[j] = f_.largest ? max(next[j], x) : next[j] + x;
        }
      }
      return next;
    });
  }

  // A place of x, or a distance, in its row-major order.
  Dim Flat(const Dims& at) const {
    Dims extents;
    for (const WindowAxis& axis : f_.window) extents.push_back(axis.extent);
    return Flatten(at, extents);
  }

  Dim Behind(Dims tap) const {
    for (size_t a = 0; a < tap.size(); ++a) tap[a] = tap[a] * f_.window[a].dilation;
    return Flat(tap);
  }

  // The place of the first tap that is not in leading padding: where all are -inf, it is the first
  // of equal elements.
  Val FirstInside(const Dims& out) const {
    Dims tap(out.size(), 0);
    for (size_t a = 0; a < out.size(); ++a) {
      const WindowAxis& axis = f_.window[a];
      if (axis.before == 0) continue;
      const auto dilation = static_cast<double>(axis.dilation);
      const Val outside = max(m_.e.Value(0 - axis.At(out[a], 0)), 0);
      tap[a] = m_.e.Coordinate((outside + (dilation - 1)) / dilation, axis.kernel);
    }
    return m_.e.Value(Behind(tap));
  }

  Val Index(Val behind, Dims out) const {
    for (size_t a = 0; a < out.size(); ++a) out[a] = f_.window[a].At(out[a], 0);
    return convert(m_.e.Value(Flat(out)) + behind, DType::kI64);
  }

  Val Mean(Val sum, const Dims& out) const {
    Val n = Covered(m_, f_.window[0], out[0], f_.count_padding);
    for (size_t a = 1; a < f_.window.size(); ++a)
      n = n * Covered(m_, f_.window[a], out[a], f_.count_padding);
    return select(n == 0, m_.b.Literal(type_, 0), sum / convert(max(n, 1), type_.elem));
  }

  Emission& m_;
  const PoolForm& f_;
  const Dims& index_;
  const ColumnTile columns_;
  const Type type_ = AccumulatorOf(m_.region.anchor_output().dtype());
};

Program Emit(const Region& r, const PoolForm& f, const Pool& t) {
  Dims space = r.anchor_output().shape();
  const TiledAxis axis{space.back(), t.columns};
  space.back() = axis.count();
  std::string name = f.indexed ? "pool_indices" : "pool";
  if (t.columns > 1) name += fmt::format("_{}", t.columns);
  return OneLaunch(ForPlacesApart(r, name, t.workgroup, space, [&](Emission& m, const Dims& place) {
    const Dims index(place.begin(), place.end() - 1);
    PoolTile(m, f, index, axis, place.back()).Run();
  }));
}

}  // namespace pool
}  // namespace

const Schedule kPool =
    ScheduleOn<pool::Pool, pool::FormOf, pool::Defaults, pool::Fits, pool::Emit>("pool");

}  // namespace forge::codegen
