# SPDX-License-Identifier: Apache-2.0
"""How the differential test uses each operator: random operands and attributes for the opset at hand.

A generator takes a Graph and gives (inputs, attributes) or (inputs, attributes, number of outputs); an input is a
Value, or None where it is absent. What onnxruntime refuses is drawn again.
"""

import numpy as np
from onnx import helper

FLOATS = (np.float32, np.float32, np.float32, np.float16, np.float64)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
NUMBERS = FLOATS + FLOATS + SIGNED + UNSIGNED
ANYTHING = NUMBERS + (np.bool_, np.bool_)

# Whose result changes by a step where the first operand changes by a little.
JUMPS = frozenset("Cast Ceil Floor Mod Round Sign".split())

# Whose results are rounded; the others move, select or compare, or are made of integers.
ROUNDS = frozenset("""Acos Acosh Add AffineGrid Asin Asinh Atan Atanh AveragePool BatchNormalization Col2Im Conv
    ConvTranspose Cos Cosh DequantizeLinear Div Elu Erf Exp Gelu Gemm GlobalAveragePool GridSample GroupNormalization
    HardSigmoid HardSwish InstanceNormalization LayerNormalization LeakyRelu Log LpPool MatMul Mish Mul PRelu Pow
    RMSNormalization Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum
    ReduceSumSquare Resize RoiAlign ScatterElements ScatterND Selu Sigmoid Sin Sinh Softmax Softplus Softsign Sqrt Sub
    Sum Tan Tanh Upsample""".split())


def ints(values):
    return np.array(values, np.int64)


# ---- element by element -------------------------------------------------------------------------


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


# ---- movement -----------------------------------------------------------------------------------


def concat(g):
    x = g.value(ANYTHING, least_rank=1)
    axis = int(g.rng.integers(0, x.array.ndim))
    operands = [x]
    for _ in range(g.rng.integers(0, 3)):
        shape = list(x.array.shape)
        if g.chance(0.5):
            shape[axis] = int(g.rng.integers(1, 4))
            operands.append(g.constant(g.numbers(shape, x.array.dtype)))
        else:
            operands.append(x)
    return operands, {"axis": axis - (x.array.ndim if g.chance(0.3) and g.opset >= 11 else 0)}


def constant(g):
    array = g.numbers(g.shape(), g.choose(FLOATS + SIGNED + (np.bool_,)))
    if g.opset >= 12 and array.dtype == np.float32 and g.chance(0.3):
        return [], {"value_floats": array.reshape(-1)}
    return [], {"value": helper.make_tensor("", helper.np_dtype_to_tensor_dtype(array.dtype), array.shape,
                                            array.tobytes(), raw=True)}


def shape_operand(g, target):
    """The extents `target`, as a constant or as the shape of a value that has them."""
    alike = [v for v in g.values if list(v.array.shape) == list(target)]
    if alike and g.chance(0.7):
        return g.emit("Shape", [g.choose(alike)], {})
    return g.constant(ints(target))


def expand(g):
    x = g.value(ANYTHING)
    target = [int(g.rng.integers(1, 4)) if e == 1 and g.chance(0.7) else e for e in x.array.shape]
    if g.chance(0.5):
        alike = g.broadcast_partner(x)
        return [x, g.emit("Shape", [alike], {})], {}
    target = [int(g.rng.integers(1, 4)) for _ in range(g.rng.integers(0, 2))] + target
    # A constant must not repeat an open extent: 1 leaves it alone.
    offset = len(target) - x.array.ndim
    target = [1 if i >= offset and i - offset not in x.static else e for i, e in enumerate(target)]
    return [x, g.constant(ints(target))], {}


def flatten(g):
    x = g.value(ANYTHING, least_rank=1)
    low = -x.array.ndim if g.opset >= 11 else 0
    return [x], {"axis": int(g.rng.integers(low, x.array.ndim + 1))}


