# SPDX-License-Identifier: Apache-2.0
"""Translates a graph of ATen calls: each becomes nodes by the rule that the table `rules` has for its overload."""

from __future__ import annotations

import itertools
import math
import operator
import re

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KIND
from torch._prims_common import elementwise_dtypes
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from .. import _arrays
from .._errors import Error
from .._graph import INT64_MAX, Graph, Value
from . import dims
from .draws import Draws
from .rules import RULES
from .unsupported import Unsupported, UnsupportedError

__all__ = ["Translator", "Unsupported", "UnsupportedError"]

# Calls that compute nothing: assertions, whose conditions the bounds of symbols state or that a run does not check.
CHECKS = {"aten._assert_scalar", "aten._assert_async", "aten._assert_tensor_metadata", "aten.sym_constrain_range",
          "aten.sym_constrain_range_for_size", "aten._functional_assert_async", "aten._make_dep_token"}

# Calls that read one element of a tensor.
READS = {"aten._local_scalar_dense", "aten.item"}

# What the rules raise.
FAILURES = (Unsupported, Error, TypeError, ValueError, LookupError, AttributeError, ZeroDivisionError,
            GuardOnDataDependentSymNode)


class Translator:
    """Appends the calls of a graph to a `Graph`. Rules use its methods.

    names: of the symbols of sizes
    random_state: adds what random numbers start from (see Draws)
    """

    def __init__(self, graph: Graph, names, random_state=None):
        self.graph, self.names = graph, names
        self.draws = Draws(self, random_state)
        self.values = {}  # what each node of the program became: a Value, a tuple of them, or a size
        self.problems = {}  # see UnsupportedError
        self.failed = []  # the calls that have them
        self.node = None  # the call that is translated
        self._types = _arrays.torch_dtypes()
        self._named = set()  # values that have the name of a call
        self._tied = {}  # what the graph has of tensors, by what they look at; the tensor keeps its memory
        self._weights = {}  # (name, tensor, role) of values that runs do not change
        self._bodies = itertools.count()
        self._of_data = set()  # symbols that depend on data
        self._open = set()  # those of them that are to be bound
        self._spread = False  # see inline

    # ---- the program

    def call(self, node):
        """Translates a call; what cannot be is noted, and stands in for its results."""
        self.node = node
        self.graph.source = (_path(node) or node.name, operator_name(node.target))
        try:
            self.values[node] = self._translate(node)
            self._check(node, self.values[node])
        except FAILURES as failure:
            self.problems.setdefault((operator_name(node.target), _reason(failure)), []).append(_path(node))
            self.failed.append(node)
            self.values[node] = self._stand_in(node.meta.get("val"))

    def _translate(self, node):
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymBool, torch.SymFloat)):
            return self._number(node, value)
        if node.target is operator.getitem:
            return self.values[node.args[0]][node.args[1]]
        rule = rule_of(node.target)
        if rule is None:
            raise Unsupported("there is no rule for it")
        result = rule(self, *self.operand(node.args), **self.operand(node.kwargs))
        if isinstance(result, Value) and isinstance(value, torch.Tensor) and result.id not in self._named:
            self._named.add(result.id)
            self.graph.name(result, node.name)
        return result

    def _number(self, node, value):
        """A number that the program computes: one that it reads from a tensor becomes a size, or stays a tensor"""
        if _packet(node.target) not in READS:
            return value
        tensor = self.reshape(self.operand(node.args[0]), [])
        if isinstance(value, torch.SymInt):
            self.bind(value, tensor)
            return value
        return tensor

    def inline(self, body, arguments, *, spread=False):
        """Translates a program within the program, such as that of a block without gradients; returns its results.

        spread: its scalars are tensors here, of many places at once
        """
        outer, was_spread, given = self.node, self._spread, iter(arguments)
        self._spread = was_spread or spread
        for node in body.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = next(given)
            elif node.op == "get_attr":
                self.values[node] = self.attribute(body, node.target)
            elif node.op == "call_function":
                self.call(node)
            elif node.op == "output":
                results = self.operand(node.args[0])
        self.node, self._spread = outer, was_spread
        return tuple(results) if isinstance(results, (list, tuple)) else (results,)

    def body(self):
        """A translator of a function of its own, for a program within the program"""
        return Body(self, f"body_{next(self._bodies)}")

    def captures(self, operands):
        """Those operands that a body takes as arguments: tensors that are no weights"""
        return [o for o in operands if isinstance(o, Value) and o.id not in self._weights]

    def attribute(self, program, path):
        """What a program holds at a path: a tensor as a constant, a program as itself"""
        found = program
        for part in path.split("."):
            found = getattr(found, part)
        return self.variable(path, found) if isinstance(found, torch.Tensor) else found

    def variable(self, name, tensor, role="constant"):
        """A tensor of the program; one for those that are the same memory, unless it is a state"""
        place = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
        if place in self._tied and tensor.numel() > 0 and role != "state":
            return self._tied[place][1]
        value = self.graph.variable(name, _arrays.view_of_torch(tensor.detach().cpu()), role)
        self._tied[place] = tensor, value
        if role != "state":
            self._weights[value.id] = name, tensor, role
        return value

    def operand(self, argument):
        """An argument of a call with nodes replaced by what they became."""
        if isinstance(argument, torch.fx.Node):
            return self.values[argument]
        if isinstance(argument, (list, tuple)):
            return [self.operand(a) for a in argument]
        if isinstance(argument, dict):
            return {name: self.operand(a) for name, a in argument.items()}
        return argument

    def used(self, index):
        """Does anything read this result of the call?"""
        return any(user.target is not operator.getitem or user.args[1] == index and user.users
                   for user in self.node.users)

    def meta(self, index=None):
        """The tensor that PyTorch computes without data: its shape and element type."""
        value = self.node.meta["val"]
        return value if index is None else value[index]

    def out_dtype(self):
        """The element type of the call's result."""
        return self.dtype(self.meta().dtype)

    @staticmethod
    def wide(dtype):
        """The element type in which sums of floats of this one are kept."""
        return "f64" if dtype == "f64" else "f32"

    def _stand_in(self, meta):
        if isinstance(meta, (list, tuple)):
            return tuple(self._stand_in(m) for m in meta)
        if not isinstance(meta, torch.Tensor):
            return meta
        try:
            return self.full(0, self.dtype(meta.dtype), self.shape(meta.shape))
        except Unsupported:
            return self.full(0, "f32", [])

    def _check(self, node, value):
        """Compares what the library inferred with what PyTorch did."""
        if self._spread:
            return
        meta = node.meta.get("val")
        if isinstance(meta, (list, tuple)):
            pairs = zip(meta, value) if isinstance(value, (list, tuple)) else []
        else:
            pairs = [(meta, value)]
        for expected, got in pairs:
            if not isinstance(expected, torch.Tensor) or not isinstance(got, Value):
                continue
            if got.dtype != self.dtype(expected.dtype) or not self._same(got.shape, self.shape(expected.shape)):
                wanted = f"{self.dtype(expected.dtype)}{list(self.shape(expected.shape))}"
                raise Unsupported(f"the result is {got.dtype}{list(got.shape)}, but PyTorch has {wanted}")

    def _same(self, a, b):
        if len(a) != len(b):
            return False
        # Expressions that are equal at two places far apart are taken for equal. Of sizes that depend on data PyTorch
        # knows more, such as the sum of them all.
        pairs = [(x, y) for x, y in zip(a, b) if not self._depends_on_data(x) and not self._depends_on_data(y)]
        for seed in (24, 5040):
            values = {name: seed * (i + 2) for i, name in enumerate(self.names.values())}
            if any(dims.evaluate(x, values) != dims.evaluate(y, values) for x, y in pairs):
                return False
        return True

    def _depends_on_data(self, size):
        return not self._of_data.isdisjoint(re.findall(r"\w+", str(size)))

    # ---- sizes and element types

    def dtype(self, dtype):
        """The name of an element type of torch."""
        name = _arrays.name_of_torch(dtype)
        if name is None:
            raise Unsupported(f"there is no element type {dtype}")
        return name

    def torch_dtype(self, name):
        """The element type of torch with this name."""
        return self._types[name]

    def dim(self, size):
        """A size as an int or as text."""
        return dims.dim(size, self.names) if not isinstance(size, str) else size

    def shape(self, sizes):
        """Sizes as ints or text."""
        return [self.dim(size) for size in sizes]

    def fixed(self, size, what):
        """A size that must be a number."""
        value = self.dim(size)
        if not isinstance(value, int):
            raise Unsupported(f"{what} varies: {value}")
        return value

    def declare(self, size):
        """A size as a dimension; one that depends on data is to be bound."""
        if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol and size.node.expr not in self.names:
            symbol = size.node.expr
            low, high = dims.bounds(size.node.shape_env.bound_sympy(symbol))
            # PyTorch refuses what has no elements in places where programs run all the same.
            low = -INT64_MAX if low is None else min(0, low)
            self.graph.symbol(str(symbol), low, high)
            self.names[symbol] = str(symbol)
            self._of_data.add(str(symbol))
            self._open.add(str(symbol))
        return self.dim(size)

    def bind(self, size, number):
        """Makes a size that depends on data the number that the program computes for it; returns it as a dimension.

        number: one integer
        """
        name = self.declare(size)
        if name in self._open:
            self._open.remove(name)
            self.op("bind_symbol", self.cast(self.reshape(number, []), "i64"), symbol=name)
        return name

    def out_shape(self, index=None):
        """The shape of the call's result."""
        return self.shape(self.meta(index).shape)

    # ---- nodes

    def op(self, name, *operands, **attributes):
        """Appends a node and returns its first result."""
        return self.graph.node(name, *operands, **attributes)[0]

    def ops(self, name, *operands, **attributes):
        """Appends a node and returns its results."""
        return self.graph.node(name, *operands, **attributes)

    def full(self, value, dtype, shape=()):
        """A tensor of equal elements."""
        if isinstance(value, (torch.SymFloat, torch.SymBool)):
            raise Unsupported(f"the number {value} depends on sizes")
        if isinstance(value, torch.SymInt):
            size = self.dim(value)
            if not isinstance(size, int):
                one = self.op("iota", dtype="i64", begin=size, count=1)
                scalar = self.cast(self.reshape(one, []), dtype)
                return self.expand(scalar, shape) if shape else scalar
            value = size
        if dtype == "bool":
            value = bool(value)
        elif isinstance(value, float) and dtype[0] in "iu":
            value = int(value)
        return self.op("fill", value=value, dtype=dtype, shape=list(shape))

    def cast(self, value, dtype):
        """The value in another element type; itself where it has it."""
        if value.dtype == dtype:
            return value
        if value.dtype in ("c64", "c128") and dtype not in ("c64", "c128"):
            return self.cast(self.op("real", value), dtype)
        return self.op("cast", value, to=dtype)

    def tensor(self, operand, dtype):
        """A tensor or number as a tensor of an element type."""
        return self.cast(operand, dtype) if isinstance(operand, Value) else self.full(operand, dtype)

    def reshape(self, value, shape):
        """The elements in another shape; the value itself where it has it."""
        shape = list(shape)
        return value if list(value.shape) == shape else self.op("reshape", value, shape=shape)

    def expand(self, value, shape):
        """Broadcasts to a shape."""
        return value if list(value.shape) == list(shape) else self.op("broadcast_to", value, shape=list(shape))

    def transpose(self, value, permutation):
        """Permutes axes; the value itself where none moves."""
        permutation = [p % value.rank for p in permutation]
        if permutation == list(range(value.rank)):
            return value
        return self.op("transpose", value, permutation=permutation)

    def swap(self, value, a, b):
        """Swaps two axes."""
        order = list(range(value.rank))
        order[a], order[b] = order[b], order[a]
        return self.transpose(value, order)

    def slice(self, value, axis, begin, end, step=1):
        """The elements begin, begin + step ... below end along an axis."""
        return self.op("slice", value, begin=[self.dim(begin)], end=[self.dim(end)], axes=[axis % value.rank],
                       steps=[step])

    def select(self, value, axis, index):
        """One index of an axis, which goes."""
        axis %= value.rank
        end = index + 1 if not (isinstance(index, int) and index == -1) else value.shape[axis]
        part = self.slice(value, axis, index, end)
        return self.reshape(part, value.shape[:axis] + value.shape[axis + 1:])

    # ---- type promotion

    def promoted(self, *operands, kind="default"):
        """Tensors of the common element type of tensors and numbers.

        kind: "float" makes integers floats
        """
        kinds = {"default": KIND.DEFAULT, "float": KIND.INT_TO_FLOAT}
        stand_ins = [self._promotes(o) for o in operands]
        _, common = elementwise_dtypes(*stand_ins, type_promotion_kind=kinds[kind])
        name = self.dtype(common)
        return [self.tensor(o, name) for o in operands]

    def _promotes(self, operand):
        if isinstance(operand, Value):
            return torch.empty([1] * operand.rank, dtype=self.torch_dtype(operand.dtype), device="meta")
        if isinstance(operand, torch.SymInt):
            return 1
        return 1.0 if isinstance(operand, torch.SymFloat) else operand


