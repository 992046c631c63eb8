# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators and conversions."""

from __future__ import annotations

import math

import torch

from ..._graph import Value
from ..unsupported import Unsupported

COMPLEX = ("c64", "c128")


def is_integer(dtype):
    """Is this a type of integers or of booleans?"""
    return dtype[0] in "iu" or dtype == "bool"


def same(op, **attributes):
    """The op on elements as they are."""
    return lambda t, x: t.op(op, x, **attributes)


def to_float(op):
    """The op on floats, which integers become."""
    return lambda t, x: t.op(op, *t.promoted(x, kind="float"))


def rounding(op):
    """An op that leaves integers as they are."""
    return lambda t, x: x if is_integer(x.dtype) else t.op(op, x)


def binary(op, kind="default"):
    """The op on both operands' common type."""
    return lambda t, a, b: t.op(op, *t.promoted(a, b, kind=kind))


def comparison(op, swapped=False, on_bool=True):
    """A comparison of both operands in their common type."""

    def rule(t, a, b):
        a, b = t.promoted(a, b)
        if a.dtype == "bool" and not on_bool:
            a, b = t.cast(a, "u8"), t.cast(b, "u8")
        return t.op(op, *((b, a) if swapped else (a, b)))

    return rule


def add(op, subtract=False):
    """a + alpha b, or a - alpha b"""

    def rule(t, a, b, alpha=1):
        a, b = t.promoted(a, b)
        if alpha != 1:
            b = multiply(t, b, alpha)
        if a.dtype == "bool":
            if subtract:
                raise Unsupported("bool minus bool")
            return t.op("or", a, b)
        return t.op(op, a, b)

    return rule


def reverse_subtract(t, a, b, alpha=1):
    """b - alpha a"""
    a, b = t.promoted(a, b)
    return t.op("sub", b, multiply(t, a, alpha) if alpha != 1 else a)


def multiply(t, a, b):
    """a b"""
    a, b = t.promoted(a, b)
    return t.op("and" if a.dtype == "bool" else "mul", a, b)


def divide(t, a, b, rounding_mode=None):
    """a / b, rounded as the mode says"""
    if rounding_mode is None:
        return t.op("div", *t.promoted(a, b, kind="float"))
    a, b = t.promoted(a, b)
    if rounding_mode == "floor":
        return t.op("floor_divide", a, b)
    quotient = t.op("div", a, b)  # of integers it is rounded towards zero
    return quotient if is_integer(a.dtype) else t.op("trunc", quotient)


def power(t, a, b):
    """a to the power of b"""
    a, b = t.promoted(a, b)
    if a.dtype not in COMPLEX:
        return t.op("pow", a, b)
    # 0 to a power with a positive real part is 0; on the way its logarithm is infinite.
    y = t.op("exp", t.op("mul", b, t.op("log", a)))
    real = t.op("real", b)
    is_zero = t.op("and", t.op("equal", a, t.full(0, a.dtype)), t.op("greater", real, t.full(0, real.dtype)))
    return t.op("select", is_zero, t.full(0, a.dtype), y)


def power_of_number(t, a, exponent):
    """a to the power of a number; small whole powers are products"""
    small = isinstance(exponent, (int, float)) and exponent == int(exponent) and 1 <= exponent <= 4
    if not small:
        return power(t, a, exponent)
    a = t.cast(a, t.out_dtype())
    square = t.op("mul", a, a) if exponent > 1 else a
    return {1: lambda: a, 2: lambda: square, 3: lambda: t.op("mul", square, a),
            4: lambda: t.op("mul", square, square)}[int(exponent)]()


def reciprocal(t, x):
    """1 / x"""
    x, = t.promoted(x, kind="float")
    return t.op("div", t.full(1, x.dtype), x)


def square(t, x):
    """x x; booleans become integers"""
    x = t.cast(x, t.out_dtype())
    return multiply(t, x, x)


def logical(op):
    """An op on whether elements are not 0."""
    return lambda t, a, b: t.op(op, truth(t, a), truth(t, b))


def truth(t, x):
    """x != 0"""
    return x if x.dtype == "bool" else t.op("not_equal", x, t.full(0, x.dtype))


def bitwise(op):
    """An op on bits."""
    return lambda t, a, b: t.op(op, *t.promoted(a, b))


def invert(t, x):
    """All bits inverted"""
    return t.op("not" if x.dtype == "bool" else "bitwise_not", x)


def where(t, condition, a, b):
    """a where the condition holds, else b"""
    return t.op("select", truth(t, condition), *t.promoted(a, b))


