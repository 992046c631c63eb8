// SPDX-License-Identifier: Apache-2.0
#include "cpu_runtime/tape/index.h"

namespace forge::cpu {
namespace {

constexpr int kMaxAffineDepth = 32;  // beyond it an expression is not affine in any useful way

ir::Dim Combine(const ir::Dim::Part& part, std::span<const ir::Dim> operands) {
  ir::Dim all = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    switch (part.op) {
      case ir::Dim::Op::kAdd:
        all = all + operands[i];
        break;
      case ir::Dim::Op::kMul:
        all = all * operands[i];
        break;
      case ir::Dim::Op::kFloorDiv:
        all = FloorDiv(all, operands[i]);
        break;
      case ir::Dim::Op::kMod:  // so that q * floordiv(x, q) + mod(x, q) becomes x
        all = all - FloorDiv(all, operands[i]) * operands[i];
        break;
      case ir::Dim::Op::kMin:
        all = Min(all, operands[i]);
        break;
      case ir::Dim::Op::kMax:
        all = Max(all, operands[i]);
        break;
      case ir::Dim::Op::kConstant:
      case ir::Dim::Op::kSymbol:
        break;
    }
  }
  return all;
}

ir::Dim WithoutMod(const ir::Dim& d, int depth) {
  const ir::Dim::Part part = d.part();
  if (part.operands.empty() || depth > kMaxAffineDepth) return d;
  std::vector<ir::Dim> operands;
  for (const ir::Dim& o : part.operands) operands.push_back(WithoutMod(o, depth + 1));
  return Combine(part, operands);
}

bool AddScaled(Affine& to, const Affine& from, int64_t by) {
  int64_t product;
  if (__builtin_mul_overflow(from.constant, by, &product) ||
      __builtin_add_overflow(to.constant, product, &to.constant))
    return false;
  for (const auto& [symbol, coefficient] : from.coefficients) {
    int64_t& at = to.coefficients[symbol];
    if (__builtin_mul_overflow(coefficient, by, &product) ||
        __builtin_add_overflow(at, product, &at))
      return false;
    if (at == 0) to.coefficients.erase(symbol);
  }
  return true;
}

std::optional<Affine> Collect(const ir::Dim& d, int depth) {
  const ir::Dim::Part part = d.part();
  if (part.op == ir::Dim::Op::kConstant) return Affine{part.constant, {}};
  if (part.op == ir::Dim::Op::kSymbol) return Affine{0, {{part.symbol, 1}}};
  if ((part.op != ir::Dim::Op::kAdd && part.op != ir::Dim::Op::kMul) || depth > kMaxAffineDepth)
    return std::nullopt;
  Affine all{part.op == ir::Dim::Op::kMul ? 1 : 0, {}};
  for (const ir::Dim& operand : part.operands) {
    std::optional<Affine> one = Collect(operand, depth + 1);
    if (!one) return std::nullopt;
    if (part.op == ir::Dim::Op::kAdd) {
      if (!AddScaled(all, *one, 1)) return std::nullopt;
      continue;
    }
    // A product is affine while one side of it is a number.
    if (!one->coefficients.empty()) std::swap(all, *one);
    if (!one->coefficients.empty()) return std::nullopt;
    Affine product;
    if (!AddScaled(product, all, one->constant)) return std::nullopt;
    all = std::move(product);
  }
  return all;
}

}  // namespace

std::optional<Affine> AsAffine(const ir::Dim& d) {
  if (std::optional<Affine> plain = Collect(d, 0)) return plain;
  return Collect(WithoutMod(d, 0), 0);
}

}  // namespace forge::cpu
