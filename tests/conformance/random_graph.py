# SPDX-License-Identifier: Apache-2.0
"""A random ONNX graph, grown node by node: onnxruntime runs each node as it is added, so that shapes are known, every
intermediate result has an expected value, and what onnxruntime refuses is drawn again.

Each value is computed several times, with noise of a few units of the last place at whatever is rounded. How far those
results lie apart tells how well the graph determines an element; comparisons allow a multiple of it.
"""

import dataclasses

import ml_dtypes  # noqa: F401  onnx makes arrays of its types
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from graph_operators import GENERATORS, JUMPS, ROUNDS
from operators.common import Chain
from operators.random import RANDOM

NOISY = 3  # evaluations with noise, besides the exact one
UNITS = 4  # of the last place, of noise
LARGEST = 1 << 14  # elements of a value
CANCELS = ("DFT", "STFT")  # sums whose terms cancel, so that a 0 is what rounding of others leaves



def masked(node):
    """Whether keys are hidden from an Attention, by truths or by their places."""
    hides = any(v is not None and v.array.dtype.kind == "b" for v in node.inputs[3:4])
    return hides or node.attributes.get("is_causal", 0) or len(node.inputs) > 6


def same_padding(node):
    return str(node.attributes.get("auto_pad", "")).startswith("SAME")


# Where onnxruntime 1.31 is wrong or ONNX leaves a choice: (operators, which nodes of them, cause). Such nodes are drawn
# again.
DEFECTS = [
    ("MaxPool AveragePool LpPool", lambda n: same_padding(n) and max(n.attributes.get("dilations", [1])) > 1,
     "with SAME padding it divides the dilated kernel's extent by the stride, not the input's"),
    ("MaxPool AveragePool LpPool Conv", lambda n: same_padding(n) and any(
        s > k for s, k in zip(n.attributes["strides"], n.attributes["kernel_shape"])),
     "SAME padding of a stride greater than the kernel is negative, and crops; Forge pads nothing"),
    ("Gelu HardSwish", lambda n: n.inputs[0].array.dtype == np.float64,
     "it expands them by their ONNX function, whose constants are of f32 for f64, too"),
    ("Gelu com.microsoft.BiasGelu com.microsoft.FastGelu com.microsoft.Gelu",
     lambda n: n.attributes.get("approximate") != "tanh" and sum(x.array for x in n.inputs).min(initial=0) < -2,
     "of x below 0 it adds erf(x / sqrt(2)) to 1, which loses what 1 swallows; Forge takes erfc"),
    ("Sigmoid", lambda n: n.inputs[0].array.dtype == np.float64,
     "of x below 0 it is 1 - sigmoid(-x), which loses what 1 swallows"),
    ("ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare",
     lambda n: n.inputs[0].array.size == 0,
     "over an axis without elements it returns its operand's shape"),
    ("GroupNormalization", lambda n: n.inputs[0].array.dtype == np.float64,
     "it expands it by its ONNX function, which normalises in f32 (stash_type = 1); Forge keeps f64"),
    ("Resize", lambda n: n.attributes.get("coordinate_transformation_mode") == "align_corners" and len(n.inputs) == 3
     and (np.array(n.inputs[0].array.shape) * n.inputs[2].array % 1).any(),
     "it aligns the corners of whole elements; ONNX, and Forge, those of extents that are not whole"),
    ("Attention", lambda n: n.inputs[0].array.dtype == np.float64,
     "it expands it by its ONNX function, whose scale is the square root of a number of f32"),
    ("Attention", lambda n: n.attributes.get("qk_matmul_output_mode") in (1, 2) and masked(n),
     "the scores of hidden keys are the type's lowest number; ONNX, and Forge, have the negative infinity"),
    ("Attention", lambda n: n.attributes.get("is_causal", 0) and n.inputs[0].array.shape[-2] == 1 and len(n.inputs) > 5,
     "of a single query after a cache it hides no key; ONNX hides those after its place"),
    ("com.microsoft.QLinearSoftmax", lambda n: 1 in n.inputs[0].array.shape,
     "of a row of one element it is 0"),
    ("HammingWindow", lambda n: n.attributes["output_datatype"] == onnx.TensorProto.DOUBLE,
     "it computes it in f32 for f64, too"),
    ("DFT", lambda n: n.inputs[0].array.dtype == np.float64 and n.attributes["inverse"],
     "it divides by the length in f32 for f64, too"),
    ("ReduceSumSquare", lambda n: n.inputs[0].array.dtype == np.int32 and np.square(
        n.inputs[0].array.astype(np.float64)).sum() >= 2**31, "it saturates sums that i32 does not hold; Forge wraps"),
    ("ArgMax ArgMin", lambda n: n.inputs[0].array.size == 0 and n.attributes.get("axis", 0) < 0,
     "of a tensor without elements it keeps an axis that is counted from the end"),
    ("ArgMax ArgMin TopK", lambda n: n.inputs[0].made_by.endswith("Window"),
     "windows have equal elements, or what rounding leaves of that"),
    ("NonZero Unique", lambda n: n.inputs[0].made_by in ("DFT", "STFT"),
     "imaginary parts are 0 or what rounding leaves of it"),
]

