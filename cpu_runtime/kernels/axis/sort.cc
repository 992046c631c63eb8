// SPDX-License-Identifier: Apache-2.0
// Sorts and the first k of sorted rows. Threads share the rows; a row that is alone is sorted by
// all of them.
#include "ir/ops/sorting/sort.h"

#include "cpu_runtime/kernels/axis/radix_sort.h"
#include "cpu_runtime/kernels/axis/rows_along.h"
#include "ir/ops/sorting/top_k.h"

namespace forge::cpu {
namespace {

struct SortPlan {
  RowsAlong rows;
  int64_t k = 0;  // of each row that are kept
  bool descending = false;
  uint32_t operand = 0;
  int threads = 1;

  int64_t count() const { return rows.outer * rows.inner; }
  bool sorts_all() const { return 4 * k > rows.along; }
  // Is each row sorted by all threads?
  bool together() const {
    constexpr int64_t kLongRow = 1 << 15;
    return count() < threads && rows.along >= kLongRow;
  }
  int row_threads() const {
    return WorthThreads(32.0 * static_cast<double>(rows.elements())) ? threads : 1;
  }
};

template <class T>
class SortCall final : public AnchorCall {
 public:
  explicit SortCall(const SortPlan& plan) : p_(plan) {}
  std::string_view kernel() const override { return p_.sorts_all() ? "sort" : "top_k"; }
  uint64_t scratch_bytes() const override {
    const int rooms = p_.sorts_all() && p_.together() ? 1 : p_.threads;
    return static_cast<uint64_t>(rooms) * static_cast<uint64_t>(Room()) * sizeof(Item);
  }

  absl::Status Run(const Arguments& a) const override {
    const auto* x = reinterpret_cast<const T*>(a.operands[p_.operand]);
    auto* items = reinterpret_cast<Item*>(a.scratch);
    const auto one = [&](int64_t row, int thread) {
      const int64_t outer = row / p_.rows.inner, inner = row % p_.rows.inner;
      const Row r{x + outer * p_.rows.along * p_.rows.inner + inner,
                  outer * p_.k * p_.rows.inner + inner, thread};
      Item* room = items + thread * Room();
      const Item* sorted = p_.sorts_all()  ? Sorted(r, room)
                           : p_.together() ? TopTogether(r, room)
                                           : Top(r, 0, p_.rows.along, room);
      Store(r, sorted, a);
    };
    if (p_.k == 0) return absl::OkStatus();
    if (p_.together())
      for (int64_t row = 0; row < p_.count(); ++row) one(row, 0);
    else
      ParallelParts({p_.count(), 1, p_.row_threads()}, [&](int thread, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) one(row, thread);
      });
    return absl::OkStatus();
  }

 private:
  using Item = ItemOf<T>;
  using Key = BitsOf<T>;
  static constexpr int64_t kBlock = 64;

  struct Row {
    const T* x;
    int64_t to;  // the first result
    int thread;
  };

  // Items that a thread needs room for, or all of them for a row that they sort together.
  int64_t Room() const { return p_.sorts_all() ? 2 * p_.rows.along : 2 * p_.k + kBlock; }

  T At(const Row& r, int64_t i) const { return r.x[i * p_.rows.inner]; }
  void FillItems(const Row& r, int64_t begin, int64_t end, Item* items) const {
    for (int64_t i = begin; i < end; ++i)
      items[i] = Item(KeyOf(At(r, i), p_.descending), static_cast<uint32_t>(i));
  }

  const Item* Sorted(const Row& r, Item* items) const {
    const auto n = static_cast<size_t>(p_.rows.along);
    constexpr int kBytes = sizeof(T);
    if (!p_.together()) {
      FillItems(r, 0, p_.rows.along, items);
      return RadixSort(items, items + n, n, kBytes);
    }
    ParallelParts({p_.rows.along, 1, p_.threads},
                  [&](int, int64_t begin, int64_t end) { FillItems(r, begin, end, items); });
    return ParallelRadixSort(items, items + n, n, kBytes, p_.threads);
  }

  // Might one of these elements come before `kth`? Equal ones do not, and NaN is looked at again.
  bool AnyBefore(const T* x, int64_t n, T kth) const {
    int any = 0;
    if (p_.descending) {
#pragma omp simd reduction(| : any)
      for (int64_t i = 0; i < n; ++i) any |= !(x[i] <= kth);
    } else {
#pragma omp simd reduction(| : any)
      for (int64_t i = 0; i < n; ++i) any |= !(x[i] >= kth);
    }
    return any != 0;
  }