def clamp(t, x, low=None, high=None):
    """x within bounds, which may be tensors"""
    dtype = t.out_dtype()
    if not any(isinstance(bound, Value) for bound in (low, high)):
        return t.op("clamp", t.cast(x, dtype), low=low, high=high)
    x = t.cast(x, dtype)
    if low is not None:
        x = t.op("maximum", x, t.tensor(low, dtype))
    return x if high is None else t.op("minimum", x, t.tensor(high, dtype))


def extreme(op):
    """maximum or minimum"""

    def rule(t, a, b):
        a, b = t.promoted(a, b)
        if a.dtype == "bool":
            return t.op("or" if op == "maximum" else "and", a, b)
        return t.op(op, a, b)

    return rule


def fmax(op):
    """maximum or minimum of numbers; NaN only where both are"""

    def rule(t, a, b):
        a, b = t.promoted(a, b)
        if is_integer(a.dtype):
            return t.op(op, a, b)
        a, b = (t.op("select", t.op("is_nan", x), y, x) for x, y in ((a, b), (b, a)))
        return t.op(op, a, b)

    return rule


def round_to(t, x, decimals=0):
    """Rounds half to even, to decimals"""
    if is_integer(x.dtype):
        return x
    if decimals == 0:
        return t.op("round", x)
    scale = t.full(10.0 ** abs(decimals), x.dtype)
    there, back = ("mul", "div") if decimals > 0 else ("div", "mul")
    return t.op(back, t.op("round", t.op(there, x, scale)), scale)


def sign(t, x):
    """-1, 0 or 1; of a complex number its direction"""
    if x.dtype not in COMPLEX:
        return x if x.dtype == "bool" else t.op("sign", x)
    size = t.op("abs", x)
    size = t.op("select", t.op("equal", size, t.full(0, size.dtype)), t.full(1, size.dtype), size)
    return t.op("div", x, t.cast(size, x.dtype))


def frac(t, x):
    """x - trunc(x)"""
    return t.op("sub", x, t.op("trunc", x))


def is_finite(t, x):
    """Neither infinite nor NaN"""
    if is_integer(x.dtype):
        return t.expand(t.full(True, "bool"), x.shape)
    return t.op("not", t.op("or", t.op("is_nan", x), t.op("is_inf", x)))


def float_test(op, **attributes):
    """A test that no integer passes."""
    return lambda t, x: (t.expand(t.full(False, "bool"), x.shape) if is_integer(x.dtype)
                         else t.op(op, x, **attributes))


def nan_to_num(t, x, nan=0.0, posinf=None, neginf=None):
    """Numbers in place of NaN and infinities"""
    if is_integer(x.dtype):
        return x
    limits = torch.finfo(t.torch_dtype(x.dtype))
    for test, value in ((t.op("is_nan", x), nan or 0.0),
                        (t.op("is_inf", x, negative=False), limits.max if posinf is None else posinf),
                        (t.op("is_inf", x, positive=False), limits.min if neginf is None else neginf)):
        x = t.op("select", test, t.full(value, x.dtype), x)
    return x


def addcmul(op):
    """x + value a op b"""

    def rule(t, x, a, b, value=1):
        x, a, b = t.promoted(x, a, b)
        term = t.op(op, a, b)
        return t.op("add", x, t.op("mul", term, t.full(value, x.dtype)) if value != 1 else term)

    return rule


def lerp(t, a, b, weight):
    """a + weight (b - a)"""
    a, b, weight = t.promoted(a, b, weight)
    return t.op("add", a, t.op("mul", weight, t.op("sub", b, a)))


def xlogy(t, a, b):
    """a log(b), 0 where a is 0"""
    a, b = t.promoted(a, b, kind="float")
    zero = t.full(0, a.dtype)
    product = t.op("select", t.op("equal", a, zero), zero, t.op("mul", a, t.op("log", b)))
    return t.op("select", t.op("is_nan", b), b, product)


def logit(t, x, eps=None):
    """log(x / (1 - x))"""
    x, = t.promoted(x, kind="float")
    if eps is not None:
        below = t.op("greater", t.full(eps, x.dtype), x)
        x = t.op("select", below, t.full(eps, x.dtype), t.op("clamp", x, high=1 - eps))
    return t.op("log", t.op("div", x, t.op("sub", t.full(1, x.dtype), x)))


def hypot(t, a, b):
    """sqrt(a^2 + b^2)"""
    a, b = t.promoted(a, b, kind="float")
    return t.op("sqrt", t.op("add", t.op("mul", a, a), t.op("mul", b, b)))