settings = onnxruntime.SessionOptions()
settings.log_severity_level = 4
settings.intra_op_num_threads = 1
settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
onnxruntime.set_default_logger_severity(4)


@dataclasses.dataclass
class Value:
    name: str
    arrays: list  # the exact result, then the noisy ones
    static: set  # axes whose extent is a number in the model
    made_by: str = "input"
    dims: list = None  # of an input: numbers and names
    jumps: np.ndarray = None  # where a tolerance of the operands may change the result by a step

    @property
    def array(self):
        return self.arrays[0]

    def tolerance(self):
        """By element; infinite where the noisy results say that the element is not determined."""
        exact = self.array.astype(np.float64)
        if self.array.dtype.kind != "f":
            same = np.all([self.array == noisy for noisy in self.arrays[1:]], axis=0)
            # onnxruntime multiplies by quotients of scales, which rounds otherwise.
            step = float(self.made_by.startswith("com.microsoft.Q"))
            return np.where(same if self.jumps is None else same & ~self.jumps, step, np.inf)
        eps = float(np.finfo(self.array.dtype).eps)
        with np.errstate(all="ignore"):
            apart = [np.abs(noisy.astype(np.float64) - exact) for noisy in self.arrays[1:]]
            apart = np.max(apart, axis=0)
            mean = np.mean(apart[np.isfinite(apart)]) if np.isfinite(apart).any() else 0.0
            bound = 8 * apart + 4 * mean + 32 * eps * np.abs(exact) + 4 * float(np.finfo(self.array.dtype).tiny)
            undetermined = ~np.isfinite(apart) & np.isfinite(exact) | (apart > 0.02 * (np.abs(exact) + 1))
            if self.jumps is not None:
                undetermined |= self.jumps
        return np.where(undetermined, np.inf, bound)


@dataclasses.dataclass
class Node:
    op: str
    inputs: list  # of Value, or None
    attributes: dict
    outputs: list  # of Value
    chain: list = None  # the nodes that stand for this one, which read inputs by name

    def protos(self):
        if self.chain:
            return self.chain
        names = ["" if v is None else v.name for v in self.inputs]
        domain, _, op = self.op.rpartition(".")
        return [helper.make_node(op, names, [v.name for v in self.outputs], domain=domain, **self.attributes)]

    def operators(self):
        return [f"{n.domain}.{n.op_type}".lstrip(".") for n in self.chain] if self.chain else [self.op]


def tensor_info(name, array, dims=None):
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape if dims is None else dims)


def model_of(nodes, inputs, constants, outputs, opset):
    graph = helper.make_graph(nodes, "random", inputs, outputs, [numpy_helper.from_array(a, n) for n, a in constants])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1),
              helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def with_noise(array, rng, of_largest=False):
    """of_largest: each element is off by a share of the largest, not of itself"""
    if array.dtype.kind != "f":
        return array
    noise = UNITS * np.finfo(array.dtype).eps * rng.uniform(-1, 1, array.shape)
    if of_largest:
        return np.asarray(array + np.abs(array[np.isfinite(array)]).max(initial=0) * noise, array.dtype)
    return np.asarray(array * (1 + noise), array.dtype)