  // The first k of elements begin .. end - 1, sorted. What is beyond the k-th of those kept so far
  // is not kept: later elements of equal keys come after it.
  const Item* Top(const Row& r, int64_t begin, int64_t end, Item* kept) const {
    int64_t count = 0;
    bool full = false;
    Key beyond = 0;
    T kth = 0, block[kBlock];
    const auto keep = [&](Key key, int64_t i) {
      if (full && key >= beyond) return;
      kept[count++] = Item(key, static_cast<uint32_t>(i));
      if (count < Room()) return;
      Cut(kept, count);
      count = p_.k;
      full = true;
      beyond = static_cast<Key>(kept[p_.k - 1].key());
      kth = At(r, kept[p_.k - 1].index());
    };
    for (int64_t first = begin; first < end; first += kBlock) {
      const int64_t n = std::min(kBlock, end - first);
      const T* x = r.x + first;
      if (p_.rows.inner > 1) {
        for (int64_t i = 0; i < n; ++i) block[i] = At(r, first + i);
        x = block;
      }
      if (full && !AnyBefore(x, n, kth)) continue;
      for (int64_t i = 0; i < n; ++i)
        if (!full || !(p_.descending ? x[i] <= kth : x[i] >= kth))
          keep(KeyOf(x[i], p_.descending), first + i);
    }
    Cut(kept, count);
    std::sort(kept, kept + std::min(count, p_.k));
    return kept;
  }
  // Moves the k least of `count` items to the front, the k-th to its place.
  void Cut(Item* items, int64_t count) const {
    if (count > p_.k) std::nth_element(items, items + p_.k - 1, items + count);
  }

  // Each thread looks for the first k of a part.
  const Item* TopTogether(const Row& r, Item* rooms) const {
    const int64_t n = p_.rows.along, threads = p_.threads;
    ParallelParts({threads, 1, p_.threads}, [&](int, int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        Top(r, n * t / threads, n * (t + 1) / threads, rooms + t * Room());
    });
    int64_t count = 0;
    for (int64_t t = 0; t < threads; ++t) {
      const int64_t some = std::min(p_.k, n * (t + 1) / threads - n * t / threads);
      std::copy_n(rooms + t * Room(), some, rooms + count);
      count += some;
    }
    Cut(rooms, count);
    std::sort(rooms, rooms + p_.k);
    return rooms;
  }

  void Store(const Row& r, const Item* sorted, const Arguments& a) const {
    auto* y = reinterpret_cast<T*>(a.out) + r.to;
    auto* index = reinterpret_cast<int64_t*>(a.more[0]) + r.to;
    const auto some = [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t from = sorted[i].index();
        y[i * p_.rows.inner] = At(r, from);
        index[i * p_.rows.inner] = from;
      }
    };
    ParallelParts({p_.k, 1, p_.together() && p_.sorts_all() ? p_.threads : 1}, some);
  }

  SortPlan p_;
};

struct Order {
  int64_t axis = -1;
  bool descending = false;
  std::optional<int64_t> k = {};
};
Order OrderOf(const ir::Node& node) {
  if (const auto* top = node.op.As<ir::TopK>()) return {top->axis, top->largest, top->k};
  const auto& op = *node.op.As<ir::Sort>();
  return {op.axis, op.descending, std::nullopt};
}

absl::StatusOr<MadeAnchor> MakeSort(const AnchorSite& site) {
  const ir::Node& node = *site.task.anchor();
  const Order order = OrderOf(node);
  SortPlan plan{.descending = order.descending,
                .operand = *site.task.OperandOf(node.in[0]),
                .threads = site.settings.threads};
  if (!IsRowMajor(site.out)) return Unimplemented("sort does not support permuted axes");
  const View& x = site.operands[plan.operand];
  FORGE_ASSIGN_OR_RETURN(plan.rows, RowsAlongOf(x, order.axis));
  plan.k = order.k.value_or(plan.rows.along);
  if (plan.rows.along > UINT32_MAX)
    return Unimplemented("sort of rows of {} elements", plan.rows.along);
  const auto make = [&]<class T>(T) -> std::unique_ptr<AnchorCall> {
    return std::make_unique<SortCall<T>>(plan);
  };
  return MadeAnchor{WithOrderedType(x.dtype, make), node.first_out};
}

class Sort final : public Kernel {
 public:
  bool Knows(const Task& task) const override {
    return IsAnchoredBy<ir::Sort>(task) || IsAnchoredBy<ir::TopK>(task);
  }
  Verdict Takes(const Task& task) const override {
    if (Verdict v = TakesEpilogue(task); !v) return v;
    return Verdict::Yes("sort");
  }
  absl::StatusOr<ProgramRef> Compile(const Task& task, const Settings& settings) const override {
    return MakeAnchorProgram(task, settings, MakeSort);
  }
};

}  // namespace

const Kernel& SortKernel() {
  static const Sort kKernel;
  return kKernel;
}

}  // namespace forge::cpu
