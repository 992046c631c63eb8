# SPDX-License-Identifier: Apache-2.0
"""Branches, loops, and operators whose results have as many elements as the data say."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from operators.common import FLOATS, SIGNED


def branch(g):
    """A constant from either side; their shapes differ."""
    def body(name):
        made = g.numbers(g.shape(), np.float32)
        node = helper.make_node("Constant", [], [name], value=numpy_helper.from_array(made))
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])
    condition = g.new_value((np.bool_,), shape=[])
    return [condition], {"then_branch": body("yes"), "else_branch": body("no")}


def loop(g):
    """Halves what it carries at each step, and keeps every state."""
    x = g.value((np.float32,))
    steps = g.index_operand(np.asarray(g.rng.integers(1, 5), np.int64))
    nodes = [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Add", ["carried", "carried"], ["twice"]),
             helper.make_node("Constant", [], ["quarter"], value_float=0.25),
             helper.make_node("Mul", ["twice", "quarter"], ["half"]), helper.make_node("Identity", ["half"], ["row"])]
    info = helper.make_tensor_value_info
    inputs = [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("carried", TensorProto.FLOAT, None)]
    outputs = [info("go_on", TensorProto.BOOL, []), info("half", TensorProto.FLOAT, None),
               info("row", TensorProto.FLOAT, None)]
    return [steps, None, x], {"body": helper.make_graph(nodes, "step", inputs, outputs)}, 2


def scan(g):
    """Running sums of the rows of its operand, from either end."""
    x = g.new_value((np.float32,), least_rank=2)
    axis = int(g.rng.integers(0, x.array.ndim))
    start = g.constant(np.zeros([e for a, e in enumerate(x.array.shape) if a != axis], np.float32))
    nodes = [helper.make_node("Add", ["sum", "row"], ["next"]), helper.make_node("Identity", ["next"], ["kept"])]
    info = helper.make_tensor_value_info
    shape = list(start.array.shape)
    inputs = [info(name, TensorProto.FLOAT, shape) for name in ("sum", "row")]
    outputs = [info(name, TensorProto.FLOAT, shape) for name in ("next", "kept")]
    attributes = {"body": helper.make_graph(nodes, "step", inputs, outputs), "num_scan_inputs": 1,
                  "scan_input_axes": [axis], "scan_input_directions": [int(g.chance(0.3))],
                  "scan_output_directions": [int(g.chance(0.3))]}
    if g.chance(0.3):
        attributes["scan_output_axes"] = [int(g.rng.integers(0, x.array.ndim))]
    return [start, x], attributes, 2


def nonzero(g):
    return [g.value(FLOATS + SIGNED + (np.bool_,), least_rank=1)], {}


def unique(g):
    shape, attributes, open_axes = g.shape(1), {"sorted": int(g.chance(0.6))}, None
    if g.chance(0.5):
        axis = attributes["axis"] = int(g.rng.integers(0, len(shape)))
        open_axes = [axis]  # slices have a known number of elements
    return [g.new_value((np.int64, np.float32, np.int8), shape=shape, open_axes=open_axes)], attributes, 4