class Graph:
    def __init__(self, rng, opset):
        self.rng, self.opset = rng, opset
        self.values, self.nodes, self.inputs, self.constants, self.kept = [], [], [], [], []
        # Extents that a name stands for.
        self.symbols = {"a": int(rng.choice([1, 2, 5])), "b": int(rng.choice([1, 3, 5, 8]))}
        self.window_types = (np.float32, np.float32, np.float32, np.float16, np.float64)

    # ---- what generators draw from ----

    def chance(self, p):
        return self.rng.random() < p

    def choose(self, options):
        return options[int(self.rng.integers(0, len(options)))]

    def shape(self, least_rank=0, most_rank=4):
        rank = int(self.rng.integers(least_rank, most_rank + 1))
        extents = [1, 2, 3, 4, 5, 7, *self.symbols.values()]
        return [int(self.choose(extents)) for _ in range(rank)]

    def axes(self, rank):
        return sorted(self.rng.choice(rank, int(self.rng.integers(1, rank + 1)), replace=False).tolist())

    def numbers(self, shape, dtype, low=-4, high=4):
        """Numbers of few digits, so that equal ones and ties occur."""
        dtype = np.dtype(dtype)
        if dtype == np.bool_:
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            low = max(low, 0) if dtype.kind == "u" else low
            return self.rng.integers(int(np.ceil(low)), int(high) + 1, shape).astype(dtype)
        if self.chance(0.3):
            return np.clip(np.round(self.rng.uniform(low, high, shape) * 4) / 4, low, high).astype(dtype)
        return np.asarray(self.rng.uniform(low, high, shape)).astype(dtype)

    def broadcastable(self, shape):
        out = [e if self.chance(0.6) else 1 for e in shape]
        return out[int(self.rng.integers(0, len(out) + 1)):] if self.chance(0.3) else out

    def value(self, dtypes, least_rank=0, low=-4, high=4):
        """An earlier value of one of the types, or a new one."""
        fits = [v for v in self.values if v.array.dtype in [np.dtype(t) for t in dtypes] and v.array.ndim >= least_rank
                and low <= -4]
        if fits and self.chance(0.75):
            return fits[-1] if self.chance(0.4) else self.choose(fits)
        return self.new_value(dtypes, least_rank=least_rank, low=low, high=high)

    def new_value(self, dtypes, shape=None, low=-4, high=4, array=None, static=False, static_last=False,
                  least_rank=0, open_axes=None):
        """A model input. open_axes: which may have a name instead of a number; None: all but those said static."""
        if array is None:
            shape = self.shape(least_rank) if shape is None else list(shape)
            array = self.numbers(shape, self.choose(dtypes), low, high)
        if open_axes is None:
            open_axes = [] if static else range(array.ndim - (1 if static_last else 0))
        dims = list(array.shape)
        for axis in open_axes:
            names = [name for name, extent in self.symbols.items() if extent == dims[axis]]
            if names and self.chance(0.6):
                dims[axis] = self.choose(names)
        return self._add_input(array, dims)

    def _add_input(self, array, dims):
        static = {axis for axis, dim in enumerate(dims) if not isinstance(dim, str)}
        value = Value(f"x{len(self.inputs)}", [array] * (NOISY + 1), static, dims=dims)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def constant(self, array):
        array = np.asarray(array)
        if self.constants and self.chance(0.2):  # a constant that others read, too
            alike = [c for c in self.constants if c.array.shape == array.shape and c.array.dtype == array.dtype
                     and np.array_equal(c.array, array)]
            if alike:
                return alike[0]
        value = Value(f"c{len(self.constants)}", [array] * (NOISY + 1), set(range(array.ndim)), "constant", [])
        self.constants.append(value)
        return value

    def index_operand(self, indices):
        return self.constant(indices) if self.chance(0.6) else self.new_value((indices.dtype.type,), array=indices)

    def broadcast_partner(self, x, low=-4, high=4):
        """Another operand whose shape broadcasts with x's, of the same type."""
        alike = [v for v in self.values if v.array.dtype == x.array.dtype and v is not x and low <= -4
                 and broadcasts(v.array.shape, x.array.shape)]
        if alike and self.chance(0.5):
            return self.choose(alike)
        shape = self.broadcastable(x.array.shape)
        if self.chance(0.4):
            return self.constant(self.numbers(shape, x.array.dtype, low, high))
        return self.new_value((x.array.dtype.type,), shape=shape, low=low, high=high)

    # ---- growing ----

    def grow(self, operator):
        """Adds a node of this operator; false where onnxruntime refuses all that was drawn."""
        for _ in range(8):
            marks = [len(part) for part in (self.values, self.nodes, self.inputs, self.constants)]
            try:
                made = GENERATORS[operator](self)
                if isinstance(made, Chain):
                    self.emit(operator, made.inputs, {}, chain=made.nodes)
                else:
                    self.emit(operator, *made)
                return True
            except Refused:
                for part, mark in zip((self.values, self.nodes, self.inputs, self.constants), marks):
                    del part[mark:]
        return False

    def emit(self, op, inputs, attributes, outputs=1, chain=None):
        """Adds a node and computes it; its first output.  errors: Refused, by onnxruntime"""
        made = [Value(f"v{len(self.nodes)}_{i}", [], set(), op, []) for i in range(outputs)]
        node = Node(op, list(inputs), attributes, made, chain)
        for operators, applies, cause in DEFECTS:
            if op in operators.split() and applies(node):
                raise Refused(cause)
        compute(node, self.opset, self.rng)
        if any(v.array.size > LARGEST for v in made):
            raise Refused("too large")
        self._note_static(node)
        self.nodes.append(node)
        if op in RANDOM:  # known by type and shape alone, so nothing reads it
            for value in made:
                value.jumps = np.ones(value.array.shape, bool)
        elif not op.startswith("com.microsoft.Q"):  # these may be a step off, see Value.tolerance
            self.values += made
        return made[0]

    def _note_static(self, node):
        """Marks axes whose extent certainly is a number."""
        operands = [v for v in node.inputs if v is not None and v.made_by != "constant"]
        out = node.outputs[0]
        if all(len(v.static) == v.array.ndim for v in operands):
            out.static = set(range(out.array.ndim))
        elif node.op in ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "BatchNormalization", "Resize"):
            out.static = {1}
        elif operands and all(v.array.shape == out.array.shape for v in operands):
            out.static = set.intersection(*(v.static for v in operands))

    def choose_outputs(self):
        """Unread values, and sometimes another."""
        read = {id(v) for node in self.nodes for v in node.inputs}
        made = [v for node in self.nodes for v in node.outputs]
        self.kept = [v for v in made if id(v) not in read or self.chance(0.15)]

    # ---- as a model ----

    def outputs(self):
        return self.kept

    def needed(self):
        """The nodes that outputs depend on, in order."""
        wanted, nodes = {id(v) for v in self.kept}, []
        for node in reversed(self.nodes):
            if any(id(v) in wanted for v in node.outputs):
                nodes.append(node)
                wanted |= {id(v) for v in node.inputs}
        return nodes[::-1], wanted

    def feeds(self):
        _, wanted = self.needed()
        return {v.name: v.array for v in self.inputs if id(v) in wanted}

    def model(self):
        nodes, wanted = self.needed()
        inputs = [tensor_info(v.name, v.array, v.dims) for v in self.inputs if id(v) in wanted]
        constants = [(v.name, v.array) for v in self.constants if id(v) in wanted]
        outputs = [tensor_info(v.name, v.array, [None] * v.array.ndim) for v in self.kept]
        return model_of([p for n in nodes for p in n.protos()], inputs, constants, outputs, self.opset)

    def text(self):
        nodes, _ = self.needed()
        def show(v):
            if v is None:
                return "-"
            return f"{v.name}:{v.array.dtype}{v.dims if v.made_by == 'input' else list(v.array.shape)}"
        return "; ".join(f"{', '.join(v.name for v in n.outputs)} = "
                         f"{'.'.join(n.operators())}({', '.join(map(show, n.inputs))})"
                         f"{plain(n.attributes) or ''}" for n in nodes)

    # ---- cutting down ----

    def _like(self):
        other = Graph(self.rng, self.opset)
        other.nodes, other.inputs, other.constants = list(self.nodes), list(self.inputs), list(self.constants)
        other.kept, other.symbols = list(self.kept), self.symbols
        return other

    def simpler(self):
        """Graphs with less in them, the smallest first."""
        if len(self.kept) > 1:
            for value in self.kept:
                other = self._like()
                other.kept = [value]
                yield other
        nodes, wanted = self.needed()
        for node in nodes[:-1]:  # its results become inputs
            yield self._with_inputs(node)
        for node in nodes[-2::-1]:  # an inner result in place of what follows
            for value in node.outputs:
                if len(self.kept) == 1 and value is not self.kept[0]:
                    other = self._like()
                    other.kept = [value]
                    yield other
        for at, value in enumerate(self.inputs):
            if id(value) in wanted and any(isinstance(d, str) for d in value.dims):
                other = self._like()
                other._replace(value, dataclasses.replace(value, dims=list(value.array.shape)), at)
                yield other

    def _with_inputs(self, node):
        other = self._like()
        other.nodes = [n for n in self.nodes if n is not node]
        for value in node.outputs:
            fed = dataclasses.replace(value, made_by="input", dims=list(value.array.shape))
            other.inputs.append(value)
            other._replace(value, fed, len(other.inputs) - 1)
        other.kept = [v for v in other.kept if all(v is not o for o in node.outputs)] or other.kept
        return other

    def _replace(self, old, new, at):
        self.inputs[at] = new
        self.nodes = [dataclasses.replace(n, inputs=[new if v is old else v for v in n.inputs]) for n in self.nodes]


