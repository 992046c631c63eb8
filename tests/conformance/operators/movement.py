# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements."""

from onnx import helper
import numpy as np

from operators.common import ANYTHING, FLOATS, SIGNED, ints


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


def split(g):
    x = g.value(ANYTHING, least_rank=1)
    axis = int(g.rng.integers(0, x.array.ndim))
    extent = x.array.shape[axis]
    count = int(g.rng.integers(1, 4))
    attributes = {"axis": axis - (x.array.ndim if g.chance(0.3) and g.opset >= 11 else 0)}
    if axis in x.static and g.chance(0.5):
        cuts = sorted(g.rng.integers(0, extent + 1, count - 1).tolist())
        sizes = np.diff([0, *cuts, extent]).tolist()
        if g.opset < 13:
            return [x], attributes | {"split": sizes}, count
        return [x, g.constant(ints(sizes))], attributes, count
    if g.opset < 18:
        count = count if extent % count == 0 else 1
    else:
        attributes["num_outputs"] = count
    return [x], attributes, count


def tile(g):
    x = g.value(ANYTHING)
    repeats = ints(g.rng.integers(0 if g.chance(0.1) else 1, 4, x.array.ndim))
    return [x, g.constant(repeats) if g.chance(0.7) else shape_operand(g, repeats)], {}


def trilu(g):
    x = g.new_value((np.float32, np.float64, np.int64), least_rank=2)
    k = [g.constant(np.array(g.rng.integers(-3, 4), np.int64))] if g.chance(0.7) else []
    return [x, *k], {"upper": int(g.rng.integers(0, 2))}


def one_hot(g):
    indices = g.rng.integers(-3, 4, g.shape(most_rank=2)).astype(g.choose((np.int32, np.int64)))
    values = g.constant(g.numbers([2], np.float32 if indices.dtype == np.int32 else np.int64))
    depth = g.constant(np.array(3, indices.dtype if indices.dtype == np.int64 else np.int32))
    return [g.index_operand(indices), depth, values], {"axis": int(g.rng.integers(-indices.ndim - 1, indices.ndim + 1))}


def constant_of_shape(g):
    like = g.value(ANYTHING)
    value = g.numbers([1], g.choose((np.float32, np.int64, np.bool_, np.float64, np.int32)))
    tensor = helper.make_tensor("", helper.np_dtype_to_tensor_dtype(value.dtype), [1], value.tobytes(), raw=True)
    return [shape_operand(g, like.array.shape)], ({"value": tensor} if g.chance(0.8) else {})


def eye_like(g):
    x = g.new_value((np.float32, np.int64, np.float64), shape=[int(e) for e in g.rng.integers(1, 6, 2)])
    attributes = {"k": int(g.rng.integers(-2, 3))}
    if g.chance(0.5):
        attributes["dtype"] = helper.np_dtype_to_tensor_dtype(np.dtype(g.choose((np.float32, np.int32, np.float64))))
    return [x], attributes


def depth_to_space(g):
    block = int(g.rng.integers(1, 4))
    channels = block * block * int(g.rng.integers(1, 4))
    x = g.new_value((np.float32, np.float64), shape=[2, channels, *g.rng.integers(1, 5, 2).tolist()], open_axes=[0, 2, 3])
    return [x], {"blocksize": block} | ({"mode": g.choose(["DCR", "CRD"])} if g.opset >= 11 else {})


def space_to_depth(g):
    block = int(g.rng.integers(1, 4))
    extents = [block * int(e) for e in g.rng.integers(1, 4, 2)]
    return [g.new_value((np.float32,), shape=[2, 3, *extents], open_axes=[0])], {"blocksize": block}


def center_crop_pad(g):
    x = g.value(ANYTHING, least_rank=1)
    rank = x.array.ndim
    axes = g.rng.permutation(g.axes(rank)).tolist() if g.chance(0.6) else list(range(rank))
    target = ints([max(1, x.array.shape[a] + int(g.rng.integers(-3, 4))) for a in axes])
    attributes = {}
    if len(axes) < rank or g.chance(0.3):
        attributes["axes"] = [int(a) - (rank if g.chance(0.3) else 0) for a in axes]
    elif axes != list(range(rank)):
        attributes["axes"] = [int(a) for a in axes]
    return [x, g.constant(target)], attributes


def reverse_sequence(g):
    x = g.value(ANYTHING, least_rank=2)
    time = int(g.rng.integers(0, 2))
    most = x.array.shape[time]
    lengths = g.rng.integers(1, most + 1, x.array.shape[1 - time]) if most else np.zeros(x.array.shape[1 - time])
    attributes = {"time_axis": time, "batch_axis": 1 - time} if time or g.chance(0.6) else {}
    return [x, g.index_operand(lengths.astype(np.int64))], attributes
