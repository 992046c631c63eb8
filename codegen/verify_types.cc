// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/status.h"
#include "codegen/analysis.h"
#include "codegen/literal.h"
#include "codegen/verify.h"

namespace forge::codegen {
namespace {

constexpr DTypes kFloats = Bit(DType::kF16) | Bit(DType::kF32) | Bit(DType::kF64);

DTypes SetOf(ElementClass c) {
  switch (c) {
    case ElementClass::kNumber:
      return kFloats | kIntTypes;
    case ElementClass::kInt:
      return kIntTypes;
    case ElementClass::kFloat:
      return kFloats;
    case ElementClass::kLogic:
      return kIntTypes | Bit(DType::kBool);
    case ElementClass::kAny:
      break;
  }
  return kFloats | kIntTypes | Bit(DType::kBool);
}

absl::Status Expect(bool holds, std::string_view what) {
  return holds ? absl::OkStatus() : Internal("{}", what);
}

// An instruction and the types around it.
struct Typed {
  const Kernel& k;
  const Inst& i;
  const std::span<const Id> args = k.ArgsOf(i);

  const Type& In(size_t n) const { return k.values[args[n]].type; }
  const Type& Out() const { return k.values[i.result].type; }
  bool Index(size_t n) const { return In(n) == kI32; }
};

absl::Status Select(const Typed& t) {
  return Expect(t.In(0) == t.Out().With(DType::kBool) && t.In(1) == t.Out() && t.In(2) == t.Out(),
                "takes a bool and two values of its own type");
}

absl::Status Bitcast(const Typed& t) {
  const auto bits = [](const Type& type) { return BitWidth(type.elem) * type.lanes; };
  return Expect(bits(t.In(0)) == bits(t.Out()) && t.Out().elem != DType::kBool,
                "needs equal widths");
}

absl::Status Pack(const Typed& t) {
  FORGE_RETURN_IF_ERROR(
      Expect(t.args.size() == t.Out().lanes && t.Out().lanes > 1, "takes one value for each lane"));
  for (size_t n = 0; n < t.args.size(); ++n)
    FORGE_RETURN_IF_ERROR(Expect(t.In(n) == t.Out().Lanes(1), "parts differ from its element"));
  return absl::OkStatus();
}

absl::Status Component(const Typed& t) {
  FORGE_RETURN_IF_ERROR(Expect(t.i.aux < t.In(0).lanes, "there is no such lane"));
  if (t.i.code == Code::kExtract) return Expect(t.Out() == t.In(0).Lanes(1), "gives one lane");
  return Expect(t.Out() == t.In(0) && t.In(1) == t.Out().Lanes(1), "replaces one lane");
}

absl::Status Dot4(const Typed& t) {
  return Expect(t.In(0) == kU32 && t.In(1) == kU32 && t.In(2) == t.Out() &&
                    (t.Out() == kI32 || t.Out() == kU32) &&
                    t.i.aux <= static_cast<uint8_t>(DotKind::kMixed),
                "takes u32, u32 and the i32 or u32 that it gives");
}

absl::Status Memory(const Typed& t) {
  FORGE_RETURN_IF_ERROR(Expect(t.i.view < t.k.views.size(), "there is no such view"));
  const View& v = t.k.views[t.i.view];
  FORGE_RETURN_IF_ERROR(Expect(t.Index(0), "the index is not an i32"));
  if (t.i.code == Code::kLoad) {
    FORGE_RETURN_IF_ERROR(Expect(v.reads, "the view is not read"));
    return Expect(t.Out() == v.elem, "gives another type than the view's");
  }
  FORGE_RETURN_IF_ERROR(Expect(v.space != Space::kGlobal || v.writes, "the view is not written"));
  FORGE_RETURN_IF_ERROR(Expect(t.In(1) == v.elem, "the value is not of the view's type"));
  if (t.i.code == Code::kStore) return absl::OkStatus();
  return Expect(t.i.aux <= static_cast<uint8_t>(AtomicKind::kExchange) && t.Out() == v.elem &&
                    (v.elem == kI32 || v.elem == kU32) && v.space != Space::kPrivate,
                "atomics are for i32 and u32 in global and shared memory");
}

absl::Status MatrixMemory(const Typed& t) {
  FORGE_RETURN_IF_ERROR(Expect(t.i.view < t.k.views.size(), "there is no such view"));
  const View& v = t.k.views[t.i.view];
  const bool load = t.i.code == Code::kMatrixLoad;
  const Type& matrix = load ? t.Out() : t.In(2);
  FORGE_RETURN_IF_ERROR(Expect(t.Index(0) && t.Index(1), "index and stride are not i32s"));
  for (size_t n = 0; n < 2; ++n)
    FORGE_RETURN_IF_ERROR(Expect(t.k.values[t.args[n]].uniform >= Uniform::kSubgroup,
                                 "index and stride may differ in the subgroup"));
  FORGE_RETURN_IF_ERROR(Expect(matrix.is_matrix() && matrix.elem == v.elem.elem,
                               "is not about a matrix of the view's elements"));
  FORGE_RETURN_IF_ERROR(Expect(v.space != Space::kPrivate, "a subgroup shares no private memory"));
  return Expect(load ? v.reads : v.space != Space::kGlobal || v.writes,
                load ? "the view is not read" : "the view is not written");
}

absl::Status MatrixMulAdd(const Typed& t) {
  const Type &a = t.In(0), &b = t.In(1), &c = t.In(2);
  FORGE_RETURN_IF_ERROR(Expect(a.use == MatrixUse::kA && b.use == MatrixUse::kB &&
                                   c.use == MatrixUse::kAccumulator && t.Out() == c,
                               "takes an A, a B and the accumulator that it gives"));
  return Expect(a.rows == c.rows && b.cols == c.cols && a.cols == b.rows, "its sizes differ");
}

// The other instructions take elements one by one.
bool TakesMatrices(Code c) {
  return c == Code::kLiteral || c == Code::kMatrixLoad || c == Code::kMatrixStore ||
         c == Code::kMatrixMulAdd || Info(c).effect == Effect::kControl;
}

absl::Status Control(const Typed& t) {
  if (t.i.code == Code::kIf) return Expect(t.In(0) == kBool, "the condition is not a bool");
  if (t.i.code == Code::kForElements)
    return Expect(t.In(0).is_matrix() && t.i.result_count == 0, "takes a matrix and gives nothing");
  if (t.i.code == Code::kYield) return absl::OkStatus();
  const size_t bounds = t.i.code == Code::kFor ? 3 : 0;
  FORGE_RETURN_IF_ERROR(Expect(t.args.size() == bounds + t.i.result_count,
                               "carries another number of values than it gives"));
  for (size_t n = 0; n < bounds; ++n)
    FORGE_RETURN_IF_ERROR(Expect(t.Index(n), "a bound is not an i32"));
  return absl::OkStatus();
}

absl::Status Own(const Typed& t) {
  switch (t.i.code) {
    case Code::kLiteral:
      return Expect(t.i.literal == Masked(t.Out().elem, t.i.literal), "has bits beyond its type");
    case Code::kScalar:
      return Expect(t.Out() == kI32 && t.i.literal < t.k.scalars.size(), "there is no such scalar");
    case Code::kBuiltin:
      return Expect(t.Out() == kI32 && t.i.aux <= static_cast<uint8_t>(BuiltinKind::kSubgroup),
                    "there is no such builtin");
    case Code::kSelect:
      return Select(t);
    case Code::kConvert:
      return Expect(t.In(0).lanes == t.Out().lanes, "changes the number of lanes");
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
      return Memory(t);
    case Code::kShuffle:
      return Expect(t.In(0) == t.Out() && t.Index(1), "takes a value of its own type and an i32");
    case Code::kBallot:
      return Expect(t.In(0) == kBool && t.Out() == kU32.Lanes(4), "takes a bool and gives u32x4");
    case Code::kMatrixLoad:
    case Code::kMatrixStore:
      return MatrixMemory(t);
    case Code::kMatrixMulAdd:
      return MatrixMulAdd(t);
    default:
      return Control(t);
  }
}

// A printer makes a function of the body, which runs in invocations of the device's choice.
absl::Status ElementsBody(const Kernel& k, const Inst& i) {
  const std::vector<Id>& inside = k.blocks[i.block].arguments;
  const Type element{k.values[k.ArgsOf(i)[0]].type.elem};
  FORGE_RETURN_IF_ERROR(Expect(k.values[inside[0]].type == kI32 &&
                                   k.values[inside[1]].type == kI32 &&
                                   k.values[inside[2]].type == element,
                               "the body does not take a row, a column and an element"));
  FORGE_RETURN_IF_ERROR(
      Expect(k.ArgsOf(k.blocks[i.block].insts.back()).empty(), "the body yields something"));
  const Captures captures = CapturesOf(k, i.block);
  for (const Id v : captures.values)
    FORGE_RETURN_IF_ERROR(
        Expect(k.values[v].uniform >= Uniform::kSubgroup && !k.values[v].type.is_matrix(),
               "the body takes a value from outside that may differ in the subgroup"));
  for (const uint16_t view : captures.views)
    FORGE_RETURN_IF_ERROR(
        Expect(k.views[view].space != Space::kPrivate, "the body takes a private view"));
  return absl::OkStatus();
}

absl::Status SameTypes(std::span<const Id> values, std::span<const Id> like, const Kernel& k) {
  FORGE_RETURN_IF_ERROR(Expect(values.size() == like.size(), "yields another number of values"));
  for (size_t n = 0; n < values.size(); ++n)
    FORGE_RETURN_IF_ERROR(
        Expect(k.values[values[n]].type == k.values[like[n]].type, "yields values of other types"));
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyType(const Type& t) {
  if (!Has(SetOf(ElementClass::kAny), t.elem))
    return Internal("values of {} live in integers", Name(t.elem));
  if (t.is_matrix())
    return Expect(t.held_by == Scope::kSubgroup && t.lanes == 1 && t.rows > 0 && t.cols > 0,
                  "matrices have rows and columns and are held by a subgroup");
  return Expect(t.lanes == 1 || t.lanes == 2 || t.lanes == 4, "vectors have 1, 2 or 4 lanes");
}

absl::Status VerifyTypes(const Kernel& k, const Inst& i) {
  const CodeInfo& info = Info(i.code);
  const Typed t{k, i};
  const bool control = info.effect == Effect::kControl;
  const bool silent = i.code == Code::kStore || i.code == Code::kBarrier ||
                      i.code == Code::kMatrixStore || i.code == Code::kYield;
  if (!control || silent)
    FORGE_RETURN_IF_ERROR(Expect(i.result_count == (silent ? 0 : 1), "gives one value too many"));
  const auto is_matrix = [&](Id v) { return k.values[v].type.is_matrix(); };
  if (!TakesMatrices(i.code) && (std::any_of(t.args.begin(), t.args.end(), is_matrix) ||
                                 (i.result_count > 0 && is_matrix(i.result))))
    return Internal("does not take matrices");
  if (!t.args.empty())
    FORGE_RETURN_IF_ERROR(Expect(Has(SetOf(info.of), t.In(0).elem), "does not take such elements"));
  if (info.rule == TypeRule::kOwn) return Own(t);
  for (size_t n = 1; n < t.args.size(); ++n)
    FORGE_RETURN_IF_ERROR(Expect(t.In(n) == t.In(0), "operands differ in type"));
  const Type result = info.rule == TypeRule::kSame ? t.In(0) : t.In(0).With(DType::kBool);
  return Expect(t.Out() == result, "gives another type than it should");
}

absl::Status VerifyYields(const Kernel& k, const Inst& i) {
  std::vector<Id> results;
  for (uint32_t n = 0; n < i.result_count; ++n) results.push_back(i.result + n);
  const auto yields = [&](uint32_t n) { return k.ArgsOf(k.blocks[i.block + n].insts.back()); };
  const std::span<const Id> args = k.ArgsOf(i);
  switch (i.code) {
    case Code::kIf:
      FORGE_RETURN_IF_ERROR(SameTypes(yields(0), results, k));
      return SameTypes(yields(1), results, k);
    case Code::kFor: {
      const std::span<const Id> inside = k.blocks[i.block].arguments;
      FORGE_RETURN_IF_ERROR(Expect(k.values[inside[0]].type == kI32, "the counter is not an i32"));
      FORGE_RETURN_IF_ERROR(SameTypes(args.subspan(3), results, k));
      FORGE_RETURN_IF_ERROR(SameTypes(inside.subspan(1), results, k));
      return SameTypes(yields(0), results, k);
    }
    case Code::kForElements:
      return ElementsBody(k, i);
    default:
      FORGE_RETURN_IF_ERROR(SameTypes(args, results, k));
      FORGE_RETURN_IF_ERROR(SameTypes(k.blocks[i.block].arguments, results, k));
      FORGE_RETURN_IF_ERROR(SameTypes(k.blocks[i.block + 1].arguments, results, k));
      FORGE_RETURN_IF_ERROR(SameTypes(yields(1), results, k));
      return Expect(yields(0).size() == 1 && k.values[yields(0)[0]].type == kBool,
                    "the test does not give one bool");
  }
}

}  // namespace forge::codegen