def logaddexp(t, a, b):
    """log(exp(a) + exp(b))"""
    a, b = t.promoted(a, b)
    high, low = t.op("maximum", a, b), t.op("minimum", a, b)
    added = t.op("add", high, t.op("log1p", t.op("exp", t.op("sub", low, high))))
    return t.op("select", t.op("equal", high, low), t.op("add", high, t.full(math.log(2), a.dtype)), added)


# ---- activations


def gelu(t, x, approximate="none"):
    """GELU, by erf or tanh"""
    return t.op("gelu", x, tanh_form=approximate == "tanh")


def elu(t, x, alpha=1, scale=1, input_scale=1):
    """ELU; SELU where it is scaled"""
    if input_scale != 1:
        raise Unsupported("an input_scale")
    y = t.op("elu", x, alpha=alpha)
    return y if scale == 1 else t.op("mul", y, t.full(scale, x.dtype))


def hard_tanh(t, x, low=-1, high=1):
    """x within bounds"""
    return t.op("clamp", x, low=low, high=high)


def relu6(t, x):
    """x within 0 and 6"""
    return t.op("clamp", x, low=0, high=6)


def hard_shrink(t, x, lambd=0.5):
    """0 where |x| is at most lambda"""
    return t.op("shrink", x, **{"lambda": lambd})


def soft_shrink(t, x, lambd=0.5):
    """x moved towards 0 by lambda"""
    return t.op("shrink", x, **{"lambda": lambd}, bias=lambd)


def prelu(t, x, weight):
    """A slope below 0 for each channel"""
    shape = [1] * x.rank
    if x.rank > 1:
        shape[1] = weight.shape[0]
    return t.op("prelu", x, t.reshape(weight, shape if x.rank else []))


def glu(t, x, dim=-1):
    """The first half times the sigmoid of the second"""
    return t.op("glu", x, axis=dim)


def itself(t, x, *_, **__):
    """The operand"""
    return x


# ---- conversions


def to_dtype(t, x, *_, **__):
    """The result's element type; complex numbers lose their imaginary part"""
    return truth(t, x) if t.out_dtype() == "bool" else t.cast(x, t.out_dtype())


UNARY = ("tanh", "sinh", "asinh", "cosh", "acosh", "atanh", "asin", "acos", "atan", "exp", "expm1", "exp2", "log",
         "log1p", "log2", "log10", "lgamma", "digamma", "erf", "erfc", "sqrt", "rsqrt", "sin", "cos", "tan", "sigmoid")
SPECIAL = {"special_erf": "erf", "special_erfc": "erfc", "special_expm1": "expm1", "special_exp2": "exp2",
           "special_log1p": "log1p", "special_gammaln": "lgamma", "special_digamma": "digamma", "special_psi": "digamma",
           "special_expit": "sigmoid", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
           "arccosh": "acosh", "arctanh": "atanh"}

