// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedules/attention.h"

#include "ir/ops/attention.h"

namespace forge::codegen {
namespace {

using ir::Dim;
using ir::Dims;

bool Has(const Region& r, size_t operand) {
  return r.anchor_inputs().size() > operand && r.anchor_inputs()[operand];
}

// The blocks that some of the rows see.
Builder::Range RangeOf(Emission& m, const AttentionOperands& a, const KeyBlocks& blocks) {
  Builder& b = m.b;
  Builder::Range range = {b.Int(0), b.Scalar(CeilDiv(a.keys, blocks.size)), b.Int(1)};
  const Val zero = range.begin;
  const auto block = [&](const Dim& key) {
    return QuotientOf(max(m.e.Value(key), zero), b.Int(blocks.size));
  };
  if (a.first) range.begin = block(blocks.row + *a.first);
  if (a.last)
    range.end = min(range.end, block(blocks.row + *a.last + blocks.count + blocks.size - 1));
  return range;
}

OnlineRow StartRow(Builder& b, Type type, size_t values) {
  const Val zero = b.Literal(type, 0);
  // Not -inf, whose difference to itself is no number.
  return {b.Literal(type, std::numeric_limits<float>::lowest()), zero, Vals(values, zero)};
}

}  // namespace

Val AttentionOperands::Load(Emission& m, Operand which, const Dim& batch, const Dim& i,
                            const Dim& j, int lanes) const {
  Dims index = Unflatten(batch, outer);
  index.push_back(i);
  index.push_back(j + m.e.Lane(lanes));
  const Dims& shape = m.region.anchor_inputs()[which].shape();
  return m.e.At(which, BroadcastIndex(index, shape), lanes);
}

Val AttentionOperands::Score(Emission& m, const Dim& row, const Position& key, Val product,
                             Val mask) const {
  Val score = product * scale;
  if (softcap != 0) score = tanh(score / softcap) * softcap;
  Val counts = key.inside;
  if (first) counts = Both(counts, m.e.Value(key.at) >= m.e.Value(row + *first));
  if (last) counts = Both(counts, m.e.Value(key.at) <= m.e.Value(row + *last));
  if (mask && mask_chooses)
    counts = Both(counts, mask);
  else if (mask)
    score = score + mask;
  return Where(counts, score, -std::numeric_limits<double>::infinity());
}

Dims AttentionOperands::Out(const Dim& batch, const Dim& row, const Dim& column) const {
  Dims index = Unflatten(batch, outer);
  index.push_back(row);
  index.push_back(column);
  return index;
}

std::optional<AttentionOperands> AttentionOf(const Region& r) {
  const auto* op = r.AnchorAs<ir::Attention>();
  if (op == nullptr) return std::nullopt;
  const ir::Types& in = r.anchor_inputs();
  const Dims &q = in[0].shape(), &k = in[1].shape(), &v = in[2].shape();
  if (!q.back().is_constant() || !v.back().is_constant()) return std::nullopt;
  AttentionOperands a;
  const Dims& out = r.anchor_output().shape();
  a.outer.assign(out.begin(), out.end() - 2);
  a.batch = ir::Product(a.outer);
  a.rows = q[q.size() - 2];
  a.keys = k[k.size() - 2];
  a.head = q.back().constant();
  a.width = v.back().constant();
  a.scale = op->ScaleFor(a.head);
  a.softcap = op->softcap;
  const ir::Attention::Band band = op->BandOf(a.rows, a.keys);
  a.first = band.first, a.last = band.last;
  a.type = AccumulatorOf(r.anchor_output().dtype());
  a.q_lanes = LanesAlongLast(r, AttentionOperands::kQ);
  a.k_lanes = LanesAlongLast(r, AttentionOperands::kK);
  a.v_lanes = LanesAlongLast(r, AttentionOperands::kV);
  a.masked = Has(r, AttentionOperands::kMask);
  if (a.masked) {
    const ir::Type& mask = in[AttentionOperands::kMask];
    const Dims& shape = mask.shape();
    a.mask_chooses = mask.dtype() == DType::kBool;
    a.mask_by_key = shape.size() < 2 || shape[shape.size() - 2] == Dim(1);
    if (!shape.empty() && shape.back() == a.keys)
      a.mask_lanes = LanesAlongLast(r, AttentionOperands::kMask);
  }
  return a;
}

void Raise(OnlineRow& row, std::span<const Val> scores) {
  Val top = row.top;
  for (Val s : scores) top = max(top, s);
  const Val factor = exp(row.top - top);
  row.top = top;
  row.sum = row.sum * factor;
  for (Val& v : row.values) v = v * factor;
}

Val Divisor(const OnlineRow& row) { return select(row.sum == 0.0, 1.0, row.sum); }

Vals Flat(std::span<const OnlineRow> rows) {
  Vals out;
  for (const OnlineRow& r : rows) {
    out.push_back(r.top);
    out.push_back(r.sum);
    out.insert(out.end(), r.values.begin(), r.values.end());
  }
  return out;
}

OnlineRows Rows(std::span<const Val> flat, size_t rows) {
  OnlineRows out;
  const size_t length = flat.size() / rows;
  for (size_t i = 0; i < rows; ++i) {
    const auto part = flat.subspan(i * length, length);
    out.push_back({part[0], part[1], Vals(part.begin() + 2, part.end())});
  }
  return out;
}

OnlineRows ForBlocks(Emission& m, const AttentionOperands& a, const KeyBlocks& blocks, size_t rows,
                     size_t values,
                     absl::FunctionRef<void(const Dim& first, OnlineRows& rows)> body) {
  const OnlineRows start(rows, StartRow(m.b, a.type, values));
  const int64_t last = LastIndex(CeilDiv(a.keys, blocks.size));
  return Rows(m.b.For(RangeOf(m, a, blocks), Flat(start),
                      [&](Val i, const Vals& carried) {
                        OnlineRows so_far = Rows(carried, rows);
                        body(m.e.Coordinate(i, last) * blocks.size, so_far);
                        return Flat(so_far);
                      }),
              rows);
}

}  // namespace forge::codegen
