// SPDX-License-Identifier: Apache-2.0
// Attention of halves by matrices that subgroups hold. A subgroup has some rows of Q, their scores
// with a block of keys, their sums and their part of the result in registers; keys and values are
// copied past registers into shared memory, one block ahead of the one that is multiplied
// (FlashAttention-2, Dao 2023).
#include <limits>
#include <numbers>

#include "codegen/schedules/attention/attention.h"
#include "codegen/schedules/workgroup.h"

namespace forge::codegen {
namespace {
namespace attention_matrix {

using ir::Dim;
using ir::Dims;
using Operand = AttentionOperands::Operand;

struct AttentionMatrix {
  int64_t subgroups = 4;  // of a workgroup, each with rows of its own
  int64_t keys = 64;      // in shared memory at once
  static constexpr Field kFields[] = {
      FieldOf<&AttentionMatrix::subgroups>("subgroups", "Of a workgroup.", "2|4|8"),
      FieldOf<&AttentionMatrix::keys>("keys", "Of a block in shared memory.", "16|32|64|128")};
};

constexpr int64_t kStages = 2;  // blocks in shared memory
constexpr int64_t kVector = 4;  // halves in an element of shared memory

const MatrixShape* ShapeOf(const Region& r) {
  const DType type = r.anchor_inputs()[0].dtype();
  return BitWidth(type) == 16 ? r.caps().LargestMatrix(type, type) : nullptr;
}

std::optional<AttentionOperands> HalvesOf(const Region& r) {
  std::optional<AttentionOperands> a = AttentionOf(r);
  return a && BitWidth(r.anchor_inputs()[0].dtype()) == 16 ? a : std::nullopt;
}

// Numbers that follow from the parameters and the device.
struct Sizes {
  Sizes(const Region& r, const AttentionOperands& a, const AttentionMatrix& t)
      : shape(*ShapeOf(r)),
        threads(t.subgroups * r.caps().matrix_subgroup_size()),
        rows(t.subgroups * shape.m),
        keys(t.keys),
        steps(a.head / shape.k),
        blocks(t.keys / shape.n),
        columns(a.width / shape.n),
        q(Lines(rows, a.head)),
        k(Lines(kStages * t.keys, a.head)),
        v(Lines(kStages * t.keys, a.width)) {}
  // Of so many elements; they begin in different banks.
  static int64_t PitchOf(int64_t length) { return (length + kPiece) / kVector; }
  SharedArray Lines(int64_t count, int64_t length) const {
    return {Type{InMemory(shape.a)}.Lanes(kVector), count * PitchOf(length)};
  }
  // In the registers of an invocation: rows of Q, scores and the result.
  int64_t Registers() const {
    const int64_t lanes = threads / (rows / shape.m);
    return shape.m * (steps * shape.k / 2 + (blocks + columns) * shape.n) / lanes;
  }
  std::array<SharedArray, 3> Arrays() const { return {q, k, v}; }

  MatrixShape shape;
  int64_t threads, rows, keys;     // of a workgroup; keys of a block
  int64_t steps, blocks, columns;  // matrices along a head, a block's keys, the width
  SharedArray q, k, v;
};

// Whether lines of the operand can be copied past registers.
bool LiesInPieces(const Region& r, const AttentionOperands& a, Operand which) {
  const Dim extent = a.length(which);
  return LiesInPieces(r, a.PlaceOf(which), extent, [&](const Dim& lane) {
    const Dim line = Any(which == Operand::kQ ? a.rows : a.keys, 1);
    return a.IndexOf(r, which, Any(a.batch, 1), line, Any(extent, kPiece) + lane);
  });
}

// Values beside those of Registers(): maxima, sums, operands of a product, places.
constexpr int64_t kMostRegisters = 176;

Verdict Fits(const Region& r, const AttentionOperands& a, const AttentionMatrix& t) {
  const Caps& caps = r.caps();
  const MatrixShape* shape = ShapeOf(r);
  if (shape == nullptr) return Verdict::No("the device has no such matrices");
  if (!caps.matrix_values) return Verdict::No("kernels cannot compute matrices on the device");
  if (!caps.async_copies) return Verdict::No("the device copies nothing past registers");
  if (a.head % shape->k != 0 || a.width % shape->n != 0 || t.keys % shape->k != 0)
    return Verdict::No("heads are not made of whole matrices");
  if (a.rows.max() < shape->m) return Verdict::No("rows are fewer than a matrix has");
  for (const Operand which : {Operand::kQ, Operand::kK, Operand::kV})
    if (!LiesInPieces(r, a, which)) return Verdict::No("operands do not lie in pieces of 16 bytes");
  const Sizes s(r, a, t);
  if (s.Registers() > kMostRegisters) return Verdict::No("sums do not fit registers");
  return WorkgroupFits(s.threads, caps, s.Arrays(), caps.most_shared_bytes());
}

AttentionMatrix Defaults(const Region& r, const AttentionOperands& a) {
  AttentionMatrix t;
  const MatrixShape* shape = ShapeOf(r);
  if (shape == nullptr) return t;
  while (t.subgroups > 2 && a.rows.max() <= t.subgroups / 2 * shape->m) t.subgroups /= 2;
  while (t.keys > shape->k && (a.keys.max() <= t.keys / 2 || !Fits(r, a, t))) t.keys /= 2;
  return t;
}

class Tile {
 public:
  Tile(Emission& m, const AttentionOperands& a, const Sizes& s) : m_(m), a_(a), s_(s) {
    q_ = m.AddShared("q", s.q), k_ = m.AddShared("k", s.k), v_ = m.AddShared("v", s.v);
    m.launch.kernel.subgroup = static_cast<uint32_t>(s.threads / (s.rows / s.shape.m));
  }
  Dim count() const { return a_.batch * CeilDiv(a_.rows, s_.rows); }
  void Run(const Dim& at);