class Body(Translator):
    """Translates a program within the program to a function that nodes call."""

    def __init__(self, outer, name):
        super().__init__(outer.graph.body(name), dict(outer.names))
        self.name = f"@{name}"
        self.problems, self.failed, self._bodies = outer.problems, outer.failed, outer._bodies
        self._of_data = outer._of_data
        self._outer = outer

    def arguments(self, captures, operands):
        """Adds an argument for each capture; returns what the body has for the operands of the call"""
        inside = {v.id: self.graph.input(f"capture_{i}", v.dtype, v.shape) for i, v in enumerate(captures)}
        return [self._inside(o, inside) for o in operands]

    def _inside(self, operand, inside):
        if not isinstance(operand, Value):
            return operand
        return inside[operand.id] if operand.id in inside else self.variable(*self._outer._weights[operand.id])

    def result(self, name, value):
        """Adds a result"""
        self.graph.output(f"result_{name}", value if isinstance(value, Value) else self.full(value, "i64"))


def _reason(failure):
    """Why a rule failed, for the list of problems"""
    if isinstance(failure, GuardOnDataDependentSymNode):
        return "a size depends on data"
    if isinstance(failure, (Unsupported, Error)):
        return str(failure)
    return f"its rule does not take these arguments: {failure}"


def operator_name(target):
    """aten.add.Tensor, aten.relu; the names that rules have."""
    name = str(target) if isinstance(target, torch._ops.OpOverload) else getattr(target, "__name__", str(target))
    return name.removesuffix(".default")


