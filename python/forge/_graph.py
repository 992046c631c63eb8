# SPDX-License-Identifier: Apache-2.0
"""Graphs, built node by node. The library knows the ops, their attributes and the types of results."""

from __future__ import annotations

import functools
import itertools
import json
import re
from ctypes import byref, c_int64, c_size_t

from ._errors import UsageError
from ._library import RELEASE, Gradients, Handle, Node, Variable, call, check
from ._model import Model

ABSENT = -1
MOST_RESULTS = 1024  # of one node
INT64_MAX = 2**63 - 1


@functools.cache
def ops() -> dict[str, dict]:
    """Describes every op by name, as the library does: "inputs", "outputs", "attributes" (see forge_ops_json)."""
    return {op["name"]: op for op in json.loads(call("ops_json")())}


@functools.cache
def _attribute_types(op):
    if op not in ops():
        raise UsageError(f"'{op}' is no op")
    return {attribute["name"]: attribute["type"] for attribute in ops()[op]["attributes"]}


def _list(items):
    return f"[{', '.join(str(item) for item in items)}]"


def _number(value):
    if isinstance(value, complex):
        return f"({value.real!r}, {value.imag!r})"
    return repr(int(value) if isinstance(value, bool) else value)


FORMATS = {
    "bool": lambda value: "true" if value else "false",
    "int": lambda value: str(int(value)),
    "float": lambda value: repr(float(value)),
    "string": lambda value: '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"',
    "ints": lambda value: _list(map(int, value)),
    "floats": lambda value: _list(repr(float(v)) for v in value),
    "dims": _list,
    "number": _number,
}


def attributes_text(op, attributes):
    """Attributes in the text form: "axis = 1, shape = [n, 3]". Those that are None are left out."""
    types = _attribute_types(op)
    items = []
    for name, value in attributes.items():
        if value is None:
            continue
        if name not in types:
            raise UsageError(f"{op} has no attribute '{name}'")
        items.append(f"{name} = {FORMATS.get(types[name], str)(value)}")
    return ", ".join(items)


# What the library still uses of memory that Python lent to it.
_lent = {}
_tickets = itertools.count(1)


@RELEASE
def _release(ticket):
    _lent.pop(ticket, None)


class Value:
    """A value of a graph.

    dtype: "f32" ...     shape: numbers, and expressions of dimensions as text
    """

    __slots__ = ("dtype", "id", "shape")

    def __init__(self, value, type_text):
        self.id = value
        self.dtype, dims = re.fullmatch(r"(\w+)\[(.*)\]", type_text).groups()
        self.shape = tuple(int(d) if re.fullmatch(r"-?\d+", d) else d for d in _split(dims))

    @property
    def rank(self):
        """The number of axes."""
        return len(self.shape)

    def __repr__(self):
        return f"%{self.id}: {self.dtype}{_list(self.shape)}"


def _split(dims):
    """Splits at the commas that stand outside of parentheses."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(dims):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(dims[begin:i].strip())
            begin = i + 1
    rest = dims[begin:].strip()
    return parts + ([rest] if rest else [])


class Graph:
    """The function "main" of a model under construction. One thread at a time uses it.

    After the first error every further call raises it.
    """

    def __init__(self, _handle=None):
        self._handle = _handle or Handle(call("graph_create"), free=call("graph_free"))
        self.source = None  # the name and the kind of the node of the source that nodes added now come from

    def symbol(self, name: str, minimum: int = 0, maximum: int | None = None, divisor: int = 1) -> None:
        """Declares a dimension whose extent lies within these bounds and is a multiple of `divisor`."""
        high = INT64_MAX if maximum is None else maximum
        check(call("graph_symbol")(self._handle.pointer, name.encode(), minimum, high, divisor))

    def input(self, name: str, dtype: str, shape) -> Value:
        """Adds an input."""
        value = c_int64()
        text = f"{dtype}{_list(shape)}"
        check(call("graph_input")(self._handle.pointer, name.encode(), text.encode(), byref(value)))
        return self._value(value.value)

    def variable(self, name: str, view, role: str = "parameter") -> Value:
        """Adds weights or a state; one of the same name, role and elements is the same, so that bodies read it.

        view: their elements, used in place; they must not change while the model is in use
        role: "constant", "parameter", or "state", which runs change
        """
        ticket = next(_tickets)
        _lent[ticket] = view
        text = f"{view.dtype}{_list(view.shape)}"
        made = Variable(name.encode(), role.encode(), text.encode(), view.address, view.bytes, _release, ticket)
        value = c_int64()
        check(call("graph_variable")(self._handle.pointer, byref(made), byref(value)))
        return self._value(value.value)

    def node(self, op: str, *operands: Value | None, **attributes) -> list[Value]:
        """Adds a node and returns its results. Operands that are None are absent; attributes left out or None have
        their defaults.

        Raises UsageError with op and types.
        """
        ids = (c_int64 * len(operands))(*(ABSENT if v is None else v.id for v in operands))
        source, kind = (text.encode() for text in self.source) if self.source else (None, None)
        text = attributes_text(op, attributes).encode()
        node = Node(op.encode(), ids, len(operands), text, source, kind)
        results, count = (c_int64 * MOST_RESULTS)(), c_size_t()
        check(call("graph_node")(self._handle.pointer, byref(node), results, len(results), byref(count)))
        return [self._value(results[i]) for i in range(min(count.value, len(results)))]

    def gradients(self, of: list[Value], seeds: list[Value], values: list[Value]) -> list[Value]:
        """Adds the gradients of `of`, times `seeds`, with respect to `values`, and returns them; zeros where nothing
        flows.

        seeds: what flows back to each of `of`, of its type
        Raises RefusedError, which names a node that has no gradient.
        """
        arrays = [(c_int64 * len(group))(*(v.id for v in group)) for group in (of, seeds, values)]
        asked = Gradients(arrays[0], arrays[1], len(of), arrays[2], len(values))
        results = (c_int64 * len(values))()
        check(call("graph_gradients")(self._handle.pointer, byref(asked), results))
        return [self._value(result) for result in results]

    def body(self, name: str) -> Graph:
        """Adds a function for attributes that are functions, such as the bodies of "if" and "loop"; they call it
        "@name". Its inputs are the body's arguments, its outputs the results; it is finished with this graph."""
        create, graph = call("graph_body"), self._handle
        return Graph(Handle(lambda out: create(graph.pointer, name.encode(), out), free=call("graph_free")))

    def name(self, value: Value, name: str) -> None:
        """Names an inner value, for `outputs` of Model.session and for the tools."""
        check(call("graph_name")(self._handle.pointer, value.id, name.encode()))

    def output(self, name: str, value: Value) -> None:
        """Adds an output."""
        check(call("graph_output")(self._handle.pointer, name.encode(), value.id))

    def store(self, variable: Value, value: Value) -> None:
        """Replaces a state at the end of each run."""
        check(call("graph_store")(self._handle.pointer, variable.id, value.id))

    def metadata(self, key: str, value: str) -> None:
        """Adds metadata of the model."""
        check(call("graph_metadata")(self._handle.pointer, key.encode(), value.encode()))

    def finish(self) -> Model:
        """Makes the model; the graph is used up."""
        finish, graph = call("graph_finish"), self._handle
        return Model(Handle(lambda out: finish(graph.pointer, out), free=call("model_free")))

    def _value(self, value):
        return Value(value, call("graph_type")(self._handle.pointer, value).decode())
