// SPDX-License-Identifier: Apache-2.0
// Rules that ops share: see ir/op/define.h.
#include <cstring>

#include "ir/dim/index_program.h"
#include "ir/op/define.h"
#include "ir/op/elements.h"
#include "ir/type/host_value.h"

namespace forge::ir {
namespace {

// A movement op's map on bound operands, ready to run.
class BoundMap {
 public:
  static absl::StatusOr<BoundMap> Make(const AnyOp& op, Eval& e);
  absl::Status Run(Eval& e) const;

 private:
  struct Range {
    IndexProgram value, low, high;
  };
  struct Piece {
    int operand;
    std::vector<IndexProgram> index = {};
    std::vector<Range> when = {};
    std::optional<IndexProgram> value = {};
  };

  absl::Status AddLoads(const IndexMap& map, std::vector<SymbolRef>& variables);
  absl::Status AddPieces(const IndexMap& map, std::span<const SymbolRef> variables);
  absl::StatusOr<int64_t> Flat(const HostValue& from, std::span<const IndexProgram> index,
                               std::span<const int64_t> variables) const;
  bool Holds(const Piece& p, std::span<const int64_t> variables) const;

  std::vector<Piece> loads_;  // each defines one more variable
  std::vector<Piece> pieces_;
  Number fill_;
};

absl::StatusOr<std::vector<IndexProgram>> CompileAll(const Dims& dims,
                                                     std::span<const SymbolRef> variables) {
  std::vector<IndexProgram> out;
  for (const Dim& d : dims) {
    FORGE_ASSIGN_OR_RETURN(IndexProgram p, IndexProgram::Compile(d, variables));
    out.push_back(std::move(p));
  }
  return out;
}

absl::StatusOr<BoundMap> BoundMap::Make(const AnyOp& op, Eval& e) {
  Types types;
  for (size_t i = 0; i < e.inputs(); ++i) types.push_back(e.in(i) ? e.in(i)->type() : Type());
  std::vector<SymbolRef> variables;
  Dims at;
  for (int64_t extent : e.out(0).shape()) {
    variables.push_back(std::make_shared<Symbol>(Symbol{.name = "i" + std::to_string(at.size()),
                                                        .min = 0,
                                                        .max = std::max<int64_t>(extent - 1, 0)}));
    at.push_back(Dim(variables.back()));
  }
  const IndexMap map = op.Map(types, at);
  BoundMap bound;
  bound.fill_ = map.fill;
  FORGE_RETURN_IF_ERROR(bound.AddLoads(map, variables));
  FORGE_RETURN_IF_ERROR(bound.AddPieces(map, variables));
  return bound;
}

absl::Status BoundMap::AddLoads(const IndexMap& map, std::vector<SymbolRef>& variables) {
  for (const IndexMap::Load& load : map.loads) {
    Piece p{.operand = load.operand};
    FORGE_ASSIGN_OR_RETURN(p.index, CompileAll(load.index, variables));
    loads_.push_back(std::move(p));
    variables.push_back(load.defines);
  }
  return absl::OkStatus();
}

absl::Status BoundMap::AddPieces(const IndexMap& map, std::span<const SymbolRef> variables) {
  for (const IndexMap::Piece& piece : map.pieces) {
    Piece p{.operand = piece.operand};
    FORGE_ASSIGN_OR_RETURN(p.index, CompileAll(piece.index, variables));
    for (const IndexMap::Range& r : piece.when) {
      FORGE_ASSIGN_OR_RETURN(IndexProgram value, IndexProgram::Compile(r.value, variables));
      FORGE_ASSIGN_OR_RETURN(IndexProgram low, IndexProgram::Compile(r.low, variables));
      FORGE_ASSIGN_OR_RETURN(IndexProgram high, IndexProgram::Compile(r.high, variables));
      p.when.push_back({std::move(value), std::move(low), std::move(high)});
    }
    if (piece.value) {
      FORGE_ASSIGN_OR_RETURN(p.value, IndexProgram::Compile(*piece.value, variables));
    }
    pieces_.push_back(std::move(p));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> BoundMap::Flat(const HostValue& from, std::span<const IndexProgram> index,
                                       std::span<const int64_t> variables) const {
  FORGE_CHECK(index.size() == from.shape().size());
  int64_t flat = 0;
  for (size_t a = 0; a < index.size(); ++a) {
    const int64_t at = index[a].Run(variables);
    if (!from.Has(static_cast<int>(a), at))
      return OutOfRange("index {} of axis {} is outside 0..{}", at, a, from.shape()[a] - 1);
    flat = flat * from.shape()[a] + at;
  }
  return flat;
}

bool BoundMap::Holds(const Piece& p, std::span<const int64_t> variables) const {
  for (const Range& r : p.when) {
    const int64_t v = r.value.Run(variables);
    if (v < r.low.Run(variables) || v >= r.high.Run(variables)) return false;
  }
  return true;
}

void CopyElement(const HostValue& from, int64_t i, HostValue& to, int64_t o) {
  const int bits = BitWidth(to.dtype());
  if (bits % 8 != 0) return to.Set(o, from.f64(i));  // exact in f64
  const size_t bytes = static_cast<size_t>(bits / 8);
  std::memcpy(to.mutable_bytes().data() + static_cast<size_t>(o) * bytes,
              from.bytes().data() + static_cast<size_t>(i) * bytes, bytes);
}

void SetIndex(HostValue& to, int64_t at, int64_t number) {
  if (Has(kIntTypes, to.dtype())) return to.SetI64(at, number);
  to.Set(at, static_cast<double>(number));
}

absl::Status BoundMap::Run(Eval& e) const {
  HostValue& out = e.out(0);
  std::vector<int64_t> variables(out.shape().size() + loads_.size());
  int64_t flat = 0;
  for (Box at(out.shape()); at; at.Next(), ++flat) {
    std::copy((*at).begin(), (*at).end(), variables.begin());
    size_t next = out.shape().size();
    for (const Piece& load : loads_) {
      const HostValue& from = *e.in(static_cast<size_t>(load.operand));
      FORGE_ASSIGN_OR_RETURN(const int64_t i, Flat(from, load.index, variables));
      variables[next++] = from.i64(i);
    }
    const auto piece = std::find_if(pieces_.begin(), pieces_.end(),
                                    [&](const Piece& p) { return Holds(p, variables); });
    if (piece == pieces_.end()) {
      out.SetNumber(flat, fill_);
      continue;
    }
    if (piece->value) {
      SetIndex(out, flat, piece->value->Run(variables));
      continue;
    }
    const HostValue& from = *e.in(static_cast<size_t>(piece->operand));
    FORGE_ASSIGN_OR_RETURN(const int64_t i, Flat(from, piece->index, variables));
    CopyElement(from, i, out, flat);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status EvaluateMovement(const AnyOp& op, Eval& e) {
  FORGE_ASSIGN_OR_RETURN(const BoundMap map, BoundMap::Make(op, e));
  return map.Run(e);
}

Cost CostPerElement(const AnyOp& op, TypeSpan in) {
  const absl::StatusOr<Types> out = op.def().infer(op, in);
  if (!out.ok() || out->empty()) return {.flops = 0, .terms = 1};
  return {.flops = out->front().elements(), .terms = 1};
}

Cost CostOfMovement(const AnyOp&, TypeSpan) { return {.flops = 0, .terms = 0}; }

}  // namespace forge::ir
