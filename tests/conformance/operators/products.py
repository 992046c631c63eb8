# SPDX-License-Identifier: Apache-2.0
"""Reductions and products."""

import numpy as np

from operators.common import FLOATS, ints
from operators.movement import with_axes
from operators.windows import image


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


def lp_normalization(g):
    x = g.new_value((np.float32, np.float64), least_rank=1, low=0.5)
    return [x], {"axis": int(g.rng.integers(-x.array.ndim, x.array.ndim)), "p": int(g.rng.integers(1, 3))}


def mean_variance_normalization(g):
    # Of few elements that are alike, onnxruntime's difference of squares is below 0, and its root NaN.
    x = g.new_value((np.float32,), shape=[2, 3, 4, 5], open_axes=[0, 2, 3])
    return [x], ({"axes": g.choose([[2, 3], [1, 2, 3], [0, 2], [0, 1, 2, 3]])} if g.chance(0.5) else {})


def lrn(g):
    x = image(g, 2, int(g.rng.integers(1, 7)))
    if x.array.dtype != np.float32:
        x = g.new_value((np.float32,), shape=[2, 5, 3, 4], open_axes=[0, 2, 3])
    return [x], {"size": int(g.choose([1, 3, 5])), "alpha": 0.5, "beta": 0.75, "bias": 1.5}


def global_lp_pool(g):
    x = g.new_value((np.float32,), shape=[2, 3, *g.rng.integers(2, 6, 2).tolist()], open_axes=[0, 2, 3])
    return [x], {"p": int(g.rng.integers(1, 4))}


def class_loss(log_of):
    def generate(g):
        classes, spatial = int(g.rng.integers(2, 6)), g.shape(most_rank=2)
        # Of greater differences onnxruntime loses what a sum near 1 lacks.
        x = g.new_value((np.float32,), shape=[3, classes, *spatial], low=-1, high=1, open_axes=[0])
        if log_of:
            x = g.emit("LogSoftmax", [x], {"axis": 1})
        target = g.index_operand(g.rng.integers(0, classes, [3, *spatial]).astype(g.choose((np.int32, np.int64))))
        inputs = [x, target]
        if g.chance(0.5):
            inputs.append(g.constant(g.numbers([classes], np.float32, 0.5, 2)))
        attributes = {"reduction": g.choose(["none", "mean", "sum"])}
        if g.chance(0.3):
            attributes["ignore_index"] = int(g.rng.integers(0, classes))
        return inputs, attributes

    return generate


def einsum(g):
    extents = {letter: int(g.rng.integers(1, 6)) for letter in "bijkl"}
    equation = g.choose(["ij,jk->ik", "bij,bjk->bik", "bij,bkj->bki", "ij->ji", "ij,ij->", "i,j->ij", "bij->bi",
                         "ij,jk,kl->il", "bij,bj", "...ij,jk->...ik", "ij,jk", "iji->j", "bi..., b...->b..."])
    operands = []
    for term in equation.replace(" ", "").split("->")[0].split(","):
        shape = [extents[letter] for letter in term.replace("...", "kl" if "b..." in equation or "bi" in term else "b")]
        dtype = operands[0].array.dtype.type if operands else g.choose((np.float32, np.float32, np.float64))
        operands.append(g.new_value((dtype,), shape=shape, static=True))
    return operands, {"equation": equation}


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
    types = FLOATS if g.opset < 9 else FLOATS + (np.int32, np.int64)
    x = g.new_value(types, shape=a, open_axes=range(max(0, len(a) - 1)))
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


def any_axis(g, x):
    return int(g.rng.integers(-x.array.ndim, x.array.ndim))


def arg_reduce(g):
    x = g.value((np.float32, np.float64, np.int32), least_rank=1)
    attributes = {"axis": any_axis(g, x) if g.opset >= 11 else int(g.rng.integers(x.array.ndim)),
                  "keepdims": int(g.rng.integers(2))}
    if g.opset >= 12:
        attributes["select_last_index"] = int(g.rng.integers(2))
    return [x], attributes


def cumulate(dtypes=(np.float32, np.float64, np.int32, np.int64), low=-4, high=4):
    def generate(g):
        x = g.value(dtypes, low=low, high=high, least_rank=1)
        return [x, g.constant(np.array(any_axis(g, x), np.int64))], {
            "exclusive": int(g.rng.integers(2)), "reverse": int(g.rng.integers(2))}

    return generate


def top_k(g):
    x = g.value((np.float32, np.float64, np.int32, np.int64), least_rank=1)
    axis = int(g.rng.integers(x.array.ndim))
    k = int(g.rng.integers(0, x.array.shape[axis] + 1))
    attributes = {"axis": axis}
    if g.opset < 10:
        return [x], {**attributes, "k": k}, 2
    if g.opset >= 11:
        attributes |= {"largest": int(g.rng.integers(2)), "sorted": 1}
    return [x, g.constant(ints([k]))], attributes, 2


def determinant(g):
    extent = int(g.rng.integers(1, 6))
    return [g.new_value((np.float32,), shape=[*g.shape(most_rank=2), extent, extent], static=True)], {}
