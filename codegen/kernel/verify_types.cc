// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/status.h"
#include "codegen/kernel/analysis.h"
#include "codegen/kernel/literal.h"
#include "codegen/kernel/verify.h"

namespace forge::codegen {
namespace {

constexpr DTypes kFloats = Bit(DType::kF16) | Bit(DType::kF32) | Bit(DType::kF64);

constexpr DTypes kAll = kFloats | kIntTypes | Bit(DType::kBool);
// Of ElementClass.
constexpr DTypes kClasses[] = {kAll | Bit(DType::kBF16), kFloats | kIntTypes, kIntTypes, kFloats,
                               kIntTypes | Bit(DType::kBool)};

Fault Unless(bool holds, std::string_view why) { return Fault(holds ? "" : why); }

// An instruction and the types around it.
struct Typed {
  const Kernel& k;
  const Inst& i;
  const std::span<const Id> args = k.ArgsOf(i);

  const Type& In(size_t n) const { return k.TypeOf(args[n]); }
  const Type& Out() const { return k.TypeOf(i.result); }
  bool Index(size_t n) const { return In(n) == kI32; }
};

Fault Select(const Typed& t) {
  return Unless(t.In(0) == t.Out().With(DType::kBool) && t.In(1) == t.Out() && t.In(2) == t.Out(),
                "takes a bool and two values of its own type");
}

Fault Bitcast(const Typed& t) {
  const auto bits = [](const Type& type) { return BitWidth(type.elem) * type.lanes; };
  return Unless(bits(t.In(0)) == bits(t.Out()) && t.Out().elem != DType::kBool,
                "needs equal widths");
}

Fault Pack(const Typed& t) {
  if (t.args.size() != t.Out().lanes || t.Out().lanes == 1) return "takes one value for each lane";
  for (size_t n = 0; n < t.args.size(); ++n)
    if (t.In(n) != t.Out().Lanes(1)) return "parts differ from its element";
  return {};
}

Fault Component(const Typed& t) {
  if (t.i.aux >= t.In(0).lanes) return "there is no such lane";
  if (t.i.code == Code::kExtract) return Unless(t.Out() == t.In(0).Lanes(1), "gives one lane");
  return Unless(t.Out() == t.In(0) && t.In(1) == t.Out().Lanes(1), "replaces one lane");
}

Fault Dot4(const Typed& t) {
  return Unless(t.In(0) == kU32 && t.In(1) == kU32 && t.In(2) == t.Out() &&
                    (t.Out() == kI32 || t.Out() == kU32) &&
                    t.i.aux <= static_cast<uint8_t>(DotKind::kMixed),
                "takes u32, u32 and the i32 or u32 that it gives");
}

Fault MatrixMemory(const Typed& t, const View& v) {
  const Type& matrix = t.i.code == Code::kMatrixLoad ? t.Out() : t.In(2);
  if (!t.Index(1)) return "the stride is not an i32";
  if (!matrix.is_matrix() || InMemory(matrix.elem) != v.elem.elem)
    return "is not about a matrix of the view's elements";
  for (size_t n = 0; n < 2; ++n)
    if (t.k.values[t.args[n]].uniform < matrix.held_by)
      return matrix.held_by == Scope::kWorkgroup ? "index and stride may differ in the workgroup"
                                                 : "index and stride may differ in the subgroup";
  if (v.parts > 1) return "a matrix may lie in several parts of the view";
  if (matrix.held_by == Scope::kWorkgroup &&
      (t.i.code != Code::kMatrixLoad || matrix.use == MatrixUse::kAccumulator || !v.swizzled))
    return "a workgroup loads an A or B, from swizzled memory";
  return Unless(v.space != Space::kPrivate, "a subgroup shares no private memory");
}

Fault Memory(const Typed& t) {
  if (t.i.view >= t.k.views.size()) return "there is no such view";
  const View& v = t.k.views[t.i.view];
  const bool loads = IsOneOf(t.i.code, {Code::kLoad, Code::kMatrixLoad});
  if (!t.Index(0)) return "the index is not an i32";
  if (loads && !v.reads) return "the view is not read";
  if (!loads && v.space == Space::kGlobal && !v.writes) return "the view is not written";
  if (IsOneOf(t.i.code, {Code::kMatrixLoad, Code::kMatrixStore})) return MatrixMemory(t, v);
  if (loads) return Unless(t.Out() == v.elem, "gives another type than the view's");
  if (t.In(1) != v.elem) return "the value is not of the view's type";
  if (t.i.code == Code::kStore) return {};
  const bool swaps = t.i.code == Code::kCompareExchange;
  if (swaps && t.In(2) != v.elem) return "the new value is not of the view's type";
  const bool bitwise = swaps || t.i.aux == static_cast<uint8_t>(AtomicKind::kAnd) ||
                       t.i.aux == static_cast<uint8_t>(AtomicKind::kOr);
  return Unless(t.i.aux <= static_cast<uint8_t>(AtomicKind::kExchange) && t.Out() == v.elem &&
                    (v.elem == kI32 || v.elem == kU32 || (v.elem == kF32 && !bitwise)) &&
                    v.space != Space::kPrivate,
                "atomics are for i32, u32 and, but for bits, f32 in global and shared memory");
}

Fault CopyAsync(const Typed& t) {
  if (t.i.view >= t.k.views.size() || t.i.literal >= t.k.views.size())
    return "there is no such view";
  const View &to = t.k.views[t.i.view], &from = t.k.views[t.i.literal];
  if (to.space != Space::kShared || from.space != Space::kGlobal || !from.reads || from.parts > 1)
    return "copies from one part of global memory that is read to shared memory";
  if (to.elem != from.elem || t.i.aux * ElementBytes(to.elem) != kSwizzledPieceBytes)
    return "copies 16 bytes between elements of one type";
  return Unless(t.Index(0) && t.Index(1) && t.In(2) == kBool, "takes two indices and a bool");
}

Fault MatrixMulAdd(const Typed& t) {
  const Type &a = t.In(0), &b = t.In(1), &c = t.In(2);
  if (a.held_by != c.held_by || b.held_by != c.held_by) return "its matrices have other holders";
  if (a.use != MatrixUse::kA || b.use != MatrixUse::kB || c.use != MatrixUse::kAccumulator ||
      t.Out() != c)
    return "takes an A, a B and the accumulator that it gives";
  return Unless(a.rows == c.rows && b.cols == c.cols && a.cols == b.rows, "its sizes differ");
}

bool IsAccumulator(const Type& t) {
  return t.use == MatrixUse::kAccumulator && t.held_by == Scope::kSubgroup;
}

Fault MatrixConvert(const Typed& t) {
  const Type& a = t.Out();
  const Type sum = t.args.empty() ? Type{} : t.In(0);
  const auto alike = [&](Id v) { return t.k.TypeOf(v) == sum; };
  return Unless(
      IsAccumulator(sum) && sum.elem == DType::kF32 && std::ranges::all_of(t.args, alike) &&
          a.use == MatrixUse::kA && a.held_by == sum.held_by && a.rows == sum.rows &&
          a.cols == sum.cols * t.args.size() && (a.elem == DType::kF16 || a.elem == DType::kBF16),
      "makes an A of halves from the f32 sums that its columns are");
}

Fault OfMatrices(const Typed& t) {
  switch (t.i.code) {
    case Code::kMatrixMulAdd:
      return MatrixMulAdd(t);
    case Code::kMatrixWait:
      return Unless(t.Out().is_held_by_workgroup() && t.Out().use == MatrixUse::kAccumulator,
                    "waits for the accumulator of a workgroup");
    case Code::kMatrixReduce:
      return Unless(IsAccumulator(t.Out()) && t.i.aux <= static_cast<uint8_t>(ReduceKind::kProd),
                    "reduces rows of an accumulator");
    default:
      return MatrixConvert(t);
  }
}

// The other instructions take elements one by one.
bool TakesMatrices(Code c) {
  return IsOneOf(c, {Code::kLiteral, Code::kMatrixLoad, Code::kMatrixStore, Code::kMatrixMulAdd,
                     Code::kMatrixWait, Code::kMatrixReduce, Code::kMatrixConvert}) ||
         Info(c).effect == Effect::kControl;
}

Fault Loop(const Typed& t, size_t bounds) {
  if (t.args.size() != bounds + t.i.result_count)
    return "carries another number of values than it gives";
  for (size_t n = 0; n < bounds; ++n)
    if (!t.Index(n)) return "a bound is not an i32";
  return {};
}

Fault Own(const Typed& t) {
  switch (t.i.code) {
    case Code::kLiteral:
      return Unless(t.i.literal == Masked(t.Out().elem, t.i.literal), "has bits beyond its type");
    case Code::kScalar:
      return Unless(t.Out() == kI32 && t.i.literal < t.k.scalars.size(), "there is no such scalar");
    case Code::kBuiltin:
      return Unless(t.Out() == kI32 && t.i.aux <= static_cast<uint8_t>(BuiltinKind::kSubgroup),
                    "there is no such builtin");
    case Code::kSelect:
      return Select(t);
    case Code::kConvert:
      return Unless(t.In(0).lanes == t.Out().lanes, "changes the number of lanes");
    case Code::kBitcast:
      return Bitcast(t);
    case Code::kPack:
      return Pack(t);
    case Code::kExtract:
    case Code::kInsert:
      return Component(t);
    case Code::kDot4:
      return Dot4(t);
    case Code::kLoad:
    case Code::kStore:
    case Code::kAtomic:
    case Code::kCompareExchange:
    case Code::kMatrixLoad:
    case Code::kMatrixStore:
      return Memory(t);
    case Code::kSubgroupReduce:
    case Code::kSubgroupScan:
      return Unless(t.i.aux <= static_cast<uint8_t>(ReduceKind::kProd),
                    "there is no such reduction");
    case Code::kShuffle:
      return Unless(t.In(0) == t.Out() && t.Index(1), "takes a value of its own type and an i32");
    case Code::kBallot:
      return Unless(t.In(0) == kBool && t.Out() == kU32.Lanes(4), "takes a bool and gives u32x4");
    case Code::kCopyAsync:
      return CopyAsync(t);
    case Code::kMatrixMulAdd:
    case Code::kMatrixWait:
    case Code::kMatrixReduce:
    case Code::kMatrixConvert:
      return OfMatrices(t);
    case Code::kIf:
      return Unless(t.In(0) == kBool, "the condition is not a bool");
    case Code::kForElements:
      return Unless(!t.args.empty() &&
                        std::ranges::all_of(t.args,
                                            [&](Id v) {
                                              return t.k.TypeOf(v).With(t.In(0).elem) == t.In(0) &&
                                                     t.In(0).is_matrix();
                                            }),
                    "takes matrices of one size");
    case Code::kFor:
    case Code::kWhile:
      return Loop(t, t.i.code == Code::kFor ? 3 : 0);
    default:
      return {};
  }
}

// A printer makes a function of the body, which runs in invocations of the device's choice.
Fault ElementsBody(const Kernel& k, const Inst& i) {
  const std::vector<Id>& inside = k.blocks[i.block].arguments;
  const std::span<const Id> matrices = k.ArgsOf(i), made = k.YieldOf(i.block);
  const Type& matrix = k.TypeOf(matrices[0]);
  const auto elements = [&](Id m) { return Type{k.TypeOf(m).elem}.Lanes(i.aux); };
  if (i.aux == 0 || matrix.cols % i.aux != 0) return "rows are not made of so many neighbours";
  bool takes = k.TypeOf(inside[0]) == kI32 && k.TypeOf(inside[1]) == kI32;
  for (size_t n = 0; n < matrices.size(); ++n)
    takes = takes && k.TypeOf(inside[n + 2]) == elements(matrices[n]);
  if (!takes) return "the body does not take a row, a column and an element of each matrix";
  if (made.size() != i.result_count) return "the body yields another number of values";
  for (size_t n = 0; n < made.size(); ++n) {
    const Id result = i.result + static_cast<Id>(n);
    if (k.TypeOf(made[n]) != elements(result) ||
        k.TypeOf(result) != matrix.With(k.TypeOf(result).elem))
      return "the body does not yield elements of the results";
  }
  const Captures captures = CapturesOf(k, i.block);
  for (const Id v : captures.values)
    if (k.values[v].uniform < Uniform::kSubgroup || k.TypeOf(v).is_matrix())
      return "the body takes a value from outside that may differ in the subgroup";
  for (const uint16_t view : captures.views)
    if (k.views[view].space == Space::kPrivate) return "the body takes a private view";
  return {};
}

}  // namespace

Fault VerifyType(const Type& t) {
  if (t.is_matrix() && t.elem == DType::kBF16 && t.use == MatrixUse::kAccumulator)
    return "sums are not bf16";
  if (!Has(kAll, t.elem) && !(t.is_matrix() && t.elem == DType::kBF16))
    return fmt::format("values of {} live in integers", Name(t.elem));
  if (t.is_matrix())
    return Unless((t.held_by == Scope::kSubgroup || t.held_by == Scope::kWorkgroup) &&
                      t.lanes == 1 && t.rows > 0 && t.cols > 0,
                  "matrices have rows and columns and are held by a subgroup or a workgroup");
  return Unless(t.lanes == 1 || t.lanes == 2 || t.lanes == 4, "vectors have 1, 2 or 4 lanes");
}

Fault VerifyTypes(const Kernel& k, const Inst& i) {
  const CodeInfo& info = Info(i.code);
  const Typed t{k, i};
  const bool silent = IsSilent(i.code);
  if ((info.effect != Effect::kControl || silent) && i.result_count != (silent ? 0 : 1))
    return "gives one value too many";
  const auto is_matrix = [&](Id v) { return k.TypeOf(v).is_matrix(); };
  if (!TakesMatrices(i.code) && (std::any_of(t.args.begin(), t.args.end(), is_matrix) ||
                                 (i.result_count > 0 && is_matrix(i.result))))
    return "does not take matrices";
  if (!t.args.empty() && !Has(kClasses[static_cast<size_t>(info.of)], t.In(0).elem))
    return "does not take such elements";
  if (info.rule == TypeRule::kOwn) return Own(t);
  for (size_t n = 1; n < t.args.size(); ++n)
    if (t.In(n) != t.In(0)) return "operands differ in type";
  const Type result = info.rule == TypeRule::kSame ? t.In(0) : t.In(0).With(DType::kBool);
  return t.Out() == result ? Own(t) : "gives another type than it should";
}

Fault VerifyYields(const Kernel& k, const Inst& i) {
  if (i.code == Code::kForElements) return ElementsBody(k, i);
  for (uint32_t n = 0; n < i.result_count; ++n) {
    const Type& t = k.TypeOf(i.result + n);
    if (t.is_held_by_workgroup() && t.use != MatrixUse::kAccumulator)
      return "yields an A or B of a workgroup";
  }
  std::span<const Id> args = k.ArgsOf(i), inside = k.blocks[i.block].arguments;
  std::vector<std::span<const Id>> alike;  // each has the types of the results
  if (i.code == Code::kIf) {
    alike = {k.YieldOf(i.block), k.YieldOf(i.block + 1)};
  } else if (i.code == Code::kFor) {
    if (k.TypeOf(inside[0]) != kI32) return "the counter is not an i32";
    alike = {args.subspan(3), inside.subspan(1), k.YieldOf(i.block)};
  } else {
    const std::span<const Id> test = k.YieldOf(i.block);
    if (test.size() != 1 || k.TypeOf(test[0]) != kBool) return "the test does not give one bool";
    alike = {args, inside, k.blocks[i.block + 1].arguments, k.YieldOf(i.block + 1)};
  }
  for (const std::span<const Id> values : alike) {
    if (values.size() != i.result_count) return "yields another number of values";
    for (uint32_t n = 0; n < i.result_count; ++n)
      if (k.TypeOf(values[n]) != k.TypeOf(i.result + n)) return "yields values of other types";
  }
  return {};
}

}  // namespace forge::codegen
