// SPDX-License-Identifier: Apache-2.0
// Executing a tape, block by block.
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "cpu_runtime/parallel.h"
#include "cpu_runtime/tape/tape.h"
#include "ir/dim/index_program.h"

namespace forge::cpu {
namespace {

// One thread's walk over a part of a box.
class BoxRunner {
 public:
  BoxRunner(const BoxProgram& program, std::span<uint8_t* const> operands, uint8_t* scratch)
      : p_(program), operands_(operands), registers_(program.places.size()) {
    for (size_t r = 0; r < registers_.size(); ++r)
      if (p_.places[r] < BoxProgram::kInResult) registers_[r] = scratch + p_.places[r];
    if (p_.rows)
      rows_ = std::make_unique<BoxRunner>(*p_.rows, operands, scratch + p_.scratch_bytes);
  }

  void Run(int64_t begin, int64_t end) {
    SetUp(begin, std::min<size_t>(kBlock, static_cast<size_t>(end - begin)));
    for (int64_t at = begin; at < end; at += static_cast<int64_t>(kBlock))
      RunBlock(at, std::min(kBlock, static_cast<size_t>(end - at)));
  }

 private:
  void SetUp(int64_t begin, size_t longest) {
    at_ = begin;
    n_ = longest;
    for (const Instruction& i : p_.setup) Execute(i);
    if (rows_) rows_->SetUp(begin / p_.row_length, longest);
  }

  void RunBlock(int64_t at, size_t n) {
    at_ = at;
    n_ = n;
    if (rows_) {
      const int64_t first = at / p_.row_length;
      const int64_t last = (at + static_cast<int64_t>(n) - 1) / p_.row_length;
      rows_->RunBlock(first, static_cast<size_t>(last - first + 1));
    }
    for (const auto& r : p_.in_result)
      registers_[r.reg] =
          operands_[r.to.operand] + (r.to.base + at_) * static_cast<int64_t>(r.bytes);
    for (const Instruction& i : p_.body) Execute(i);
  }

  void Execute(const Instruction& i) {
    std::visit([this](const auto& one) { Do(one); }, i);
  }
  template <class T>
  T* As(Register r) {
    return reinterpret_cast<T*>(registers_[r]);
  }

  // Elements of a block that lie in rows alike.
  struct Rows {
    int64_t address;
    size_t offset;  // in the block
    int64_t row_stride, stride;
    size_t rows, columns;
  };

  // Calls f(Rows) for as many rows of the innermost axis as lie evenly.
  template <class F>
  void ForEachRows(const Access& a, F f) {
    const size_t axes = p_.extents.size();
    if (axes == 0) return f(Rows{a.base, 0, 1, 1, 1, 1});
    Strides index(axes, 0);
    int64_t address = a.base, rest = at_;
    for (size_t k = axes; k-- > 0; rest /= p_.extents[k]) {
      index[k] = rest % p_.extents[k];
      address += index[k] * a.strides[k];
    }
    const size_t inner = axes - 1, outer = axes > 1 ? axes - 2 : 0;
    const auto columns = static_cast<size_t>(p_.extents[inner]);
    const int64_t row_stride = axes > 1 ? a.strides[outer] : 0;
    for (size_t done = 0; done < n_;) {
      Rows r{address, done, row_stride, a.strides[inner], 1, columns};
      if (index[inner] != 0 || n_ - done < columns || axes == 1)
        r.columns = std::min(n_ - done, columns - static_cast<size_t>(index[inner]));
      else
        r.rows =
            std::min((n_ - done) / columns, static_cast<size_t>(p_.extents[outer] - index[outer]));
      f(r);
      done += r.rows * r.columns;
      address -= index[inner] * a.strides[inner];
      index[inner] = 0;
      if (axes == 1) continue;
      const auto rows = static_cast<int64_t>(r.rows);
      index[outer] += rows;
      address += rows * row_stride;
      for (size_t k = outer; k > 0 && index[k] == p_.extents[k]; --k) {
        address += a.strides[k - 1] - index[k] * a.strides[k];
        index[k] = 0;
        ++index[k - 1];
      }
    }
  }

