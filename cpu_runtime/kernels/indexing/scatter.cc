// SPDX-License-Identifier: Apache-2.0
// Scatter into a tensor that the result holds already. Threads own disjoint elements, and each
// applies the updates of its elements in their order.
#include "ir/ops/indexing/scatter.h"

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>

#include "base/narrow_float.h"
#include "cpu_runtime/kernels/kernel.h"
#include "cpu_runtime/parallel.h"
#include "ir/analysis/in_place.h"
#include "ir/op/elements.h"

namespace forge::cpu {
namespace {

using ir::ScatterMode;

// Elements of f16 and bf16, computed in f32.
template <DType kType>
struct NarrowElement {
  uint16_t bits;
};
template <class T>
struct ElementTraits {
  using Wide = T;
  static Wide Load(T v) { return v; }
  static T Store(Wide v) { return v; }
};
template <>
struct ElementTraits<NarrowElement<DType::kBF16>> {
  using Wide = float;
  static float Load(NarrowElement<DType::kBF16> v) {
    return std::bit_cast<float>(uint32_t{v.bits} << 16);
  }
  static NarrowElement<DType::kBF16> Store(float v) {
    return {EncodeNarrowFloat(DType::kBF16, static_cast<double>(v))};
  }
};
template <>
struct ElementTraits<NarrowElement<DType::kF16>> {
  using Wide = float;
  static float Load(NarrowElement<DType::kF16> v) {
    return static_cast<float>(DecodeNarrowFloat(DType::kF16, v.bits));
  }
  static NarrowElement<DType::kF16> Store(float v) {
    return {EncodeNarrowFloat(DType::kF16, static_cast<double>(v))};
  }
};

template <class T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

template <class T>
bool IsNan(T v) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(v);
  return false;
}

// Integers wrap, NaN stays.
template <ScatterMode kMode, class T>
T Updated(T y, T update) {
  if constexpr (kMode == ScatterMode::kSet) {
    return update;
  } else if constexpr (kIsComplex<T>) {
    if (kMode == ScatterMode::kAdd) return y + update;
    return {y.real() * update.real() - y.imag() * update.imag(),
            y.real() * update.imag() + y.imag() * update.real()};
  } else if constexpr (kMode == ScatterMode::kMin) {
    return IsNan(y) || y <= update ? y : update;
  } else if constexpr (kMode == ScatterMode::kMax) {
    return IsNan(y) || y >= update ? y : update;
  } else if constexpr (std::is_integral_v<T>) {
    const auto a = static_cast<uint64_t>(y), b = static_cast<uint64_t>(update);
    return static_cast<T>(kMode == ScatterMode::kAdd ? a + b : a * b);
  } else {
    return kMode == ScatterMode::kAdd ? y + update : y * update;
  }
}

// The loops of a scatter: for each place of `outer`, the updates along the axis, and for each of
// them a run of neighbours. Strides are in elements; indices and updates run along with them.
struct Steps {
  int64_t y = 0, indices = 0, updates = 0;
};
struct Loops {
  std::vector<int64_t> outer;
  std::vector<Steps> outer_steps;
  int64_t count = 0, extent = 0;  // of updates along the axis, and of y
  Steps axis;
  int64_t run = 1, run_of_indices = 0;
  int64_t updates() const {
    int64_t n = count * run;
    for (int64_t o : outer) n *= o;
    return n;
  }
};

Loops LoopsOf(const ir::Scatter& op, const ir::Type& y, const ir::Type& indices,
              const ir::Type& updates) {
  const std::vector<int64_t> shape = ir::Constants(updates.shape());
  const ir::Index to = ir::Strides(ir::Constants(y.shape())), from = ir::Strides(shape);
  const ir::Index by = ir::BroadcastStrides(ir::Constants(indices.shape()), shape);
  const auto rank = shape.size();
  const auto axis = static_cast<size_t>(op.axis < 0 ? op.axis + y.rank() : op.axis);
  Loops l;
  l.count = shape[axis];
  l.extent = y.shape()[axis].constant();
  l.axis = {to[axis], by[axis], from[axis]};
  size_t end = rank;  // axes from here on are in the run
  if (axis + 1 < rank) {
    --end;
    l.run = shape[end];
    l.run_of_indices = by[end];
    // Axes that lie in a row, without indices of their own, are one.
    while (end - 1 > axis && l.run_of_indices == 0 && by[end - 1] == 0 && to[end - 1] == l.run)
      l.run *= shape[--end];
  }
  for (size_t a = 0; a < end; ++a) {
    if (a == axis) continue;
    l.outer.push_back(shape[a]);
    l.outer_steps.push_back({to[a], by[a], from[a]});
  }
  return l;
}

// The elements that a thread owns: places of `outer`, positions of runs, and indices.
struct Share {
  int64_t outer_begin = 0, outer_end = 0, run_begin = 0, run_end = 0, begin = 0, end = 0;
};

Steps StartOf(const Loops& l, int64_t outer) {
  Steps at;
  for (size_t a = l.outer.size(); a-- > 0; outer /= l.outer[a]) {
    const int64_t i = outer % l.outer[a];
    at.y += i * l.outer_steps[a].y;
    at.indices += i * l.outer_steps[a].indices;
    at.updates += i * l.outer_steps[a].updates;
  }
  return at;
}

// Calls f(element of y, update) for the updates of a share in order.
template <class I, class F>
void ForUpdates(const Loops& l, const Share& s, const I* indices, F f) {
  const auto owned = [&](int64_t at) -> std::optional<int64_t> {
    const int64_t given = indices[at];
    const int64_t index = given < 0 ? given + l.extent : given;
    if (index < s.begin || index >= s.end) return std::nullopt;
    return index;
  };
  for (int64_t o = s.outer_begin; o < s.outer_end; ++o) {
    const Steps start = StartOf(l, o);
    for (int64_t i = 0; i < l.count; ++i) {
      const int64_t by = start.indices + i * l.axis.indices,
                    from = start.updates + i * l.axis.updates;
      if (l.run_of_indices != 0) {
        for (int64_t r = s.run_begin; r < s.run_end; ++r)
          if (const auto index = owned(by + r)) f(start.y + *index * l.axis.y + r, from + r);
        continue;
      }
      const auto index = owned(by);
      if (!index) continue;
      const int64_t to = start.y + *index * l.axis.y;
      for (int64_t r = s.run_begin; r < s.run_end; ++r) f(to + r, from + r);
    }
  }
}

struct Memory {
  uint8_t* y;
  const uint8_t *indices, *updates;
  float* wide;  // an f32 for each element of y, for sums and products of narrow floats
};

template <class T, class I, ScatterMode kMode>
void RunShare(const Loops& l, const Share& s, const Memory& m) {
  using Traits = ElementTraits<T>;
  auto* y = reinterpret_cast<T*>(m.y);
  const auto* updates = reinterpret_cast<const T*>(m.updates);
  const auto* indices = reinterpret_cast<const I*>(m.indices);
  const auto update = [&](int64_t from) { return Traits::Load(updates[from]); };
  if constexpr (kMode == ScatterMode::kSet) {
    ForUpdates(l, s, indices, [&](int64_t to, int64_t from) { y[to] = updates[from]; });
  } else if (m.wide == nullptr) {
    ForUpdates(l, s, indices, [&](int64_t to, int64_t from) {
      y[to] = Traits::Store(Updated<kMode>(Traits::Load(y[to]), update(from)));
    });
  } else if constexpr (!std::is_same_v<typename Traits::Wide, T>) {
    float* wide = m.wide;
    ForUpdates(l, s, indices, [&](int64_t to, int64_t) { wide[to] = Traits::Load(y[to]); });
    ForUpdates(l, s, indices, [&](int64_t to, int64_t from) {
      wide[to] = Updated<kMode>(wide[to], update(from));
    });
    ForUpdates(l, s, indices, [&](int64_t to, int64_t) { y[to] = Traits::Store(wide[to]); });
  }
}

using ShareFunction = void (*)(const Loops&, const Share&, const Memory&);

template <class T, class I>
ShareFunction FunctionFor(ScatterMode mode) {
  switch (mode) {
    case ScatterMode::kSet:
      return &RunShare<T, I, ScatterMode::kSet>;
    case ScatterMode::kAdd:
      return &RunShare<T, I, ScatterMode::kAdd>;
    case ScatterMode::kMul:
      return &RunShare<T, I, ScatterMode::kMul>;
    case ScatterMode::kMin:
      return &RunShare<T, I, ScatterMode::kMin>;
    case ScatterMode::kMax:
      break;
  }
  return &RunShare<T, I, ScatterMode::kMax>;
}

ShareFunction FunctionFor(ScatterMode mode, DType t, DType indices) {
  const auto of = [&]<class T>(T) {
    return indices == DType::kI32 ? FunctionFor<T, int32_t>(mode) : FunctionFor<T, int64_t>(mode);
  };
  if (t == DType::kF16) return of(NarrowElement<DType::kF16>{});
  if (t == DType::kBF16) return of(NarrowElement<DType::kBF16>{});
  if (t == DType::kBool) return of(uint8_t{});
  if (t == DType::kC64) return of(std::complex<float>{});
  if (t == DType::kC128) return of(std::complex<double>{});
  return WithNumberType(t, of);
}

class ScatterProgram final : public HostProgram {
 public:
  struct Operands {
    uint32_t x, indices, updates, y;
  };
  ScatterProgram(const ir::Scatter& op, const Task& task, const Operands& operands, int threads)
      : operands_(operands), in_place_(ir::UpdateOf(task.body())), threads_(threads) {
    const ir::Type &y = task.type(operands.y), &updates = task.type(operands.updates);
    const DType t = y.dtype();
    loops_ = LoopsOf(op, y, task.type(operands.indices), updates);
    run_ = FunctionFor(op.mode, t, task.type(operands.indices).dtype());
    const bool narrow = t == DType::kF16 || t == DType::kBF16;
    if (narrow && (op.mode == ScatterMode::kAdd || op.mode == ScatterMode::kMul))
      wide_bytes_ = static_cast<uint64_t>(y.elements().constant()) * sizeof(float);
    written_ = static_cast<uint64_t>(updates.elements().constant()) * StoredBytes(t);
  }
  std::string_view kernel() const override { return "scatter"; }
  uint64_t scratch_bytes() const override { return wide_bytes_; }
  std::optional<Update> update() const override {
    if (!in_place_) return std::nullopt;
    return Update{operands_.x, written_};
  }