 private:
  // What a subgroup carries from block to block: the maximum of each row, the parts of its sum, and
  // its columns of the result.
  struct Rows {
    Val top, sum;
    std::span<Val> columns;
    explicit Rows(Vals& all) : top(all[0]), sum(all[1]), columns(std::span(all).subspan(2)) {}
    Vals All() const {
      Vals out = {top, sum};
      out.insert(out.end(), columns.begin(), columns.end());
      return out;
    }
  };
  Type Accumulator() const {
    return Type::Matrix(s_.shape.c, MatrixUse::kAccumulator, s_.shape.m, s_.shape.n);
  }
  // Begins to copy lines of an operand, from `first` on, to lines of shared memory.
  void Copy(Operand which, const Dim& first, int64_t count, const Dim& to);
  void CopyBlock(Val block, Val end);  // as a group
  Val Load(Operand which, MatrixUse use, const Dim& line, int64_t column) const;
  Vals Products(const Dim& stage);
  Vals Scores(const Dim& first, Vals products);
  // Passes the block's scores and values on to the rows' sums.
  Vals Block(const Dim& first, const Dim& stage, Vals so_far);
  void Finish(Vals all);
  void FinishColumn(int64_t column, absl::Span<const Val> values);

  uint16_t ViewOf(Operand which) const {
    return which == Operand::kQ ? q_ : which == Operand::kK ? k_ : v_;
  }
  int64_t PitchOf(Operand which) const { return Sizes::PitchOf(a_.length(which)); }
  int64_t last_block() const { return LastIndex(CeilDiv(a_.keys, s_.keys)); }

