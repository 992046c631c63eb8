// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/bounds.h"

#include <algorithm>

namespace forge::codegen {
namespace {

Bounds Exactly(int64_t low, int64_t high) {
  if (low < INT32_MIN || high > INT32_MAX) return {};
  return {low, high, false};
}

Bounds Product(Bounds a, Bounds b) {
  const auto [low, high] =
      std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return Exactly(low, high);
}

// Of divisors that are positive; Div and Rem truncate.
Bounds Quotient(Bounds a, Bounds b) {
  if (b.low < 1) return {};
  const auto [low, high] =
      std::minmax({a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
  return Exactly(std::min<int64_t>(low, a.low < 0 ? low : 0), high);
}

Bounds Remainder(Bounds a, Bounds b) {
  if (b.low < 1) return {};
  const int64_t most = b.high - 1;
  return Exactly(a.low < 0 ? std::max(a.low, -most) : 0, a.high < 0 ? 0 : std::min(a.high, most));
}

Bounds Shifted(Code code, Bounds a, Bounds by) {
  if (by.low != by.high || by.low < 0 || by.low > 31) return {};
  if (code == Code::kShr) return Exactly(a.low >> by.low, a.high >> by.low);
  return Exactly(a.low * (int64_t{1} << by.low), a.high * (int64_t{1} << by.low));
}

class Analysis {
 public:
  explicit Analysis(const Kernel& k) : k_(k), all_(k.values.size()) {}

  std::vector<Bounds> Run() && {
    Walk(0);
    return std::move(all_);
  }

 private:
  const Bounds& Arg(const Inst& i, size_t n) const { return all_[k_.ArgsOf(i)[n]]; }

  void Walk(BlockId block) {
    for (const Inst& i : k_.blocks[block].insts) {
      if (i.code == Code::kFor) {
        const Bounds begin = Arg(i, 0), end = Arg(i, 1);
        all_[k_.blocks[i.block].arguments[0]] =
            Exactly(begin.low, std::max(begin.low, end.high - 1));
      }
      if (i.code == Code::kForElements) {
        const Type& matrix = k_.TypeOf(k_.ArgsOf(i)[0]);
        all_[k_.blocks[i.block].arguments[0]] = Exactly(0, matrix.rows - 1);
        all_[k_.blocks[i.block].arguments[1]] = Exactly(0, matrix.cols - 1);
      }
      for (uint32_t n = 0; n < i.block_count; ++n) Walk(i.block + n);
      if (i.block_count == 0 && i.result_count == 1 && k_.TypeOf(i.result) == kI32)
        all_[i.result] = Of(i);
    }
  }

  Bounds OfBuiltin(BuiltinKind kind) const {
    if (kind <= BuiltinKind::kWorkgroupZ)
      return Exactly(0, std::max<int64_t>(k_.grid[static_cast<size_t>(kind)].max() - 1, 0));
    if (kind <= BuiltinKind::kLocalZ)
      return Exactly(
          0,
          k_.workgroup[static_cast<size_t>(kind) - static_cast<size_t>(BuiltinKind::kLocalX)] - 1);
    return Exactly(0, int64_t{k_.workgroup[0]} * k_.workgroup[1] * k_.workgroup[2] - 1);
  }

  Bounds Of(const Inst& i) const {
    switch (i.code) {
      case Code::kLiteral:
        return Exactly(static_cast<int32_t>(i.literal), static_cast<int32_t>(i.literal));
      case Code::kScalar:
        return Exactly(k_.scalars[i.literal].min(), k_.scalars[i.literal].max());
      case Code::kBuiltin:
        return OfBuiltin(static_cast<BuiltinKind>(i.aux));
      case Code::kAdd:
        return Exactly(Arg(i, 0).low + Arg(i, 1).low, Arg(i, 0).high + Arg(i, 1).high);
      case Code::kSub:
        return Exactly(Arg(i, 0).low - Arg(i, 1).high, Arg(i, 0).high - Arg(i, 1).low);
      case Code::kMul:
        return Product(Arg(i, 0), Arg(i, 1));
      case Code::kDiv:
        return Quotient(Arg(i, 0), Arg(i, 1));
      case Code::kRem:
        return Remainder(Arg(i, 0), Arg(i, 1));
      case Code::kShl:
      case Code::kShr:
        return Shifted(i.code, Arg(i, 0), Arg(i, 1));
      case Code::kAnd:  // with a mask that is not negative
        if (Arg(i, 1).low >= 0) return Exactly(0, Arg(i, 1).high);
        return {};
      case Code::kMin:
        return Exactly(std::min(Arg(i, 0).low, Arg(i, 1).low),
                       std::min(Arg(i, 0).high, Arg(i, 1).high));
      case Code::kMax:
        return Exactly(std::max(Arg(i, 0).low, Arg(i, 1).low),
                       std::max(Arg(i, 0).high, Arg(i, 1).high));
      case Code::kSelect:
        return Exactly(std::min(Arg(i, 1).low, Arg(i, 2).low),
                       std::max(Arg(i, 1).high, Arg(i, 2).high));
      case Code::kNeg:
        return Exactly(-Arg(i, 0).high, -Arg(i, 0).low);
      default:
        return {};
    }
  }

  const Kernel& k_;
  std::vector<Bounds> all_;
};

}  // namespace

std::vector<Bounds> BoundsOf(const Kernel& k) { return Analysis(k).Run(); }

}  // namespace forge::codegen
