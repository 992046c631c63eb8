// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/attention/attention.h"

#include <limits>

#include "codegen/schedules/split.h"

namespace forge::codegen {

using ir::Dim;
using ir::Dims;

Builder::Range BlocksOf(Emission& m, const Dim& extent, int64_t size, const Between& seen) {
  Builder& b = m.b;
  Builder::Range range = {b.Int(0), b.Scalar(CeilDiv(extent, size)), b.Int(1)};
  const Val zero = range.begin;
  const auto block = [&](const Dim& at) {
    return QuotientOf(max(m.e.Value(at), zero), b.Int(size));
  };
  if (seen.first) range.begin = block(*seen.first);
  if (seen.last) range.end = min(range.end, block(*seen.last + size));
  return range;
}

Builder::Range BlocksOf(Emission& m, const AttentionOperands& a, const KeyBlocks& blocks) {
  Between seen;
  if (a.first) seen.first = blocks.row + *a.first;
  if (a.last) seen.last = blocks.row + *a.last + blocks.count - 1;
  Builder::Range range = BlocksOf(m, a.keys, blocks.size, seen);
  if (blocks.parts > 1) {
    const AxisPart own(CeilDiv(a.keys, blocks.size), blocks.part, blocks.parts);
    range.begin = max(range.begin, m.e.Value(own.begin));
    range.end = min(range.end, m.e.Value(own.end));
  }
  return range;
}

Dims AttentionOperands::IndexOf(const Region& r, Operand which, const Dim& batch, const Dim& i,
                                const Dim& j) const {
  Dims index = Unflatten(batch, outer);
  index.push_back(i);
  index.push_back(j);
  return BroadcastIndex(index, r.anchor_inputs()[static_cast<size_t>(PlaceOf(which))].shape());
}

Val AttentionOperands::Load(Emission& m, Operand which, const Dim& batch, const Dim& i,
                            const Dim& j, int lanes) const {
  return m.e.At(PlaceOf(which), IndexOf(m.region, which, batch, i, j + m.e.Lane(lanes)), lanes);
}

Val AttentionOperands::Score(Emission& m, const Dim& row, const Position& key, Val product,
                             Val mask) const {
  Val score = product * scale;
  if (softcap != 0) score = tanh(score / softcap) * softcap;
  Val counts = key.inside;
  if (first) {
    const Val least = m.e.Value(row + *first);
    counts = Both(counts, m.e.Value(key.at) >= least);
  }
  if (last) {
    const Val most = m.e.Value(row + *last);
    counts = Both(counts, m.e.Value(key.at) <= most);
  }
  if (mask && mask_chooses)
    counts = Both(counts, mask);
  else if (mask)
    score = score + mask;
  return Where(counts, score, -std::numeric_limits<double>::infinity());
}

std::optional<AttentionOperands> AttentionOf(const Region& r) {
  const auto* op = r.AnchorAs<ir::Attention>();
  if (op == nullptr) return std::nullopt;
  std::optional<AttentionOperands> a = OperandsOf(r, *op, 3);
  if (a) a->log_sums = op->log_sums;
  return a;
}

std::optional<AttentionOperands> OperandsOf(const Region& r, const ir::Attention& op, int mask_at) {
  const ir::Types& in = r.anchor_inputs();
  const Dims &q = in[0].shape(), &k = in[1].shape(), &v = in[2].shape();
  if (!q.back().is_constant() || q.back() == Dim(0) || !v.back().is_constant()) return std::nullopt;
  AttentionOperands a;
  const Dims& out = r.anchor_output().shape();
  a.outer.assign(out.begin(), out.end() - 2);
  a.batch = ir::Product(a.outer);
  a.rows = q[q.size() - 2];
  a.keys = k[k.size() - 2];
  a.head = q.back().constant();
  a.width = v.back().constant();
  a.scale = op.ScaleFor(a.head);
  a.softcap = op.softcap;
  const ir::Attention::Band band = op.BandOf(a.rows, a.keys);
  a.first = band.first, a.last = band.last;
  a.type = AccumulatorOf(r.anchor_output().dtype());
  for (int which : {AttentionOperands::kQ, AttentionOperands::kK, AttentionOperands::kV})
    a.lanes[static_cast<size_t>(which)] = LanesAlongLast(r, which);
  a.mask_at = mask_at;
  a.masked = r.has_input(mask_at);
  if (a.masked) {
    const ir::Type& mask = in[static_cast<size_t>(mask_at)];
    const Dims& shape = mask.shape();
    a.mask_chooses = mask.dtype() == DType::kBool;
    a.mask_by_key = shape.size() < 2 || shape[shape.size() - 2] == Dim(1);
    if (!shape.empty() && shape.back() == a.keys)
      a.lanes[AttentionOperands::kMask] = LanesAlongLast(r, mask_at);
  }
  return a;
}

OnlineRows::OnlineRows(Emission& m, const AttentionOperands& a, size_t rows, size_t values)
    : values(values), all(rows * (values + 2), m.b.Literal(a.type, 0)) {
  // Not -inf, whose difference to itself is no number.
  for (size_t r = 0; r < rows; ++r) top(r) = m.b.Literal(a.type, LowestOf(a.type.elem));
}

void OnlineRows::Raise(size_t row, std::span<const Val> scores) {
  Val highest = top(row);
  for (Val s : scores) highest = max(highest, s);
  const Val factor = exp(top(row) - highest);
  top(row) = highest;
  sum(row) = sum(row) * factor;
  for (size_t i = 0; i < values; ++i) value(row, i) = value(row, i) * factor;
}

void OnlineRows::Finish(Emission& m, const AttentionOperands& a, size_t row, const Place& to) {
  // A row in which nothing counted is 0.
  const Val divisor = select(sum(row) == 0.0, 1.0, sum(row));
  IfInside(m.b, to.row.inside, [&] {
    for (size_t i = 0; i < values; i += static_cast<size_t>(to.lanes)) {
      const Position column = Guard(m, to.column + static_cast<int64_t>(i), a.width);
      IfInside(m.b, column.inside, [&] {
        Vals part;
        for (int c = 0; c < to.lanes; ++c)
          part.push_back(value(row, i + static_cast<size_t>(c)) / divisor);
        Dims index = Unflatten(to.batch, a.outer);
        index.push_back(to.row.at);
        index.push_back(column.at + m.e.Lane(to.lanes));
        m.e.Finish(index, Packed(part), to.lanes);
      });
    }
    if (!a.log_sums) return;
    const auto finish = [&] {
      Dims index = Unflatten(to.batch, a.outer);
      index.push_back(to.row.at);
      index.emplace_back(0);
      const double infinity = std::numeric_limits<double>::infinity();
      const Val sum_of_row = top(row) + log(divisor);
      m.e.Finish(index, select(sum(row) == 0.0, infinity, sum_of_row), 1, 1);
    };
    if (to.column == Dim(0))
      finish();
    else
      m.b.If(m.e.Value(to.column) == 0, finish);
  });
}

OnlineRows ForBlocks(Emission& m, const AttentionOperands& a, const KeyBlocks& blocks,
                     absl::FunctionRef<void(const Dim& first, OnlineRows& rows)> body) {
  OnlineRows rows(m, a, blocks.own_rows, blocks.values);
  const int64_t last = LastIndex(CeilDiv(a.keys, blocks.size));
  rows.all = m.b.For(BlocksOf(m, a, blocks), rows.all, [&](Val i, const Vals& carried) {
    OnlineRows so_far{blocks.values, carried};
    body(m.e.Coordinate(i, last) * blocks.size, so_far);
    return so_far.all;
  });
  return rows;
}

}  // namespace forge::codegen