def reshape(g):
    x = g.value(ANYTHING)
    shape = list(x.array.shape)
    if x.array.size == 0:
        target = [0] * len(shape)
    elif g.chance(0.3):
        target = [-1]
    elif shape and g.chance(0.5):
        keep = int(g.rng.integers(0, len(shape)))
        target = [0] * keep + [-1]
    elif len(x.static) == len(shape):
        g.rng.shuffle(shape)
        target = shape
    else:
        return [x, shape_operand(g, shape)], {}
    return [x, g.constant(ints(target))], {}


def shape_of(g):
    x = g.value(ANYTHING)
    if g.opset < 15 or g.chance(0.5):
        return [x], {}
    return [x], {"start": int(g.rng.integers(-2, 2)), "end": int(g.rng.integers(-1, 4))}


def slice_(g):
    x = g.value(ANYTHING, least_rank=1)
    axes = g.axes(x.array.ndim)
    starts, ends, steps = [], [], []
    for axis in axes:
        extent = x.array.shape[axis]
        step = int(g.choose([1, 1, 2, 3, -1, -2])) if g.opset >= 10 else 1
        starts.append(int(g.rng.integers(-extent - 1, extent + 1)) if step > 0 else g.choose([-1, 1000]))
        ends.append(g.choose([extent, 1000, -1, 2**63 - 1]) if step > 0 else g.choose([-1000, -2**63 + 1]))
        steps.append(step)
    axes = [axis - (x.array.ndim if g.chance(0.3) and g.opset >= 10 else 0) for axis in axes]
    if g.opset < 10:
        return [x], {"starts": starts, "ends": ends, "axes": axes}
    return [x] + [g.constant(ints(v)) for v in (starts, ends, axes, steps)], {}


def squeeze(g):
    x = g.value(ANYTHING)
    axes = [axis for axis, extent in enumerate(x.array.shape) if extent == 1 and axis in x.static]
    if not axes:
        x = g.new_value(ANYTHING, shape=[3, 1, 2, 1], static=True)
        axes = [1, 3]
    axes = [axis for axis in axes if g.chance(0.6)] or axes[:1]
    return with_axes(g, [x], axes, {}, 13)


def unsqueeze(g):
    x = g.value(ANYTHING)
    rank = x.array.ndim + int(g.rng.integers(1, 3))
    axes = sorted(g.rng.choice(rank, rank - x.array.ndim, replace=False).tolist())
    return with_axes(g, [x], axes, {}, 13)


def with_axes(g, inputs, axes, attributes, input_since):
    """Axes as an attribute or, from that opset on, as an operand."""
    if g.opset < input_since:
        return inputs, attributes | {"axes": axes}
    return inputs + [g.constant(ints(axes))], attributes


def transpose(g):
    x = g.value(ANYTHING)
    return [x], ({"perm": g.rng.permutation(x.array.ndim).tolist()} if g.chance(0.8) and x.array.ndim else {})


def range_(g):
    dtype = g.choose((np.float32, np.int32, np.int64, np.float64, np.int16))
    return [g.constant(np.array(n, dtype)) for n in (g.rng.integers(-3, 3), g.rng.integers(3, 9), 2)], {}


def gather(g):
    x = g.value(ANYTHING, least_rank=1)
    axis = int(g.rng.integers(0, x.array.ndim))
    extent = x.array.shape[axis]
    if extent == 0:
        x, axis, extent = g.new_value(ANYTHING, shape=[3, 4], static=True), 0, 3
    low = -extent if g.opset >= 11 else 0
    indices = g.rng.integers(low, extent, g.shape(most_rank=2)).astype(g.choose((np.int32, np.int64)))
    return [x, g.index_operand(indices)], {"axis": axis - (x.array.ndim if g.chance(0.3) else 0)}


def gather_elements(g):
    x = g.new_value(ANYTHING, least_rank=1)
    axis = int(g.rng.integers(0, x.array.ndim))
    shape = [int(g.rng.integers(1, e + 1)) if i in x.static and i != axis else e for i, e in enumerate(x.array.shape)]
    indices = g.rng.integers(-x.array.shape[axis], x.array.shape[axis], shape)
    return [x, g.index_operand(indices)], {"axis": axis}