  void Do(const LoadInstruction& l) {
    const uint8_t* from = operands_[l.from.operand];
    const auto bytes = static_cast<int64_t>(StoredBytes(l.from.dtype));
    if (l.direct) {
      // Only ever read through this register.
      registers_[l.out] = const_cast<uint8_t*>(from) + (l.from.base + at_) * bytes;
      return;
    }
    const size_t held = HeldBytes(l.from.dtype);
    uint8_t* to = registers_[l.out];
    if (l.from.flat) return LoadRun(l.from.dtype, {from + (l.from.base + at_) * bytes, 1, n_}, to);
    ForEachRows(l.from, [&](const Rows& r) {
      LoadRows(l.from.dtype, {from + r.address * bytes, r.row_stride, r.stride, r.rows, r.columns},
               to + r.offset * held);
    });
  }

  void Do(const StoreInstruction& s) {
    const size_t held = HeldBytes(s.to.dtype);
    const auto bytes = static_cast<int64_t>(StoredBytes(s.to.dtype));
    uint8_t* to = operands_[s.to.operand];
    if (s.to.flat)
      return StoreRun(s.to.dtype, registers_[s.in], {to + (s.to.base + at_) * bytes, 1, n_});
    ForEachRows(s.to, [&](const Rows& r) {
      StoreRows(s.to.dtype, registers_[s.in] + r.offset * held,
                {to + r.address * bytes, r.row_stride, r.stride, r.rows, r.columns});
    });
  }

  void Do(const ConstantInstruction& c) {
    // A setup instruction: n_ is the longest block of this thread.
    Repeat(c.value.data(), c.bytes, registers_[c.out], n_);
  }

  static void Repeat(const uint8_t* one, size_t bytes, uint8_t* to, size_t n) {
    std::memcpy(to, one, bytes);
    for (size_t have = 1; have < n; have *= 2)
      std::memcpy(to + have * bytes, to, std::min(have, n - have) * bytes);
  }

  void Do(const ScalarInstruction& s) {
    const void* in[3] = {registers_[s.in[0]], registers_[s.in[1]], registers_[s.in[2]]};
    s.loop(s.self, in, registers_[s.out], n_);
  }

  void Do(const ConvertInstruction& c) { c.loop(registers_[c.in], registers_[c.out], n_); }

  void Do(const CoordinateInstruction& c) {
    int64_t* out = As<int64_t>(c.out);
    int64_t within = at_ % c.inner, index = at_ / c.inner % c.extent;
    for (size_t i = 0; i < n_; ++i) {
      out[i] = c.low + index;
      if (++within < c.inner) continue;
      within = 0;
      if (++index == c.extent) index = 0;
    }
  }

  void Do(const IndexInstruction& x) {
    const int64_t *a = As<int64_t>(x.a), *b = As<int64_t>(x.b);
    int64_t* out = As<int64_t>(x.out);
    const auto each = [&](auto op) {
      for (size_t i = 0; i < n_; ++i) out[i] = ir::Combine(op, a[i], b[i]);
    };
    using Op = ir::Dim::Op;
    if (x.op == Op::kAdd) return each(std::integral_constant<Op, Op::kAdd>());
    if (x.op == Op::kMul) return each(std::integral_constant<Op, Op::kMul>());
    if (x.op == Op::kMin) return each(std::integral_constant<Op, Op::kMin>());
    if (x.op == Op::kMax) return each(std::integral_constant<Op, Op::kMax>());
    each(x.op);
  }

  void Do(const InsideInstruction& x) {
    const int64_t *v = As<int64_t>(x.value), *low = As<int64_t>(x.low), *high = As<int64_t>(x.high);
    uint8_t* out = registers_[x.out];
    for (size_t i = 0; i < n_; ++i) out[i] = low[i] <= v[i] && v[i] < high[i];
  }

