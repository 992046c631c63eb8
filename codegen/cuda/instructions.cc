// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "codegen/cuda/printer.h"
#include "codegen/kernel/literal.h"

namespace forge::codegen {
namespace {

// C++ of an operation on elements {0}, {1}, {2}; {t}, {u}: their type and its unsigned twin.
struct Row {
  std::string_view of_float = {}, of_signed = {}, of_unsigned = {}, of_bool = {};
};
constexpr CodeTable<Row> kOperations = {
    {Code::kAdd, {"{0} + {1}", "{0} + {1}", "{0} + {1}"}},
    {Code::kSub, {"{0} - {1}", "{0} - {1}", "{0} - {1}"}},
    {Code::kMul, {"{0} * {1}", "{0} * {1}", "{0} * {1}"}},
    {Code::kDiv, {"{0} / {1}", "{0} / {1}", "{0} / {1}"}},
    {Code::kRem, {"", "{0} % {1}", "{0} % {1}"}},
    {Code::kMin, {"fmin({0}, {1})", "{1} < {0} ? {1} : {0}", "{1} < {0} ? {1} : {0}"}},
    {Code::kMax, {"fmax({0}, {1})", "{0} < {1} ? {1} : {0}", "{0} < {1} ? {1} : {0}"}},
    {Code::kFma, {"fma({0}, {1}, {2})"}},
    {Code::kAnd, {"", "{0} & {1}", "{0} & {1}", "{0} && {1}"}},
    {Code::kOr, {"", "{0} | {1}", "{0} | {1}", "{0} || {1}"}},
    {Code::kXor, {"", "{0} ^ {1}", "{0} ^ {1}", "{0} != {1}"}},
    {Code::kNot, {"", "~{0}", "~{0}", "!{0}"}},
    {Code::kShl, {"", "{t}({u}({0}) << {1})", "{0} << {1}"}},
    {Code::kShr, {"", "{0} >> {1}", "{0} >> {1}"}},
    {Code::kEq, {"{0} == {1}", "{0} == {1}", "{0} == {1}", "{0} == {1}"}},
    {Code::kLt, {"{0} < {1}", "{0} < {1}", "{0} < {1}"}},
    {Code::kLe, {"{0} <= {1}", "{0} <= {1}", "{0} <= {1}"}},
    {Code::kNeg, {"-({0})", "-({0})", "-({0})"}},
    {Code::kAbs, {"fabs({0})", "{0} < 0 ? {t}(0 - {u}({0})) : {0}", "{0}"}},
    {Code::kSqrt, {"sqrt({0})"}},
    {Code::kRsqrt, {"rsqrt({0})"}},
    {Code::kExp2, {"exp2({0})"}},
    {Code::kLog2, {"log2({0})"}},
    {Code::kSin, {"sin({0})"}},
    {Code::kCos, {"cos({0})"}},
    {Code::kFloor, {"floor({0})"}},
    {Code::kRoundEven, {"rint({0})"}},
};
// Signed integers that may wrap, which C++ leaves undefined.
constexpr CodeTable<std::string_view> kWrapping = {
    {Code::kAdd, "{t}({u}({0}) + {u}({1}))"},
    {Code::kSub, "{t}({u}({0}) - {u}({1}))"},
    {Code::kMul, "{t}({u}({0}) * {u}({1}))"},
    {Code::kNeg, "{t}(0 - {u}({0}))"},
};
// Of non-negative signed integers.
constexpr CodeTable<std::string_view> kUnsigned = {
    {Code::kDiv, "{t}({u}({0}) / {u}({1}))"},
    {Code::kRem, "{t}({u}({0}) % {u}({1}))"},
};

// Of f32, as the hardware has them.
constexpr CodeTable<std::string_view> kNative = {
    {Code::kExp2, "fast_exp2({0})"},
    {Code::kLog2, "fast_log2({0})"},
    {Code::kSin, "fast_sin({0})"},
    {Code::kCos, "fast_cos({0})"},
};
// The same where the kernel may approximate.
constexpr CodeTable<std::string_view> kRoots = {
    {Code::kSqrt, "fast_sqrt({0})"},
    {Code::kRsqrt, "fast_rsqrt({0})"},
};

// Narrow integers are computed in 32 bits.
std::string_view UnsignedTwin(DType t) { return BitWidth(t) == 64 ? "u64" : "u32"; }

std::string Filled(std::string_view format, DType t, std::span<const std::string> x) {
  const std::string none;
  const auto arg = [&](size_t n) -> const std::string& { return n < x.size() ? x[n] : none; };
  return fmt::format(fmt::runtime(format), arg(0), arg(1), arg(2), fmt::arg("t", ElementName(t)),
                     fmt::arg("u", UnsignedTwin(t)));
}

bool IsNarrow(DType t) { return IsInt(t) && BitWidth(t) < 32; }

}  // namespace

std::string CudaPrinter::Text(Id v, int lane) const {
  const Type& t = k.TypeOf(v);
  if (t.lanes == 1) return texts[v];
  return fmt::format("{}.{}", texts[v], "xyzw"[lane]);
}

std::string CudaPrinter::Arithmetic(const Inst& i, DType of, std::span<const std::string> x) {
  const std::string_view native = of != DType::kF32                          ? ""
                                  : k.approximate && !kRoots[i.code].empty() ? kRoots[i.code]
                                                                             : kNative[i.code];
  if (!native.empty()) {
    prelude.Need(Helper::kApproximate);
    return Filled(native, of, x);
  }
  const Row& row = kOperations[i.code];
  if (of == DType::kBool) return Filled(row.of_bool, of, x);
  if (IsFloat(of)) return Filled(row.of_float, of, x);
  const bool wraps = of != DType::kI32 || bounds[i.result].overflows;
  if ((i.aux & kNonNegative) && !kUnsigned[i.code].empty()) return Filled(kUnsigned[i.code], of, x);
  if ((IsSigned(of) || IsNarrow(of)) && wraps && !kWrapping[i.code].empty())
    return Filled(kWrapping[i.code], of, x);
  return Filled(IsSigned(of) ? row.of_signed : row.of_unsigned, of, x);
}

// Of numbers that fit: lowering has seen to the others.
std::string CudaPrinter::Converted(DType from, DType to, const std::string& x) {
  const std::string_view type = ElementName(to);
  if (from == to) return x;
  if (from == DType::kF16) {
    prelude.Need(Helper::kHalves);
    return Converted(DType::kF32, to, fmt::format("to_f32({})", x));
  }
  if (to == DType::kBool) return fmt::format("{} != 0", x);
  if (to == DType::kF16) {
    prelude.Need(Helper::kHalves);
    const DType wide = from == DType::kF64 ? from : DType::kF32;
    return fmt::format("to_f16({})", Converted(from, wide, x));
  }
  return fmt::format("{}({})", type, x);
}

std::string CudaPrinter::Element(const Inst& i, int lane) {
  const std::span<const Id> args = k.ArgsOf(i);
  std::vector<std::string> x;
  for (const Id a : args) x.push_back(Text(a, lane));
  const DType of = k.TypeOf(args[0]).elem, to = k.TypeOf(i.result).elem;
  if (i.code == Code::kSelect) return fmt::format("{} ? {} : {}", x[0], x[1], x[2]);
  if (i.code == Code::kConvert) return Converted(of, to, x[0]);
  if (i.code == Code::kMulHigh) {
    if (IsNarrow(of))
      return fmt::format("{}((i32({}) * i32({})) >> {})", ElementName(of), x[0], x[1],
                         BitWidth(of));
    const std::string_view call = BitWidth(of) == 64 ? IsSigned(of) ? "__mul64hi" : "__umul64hi"
                                  : IsSigned(of)     ? "__mulhi"
                                                     : "__umulhi";
    return fmt::format("{}({}, {})", call, x[0], x[1]);
  }
  if (of == DType::kF16) {
    for (std::string& text : x) text = Converted(of, DType::kF32, text);
    const std::string value = Arithmetic(i, DType::kF32, x);
    return to == of ? Converted(DType::kF32, of, value) : value;
  }
  const std::string value = Arithmetic(i, of, x);
  return IsNarrow(to) ? fmt::format("{}({})", ElementName(to), value) : value;
}

void CudaPrinter::PrintInst(const Inst& i) {
  const auto literal = [&](const Type& t) {
    const std::string one = LiteralText(t.elem, i.literal);
    std::string all = one;
    for (int n = 1; n < (t.is_matrix() ? SumsOfThread(t) : t.lanes); ++n) all += ", " + one;
    if (t.is_matrix()) return fmt::format("{}{{{{{}}}}}", TypeName(t), all);
    return t.lanes == 1 ? all : fmt::format("{}{{{}}}", TypeName(t), all);
  };
  switch (i.code) {
    case Code::kLiteral:
      if (k.TypeOf(i.result).lanes > 1 || k.TypeOf(i.result).is_matrix())
        return Define(i.result, literal(k.TypeOf(i.result)));
      texts[i.result] = literal(k.TypeOf(i.result));
      return;
    case Code::kScalar:
      texts[i.result] = fmt::format("s{}", i.literal);
      return;
    case Code::kBuiltin:
      texts[i.result] = Builtin(static_cast<BuiltinKind>(i.aux));
      return;
    case Code::kExtract:
      texts[i.result] = Text(k.ArgsOf(i)[0], i.aux);
      return;
    case Code::kInsert:
      texts[i.result] = NewName();
      Line("{} {} = {};", TypeName(k.TypeOf(i.result)), texts[i.result], Arg(i, 0));
      Line("{}.{} = {};", texts[i.result], "xyzw"[i.aux], Arg(i, 1));
      return;
    case Code::kBitcast:
      prelude.Need(Helper::kBitcast);
      return Define(i.result,
                    fmt::format("bitcast<{}>({})", TypeName(k.TypeOf(i.result)), Arg(i, 0)));
    default:
      break;
  }
  if (Info(i.code).effect != Effect::kPure) return PrintTogether(i);
  if (i.code == Code::kDot4) return PrintTogether(i);
  const int lanes = k.TypeOf(i.result).lanes;
  std::string all;
  for (int n = 0; n < lanes; ++n) {
    if (n > 0) all += ", ";
    all += i.code == Code::kPack ? Arg(i, static_cast<size_t>(n)) : Element(i, n);
  }
  Define(i.result, lanes == 1 ? all : "{" + all + "}");
}

}  // namespace forge::codegen