def gather_nd(g):
    x = g.new_value(ANYTHING, shape=[int(n) for n in g.rng.integers(1, 5, 3)], static=True)
    batch = int(g.rng.integers(0, 2)) if g.opset >= 12 else 0
    depth = int(g.rng.integers(1, 4 - batch))
    lead = [x.array.shape[0]] if batch else []
    shape = lead + [int(g.rng.integers(1, 4))]
    columns = [g.rng.integers(-e, e, shape) for e in x.array.shape[batch:batch + depth]]
    indices = np.stack(columns, -1)
    if g.chance(0.4):  # the last extent decides the result's rank, so it is a number
        operand = g.new_value((np.int64,), array=indices, open_axes=range(indices.ndim - 1))
    else:
        operand = g.constant(indices)
    return [x, operand], ({"batch_dims": batch} if g.opset >= 12 else {})


def reduction_of_scatter(g):
    kinds = ["none", "add", "mul", "max", "min"] if g.opset >= 18 else ["none", "add", "mul"]
    return {"reduction": g.choose(kinds)} if g.opset >= 16 and g.chance(0.7) else {}


def scatter_elements(g):
    attributes = reduction_of_scatter(g)
    kinds = (np.float32, np.float64, np.int32, np.int64) if attributes else ANYTHING
    x = g.new_value(kinds, shape=[int(n) for n in g.rng.integers(1, 5, int(g.rng.integers(1, 4)))])
    axis = int(g.rng.integers(0, x.array.ndim))
    extent = x.array.shape[axis]
    shape = [int(g.rng.integers(1, e + 1)) if i in x.static and i != axis else e for i, e in enumerate(x.array.shape)]
    indices = g.rng.integers(-extent if g.opset >= 11 else 0, extent, shape)
    updates = g.constant(g.numbers(shape, x.array.dtype))
    return [x, g.index_operand(indices), updates], attributes | {"axis": axis - (x.array.ndim if g.chance(0.3) else 0)}


def scatter_nd(g):
    attributes = reduction_of_scatter(g)
    kinds = (np.float32, np.float64, np.int32, np.int64) if attributes else ANYTHING
    x = g.new_value(kinds, shape=[int(n) for n in g.rng.integers(1, 5, 3)], static=True)
    depth = int(g.rng.integers(1, 4))
    places = np.array(list(np.ndindex(*x.array.shape[:depth])))
    count = int(g.rng.integers(1, len(places) + 1))
    # Of equal places onnxruntime writes any last.
    indices = places[g.rng.permutation(len(places))[:count]].astype(np.int64)
    indices -= np.where(g.rng.random(indices.shape) < 0.3, x.array.shape[:depth], 0)
    updates = g.constant(g.numbers([count, *x.array.shape[depth:]], x.array.dtype))
    return [x, g.constant(indices), updates], attributes


def compress(g):
    x = g.new_value(ANYTHING, least_rank=1, static=True)
    axis = int(g.rng.integers(0, x.array.ndim)) if g.chance(0.6) else None
    most = x.array.size if axis is None else x.array.shape[axis]
    condition = g.rng.integers(0, 2, int(g.rng.integers(0, most + 1))).astype(np.bool_)
    return [x, g.constant(condition)], {} if axis is None else {"axis": axis}