  absl::Status Run(const HostArguments& a) const override {
    const std::span<uint8_t> x = a.operands[operands_.x], y = a.operands[operands_.y];
    if (!in_place_ && !y.empty()) std::memcpy(y.data(), x.data(), y.size());
    if (loops_.updates() == 0 || y.empty()) return absl::OkStatus();
    Memory m{y.data(), a.operands[operands_.indices].data(), a.operands[operands_.updates].data(),
             nullptr};
    if (wide_bytes_ > 0) m.wide = reinterpret_cast<float*>(a.operands[operands_.y + 1].data());
    Divide(m);
    return absl::OkStatus();
  }

 private:
  // Among threads: places of the outer axes, else runs, else ranges of indices, for which each
  // thread reads all indices.
  void Divide(const Memory& m) const {
    int64_t outer = 1;
    for (int64_t n : loops_.outer) outer *= n;
    Share all{0, outer, 0, loops_.run, 0, loops_.extent};
    const int threads = WorthThreads(static_cast<double>(loops_.updates()) * 4) ? threads_ : 1;
    int64_t Share::*begin = &Share::begin, Share::*end = &Share::end;
    int64_t grain = 1;
    if (outer >= threads) {
      begin = &Share::outer_begin, end = &Share::outer_end;
    } else if (loops_.run >= int64_t{kLine} * threads) {
      begin = &Share::run_begin, end = &Share::run_end;
      grain = kLine;
    } else if (loops_.axis.y == 1) {
      grain = kLine;
    }
    ParallelParts({all.*end, grain, threads}, [&](int, int64_t first, int64_t last) {
      Share s = all;
      s.*begin = first;
      s.*end = last;
      run_(loops_, s, m);
    });
  }

  static constexpr int kLine = 64;  // elements; no two threads write to one cache line
  Operands operands_;
  bool in_place_;
  int threads_;
  Loops loops_;
  ShareFunction run_;
  uint64_t wide_bytes_ = 0, written_ = 0;
};

class Scatter final : public Kernel {
 public:
  bool Knows(const Task& task) const override { return IsAnchoredBy<ir::Scatter>(task); }
  Verdict Takes(const Task& task) const override {
    if (task.body().nodes().size() != 1) return Verdict::No("scatter stands alone");
    return Verdict::Yes("scatter");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    const ir::Node& node = *task.anchor();
    const ScatterProgram::Operands operands{
        *task.OperandOf(node.in[0]), *task.OperandOf(node.in[1]), *task.OperandOf(node.in[2]),
        static_cast<uint32_t>(task.first_result())};
    return ProgramRef(std::make_shared<ScatterProgram>(*node.op.As<ir::Scatter>(), task, operands,
                                                       settings.threads));
  }
};

}  // namespace

const Kernel& ScatterKernel() {
  static const Scatter kKernel;
  return kKernel;
}

}  // namespace forge::cpu
