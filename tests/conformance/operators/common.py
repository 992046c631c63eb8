# SPDX-License-Identifier: Apache-2.0
"""Element types, and what generators share."""

import numpy as np
from onnx import helper

FLOATS = (np.float32, np.float32, np.float32, np.float16, np.float64)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
NUMBERS = FLOATS + FLOATS + SIGNED + UNSIGNED
ANYTHING = NUMBERS + (np.bool_, np.bool_)


def ints(values):
    return np.array(values, np.int64)


class Chain:
    """Nodes between which pass values that are no tensors, in place of one node. What it reads and its last results
    are tensors."""

    def __init__(self, g):
        self.prefix = f"v{len(g.nodes)}_"
        self.inputs, self.nodes = [], []

    def read(self, value):
        if all(value is not v for v in self.inputs):
            self.inputs.append(value)
        return value.name

    def add(self, op, inputs, outputs=1, **attributes):
        """Adds a node; returns the name of its output, or of each."""
        names = [f"{self.prefix}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def finish(self, op, inputs, **attributes):
        """Adds the node whose output is that of the chain."""
        self.nodes.append(helper.make_node(op, inputs, [f"{self.prefix}0"], **attributes))
        return self