  void Do(const AndInstruction& x) {
    const uint8_t *a = registers_[x.a], *b = registers_[x.b];
    uint8_t* out = registers_[x.out];
    for (size_t i = 0; i < n_; ++i) out[i] = a[i] & b[i];
  }

  void Do(const GatherInstruction& g) {
    LoadAt(g.dtype, operands_[g.operand], As<int64_t>(g.address), g.limit, n_, registers_[g.out]);
  }

  // Calls f(row, its first column in the block, offset in the block, n) for each row of the block.
  template <class F>
  void ForEachRow(F f) {
    int64_t column = at_ % p_.row_length;
    for (size_t done = 0, row = 0; done < n_; column = 0, ++row) {
      const size_t n = std::min(n_ - done, static_cast<size_t>(p_.row_length - column));
      f(row, column, done, n);
      done += n;
    }
  }

  void Do(const RowRepeatInstruction& x) {
    const uint8_t* rows = rows_->registers_[x.row_value];
    ForEachRow([&](size_t row, int64_t, size_t offset, size_t n) {
      Repeat(rows + row * x.bytes, x.bytes, registers_[x.out] + offset * x.bytes, n);
    });
  }

  void Do(const RowGatherInstruction& g) {
    const int64_t* rows = rows_->As<int64_t>(g.row_address);
    ForEachRow([&](size_t row, int64_t column, size_t offset, size_t n) {
      LoadWithin(g, static_cast<uint64_t>(rows[row]) + static_cast<uint64_t>(column * g.stride), n,
                 registers_[g.out] + offset * HeldBytes(g.dtype));
    });
  }

  // Part of a row whose first element is at `address`, which may be anything.
  void LoadWithin(const RowGatherInstruction& g, uint64_t address, size_t n, uint8_t* to) {
    const uint8_t* from = operands_[g.operand];
    const uint64_t last = address + static_cast<uint64_t>(static_cast<int64_t>(n - 1) * g.stride);
    if (address >= g.limit && last >= g.limit && (last >= address) == (g.stride >= 0)) {
      std::memset(to, 0, n * HeldBytes(g.dtype));
      return;
    }
    if (address < g.limit && last < g.limit) {
      const auto bytes = static_cast<int64_t>(StoredBytes(g.dtype));
      return LoadRun(g.dtype, {from + static_cast<int64_t>(address) * bytes, g.stride, n}, to);
    }
    for (size_t i = 0; i < n; ++i, address += static_cast<uint64_t>(g.stride)) {
      const auto one = static_cast<int64_t>(address);
      LoadAt(g.dtype, from, &one, g.limit, 1, to + i * HeldBytes(g.dtype));
    }
  }

  void Do(const BlendInstruction& x) {
    SelectElements({registers_[x.mask], registers_[x.a], registers_[x.b]}, x.bytes, n_,
                   registers_[x.out]);
  }

  const BoxProgram& p_;
  std::span<uint8_t* const> operands_;
  absl::InlinedVector<uint8_t*, 64> registers_;
  std::unique_ptr<BoxRunner> rows_;
  int64_t at_ = 0;  // of the block's first element in the box
  size_t n_ = 0;    // elements of the block
};

}  // namespace

void Tape::Run(std::span<uint8_t* const> operands, uint8_t* scratch, int threads) const {
  for (const BoxProgram& box : boxes_) {
    const double work = static_cast<double>(box.elements) * static_cast<double>(box.body.size());
    ParallelParts({box.elements, kBlock, WorthThreads(work) ? threads : 1},
                  [&](int thread, int64_t begin, int64_t end) {
                    BoxRunner runner(box, operands, scratch + scratch_ * uint64_t(thread));
                    runner.Run(begin, end);
                  });
  }
}

}  // namespace forge::cpu
