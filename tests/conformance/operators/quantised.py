# SPDX-License-Identifier: Apache-2.0
"""Integers that stand for numbers."""

import numpy as np

from operators.products import matmul_shapes
from operators.windows import window_attributes

BYTES = (np.int8, np.uint8)
# Which types onnxruntime multiplies: (first, second).
PAIRS = ((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))


def scale(g, shape=(), dtype=np.float32, low=0.01, high=0.5):
    return g.constant(np.asarray(g.rng.uniform(low, high, shape)).astype(dtype))


def zero_point(g, dtype, shape=()):
    low, high = (-9, 9) if np.dtype(dtype).kind == "i" else (90, 160)
    return g.constant(g.rng.integers(low, high + 1, shape).astype(dtype))


def words(g, dtype, shape):
    """Integers of the type's whole range."""
    info = np.iinfo(dtype)
    return g.rng.integers(info.min, info.max + 1, shape).astype(dtype)


def weights(g, dtype, shape):
    """Second operands of products. On processors without VNNI, onnxruntime adds pairs of products of bytes in 16 bits
    that saturate, which its quantiser avoids by signed weights of seven bits (reduce_range)."""
    return g.rng.integers(-64, 65, shape).astype(dtype) if dtype == np.int8 else words(g, dtype, shape)


def quantize(g):
    x = g.value((np.float32, np.float32, np.float16) if g.opset >= 19 else (np.float32,))
    rank = x.array.ndim
    axis = int(g.rng.integers(0, rank)) if rank else 0
    per_axis = g.opset >= 13 and rank > 0 and axis in x.static and g.chance(0.5)
    blocked = per_axis and g.opset >= 21 and x.array.size > 0 and len(x.static) == rank and g.chance(0.4)
    shape = [x.array.shape[axis]] if per_axis else []
    attributes = {"axis": axis - (rank if g.chance(0.3) else 0)} if per_axis else {}
    if blocked:
        block = attributes["block_size"] = int(g.rng.integers(1, x.array.shape[axis] + 1))
        shape = [-(-e // block) if i == axis else e for i, e in enumerate(x.array.shape)]
    inputs = [x, scale(g, shape, x.array.dtype)]
    kinds = BYTES + ((np.int16, np.uint16) if g.opset >= 21 else ())
    if g.chance(0.7):
        inputs.append(zero_point(g, g.choose(kinds), shape))
    elif g.opset >= 21 and g.chance(0.5):
        attributes["output_dtype"] = int(g.choose([2, 3, 4, 5]))  # u8, i8, u16, i16
    return inputs, attributes


def dynamic_quantize(g):
    return [g.value((np.float32,))], {}, 3


def convolution(g, x_type, w_type):
    """(attributes, image, weights, output channels) of a convolution of bytes."""
    axes = int(g.choose([1, 2, 2, 2]))
    kernel = g.rng.integers(1, 4, axes).tolist()
    attributes, least = window_attributes(g, kernel, g.chance(0.3))
    group = int(g.choose([1, 1, 1, 2, 3]))
    inner, outer = int(g.rng.integers(1, 4)), group * int(g.rng.integers(1, 4))
    shape = [int(g.rng.integers(1, 3)), group * inner, *(int(e) for e in g.rng.integers(max(least, 3), 12, axes))]
    x = g.new_value((), array=words(g, x_type, shape), open_axes=[0, *range(2, axes + 2)])
    return attributes | {"group": group}, x, g.constant(weights(g, w_type, [outer, inner, *kernel])), outer


def conv_integer(g):
    x_type, w_type = g.choose(PAIRS)
    attributes, x, w, outer = convolution(g, x_type, w_type)
    inputs = [x, w]
    if g.chance(0.7):
        inputs.append(zero_point(g, x_type))
        if g.chance(0.5):
            inputs.append(zero_point(g, w_type))
    return inputs, attributes


def qlinear_conv(g):
    x_type, w_type = g.choose(PAIRS)
    attributes, x, w, outer = convolution(g, x_type, w_type)
    per_channel = [outer] if g.chance(0.4) else []
    zero = 0 if w_type == np.int8 else 128
    depth = float(np.prod(w.array.shape[1:])) ** 0.5
    inputs = [x, scale(g), zero_point(g, x_type), w, scale(g, per_channel),
              g.constant(np.full(per_channel, zero, w_type)) if per_channel else zero_point(g, w_type),
              scale(g, (), np.float32, 5 * depth, 20 * depth), zero_point(g, x_type)]
    if g.chance(0.5):
        inputs.append(g.constant(g.rng.integers(-2000, 2000, outer).astype(np.int32)))
    return inputs, attributes


def qlinear_matmul(g):
    a, b = matmul_shapes(g)
    a_type, b_type = g.choose(PAIRS)
    x = g.new_value((), array=words(g, a_type, a), open_axes=range(max(0, len(a) - 1)))
    y = weights(g, b_type, b)
    per_column = [b[-1]] if len(b) == 2 and g.chance(0.3) else []
    depth = float(a[-1]) ** 0.5
    # Scales of columns must not repeat an open extent.
    second = g.constant(y) if g.chance(0.7) else g.new_value((), array=y, static=bool(per_column))
    return [x, scale(g), zero_point(g, a_type), second,
            scale(g, per_column), zero_point(g, b_type, per_column),
            scale(g, (), np.float32, 5 * depth, 20 * depth), zero_point(g, a_type)], {}