  Emission& m_;
  const AttentionOperands& a_;
  const Sizes& s_;
  uint16_t q_, k_, v_;
  Dim batch_, first_row_, own_row_, local_;  // rows of the workgroup, of the subgroup
  Vals rows_of_q_;
};

void Tile::Copy(Operand which, const Dim& first, int64_t count, const Dim& to) {
  const int64_t pieces = a_.length(which) / kPiece;
  const Dim extent = which == Operand::kQ ? a_.rows : a_.keys;
  ForUnits(m_, local_, s_.threads, count * pieces, [&](const Dim& unit, Val exists) {
    const Dims at = Unflatten(unit, {count, pieces});
    const Position line = Guard(m_, first + at[0], extent);
    const Elements::Place from = m_.e.PlaceOf(
        a_.PlaceOf(which), a_.IndexOf(m_.region, which, batch_, line.at, at[1] * kPiece), kPiece);
    const Val place = m_.e.Value((to + at[0]) * PitchOf(which) + at[1] * (kPiece / kVector));
    IfInside(m_.b, exists, [&] {
      m_.b.CopyAsync({ViewOf(which), place}, {from.view, from.index}, from.elements,
                     line.inside ? line.inside : m_.b.Literal(kBool, 1));
    });
  });
}

void Tile::CopyBlock(Val block, Val end) {
  m_.b.If(block < end, [&] {
    const Dim at = m_.e.Coordinate(block, last_block());
    for (const Operand which : {Operand::kK, Operand::kV})
      Copy(which, at * s_.keys, s_.keys, Mod(at, kStages) * s_.keys);
  });
  m_.b.CommitCopies();
}

// Columns of B are keys of K, and steps are keys of V.
Val Tile::Load(Operand which, MatrixUse use, const Dim& line, int64_t column) const {
  const MatrixShape& s = s_.shape;
  const Type type =
      use == MatrixUse::kA ? Type::Matrix(s.a, use, s.m, s.k) : Type::Matrix(s.b, use, s.k, s.n);
  return m_.b.MatrixLoad(ViewOf(which), type, m_.e.Value(line * PitchOf(which) + column / kVector),
                         m_.b.Int(PitchOf(which)), which == Operand::kK);
}

Vals Tile::Products(const Dim& stage) {
  Vals out;
  for (int64_t n = 0; n < s_.blocks; ++n) {
    Val sum = m_.b.Literal(Accumulator(), 0);
    for (int64_t k = 0; k < s_.steps; ++k)
      sum = m_.b.MatrixMulAdd(
          rows_of_q_[static_cast<size_t>(k)],
          Load(Operand::kK, MatrixUse::kB, stage * s_.keys + n * s_.shape.n, k * s_.shape.k), sum);
    out.push_back(sum);
  }
  return out;
}

Vals Tile::Scores(const Dim& first, Vals products) {
  for (size_t n = 0; n < products.size(); ++n)
    products[n] = m_.b.ForElements({products[n]}, 1, [&](Val r, Val c, const Vals& product) {
      const Dim column = m_.e.Coordinate(c, s_.shape.n - 1);
      const Position row = Guard(m_, own_row_ + m_.e.Coordinate(r, s_.shape.m - 1), a_.rows);
      const Position key = Guard(m_, first + int64_t(n) * s_.shape.n + column, a_.keys);
      const Val mask = a_.masked ? a_.Load(m_, Operand::kMask, batch_, row.at, key.at, 1) : Val();
      return Vals{a_.Score(m_, row.at, key, product[0], mask)};
    })[0];
  return products;
}

// exp(x - y), whose rounding to halves hides that of the device's own function.
Val Weight(Val x, Val y) { return native_exp2((x - y) * std::numbers::log2e); }

Vals Tile::Block(const Dim& first, const Dim& stage, Vals so_far) {
  Builder& b = m_.b;
  Rows rows(so_far);
  const auto each = [&](const Vals& matrices, absl::FunctionRef<Val(const Vals&)> of) {
    return b.ForElements(matrices, 1, [&](Val, Val, const Vals& x) { return Vals{of(x)}; })[0];
  };
  Vals weights = Scores(first, Products(stage));
  Vals all = weights;
  all.push_back(rows.top);
  const Val top = b.MatrixReduce(ReduceKind::kMax, each(all, [](const Vals& x) {
                                   Val most = x[0];
                                   for (const Val v : x) most = max(most, v);
                                   return most;
                                 }));
  for (Val& w : weights) w = each({w, top}, [](const Vals& x) { return Weight(x[0], x[1]); });
  const Val factor = each({rows.top, top}, [](const Vals& x) { return Weight(x[0], x[1]); });
  all = weights;
  all.insert(all.begin(), {rows.sum, factor});
  rows.sum = each(all, [](const Vals& x) {
    Val sum = x[0] * x[1];
    for (size_t n = 2; n < x.size(); ++n) sum = sum + x[n];
    return sum;
  });
  rows.top = top;
  for (Val& c : rows.columns) c = each({c, factor}, [](const Vals& x) { return x[0] * x[1]; });
  const auto together = static_cast<size_t>(s_.shape.k / s_.shape.n);
  const Type a = Type::Matrix(s_.shape.a, MatrixUse::kA, s_.shape.m, s_.shape.k);
  for (size_t n = 0; n < weights.size(); n += together) {
    const Val part = b.MatrixConvert(a, std::span(weights).subspan(n, together));
    const Dim line = stage * s_.keys + int64_t(n) * s_.shape.n;
    for (size_t c = 0; c < rows.columns.size(); ++c)
      rows.columns[c] = b.MatrixMulAdd(
          part, Load(Operand::kV, MatrixUse::kB, line, int64_t(c) * s_.shape.n), rows.columns[c]);
  }
  return rows.All();
}

void Tile::Run(const Dim& at) {
  Builder& b = m_.b;
  const Dim tiles = CeilDiv(a_.rows, s_.rows);
  const Dims place = Unflatten(at, {a_.batch, tiles});
  // Where later rows see more keys, they begin first.
  const Dim tile = a_.last ? tiles - 1 - place[1] : place[1];
  batch_ = place[0], first_row_ = tile * s_.rows;
  local_ = m_.e.Coordinate(b.Builtin(BuiltinKind::kLocalX), s_.threads - 1);
  const Dim own =
      m_.e.Coordinate(b.Builtin(BuiltinKind::kSubgroup), s_.rows / s_.shape.m - 1) * s_.shape.m;
  own_row_ = first_row_ + own;
  Copy(Operand::kQ, first_row_, s_.rows, 0);
  b.CommitCopies();
  const Builder::Range range =
      BlocksOf(m_, a_, {.row = first_row_, .count = s_.rows, .size = s_.keys});
  CopyBlock(range.begin, range.end);
  b.WaitCopies(1);
  b.Barrier();
  for (int64_t k = 0; k < s_.steps; ++k)
    rows_of_q_.push_back(Load(Operand::kQ, MatrixUse::kA, own, k * s_.shape.k));
  Vals start(static_cast<size_t>(2 + s_.columns), b.Literal(Accumulator(), 0));
  start[0] = b.Literal(Accumulator(), LowestOf(s_.shape.c));
  Finish(b.For(range, start, [&](Val i, Vals so_far) {
    b.WaitCopies(0);
    b.Barrier();  // all have copied theirs, and multiplied the block before
    CopyBlock(i + 1.0, range.end);
    const Dim block = m_.e.Coordinate(i, last_block());
    return Block(block * s_.keys, Mod(block, kStages), std::move(so_far));
  }));
}

// Values are the column's, 1 over the sum of each row, and the logarithm of that sum where it is
// asked for.
void Tile::FinishColumn(int64_t column, absl::Span<const Val> values) {
  const auto lanes = static_cast<int>(m_.region.caps().elements_together);
  m_.b.ForElements(values, lanes, [&](Val r, Val c, const Vals& x) {
    const Position row = Guard(m_, own_row_ + m_.e.Coordinate(r, s_.shape.m - 1), a_.rows);
    const Dim first = m_.e.Coordinate(c, s_.shape.n - lanes, lanes);
    IfInside(m_.b, row.inside, [&] {
      Dims index = Unflatten(batch_, a_.outer);
      index.push_back(row.at);
      index.push_back(column * s_.shape.n + first + m_.e.Lane(lanes));
      m_.e.Finish(index, x[0] * x[1], lanes);
      if (x.size() < 3) return;
      index.back() = 0;
      m_.b.If(c == 0.0, [&] { m_.e.Finish(index, m_.b.Extract(x[2], 0), 1, 1); });
    });
    return Vals{};
  });
}

void Tile::Finish(Vals all) {
  const Rows rows(all);
  const Val sum = m_.b.MatrixReduce(ReduceKind::kSum, rows.sum);
  const Vals of_rows = m_.b.ForElements({sum, rows.top}, 1, [&](Val, Val, const Vals& x) {
    // A row in which nothing counted is 0.
    const Val divisor = select(x[0] == 0.0, 1.0, x[0]);
    Vals out = {1.0 / divisor};
    const double infinity = std::numeric_limits<double>::infinity();
    if (a_.log_sums) out.push_back(select(x[0] == 0.0, infinity, x[1] + log(divisor)));
    return out;
  });
  for (int64_t c = 0; c < s_.columns; ++c) {
    Vals values = {rows.columns[static_cast<size_t>(c)], of_rows[0]};
    if (c == 0 && a_.log_sums) values.push_back(of_rows[1]);
    FinishColumn(c, values);
  }
}

Program Emit(const Region& r, const AttentionOperands& a, const AttentionMatrix& t) {
  const Sizes s(r, a, t);
  Emission m(r, fmt::format("attention_matrix_{}x{}", s.rows, s.keys),
             {static_cast<uint32_t>(s.threads), 1, 1});
  Tile tile(m, a, s);
  m.Guarded(m.Workgroups(tile.count()), [&](const Dim& at) { tile.Run(at); });
  return OneLaunch(std::move(m).Take());
}

}  // namespace attention_matrix
}  // namespace

const Schedule kAttentionMatrix =
    ScheduleOn<attention_matrix::AttentionMatrix, attention_matrix::HalvesOf,
               attention_matrix::Defaults, attention_matrix::Fits, attention_matrix::Emit>(
        "attention_matrix");

}  // namespace forge::codegen
