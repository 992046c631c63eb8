// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/tape/box_builder.h"

#include <algorithm>
#include <cstring>

namespace forge::cpu {
namespace {

constexpr size_t kMaxRegisters = 1024;
constexpr int kMaxRegionDepth = 256;  // a region's chain of nodes, and indices within indices

}  // namespace

BoxBuilder::BoxBuilder(const TapeSpec& spec, const Box& box, bool may_cut)
    : spec_(spec), box_(box), may_cut_(may_cut) {
  size_t rank = 0;
  for (const BoxAxis& a : box) rank = std::max(rank, a.axis + 1);
  origin_.assign(rank, ir::Dim(0));
  program_.elements = 1;
  for (size_t i = 0; i < box.size(); ++i) {
    const BoxAxis& a = box[i];
    if (a.extent() == 1) {
      origin_[a.axis] = origin_[a.axis] + a.low * a.step;
      continue;
    }
    axes_.push_back(i);
    symbols_.push_back(std::make_shared<ir::Symbol>(
        ir::Symbol{.name = fmt::format("i{}", i), .min = a.low, .max = a.high - 1}));
    origin_[a.axis] = origin_[a.axis] + ir::Dim(symbols_.back()) * a.step;
    program_.extents.push_back(a.extent());
    program_.elements *= a.extent();
  }
}

void BoxBuilder::Fail(absl::Status s) {
  if (status_.ok()) status_ = std::move(s);
}

Register BoxBuilder::New(DType t) {
  if (types_.size() >= kMaxRegisters) {
    Fail(Unimplemented("a region needs more than {} registers", kMaxRegisters));
    return 0;
  }
  types_.push_back(HeldAs(t));
  return static_cast<Register>(types_.size() - 1);
}

absl::Status BoxBuilder::Build(std::span<const Placed* const> results) {
  for (const Placed* r : results) {
    const Register reg = Demand(r->value, origin_);
    if (!status_.ok() || cut_) return status_;
    Write(*r, reg);
  }
  return status_;
}

Register BoxBuilder::Demand(uint32_t value, const ir::Dims& at) {
  if (!status_.ok() || cut_) return 0;
  if (depth_ >= kMaxRegionDepth) {
    Fail(Unimplemented("a region is nested deeper than {} nodes", kMaxRegionDepth));
    return 0;
  }
  for (const Known& k : known_[value])
    if (k.at == at) return k.reg;
  ++depth_;
  const Register reg = Compute(value, at);
  --depth_;
  known_[value].push_back({at, reg});
  return reg;
}

Register BoxBuilder::Compute(uint32_t value, const ir::Dims& at) {
  for (const Placed& s : spec_.sources)
    if (s.value == value) return Load(s, at);
  const ir::Function& f = spec_.body;
  if (f.origin(value).kind != ir::Function::Origin::kNode) {
    Fail(Internal("value {} of region {} has no operand", value, f.name()));
    return 0;
  }
  const ir::Node& node = f.nodes()[f.origin(value).index];
  if (node.op.def().scalar) return Scalar(node, at);
  if (node.op.def().map) return Move(node, at);
  Fail(Internal("{} inside an element-wise region", node.op.name()));
  return 0;
}

Register BoxBuilder::Load(const Placed& source, const ir::Dims& at) {
  ir::Dim address = 0;
  for (size_t a = 0; a < at.size(); ++a)
    if (source.view.shape[a] != 1) address = address + at[a] * source.view.strides[a];
  const DType t = source.view.dtype;
  if (std::optional<Access> access = AccessOf(source, address))
    return Emit(LoadInstruction{New(t), std::move(*access)});
  Untangle(address);
  if (cut_) return 0;
  if (const std::optional<Register> rows = LoadRows(source, address)) return *rows;
  const Register index = IndexOf(address);
  return Emit(GatherInstruction{New(t), index, source.operand, t,
                                static_cast<uint64_t>(source.view.limit())});
}

// Nullopt where the address is not affine, or may leave the operand (under a condition that holds
// for a part of the box only).
std::optional<Access> BoxBuilder::AccessOf(const Placed& p, const ir::Dim& address) const {
  const std::optional<Affine> affine = AsAffine(address);
  if (!affine) return std::nullopt;
  Access access{p.operand, p.view.dtype, affine->constant, Strides(axes_.size(), 0), false};
  int64_t low = 0, high = 0;
  size_t found = 0;
  for (size_t i = 0; i < axes_.size(); ++i) {
    const auto it = affine->coefficients.find(symbols_[i]);
    if (it == affine->coefficients.end()) continue;
    ++found;
    access.strides[i] = it->second;
    access.base += it->second * box_[axes_[i]].low;
    const int64_t span = it->second * (program_.extents[i] - 1);
    (span < 0 ? low : high) += span;
  }
  if (found != affine->coefficients.size()) return std::nullopt;
  if (access.base + low < 0 || access.base + high >= p.view.limit()) return std::nullopt;
  SetFlat(access);
  return access;
}

void BoxBuilder::SetFlat(Access& a) const {
  int64_t step = 1;
  a.flat = true;
  for (size_t i = program_.extents.size(); i-- > 0;) {
    a.flat &= a.strides[i] == step;
    step *= program_.extents[i];
  }
}

Register BoxBuilder::Scalar(const ir::Node& node, const ir::Dims& at) {
  const ir::Function& f = spec_.body;
  ScalarInstruction s{};
  s.arity = static_cast<uint8_t>(node.in.size());
  for (size_t i = 0; i < node.in.size(); ++i) {
    const ir::Dims& shape = f.type(node.in[i]).shape();
    const size_t skipped = at.size() - shape.size();
    ir::Dims index;
    for (size_t a = 0; a < shape.size(); ++a)
      index.push_back(shape[a] == 1 ? ir::Dim(0) : at[skipped + a]);
    s.in[i] = Demand(node.in[i], index);
  }
  if (!status_.ok() || cut_) return 0;
  const ir::ScalarDef& def = *node.op.def().scalar;
  if (def.info.result == ir::ResultType::kAttribute) return Cast(node, s.in[0]);
  s.loop = FindScalarLoop(def, HeldAs(f.type(node.in.back()).dtype()));
  if (s.loop == nullptr) {
    Fail(Unimplemented("{} has no loop for {}", node.op.name(),
                       Name(f.type(node.in.back()).dtype())));
    return 0;
  }
  ops_.push_back(node.op);
  s.self = ops_.back().self();
  s.out = New(f.type(node.first_out).dtype());
  return Emit(s);
}

Register BoxBuilder::Cast(const ir::Node& node, Register in) {
  const DType from = spec_.body.type(node.in[0]).dtype();
  const DType to = spec_.body.type(node.first_out).dtype();
  const ConvertLoop loop = FindConvertLoop(from, to);
  if (loop == nullptr) {
    Fail(Unimplemented("{} has no loop from {} to {}", node.op.name(), Name(from), Name(to)));
    return 0;
  }
  return Emit(ConvertInstruction{New(to), in, loop});
}

Register BoxBuilder::Move(const ir::Node& node, const ir::Dims& at) {
  const ir::Types in = spec_.body.TypesOf(node.in);
  const ir::IndexMap map = node.op.Map(in, at);
  for (const ir::IndexMap::Load& load : map.loads)
    definitions_[load.defines] = {node.in[static_cast<size_t>(load.operand)], load.index};
  const DType t = spec_.body.type(node.first_out).dtype();
  std::vector<std::pair<Register, Register>> undecided;  // mask, value
  std::optional<Register> result;
  for (const ir::IndexMap::Piece& piece : map.pieces) {
    Truth holds = Truth::kYes;
    for (const auto& range : piece.when)
      if (const Truth one = Decide(range); one == Truth::kNo)
        holds = Truth::kNo;
      else if (one == Truth::kUnknown && holds == Truth::kYes)
        holds = Truth::kUnknown;
    if (cut_) return 0;
    if (holds == Truth::kNo) continue;
    const Register value = piece.value
                               ? NumberOf(*piece.value, t)
                               : Demand(node.in[static_cast<size_t>(piece.operand)], piece.index);
    if (holds == Truth::kYes) {
      result = value;
      break;
    }
    undecided.emplace_back(MaskOf(piece.when), value);
  }
  if (!result) result = Literal(t, map.fill);
  for (size_t i = undecided.size(); i-- > 0;)
    result = Emit(
        BlendInstruction{New(t), undecided[i].first, undecided[i].second, *result, HeldBytes(t)});
  return *result;
}

BoxBuilder::Truth BoxBuilder::Decide(const ir::IndexMap::Range& range) {
  const ir::Dim above = range.value - range.low, below = range.high - range.value;
  if (above.max() < 0 || below.max() <= 0) return Truth::kNo;
  if (above.min() >= 0 && below.min() >= 1) return Truth::kYes;
  for (const ir::Dim& distance : {above, range.value - range.high}) {
    TryCut(distance);
    Untangle(distance);
  }
  return Truth::kUnknown;
}

Register BoxBuilder::Literal(DType t, const Number& v) {
  ConstantInstruction c{New(t), {}, HeldBytes(t)};
  HeldNumber(t, v, c.value.data());
  return Emit(c);
}

Register BoxBuilder::NumberOf(const ir::Dim& d, DType t) {
  const Register number = IndexOf(d);
  if (t == DType::kI64) return number;
  const ConvertLoop convert = FindConvertLoop(DType::kI64, t);
  if (convert == nullptr) {
    Fail(Unimplemented("indices have no conversion to {}", Name(t)));
    return 0;
  }
  return Emit(ConvertInstruction{New(t), number, convert});
}

Register BoxBuilder::Whole(int64_t v) {
  ConstantInstruction c{New(DType::kI64), {}, sizeof(int64_t)};
  std::memcpy(c.value.data(), &v, sizeof v);
  return Emit(c);
}

Register BoxBuilder::IndexOf(const ir::SymbolRef& symbol) {
  if (const auto it = loaded_.find(symbol); it != loaded_.end()) return it->second;
  if (const auto it = definitions_.find(symbol); it != definitions_.end()) {
    const auto [value, at] = it->second;
    const ConvertLoop widen = FindConvertLoop(spec_.body.type(value).dtype(), DType::kI64);
    if (widen == nullptr) {
      Fail(Unimplemented("an index is read from {}", spec_.body.type(value).ToText()));
      return 0;
    }
    const Register element = Demand(value, at);
    return loaded_[symbol] = Emit(ConvertInstruction{New(DType::kI64), element, widen});
  }
  int64_t inner = 1;
  for (size_t i = symbols_.size(); i-- > 0; inner *= program_.extents[i])
    if (symbols_[i] == symbol)
      return loaded_[symbol] = Emit(CoordinateInstruction{New(DType::kI64), inner,
                                                          program_.extents[i], box_[axes_[i]].low});
  Fail(Unimplemented("an index depends on {}, which is not bound", symbol->name));
  return 0;
}

Register BoxBuilder::IndexOf(const ir::Dim& d) {
  const ir::Dim::Part part = d.part();
  if (part.op == ir::Dim::Op::kConstant) return Whole(part.constant);
  if (part.op == ir::Dim::Op::kSymbol) return IndexOf(part.symbol);
  if (IsOfRows(d))
    return RepeatRows(DType::kI64, [&](BoxBuilder& rows) { return rows.IndexOf(d); });
  if (++depth_ > kMaxRegionDepth) {
    Fail(Unimplemented("an index is nested deeper than {}", kMaxRegionDepth));
    return 0;
  }
  Register all = IndexOf(part.operands[0]);
  for (size_t i = 1; i < part.operands.size(); ++i) {
    const Register next = IndexOf(part.operands[i]);
    all = Emit(IndexInstruction{New(DType::kI64), all, next, part.op});
  }
  --depth_;
  return all;
}

Register BoxBuilder::MaskOf(std::span<const ir::IndexMap::Range> when) {
  const bool of_rows = std::all_of(when.begin(), when.end(), [&](const auto& range) {
    return IsOfRows(range.value) && IsOfRows(range.low) && IsOfRows(range.high);
  });
  if (of_rows) return RepeatRows(DType::kBool, [&](BoxBuilder& r) { return r.MaskOf(when); });
  std::optional<Register> all;
  for (const auto& range : when) {
    const Register value = IndexOf(range.value), low = IndexOf(range.low),
                   high = IndexOf(range.high);
    const Register one = Emit(InsideInstruction{New(DType::kBool), value, low, high});
    all = all ? Emit(AndInstruction{New(DType::kBool), *all, one}) : one;
  }
  return *all;
}

void BoxBuilder::Write(const Placed& result, Register reg) {
  ir::Dim address = 0;
  for (size_t a = 0; a < origin_.size(); ++a)
    address = address + origin_[a] * result.view.strides[a];
  std::optional<Access> to = AccessOf(result, address);
  FORGE_CHECK(to.has_value());  // an index of the result itself is affine and inside
  program_.body.push_back(StoreInstruction{reg, std::move(*to)});
}

}  // namespace forge::cpu