RULES = {
    **{f"aten.{name}": to_float(name) for name in UNARY},
    **{f"aten.{name}": to_float(op) for name, op in SPECIAL.items()},
    **{f"aten.{name}": rounding(name) for name in ("floor", "ceil", "trunc")},
    "aten.fix": rounding("trunc"),
    "aten.round": round_to,
    "aten.neg": same("neg"),
    "aten.negative": same("neg"),
    "aten.abs": same("abs"),
    "aten.absolute": same("abs"),
    "aten.positive": itself,
    "aten.sign": sign,
    "aten.sgn": sign,
    "aten.frac": frac,
    "aten.square": square,
    "aten.deg2rad": lambda t, x: multiply(t, x, math.pi / 180),
    "aten.rad2deg": lambda t, x: multiply(t, x, 180 / math.pi),
    "aten.reciprocal": reciprocal,
    "aten.polygamma": lambda t, n, x: t.op("polygamma", x, order=n),
    "aten.add": add("add"),
    "aten.sub": add("sub", subtract=True),
    "aten.subtract": add("sub", subtract=True),
    "aten.rsub": reverse_subtract,
    "aten.mul": multiply,
    "aten.multiply": multiply,
    "aten.div": divide,
    "aten.divide": divide,
    "aten.true_divide": divide,
    "aten.floor_divide": binary("floor_divide"),
    "aten.remainder": binary("remainder"),
    "aten.fmod": binary("fmod"),
    "aten.pow.Tensor_Tensor": power,
    "aten.pow.Scalar": power,
    "aten.pow.Tensor_Scalar": power_of_number,
    "aten.float_power": lambda t, a, b: power(t, t.tensor(a, "f64"), t.tensor(b, "f64")),
    "aten.atan2": binary("atan2", "float"),
    "aten.arctan2": binary("atan2", "float"),
    "aten.hypot": hypot,
    "aten.logaddexp": logaddexp,
    "aten.xlogy": xlogy,
    "aten.special_xlogy": xlogy,
    "aten.logit": logit,
    "aten.maximum": extreme("maximum"),
    "aten.minimum": extreme("minimum"),
    "aten.fmax": fmax("maximum"),
    "aten.fmin": fmax("minimum"),
    "aten.max.other": extreme("maximum"),
    "aten.min.other": extreme("minimum"),
    "aten.eq": comparison("equal"),
    "aten.ne": comparison("not_equal"),
    "aten.not_equal": comparison("not_equal"),
    "aten.gt": comparison("greater", on_bool=False),
    "aten.ge": comparison("greater_equal", on_bool=False),
    "aten.greater": comparison("greater", on_bool=False),
    "aten.greater_equal": comparison("greater_equal", on_bool=False),
    "aten.lt": comparison("greater", swapped=True, on_bool=False),
    "aten.le": comparison("greater_equal", swapped=True, on_bool=False),
    "aten.less": comparison("greater", swapped=True, on_bool=False),
    "aten.less_equal": comparison("greater_equal", swapped=True, on_bool=False),
    "aten.logical_and": logical("and"),
    "aten.logical_or": logical("or"),
    "aten.logical_xor": logical("xor"),
    "aten.logical_not": lambda t, x: t.op("not", truth(t, x)),
    "aten.bitwise_and": bitwise("and"),
    "aten.bitwise_or": bitwise("or"),
    "aten.bitwise_xor": bitwise("xor"),
    "aten.__and__": bitwise("and"),
    "aten.__or__": bitwise("or"),
    "aten.__xor__": bitwise("xor"),
    "aten.bitwise_not": invert,
    "aten.bitwise_left_shift": bitwise("shift_left"),
    "aten.bitwise_right_shift": bitwise("shift_right"),
    "aten.__lshift__": bitwise("shift_left"),
    "aten.__rshift__": bitwise("shift_right"),
    "aten.where.self": where,
    "aten.where.ScalarOther": where,
    "aten.where.ScalarSelf": where,
    "aten.where.Scalar": where,
    "aten.clamp": clamp,
    "aten.clip": clamp,
    "aten.clamp_min": lambda t, x, low: clamp(t, x, low=low),
    "aten.clamp_max": lambda t, x, high: clamp(t, x, high=high),
    "aten.isnan": float_test("is_nan"),
    "aten.isinf": float_test("is_inf"),
    "aten.isposinf": float_test("is_inf", negative=False),
    "aten.isneginf": float_test("is_inf", positive=False),
    "aten.isfinite": is_finite,
    "aten.nan_to_num": nan_to_num,
    "aten.addcmul": addcmul("mul"),
    "aten.addcdiv": addcmul("div"),
    "aten.lerp": lerp,
    "aten.relu6": relu6,
    "aten.leaky_relu": lambda t, x, slope=0.01: t.op("leaky_relu", x, slope=slope),
    "aten.elu": elu,
    "aten.celu": lambda t, x, alpha=1: t.op("celu", x, alpha=alpha),
    "aten.selu": same("selu"),
    "aten.silu": same("silu"),
    "aten.gelu": gelu,
    "aten.mish": same("mish"),
    "aten.softplus": lambda t, x, beta=1, threshold=20: t.op("softplus", x, beta=beta, threshold=threshold),
    "aten.softsign": same("softsign"),
    "aten.hardtanh": hard_tanh,
    "aten.hardsigmoid": lambda t, x: t.op("hard_sigmoid", x, alpha=1 / 6),
    "aten.hardswish": same("hard_swish"),
    "aten.hardshrink": hard_shrink,
    "aten.softshrink": soft_shrink,
    "aten.threshold": lambda t, x, threshold, value: t.op("threshold", x, threshold=threshold, value=value),
    "aten.log_sigmoid": same("log_sigmoid"),
    "aten.prelu": prelu,
    "aten._prelu_kernel": lambda t, x, weight: t.op("prelu", x, weight),
    "aten.glu": glu,
    "aten.detach": same("stop_gradient"),
    **{f"aten.{name}": itself for name in (
        "alias", "clone", "contiguous", "lift_fresh", "lift_fresh_copy", "lift", "requires_grad",
        "resolve_conj", "resolve_neg", "pin_memory")},
    **{f"aten.{name}": to_dtype for name in ("to", "_to_copy", "type_as", "float", "half", "double", "int", "long",
                                             "bool", "bfloat16")},
    "prims.convert_element_type": to_dtype,
}
