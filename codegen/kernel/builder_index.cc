// SPDX-License-Identifier: Apache-2.0
// Index expressions: what the host can compute becomes one scalar, the rest arithmetic.
#include <algorithm>

#include "codegen/kernel/literal.h"
#include "codegen/kernel/scalar.h"

namespace forge::codegen {
namespace {

using DimOp = ir::Dim::Op;

bool DependsOn(const ir::Dim& d, Builder::At at) {
  if (d.is_constant() || at.empty()) return false;
  std::vector<ir::SymbolRef> symbols;
  d.CollectSymbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(), [&](const ir::SymbolRef& s) {
    return std::any_of(at.begin(), at.end(), [&](const auto& known) { return known.first == s; });
  });
}

struct IndexEmitter {
  Builder& b;
  Builder::At at;

  Val Emit(const ir::Dim& d) const {
    if (!DependsOn(d, at)) return b.Scalar(d);
    const ir::Dim::Part part = d.part();
    switch (part.op) {
      case DimOp::kSymbol:
        return std::find_if(at.begin(), at.end(),
                            [&](const auto& known) { return known.first == part.symbol; })
            ->second;
      case DimOp::kFloorDiv:
        return FloorDiv(part.operands[0], part.operands[1]);
      case DimOp::kMod:
        return Mod(part.operands[0], part.operands[1]);
      case DimOp::kConstant:
        return b.Int(part.constant);
      default:
        return Chain(part);
    }
  }

  static Val Join(DimOp op, Val x, Val y) {
    if (op == DimOp::kAdd) return x + y;
    if (op == DimOp::kMul) return x * y;
    return op == DimOp::kMin ? min(x, y) : max(x, y);
  }

  // Of any number of operands. What the host knows of a sum or a product is one of them, the last.
  Val Chain(const ir::Dim::Part& part) const {
    const bool sum = part.op == DimOp::kAdd, extreme = !sum && part.op != DimOp::kMul;
    ir::Dim host = sum ? 0 : 1;
    Val v;
    for (const ir::Dim& o : part.operands) {
      if (!extreme && !DependsOn(o, at)) {
        host = sum ? host + o : host * o;
        continue;
      }
      const Val next = Emit(o);
      v = v ? Join(part.op, v, next) : next;
    }
    return extreme ? v : Join(part.op, v, b.Scalar(host));
  }

  // Arithmetic shift and mask round down for negative operands, too; division does not.
  Val FloorDiv(const ir::Dim& x, const ir::Dim& by) const {
    const Val a = Emit(x), c = Emit(by);
    if (x.min() >= 0) return QuotientOf(a, c);
    if (const int shift = Log2(b.LiteralOf(c)); shift >= 0)
      return b.Emit(Code::kShr, kI32, {a, b.Int(shift)});
    const Val q = b.Emit(Code::kDiv, kI32, {a, c});
    return q - select(a - q * c < 0.0, b.Int(1), 0.0);
  }

  Val Mod(const ir::Dim& x, const ir::Dim& by) const {
    const Val a = Emit(x), c = Emit(by);
    if (x.min() >= 0) return RemainderOf(a, c);
    if (Log2(b.LiteralOf(c)) >= 0) return a & b.Int(by.constant() - 1);
    const Val r = a - b.Emit(Code::kDiv, kI32, {a, c}) * c;
    return r + select(r < 0.0, c, 0.0);
  }
};

}  // namespace

Val Builder::Index(const ir::Dim& d, At at) { return IndexEmitter{*this, at}.Emit(d); }

}  // namespace forge::codegen