def _packet(target):
    """aten.add"""
    return ".".join(operator_name(target).split(".")[:2])


def rule_of(target):
    """The rule for an operator; None where there is none. Checks have one, which does nothing."""
    if _packet(target) in CHECKS:
        return _check
    if operator_name(target) in SPECIAL:
        return SPECIAL[operator_name(target)]
    packet = _packet(target)  # aten.view_copy and its kin are aten.view and a copy, which values need not
    return RULES.get(operator_name(target)) or RULES.get(packet) or RULES.get(packet.removesuffix("_copy"))


def _check(*_, **__):
    return None


def _ordered(t, token, call, *arguments, **named):
    """A call that keeps its place: only checks are known"""
    if _packet(call) not in CHECKS:
        raise Unsupported(f"{operator_name(call)} has effects")
    return (None, None)


def _without_gradients(t, _, body, *arguments):
    """A block of torch.no_grad()"""
    return t.inline(body, arguments)


# Of calls that are no ATen operators.
SPECIAL = {"with_effects": _ordered, "wrap_with_set_grad_enabled": _without_gradients}


def _path(node):
    """The path of the module whose forward made the call: layers.0.attention"""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values()]
    return paths[-1].removeprefix("L['self'].") if paths else ""


def is_number(value):
    """Is this a number of Python?"""
    return isinstance(value, (int, float, complex)) and not (isinstance(value, float) and math.isnan(value))
