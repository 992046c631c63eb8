// SPDX-License-Identifier: Apache-2.0
#include "ir/dim/broadcast.h"

#include <algorithm>

#include "ir/dim/dim_expr.h"

namespace forge::ir {
namespace {

void AddOperand(const Dim& d, Dims& operands) {
  if (std::find(operands.begin(), operands.end(), d) == operands.end()) operands.push_back(d);
}

void AddMaxOperands(const Dim& d, Dims& operands) {
  const Atom* atom = AsAtom(d);
  if (atom == nullptr || atom->op != Dim::Op::kMax) return AddOperand(d, operands);
  AddMaxOperands(atom->a, operands);
  AddMaxOperands(atom->b, operands);
}

// The extent that differs from 1 if there is one, else 1: the greatest, or 0 where there is a 0.
Dim Extent(Dims operands) {
  std::sort(operands.begin(), operands.end(),
            [](const Dim& a, const Dim& b) { return Compare(a, b) < 0; });
  Dim greatest = operands[0], all_present = 1;
  for (const Dim& d : operands) {
    greatest = Max(greatest, d);
    all_present = Min(all_present, d);
  }
  return greatest * all_present;
}

// What Extent() made `d` of; `d` itself where it did not.
Dims OperandsOf(const Dim& d) {
  const auto terms = TermsOf(d);
  if (terms.size() == 1 && terms[0].coefficient == 1 && ConstantOf(d) == 0) {
    for (const AtomRef& f : terms[0].factors) {
      if (f->op != Dim::Op::kMax) continue;
      Dims operands;
      AddMaxOperands(f->a, operands);
      AddMaxOperands(f->b, operands);
      if (Extent(operands) == d) return operands;
    }
  }
  return {d};
}

}  // namespace

Dim BroadcastExtent(const Dim& a, const Dim& b) {
  Dims operands = OperandsOf(a);
  for (const Dim& d : OperandsOf(b)) AddOperand(d, operands);
  return Extent(std::move(operands));
}

bool MayEqualBroadcast(const Dim& part, const Dim& whole) {
  if (part == whole) return true;
  const Dims all = OperandsOf(whole), some = OperandsOf(part);
  return std::all_of(some.begin(), some.end(), [&](const Dim& d) {
    return std::find(all.begin(), all.end(), d) != all.end();
  });
}

bool MayEqualBroadcast(const Dims& part, const Dims& whole) {
  return std::equal(part.begin(), part.end(), whole.begin(), whole.end(),
                    [](const Dim& p, const Dim& w) { return MayEqualBroadcast(p, w); });
}

}  // namespace forge::ir