def pad(g):
    x = g.new_value((np.float32, np.float64, np.int32, np.int64), least_rank=1)
    mode = g.choose(["constant", "constant", "reflect", "edge"])
    most = 1 if mode != "constant" else 2
    if mode == "reflect" and min(x.array.shape) < 2:
        mode = "edge"
    rank = x.array.ndim
    axes = g.axes(rank) if g.opset >= 18 and g.chance(0.5) else list(range(rank))
    low = -1 if mode == "constant" and min(x.array.shape) > 2 else 0
    pads = g.rng.integers(low, most + 1, 2 * len(axes)).tolist()
    attributes = {"mode": mode}
    if g.opset < 11:
        if x.array.dtype.kind != "f":
            x = g.new_value((np.float32,), shape=x.array.shape, static=True)
        return [x], attributes | {"pads": pads} | ({"value": 1.5} if mode == "constant" else {})
    inputs = [x, g.constant(ints(pads))]
    if mode == "constant" and g.chance(0.6):
        inputs.append(g.constant(np.array(2, x.array.dtype)))
    if len(axes) < rank:
        inputs += [None] * (3 - len(inputs)) + [g.constant(ints(axes))]
    return inputs, attributes


# ---- reductions and products --------------------------------------------------------------------


def reduction(dtypes=(np.float32, np.float32, np.float64, np.int32, np.int64), low=-4, high=4, input_since=18):
    def generate(g):
        x = g.new_value(dtypes, least_rank=1, low=low, high=high) if low > 0 else g.value(dtypes, least_rank=1)
        attributes = {"keepdims": int(g.rng.integers(0, 2))}
        if g.chance(0.2):
            if g.opset >= input_since and g.chance(0.5):
                attributes["noop_with_empty_axes"] = int(g.rng.integers(0, 2))
            return [x], attributes
        axes = [a - (x.array.ndim if g.chance(0.3) and g.opset >= 11 else 0) for a in g.axes(x.array.ndim)]
        return with_axes(g, [x], axes, attributes, input_since)

    return generate


def softmax(g):
    x = g.value(FLOATS, least_rank=1)
    return [x], {"axis": int(g.rng.integers(-x.array.ndim if g.opset >= 11 else 0, x.array.ndim))}


def matmul_shapes(g):
    """Extents of both operands and whether the first's rows may be open."""
    m, k, n = (int(e) for e in g.rng.integers(1, 9, 3))
    batch = g.shape(most_rank=2)
    a, b = batch + [m, k], [k, n]
    if g.chance(0.4):
        b = [e if g.chance(0.7) else 1 for e in batch] + b
    if g.chance(0.15):
        a = [k]
    elif g.chance(0.15):
        b = [k]
    return a, b


def matmul(g):
    a, b = matmul_shapes(g)
    x = g.new_value(FLOATS, shape=a, open_axes=range(max(0, len(a) - 1)))
    y = g.numbers(b, x.array.dtype)
    return [x, g.constant(y) if g.chance(0.7) else g.new_value((x.array.dtype.type,), array=y)], {}


def matmul_integer(g):
    a, b = matmul_shapes(g)
    x = g.new_value((np.int8, np.uint8), shape=a, open_axes=range(max(0, len(a) - 1)))
    inputs = [x, g.constant(g.numbers(b, g.choose((np.int8, np.uint8))))]
    if g.chance(0.6):
        inputs.append(g.constant(np.array(3, x.array.dtype)))
        if g.chance(0.5):
            inputs.append(g.constant(np.array(2, inputs[1].array.dtype)))
    return inputs, {}


def gemm(g):
    m, k, n = (int(e) for e in g.rng.integers(1, 9, 3))
    trans_a, trans_b = int(g.chance(0.3)), int(g.chance(0.5))
    x = g.new_value((np.float32, np.float32, np.float64, np.float16), shape=[k, m] if trans_a else [m, k],
                    open_axes=[1] if trans_a else [0])
    dtype = x.array.dtype
    inputs = [x, g.constant(g.numbers([n, k] if trans_b else [k, n], dtype))]
    if g.opset < 11 or g.chance(0.7):
        inputs.append(g.constant(g.numbers(g.choose([[n], [1, n], [1], []]), dtype)))
    return inputs, {"alpha": 0.5, "beta": 2.0, "transA": trans_a, "transB": trans_b}


# ---- windows ------------------------------------------------------------------------------------


