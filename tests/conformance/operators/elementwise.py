# SPDX-License-Identifier: Apache-2.0
"""Operators on elements."""

from onnx import helper
import numpy as np

from operators.common import ANYTHING, FLOATS, NUMBERS, SIGNED, UNSIGNED


def unary(dtypes=FLOATS, low=-4, high=4, **attributes):
    def generate(g):
        values = {name: draw(g) for name, draw in attributes.items()}
        return [g.value(dtypes, low=low, high=high)], values

    return generate


def number(low, high):
    return lambda g: float(np.float32(g.rng.uniform(low, high)))


def binary(dtypes=NUMBERS, low=-4, high=4):
    def generate(g):
        x = g.value(dtypes, low=low, high=high)
        operands = [x, g.broadcast_partner(x, low, high)]
        if g.chance(0.3):
            operands.reverse()
        return operands, {}

    return generate


def bit_shift(g):
    x = g.value(UNSIGNED, low=0, high=200)
    return [x, g.broadcast_partner(x, 0, 7)], {"direction": "LEFT" if g.chance(0.5) else "RIGHT"}


def variadic(dtypes):
    def generate(g):
        x = g.value(dtypes)
        return [x] + [g.broadcast_partner(x) for _ in range(g.rng.integers(0, 3))], {}

    return generate


def divide(g):
    x = g.value(NUMBERS)
    divisor = g.numbers(g.broadcastable(x.array.shape), x.array.dtype, 1, 5)
    return [x, g.constant(divisor)], {}


def modulo(g):
    operands, _ = divide(g)
    truncated = operands[0].array.dtype.kind == "f" or bool(g.rng.integers(2))
    return operands, {"fmod": int(truncated)}


def power(g):
    x = g.new_value(FLOATS, low=0.25, high=3)
    return [x, g.broadcast_partner(x, -2, 2)], {}


def where(g):
    x = g.value(ANYTHING)
    condition = g.new_value((np.bool_,), shape=g.broadcastable(x.array.shape))
    return [condition, x, g.broadcast_partner(x)], {}


def prelu(g):
    x = g.value(FLOATS)
    shape = [extent if g.chance(0.5) else 1 for extent in x.array.shape]
    return [x, g.constant(g.numbers(shape[g.rng.integers(0, len(shape) + 1):], x.array.dtype))], {}


def clip(g):
    x = g.value(FLOATS if g.opset < 12 else NUMBERS)
    low, high = sorted(g.rng.integers(0, 3, 2).tolist())
    if g.opset < 11:
        return [x], {"min": float(low), "max": float(high)}
    bounds = [g.constant(np.array(bound, x.array.dtype)) if g.chance(0.8) else None for bound in (low, high)]
    return [x, *bounds], {}


def cast(g):
    x = g.value(ANYTHING, low=-3, high=3)
    if x.array.dtype.kind == "f" and not (np.abs(x.array.astype(np.float64)) < 100).all():
        x = g.new_value(ANYTHING, low=-3, high=3)
    target = np.dtype(g.choose(ANYTHING))
    if target.kind == "u" and x.array.dtype.kind == "f":  # what C++ leaves undefined, onnxruntime does
        x = g.new_value((x.array.dtype.type,), low=0, high=3)
    return [x], {"to": helper.np_dtype_to_tensor_dtype(target)}


def gelu(g):
    return [g.value(FLOATS)], {"approximate": g.choose(["none", "tanh"])}


def cast_like(g):
    inputs, attributes = cast(g)
    like = helper.tensor_dtype_to_np_dtype(attributes["to"])
    return [inputs[0], g.constant(g.numbers([2], like))], {}


def is_inf(g):
    x = g.new_value((np.float32, np.float64))
    special = np.where(g.rng.random(x.array.shape) < 0.4, g.rng.choice([np.inf, -np.inf, np.nan], x.array.shape), x.array)
    x = g.constant(special.astype(x.array.dtype))
    return [x], {"detect_negative": int(g.rng.integers(0, 2)), "detect_positive": int(g.rng.integers(0, 2))}


def is_nan(g):
    return is_inf(g)[0], {}


def dropout(g):
    return [g.value(FLOATS)], ({"ratio": 0.25} if g.opset < 12 else {})


def dequantize(g):
    x = g.new_value((np.int8, np.uint8))
    axis = int(g.rng.integers(0, x.array.ndim)) if x.array.ndim else 0
    per_axis = g.opset >= 13 and x.array.ndim > 0 and axis in x.static and g.chance(0.6)
    shape = [x.array.shape[axis]] if per_axis else []
    scale = g.constant(g.numbers(shape, np.float32, 0.01, 0.5))
    inputs = [x, scale]
    if g.chance(0.7):
        inputs.append(g.constant(g.numbers(shape, x.array.dtype, 0, 9)))
    return inputs, ({"axis": axis - (x.array.ndim if g.chance(0.3) else 0)} if per_axis else {})


def swish(g):
    return [g.value(FLOATS)], ({"alpha": number(0.5, 2)(g)} if g.chance(0.7) else {})


def swiglu(g):
    x = g.value(FLOATS)
    partner = g.new_value((x.array.dtype.type,), shape=x.array.shape)
    return [x, partner], ({"alpha": number(0.5, 2)(g)} if g.chance(0.7) else {})


def bit_cast(g):
    """To another type of elements of as many bits."""
    x = g.value(NUMBERS)
    bytes_each = x.array.dtype.itemsize
    floats = (np.float16, np.float32, np.float64) if x.array.dtype.kind == "f" else ()  # integers may be NaN
    alike = [t for t in SIGNED + UNSIGNED + floats if np.dtype(t).itemsize == bytes_each]
    return [x], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(g.choose(alike)))}