def plain(attributes):
    return {k: v for k, v in attributes.items() if not isinstance(v, (onnx.TensorProto, np.ndarray))}


def broadcasts(a, b):
    return all(m == n or m == 1 or n == 1 for m, n in zip(a[::-1], b[::-1]))


class Refused(Exception):
    """onnxruntime does not run a node."""


def find_jumps(operand, session, inputs):
    """Where the result differs at either end of what the first operand, a float, may be."""
    if operand.array.dtype.kind != "f" or operand.made_by in ("input", "constant"):
        return None
    off = operand.tolerance()
    feeds = {v.name: v.array for v in inputs}
    ends = []
    for side in (-1, 1):
        with np.errstate(all="ignore"):
            feeds[operand.name] = np.asarray(operand.array + side * off, operand.array.dtype)
        ends.append(session.run(None, feeds)[0])
    return ends[0] != ends[1]


def compute(node, opset, rng):
    """Fills the arrays of the node's outputs."""
    given = {v.name: v for v in node.inputs if v is not None}
    constants = [(v.name, v.array) for v in given.values() if v.made_by == "constant"]
    inputs = [v for v in given.values() if v.made_by != "constant"]
    outputs = [onnx.ValueInfoProto(name=v.name) for v in node.outputs]
    model = model_of(node.protos(), [tensor_info(v.name, v.array) for v in inputs], constants, outputs, opset)
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
        for turn in range(NOISY + 1):
            noisy = turn > 0 and node.op in ROUNDS
            feeds = {v.name: with_noise(v.arrays[turn], rng) if noisy else v.arrays[turn] for v in inputs}
            cancels = turn > 0 and node.op in CANCELS
            for value, array in zip(node.outputs, session.run(None, feeds)):
                if turn > 0 and array.shape != value.array.shape:
                    raise Refused("rounding decides how large it is")
                value.arrays.append(with_noise(array, rng, cancels) if noisy or cancels else array)
        if node.op in JUMPS and node.outputs[0].array.shape == node.inputs[0].array.shape:
            node.outputs[0].jumps = find_jumps(node.inputs[0], session, inputs)
    except Exception as error:  # onnxruntime's exceptions have no common public base
        raise Refused(str(error)) from error
