// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/elementwise/elementwise.h"

#include <cmath>

#include "formats/onnx/builders/families.h"
#include "ir/ops/creation/fill.h"
#include "ir/ops/elementwise/scalar_math.h"
#include "ir/ops/host/strings.h"
#include "ir/ops/movement/reshape.h"

namespace forge::formats {
namespace {

// Before opset 7 the second operand broadcasts only where asked, and its axes may start at an axis
// of the first: ones are put behind them.
ir::Value LegacyOperand(OnnxNode& n, ir::Value a, ir::Value b) {
  const bool broadcast = n.Flag("broadcast");
  const bool aligned = n.Has("axis");
  const int64_t axis = n.Int("axis", 0);
  if (!broadcast || !aligned || !a.type().is_tensor() || !b.type().is_tensor()) return b;
  const int64_t begin = axis < 0 ? axis + a.type().rank() : axis;
  const int64_t behind = a.type().rank() - begin - b.type().rank();
  if (begin < 0 || behind < 0) {
    n.Fail("axis {} does not align {} with {}", axis, b.type().ToText(), a.type().ToText());
    return b;
  }
  if (behind == 0) return b;
  ir::Dims shape = b.type().shape();
  shape.insert(shape.end(), static_cast<size_t>(behind), ir::Dim(1));
  return n.fn()(ir::Reshape{shape}, {b});
}

ir::Values Binary(OnnxNode& n, const ir::AnyOp& op) {
  const ir::Value a = n.in(0), b = n.in(1);
  return n.fn().Add(op, std::array{a, n.since() < 7 ? LegacyOperand(n, a, b) : b});
}

// The same with the operands exchanged.
ir::Values Exchanged(OnnxNode& n, const ir::AnyOp& op) {
  const ir::Value a = n.in(0), b = n.in(1);
  return n.fn().Add(op, std::array{n.since() < 7 ? LegacyOperand(n, a, b) : b, a});
}

ir::Values Unary(OnnxNode& n, const ir::AnyOp& op) { return {n.fn()(op, {n.in(0)})}; }

ir::Values Variadic(OnnxNode& n, const ir::AnyOp& op) {
  ir::Value out = n.in(0);
  for (size_t i = 1; i < n.inputs(); ++i) out = n.fn()(op, {out, n.in(i)});
  return {out};
}

template <class Op>
ir::Values UnaryOf(OnnxNode& n) {
  return Unary(n, Op{});
}
template <class Op>
ir::Values BinaryOf(OnnxNode& n) {
  return Binary(n, Op{});
}
template <class Op>
ir::Values ExchangedOf(OnnxNode& n) {
  return Exchanged(n, Op{});
}
template <class Op>
ir::Values VariadicOf(OnnxNode& n) {
  return Variadic(n, Op{});
}

// Can `clamp`, whose bounds are f64, hold the bound exactly?
bool FitsDouble(const std::optional<Number>& bound, DType dtype) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  return bound && (Has(kFloatTypes, dtype) || std::abs(bound->f64()) < kExact);
}

ir::Values BuildEqual(OnnxNode& n) {
  if (n.type(0).dtype() == DType::kString)
    return n.fn().Add(ir::StringEqual{}, std::array{n.in(0), n.in(1)});
  return Binary(n, ir::Equal{});
}

ir::Values BuildIdentity(OnnxNode& n) { return {n.in(0)}; }

// Narrow floats are added in f32, so that the mean is rounded once.
ir::Values BuildMean(OnnxNode& n) {
  ir::Value sum = ir::Widened(n.in(0));
  for (size_t i = 1; i < n.inputs(); ++i) sum = sum + ir::Widened(n.in(i));
  if (n.since() < 6) n.Ignore("consumed_inputs");
  if (!n.fn().status().ok()) return {sum};
  return {ir::Narrowed(sum / static_cast<double>(n.inputs()), n.type(0).dtype())};
}

ir::Values BuildMod(OnnxNode& n) {
  const bool truncated = n.Int("fmod", 0) != 0;
  if (truncated) return Binary(n, ir::Fmod{});
  if (Has(kFloatTypes, n.in(0).type().dtype())) n.Fail("fmod is 0, floats need 1");
  return Binary(n, ir::Remainder{});
}

ir::Values BuildBitShift(OnnxNode& n) {
  const std::string direction = n.String("direction", "");
  if (direction == "LEFT") return Binary(n, ir::ShiftLeft{});
  if (direction != "RIGHT") n.Fail("direction '{}' is neither LEFT nor RIGHT", direction);
  return Binary(n, ir::ShiftRight{});
}

ir::Values BuildReciprocal(OnnxNode& n) { return {1.0 / n.in(0)}; }

ir::Values BuildWhere(OnnxNode& n) { return {n.fn()(ir::Select{}, {n.in(0), n.in(1), n.in(2)})}; }

// By repeated squares; a negative exponent gives 1 / x^n, truncated.
ir::Value IntegerPower(OnnxNode& n, ir::Value x, ir::Value exponent) {
  const DType t = x.type().dtype();
  // Of the size of an exponent, which is i32 below.
  const int bits = std::min(31, BitWidth(exponent.type().dtype()));
  ir::Value rest = ir::convert(exponent, DType::kI32);
  const ir::Value is_negative = rest < 0.0;
  const auto number = [&](double v, DType of) {
    return n.fn()(ir::Fill{.value = v, .dtype = of}, {});
  };
  const ir::Value one = number(1, DType::kI32);
  rest = ir::abs(rest);
  ir::Value y = number(1, t), square = x;
  for (int bit = 0; bit < bits; ++bit) {
    const ir::Value is_set = n.fn()(ir::And{}, {rest, one}) > 0.0;
    y = ir::select(is_set, y * square, y);
    square = square * square;
    rest = n.fn()(ir::ShiftRight{}, {rest, one});
  }
  const ir::Value divisor = ir::select(n.fn()(ir::Equal{}, {y, number(0, t)}), 1.0, y);
  return ir::select(is_negative, number(1, t) / divisor, y);
}

// Since opset 12 the exponent may be of another type.
ir::Values BuildPow(OnnxNode& n) {
  const ir::Value a = n.in(0);
  ir::Value b = n.since() < 7 ? LegacyOperand(n, a, n.in(1)) : n.in(1);
  const DType base = a.type().dtype(), exponent = b.type().dtype();
  if (Has(kIntTypes, base) && Has(kIntTypes, exponent)) return {IntegerPower(n, a, b)};
  if (Has(kIntTypes, base))  // as numpy: in floats, then back
    return {ir::convert(ir::pow(ir::convert(a, DType::kF32), ir::convert(b, DType::kF32)), base)};
  if (exponent != base) b = n.fn()(ir::Cast{a.type().dtype()}, {b});
  return {n.fn()(ir::Pow{}, {a, b})};
}

ir::Values BuildHardSigmoid(OnnxNode& n) {
  constexpr float kAlpha = 0.2f;  // the specification's default is an f32
  return Unary(n, ir::HardSigmoid{.alpha = n.Float("alpha", kAlpha), .beta = n.Float("beta", 0.5)});
}

ir::Values BuildClip1(OnnxNode& n) {
  ir::Clamp op;
  op.low = n.Float("min", op.low);
  op.high = n.Float("max", op.high);
  return Unary(n, op);
}

ir::Values BuildClip11(OnnxNode& n) {
  const DType dtype = n.type(0).dtype();
  const auto usable = [&](size_t i) {
    return !n.HasInput(i) || FitsDouble(n.ConstantNumber(i), dtype);
  };
  if (usable(1) && usable(2)) {
    ir::Clamp op;
    op.low = n.ConstantNumber(1).value_or(op.low).f64();
    op.high = n.ConstantNumber(2).value_or(op.high).f64();
    return Unary(n, op);
  }
  ir::Value out = n.in(0);
  if (n.HasInput(1)) out = n.fn()(ir::Maximum{}, {out, n.in(1)});
  if (n.HasInput(2)) out = n.fn()(ir::Minimum{}, {out, n.in(2)});
  return {out};
}

ir::Values BuildIsInf(OnnxNode& n) {
  const bool positive = n.Flag("detect_positive", true);
  return Unary(n, ir::IsInf{.positive = positive, .negative = n.Flag("detect_negative", true)});
}

constexpr OnnxOp kElementwiseOps[] = {
    {"", "Abs", 1, 1, 1, UnaryOf<ir::Abs>},
    {"", "Acos", 7, 1, 1, UnaryOf<ir::Acos>},
    {"", "Acosh", 9, 1, 1, UnaryOf<ir::Acosh>},
    {"", "Add", 1, 2, 2, BinaryOf<ir::Add>},
    {"", "Add", 7, 2, 2, BinaryOf<ir::Add>},
    {"", "And", 1, 2, 2, BinaryOf<ir::And>},
    {"", "And", 7, 2, 2, BinaryOf<ir::And>},
    {"", "Asin", 7, 1, 1, UnaryOf<ir::Asin>},
    {"", "Asinh", 9, 1, 1, UnaryOf<ir::Asinh>},
    {"", "Atan", 7, 1, 1, UnaryOf<ir::Atan>},
    {"", "Atanh", 9, 1, 1, UnaryOf<ir::Atanh>},
    {"", "BitShift", 11, 2, 2, BuildBitShift},
    {"", "BitwiseAnd", 18, 2, 2, BinaryOf<ir::And>},
    {"", "BitwiseNot", 18, 1, 1, UnaryOf<ir::BitwiseNot>},
    {"", "BitwiseOr", 18, 2, 2, BinaryOf<ir::Or>},
    {"", "BitwiseXor", 18, 2, 2, BinaryOf<ir::Xor>},
    {"", "Ceil", 1, 1, 1, UnaryOf<ir::Ceil>},
    {"", "Clip", 1, 1, 1, BuildClip1},
    {"", "Clip", 11, 1, 3, BuildClip11},
    {"", "Cos", 7, 1, 1, UnaryOf<ir::Cos>},
    {"", "Cosh", 9, 1, 1, UnaryOf<ir::Cosh>},
    {"", "Div", 1, 2, 2, BinaryOf<ir::Div>},
    {"", "Div", 7, 2, 2, BinaryOf<ir::Div>},
    {"", "Equal", 1, 2, 2, BinaryOf<ir::Equal>},
    {"", "Equal", 7, 2, 2, BuildEqual},
    {"", "Erf", 9, 1, 1, UnaryOf<ir::Erf>},
    {"", "Exp", 1, 1, 1, UnaryOf<ir::Exp>},
    {"", "Floor", 1, 1, 1, UnaryOf<ir::Floor>},
    {"", "Greater", 1, 2, 2, BinaryOf<ir::Greater>},
    {"", "Greater", 7, 2, 2, BinaryOf<ir::Greater>},
    {"", "GreaterOrEqual", 12, 2, 2, BinaryOf<ir::GreaterEqual>},
    {"", "HardSigmoid", 1, 1, 1, BuildHardSigmoid},
    {"", "HardSwish", 14, 1, 1, UnaryOf<ir::HardSwish>},
    {"", "Identity", 1, 1, 1, BuildIdentity},
    {"", "IsInf", 10, 1, 1, BuildIsInf},
    {"", "IsNaN", 9, 1, 1, UnaryOf<ir::IsNan>},
    {"", "Less", 1, 2, 2, ExchangedOf<ir::Greater>},
    {"", "Less", 7, 2, 2, ExchangedOf<ir::Greater>},
    {"", "LessOrEqual", 12, 2, 2, ExchangedOf<ir::GreaterEqual>},
    {"", "Log", 1, 1, 1, UnaryOf<ir::Log>},
    {"", "Max", 1, 1, kAnyNumber, VariadicOf<ir::Maximum>},
    {"", "Mean", 1, 1, kAnyNumber, BuildMean},
    {"", "Min", 1, 1, kAnyNumber, VariadicOf<ir::Minimum>},
    {"", "Mod", 10, 2, 2, BuildMod},
    {"", "Mod", 13, 2, 2, BuildMod},
    {"", "Mul", 1, 2, 2, BinaryOf<ir::Mul>},
    {"", "Mul", 7, 2, 2, BinaryOf<ir::Mul>},
    {"", "Neg", 1, 1, 1, UnaryOf<ir::Neg>},
    {"", "Not", 1, 1, 1, UnaryOf<ir::Not>},
    {"", "Or", 1, 2, 2, BinaryOf<ir::Or>},
    {"", "Or", 7, 2, 2, BinaryOf<ir::Or>},
    {"", "Pow", 1, 2, 2, BuildPow},
    {"", "Pow", 7, 2, 2, BuildPow},
    {"", "Reciprocal", 1, 1, 1, BuildReciprocal},
    {"", "Relu", 1, 1, 1, UnaryOf<ir::Relu>},
    {"", "Round", 11, 1, 1, UnaryOf<ir::Round>},
    {"", "Sigmoid", 1, 1, 1, UnaryOf<ir::Sigmoid>},
    {"", "Sign", 9, 1, 1, UnaryOf<ir::Sign>},
    {"", "Sin", 7, 1, 1, UnaryOf<ir::Sin>},
    {"", "Sinh", 9, 1, 1, UnaryOf<ir::Sinh>},
    {"", "Sqrt", 1, 1, 1, UnaryOf<ir::Sqrt>},
    {"", "Sub", 1, 2, 2, BinaryOf<ir::Sub>},
    {"", "Sub", 7, 2, 2, BinaryOf<ir::Sub>},
    {"", "Sum", 1, 1, kAnyNumber, VariadicOf<ir::Add>},
    {"", "Tan", 7, 1, 1, UnaryOf<ir::Tan>},
    {"", "Tanh", 1, 1, 1, UnaryOf<ir::Tanh>},
    {"", "Where", 9, 3, 3, BuildWhere},
    {"", "Xor", 1, 2, 2, BinaryOf<ir::Xor>},
    {"", "Xor", 7, 2, 2, BinaryOf<ir::Xor>},
};

}  // namespace

std::span<const OnnxOp> ElementwiseOps() { return kElementwiseOps; }

}  // namespace forge::formats