def image(g, axes, channels, least=1):
    """A value of that many spatial axes, whose batch and spatial extents may be open."""
    shape = [int(g.rng.integers(1, 3)), channels] + [int(e) for e in g.rng.integers(max(least, 3), 12, axes)]
    alike = [v for v in g.values if v.array.dtype == np.float32 and v.array.ndim == axes + 2
             and v.array.shape[1] == channels and 1 in v.static and min(v.array.shape[2:]) >= least]
    if alike and g.chance(0.5):
        return g.choose(alike)
    return g.new_value(g.window_types, shape=shape, open_axes=[0, *range(2, axes + 2)])


def window_attributes(g, kernel, dilated):
    axes = len(kernel)
    attributes = {"kernel_shape": kernel, "strides": g.rng.integers(1, 4, axes).tolist()}
    if dilated:
        attributes["dilations"] = g.rng.integers(1, 3, axes).tolist()
    spread = [(k - 1) * d + 1 for k, d in zip(kernel, attributes.get("dilations", [1] * axes))]
    if g.chance(0.2):
        attributes["auto_pad"] = g.choose(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        attributes["pads"] = [int(g.rng.integers(0, max(1, s // 2 + 1))) for s in spread * 2]
    return attributes, max(spread)


def conv(g):
    axes = int(g.choose([1, 2, 2, 2]))
    kernel = g.rng.integers(1, 4, axes).tolist()
    attributes, least = window_attributes(g, kernel, g.chance(0.3))
    group = int(g.choose([1, 1, 1, 2, 3]))
    inner = int(g.rng.integers(1, 4)) if g.chance(0.7) else 1
    outer = group * int(g.rng.integers(1, 4))
    x = image(g, axes, group * inner, least)
    inputs = [x, g.constant(g.numbers([outer, inner, *kernel], x.array.dtype))]
    if g.chance(0.6):
        inputs.append(g.constant(g.numbers([outer], x.array.dtype)))
    return inputs, attributes | {"group": group}


def conv_transpose(g):
    axes = int(g.choose([1, 2, 2]))
    kernel = g.rng.integers(1, 4, axes).tolist()
    attributes, _ = window_attributes(g, kernel, g.chance(0.2))
    if attributes.pop("auto_pad", None):
        attributes["pads"] = [0] * (2 * axes)
    if g.chance(0.3):
        attributes["output_padding"] = [int(g.rng.integers(0, s)) for s in attributes["strides"]]
    group = int(g.choose([1, 1, 2]))
    inner, outer = group * int(g.rng.integers(1, 4)), int(g.rng.integers(1, 4))
    x = image(g, axes, inner)
    inputs = [x, g.constant(g.numbers([inner, outer, *kernel], x.array.dtype))]
    if g.chance(0.6):
        inputs.append(g.constant(g.numbers([group * outer], x.array.dtype)))
    return inputs, attributes | {"group": group}


def pool(average):
    def generate(g):
        axes = int(g.choose([1, 2, 2]))
        kernel = g.rng.integers(1, 4, axes).tolist()
        dilated = g.opset >= (19 if average else 10) and g.chance(0.3)
        attributes, least = window_attributes(g, kernel, dilated)
        if "pads" in attributes:
            attributes["pads"] = [min(p, k - 1) for p, k in zip(attributes["pads"], kernel * 2)]
        if g.opset >= 10 and g.chance(0.3):
            attributes["ceil_mode"] = 1
        if average:
            attributes["count_include_pad"] = int(g.rng.integers(0, 2))
        elif g.opset >= 8 and g.chance(0.4) and "auto_pad" not in attributes:
            attributes["storage_order"] = int(g.rng.integers(0, 2))
            return [image(g, axes, int(g.rng.integers(1, 5)), least)], attributes, 2
        return [image(g, axes, int(g.rng.integers(1, 5)), least)], attributes

    return generate


def lp_pool(g):
    axes = int(g.choose([1, 2, 2]))
    kernel = g.rng.integers(1, 4, axes).tolist()
    attributes, least = window_attributes(g, kernel, g.opset >= 18 and g.chance(0.3))
    if "pads" in attributes:
        attributes["pads"] = [min(p, k - 1) for p, k in zip(attributes["pads"], kernel * 2)]
    return [image(g, axes, int(g.rng.integers(1, 5)), least)], attributes | {"p": int(g.rng.integers(1, 4))}


def max_unpool(g):
    axes = int(g.choose([1, 2, 2]))
    kernel, strides = g.rng.integers(1, 4, axes).tolist(), g.rng.integers(1, 3, axes).tolist()
    shape = [int(n) for n in g.rng.integers(1, 4, axes + 2)]
    x = g.new_value((np.float32,), shape=shape, static=True)
    whole = shape[:2] + [(e - 1) * s + k for e, s, k in zip(shape[2:], strides, kernel)]
    count = int(np.prod(shape))
    places = g.rng.permutation(int(np.prod(whole)))
    if count > len(places):
        return [x, g.constant(np.zeros(shape, np.int64))], {"kernel_shape": [0] * axes}  # refused: drawn again
    return [x, g.constant(places[:count].reshape(shape).astype(np.int64))], {"kernel_shape": kernel, "strides": strides}


def grid_sample(g):
    axes = int(g.choose([2, 2, 3])) if g.opset >= 20 else 2
    words = ["linear", "nearest", "cubic"] if g.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    mode = str(g.choose(words if axes == 2 else words[:2]))
    batch, channels = int(g.rng.integers(1, 3)), int(g.rng.integers(1, 4))
    x = g.new_value((np.float32,), shape=[batch, channels, *g.rng.integers(1, 6, axes)], open_axes=range(2, axes + 2))
    shape = [batch, *g.rng.integers(1, 5, axes), axes]
    grid = g.new_value((np.float32,), array=g.numbers(shape, np.float32, -1.4, 1.4), open_axes=range(1, axes + 1))
    padding = str(g.choose(["zeros", "border", "reflection"]))
    return [x, grid], {"mode": mode, "padding_mode": padding, "align_corners": int(g.rng.integers(0, 2))}


def affine_grid(g):
    axes = int(g.choose([2, 3]))
    batch = int(g.rng.integers(1, 3))
    theta = g.new_value((np.float32,), shape=[batch, axes, axes + 1], open_axes=[0])
    size = [batch, 1, *(int(n) for n in g.rng.integers(2, 5, axes))]
    return [theta, g.constant(ints(size))], {"align_corners": int(g.rng.integers(0, 2))}


def col2im(g):
    kernel, strides = g.rng.integers(1, 4, 2).tolist(), g.rng.integers(1, 3, 2).tolist()
    windows = g.rng.integers(1, 4, 2)
    sizes = [int((w - 1) * s + k) for w, s, k in zip(windows, strides, kernel)]
    shape = [int(g.rng.integers(1, 3)), int(g.rng.integers(1, 3)) * kernel[0] * kernel[1], int(windows[0] * windows[1])]
    x = g.new_value((np.float32,), shape=shape, open_axes=[0])
    return [x, g.constant(ints(sizes)), g.constant(ints(kernel))], {"strides": strides}


def roi_align(g):
    batch, boxes = int(g.rng.integers(1, 3)), int(g.rng.integers(1, 4))
    x = g.new_value((np.float32,), shape=[batch, int(g.rng.integers(1, 4)), *g.rng.integers(2, 7, 2)], open_axes=[2, 3])
    corners = np.sort(g.rng.uniform(-1, 14, (boxes, 2, 2)), 1).reshape(boxes, 4).astype(np.float32)
    attributes = {"output_height": int(g.rng.integers(1, 4)), "output_width": int(g.rng.integers(1, 4)),
                  "sampling_ratio": int(g.rng.integers(1, 3)), "spatial_scale": 0.5}
    if g.opset >= 16 and g.chance(0.5):
        attributes["coordinate_transformation_mode"] = str(g.choose(["half_pixel", "output_half_pixel"]))
    batches = g.rng.integers(0, batch, boxes).astype(np.int64)
    return [x, g.constant(corners), g.constant(batches)], attributes


def global_pool(g):
    return [image(g, int(g.choose([1, 2])), int(g.rng.integers(1, 5)))], {}


def batch_norm(g):
    channels = int(g.rng.integers(1, 6))
    x = image(g, int(g.choose([1, 2])), channels)
    ranges = [(0.5, 2), (-1, 1), (-1, 1), (0.5, 2)]
    parameters = [g.constant(g.numbers([channels], x.array.dtype, *r)) for r in ranges]
    return [x, *parameters], {"epsilon": 1e-3}


def instance_norm(g):
    channels = int(g.rng.integers(1, 6))
    x = image(g, int(g.choose([1, 2])), channels)
    parameters = [g.constant(g.numbers([channels], x.array.dtype, *r)) for r in [(0.5, 2), (-1, 1)]]
    return [x, *parameters], {"epsilon": 1e-2}


def group_norm(g):
    groups = int(g.rng.integers(1, 4))
    channels = groups * int(g.rng.integers(1, 4))
    x = image(g, int(g.choose([1, 2])), channels)
    count = channels if g.opset >= 21 else groups
    parameters = [g.constant(g.numbers([count], x.array.dtype, *r)) for r in [(0.5, 2), (-1, 1)]]
    return [x, *parameters], {"num_groups": groups, "epsilon": 1e-2}


def norm(with_bias):
    def generate(g):
        x = g.new_value((np.float32, np.float32, np.float64), least_rank=2, static_last=True)
        last = x.array.shape[-1:]
        inputs = [x, g.constant(g.numbers(last, x.array.dtype))]
        if with_bias and g.chance(0.6):
            inputs.append(g.constant(g.numbers(last, x.array.dtype)))
        return inputs, {"axis": -1, "epsilon": 1e-2}

    return generate


def resize(g):
    axes = int(g.choose([1, 2, 2]))
    x = image(g, axes, int(g.rng.integers(1, 4)))
    scales = np.array([1, 1] + g.rng.choice([0.5, 1, 1.5, 2, 3], axes).tolist(), np.float32)
    mode = g.choose(["nearest", "linear"] if axes == 2 or g.opset < 11 else ["nearest", "linear"])
    if g.opset < 11:
        return [x, g.constant(scales)], {"mode": mode}
    attributes = {"mode": mode, "coordinate_transformation_mode":
                  g.choose(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}
    if mode == "linear" and axes == 2 and g.chance(0.3):
        attributes["mode"] = "cubic"
    if mode == "nearest":
        attributes["nearest_mode"] = g.choose(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    roi = g.constant(np.zeros(0, np.float32)) if g.opset < 13 else None
    if g.chance(0.4) and len(x.static) == x.array.ndim:
        sizes = [int(e * s) or 1 for e, s in zip(x.array.shape, scales)]
        empty = g.constant(np.zeros(0, np.float32)) if g.opset < 13 else None
        return [x, roi, empty, g.constant(ints(sizes))], attributes
    return [x, roi, g.constant(scales)], attributes


def upsample(g):
    x = image(g, 2, int(g.rng.integers(1, 4)))
    scales = [1.0, 1.0, *g.rng.choice([1, 2, 3], 2).astype(float).tolist()]
    if g.opset < 9:
        return [x], {"mode": "nearest", "scales": scales}
    return [x, g.constant(np.array(scales, np.float32))], {"mode": "nearest"}


COMPARED = (np.float32, np.float64, np.int32, np.int64, np.float16)
GENERATORS = {
    "Abs": unary(NUMBERS), "Acos": unary((np.float32,), -0.9, 0.9), "Acosh": unary((np.float32,), 1.1),
    "Add": binary(), "AffineGrid": affine_grid, "And": binary((np.bool_,)), "Asin": unary((np.float32,), -0.9, 0.9),
    "Asinh": unary((np.float32,)), "Atan": unary((np.float32,)), "Atanh": unary((np.float32,), -0.9, 0.9),
    "AveragePool": pool(True),
    "BatchNormalization": batch_norm, "BitShift": bit_shift, "BitwiseAnd": binary(SIGNED + UNSIGNED),
    "BitwiseOr": binary(SIGNED + UNSIGNED), "BitwiseXor": binary(SIGNED + UNSIGNED), "Cast": cast, "Ceil": unary(),
    "Clip": clip, "Col2Im": col2im, "Compress": compress, "Concat": concat,
    "Constant": constant, "Conv": conv, "ConvTranspose": conv_transpose,
    "Cos": unary((np.float32, np.float64)), "Cosh": unary((np.float32,)),
    "DequantizeLinear": dequantize, "Div": divide, "Dropout": dropout, "Elu": unary(alpha=number(0.5, 2)),
    "Equal": binary(COMPARED + (np.bool_,)), "Erf": unary(), "Exp": unary(), "Expand": expand, "Flatten": flatten,
    "Floor": unary(), "Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd, "Gelu": gelu,
    "Gemm": gemm, "GlobalAveragePool": global_pool, "GlobalMaxPool": global_pool,
    "GridSample": grid_sample, "GroupNormalization": group_norm, "InstanceNormalization": instance_norm,
    "Greater": binary(COMPARED),
    "GreaterOrEqual": binary(COMPARED), "HardSigmoid": unary(alpha=number(0.1, 0.5), beta=number(0.2, 0.8)),
    "HardSwish": unary(), "Identity": unary(ANYTHING), "LayerNormalization": norm(True),
    "LeakyRelu": unary(alpha=number(0.01, 0.5)), "Less": binary(COMPARED), "LessOrEqual": binary(COMPARED),
    "Log": unary(low=0.1), "LpPool": lp_pool, "MatMul": matmul, "MatMulInteger": matmul_integer,
    "Max": variadic(NUMBERS),
    "MaxPool": pool(False), "MaxUnpool": max_unpool, "Min": variadic(NUMBERS), "Mish": unary(), "Mod": modulo,
    "Mul": binary(), "Neg": unary(FLOATS + SIGNED),
    "Not": unary((np.bool_,)), "Or": binary((np.bool_,)), "PRelu": prelu, "Pad": pad, "Pow": power,
    "RMSNormalization": norm(False), "Range": range_, "Reciprocal": unary(low=0.2), "ReduceL1": reduction(),
    "ReduceL2": reduction(FLOATS, 0.1), "ReduceLogSum": reduction(FLOATS, 0.1), "ReduceLogSumExp": reduction(FLOATS),
    "ReduceMax": reduction(), "ReduceMean": reduction(), "ReduceMin": reduction(),
    "ReduceProd": reduction(low=0.5, high=1.5), "ReduceSum": reduction(input_since=13),
    "ReduceSumSquare": reduction(), "Relu": unary(FLOATS + SIGNED), "Reshape": reshape, "Resize": resize,
    "RoiAlign": roi_align, "Round": unary(), "Scatter": scatter_elements, "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Selu": unary(alpha=number(1, 2), gamma=number(1, 2)), "Shape": shape_of, "Sigmoid": unary(),
    "Sign": unary(NUMBERS), "Sin": unary((np.float32, np.float64)), "Sinh": unary((np.float32,)),
    "Slice": slice_, "Softmax": softmax, "Softplus": unary(), "Softsign": unary(),
    "Sqrt": unary(low=0.1), "Squeeze": squeeze, "Sub": binary(), "Sum": variadic(FLOATS), "Tan": unary((np.float32,), -1.2, 1.2), "Tanh": unary(),
    "Transpose": transpose, "Unsqueeze": unsqueeze, "Upsample": upsample, "Where": where, "Xor": binary((np.bool_,)),
}
