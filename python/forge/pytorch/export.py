# SPDX-License-Identifier: Apache-2.0
"""forge.export: a program of torch.export as a model."""

from __future__ import annotations

import re
import warnings

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from .._graph import Graph, Value
from .._model import Model
from . import dims
from .functions import Traceable
from .rules.quantization import Quantised
from .rules.sparse import Sparse
from .translator import Translator, rule_of
from .unsupported import Unsupported, UnsupportedError

WEIGHTS = {InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR}
MOST_ROUNDS = 4  # of decomposing, since what an operator becomes may have no rule either


def export(module, args=(), kwargs=None, *, dynamic_shapes=None, path=None) -> Model:
    """See forge.export."""
    program = module if isinstance(module, torch.export.ExportedProgram) else traced(
        module, tuple(args), kwargs or {}, dynamic_shapes)
    names = given_names(program, tuple(args), kwargs or {}, dynamic_shapes)
    exporter = Exporter(functional(program), names)
    model = exporter.model()
    if exporter.draws and getattr(module, "training", False):
        warnings.warn("the module is in training mode, in which each run of the model draws random numbers; its eval() "
                      "leaves dropout out", stacklevel=3)
    if path is not None:
        model.save(path)
    return model


def traced(module, args, kwargs, dynamic_shapes):
    """The program of a module, with attention layers written out, whose fast path is one opaque call, and without
    functions that look at data."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with Traceable():
            return torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def functional(program):
    """The program without calls that change their operands. Calls that have no rule are decomposed where PyTorch can;
    nothing else is."""
    for _ in range(MOST_ROUNDS):
        calls = {node.target for part in program.graph_module.modules() if isinstance(part, torch.fx.GraphModule)
                 for node in part.graph.nodes if isinstance(node.target, torch._ops.OpOverload)}
        known = torch.export.default_decompositions()
        missing = {call: known[call] for call in calls if rule_of(call) is None and call in known}
        if not missing and not any(call._schema.is_mutable for call in calls):
            return program
        program = program.run_decompositions(missing)
    return program


def given_names(program, args, kwargs, dynamic_shapes):
    """The names that the caller gave to sizes, by symbol: {s77: "batch"}"""
    specified = []
    _dimensions(dynamic_shapes, args, kwargs, specified)
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    leaves = [placeholders.get(name) for name in program.graph_signature.user_inputs if isinstance(name, str)]
    names = {}
    for (leaf, axes), node in zip(specified, leaves):
        if node is None or not isinstance(leaf, torch.Tensor):
            continue
        for axis, given in axes.items():
            size = node.meta["val"].shape[axis]
            if hasattr(given, "__name__") and isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                names[size.node.expr] = given.__name__
    return names


def _dimensions(spec, args, kwargs, out):
    """Appends (leaf, {axis: Dim}) for each leaf of the arguments."""
    if isinstance(spec, dict) and not (set(spec) & set(kwargs)) and len(spec) == len(args):
        spec = tuple(spec.values())  # by the names of the parameters
    positional = spec if isinstance(spec, (tuple, list)) else [None] * len(args)
    for i, value in enumerate(args):
        _leaves(positional[i] if i < len(positional) else None, value, out)
    for name, value in kwargs.items():
        _leaves(spec.get(name) if isinstance(spec, dict) else None, value, out)


def _leaves(spec, value, out):
    if isinstance(value, (tuple, list)):
        for i, inner in enumerate(value):
            _leaves(spec[i] if isinstance(spec, (tuple, list)) and i < len(spec) else None, inner, out)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _leaves(spec.get(name) if isinstance(spec, dict) else None, inner, out)
    elif isinstance(spec, dict):
        out.append((value, spec))
    elif isinstance(spec, (tuple, list)):
        out.append((value, dict(enumerate(spec))))
    else:
        out.append((value, {}))


class Exporter:
    """One export."""

    def __init__(self, program, given):
        self.program, self.signature = program, program.graph_signature
        self.graph = Graph()
        self.names = self._symbols(given)
        self.translator = Translator(self.graph, self.names, self._random_state)
        changes = (self.signature.buffers_to_mutate, self.signature.parameters_to_mutate)
        self.changed = {name for names in changes for name in names.values()}  # weights that the program changes

    def model(self) -> Model:
        """Translates the program.  errors: UnsupportedError"""
        self.graph.metadata("source", f"torch {torch.__version__}")
        inputs = {spec.arg.name: spec for spec in self.signature.input_specs}
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self.translator.values[node] = self._placeholder(node, inputs[node.name])
            elif node.op == "get_attr":
                self.translator.values[node] = self.translator.attribute(self.program.graph_module, node.target)
            elif node.op == "call_function":
                self.translator.call(node)
            elif node.op == "output":
                self._outputs(node)
        if self.translator.problems:
            raise UnsupportedError(self.translator.problems)
        return self.graph.finish()

    def _symbols(self, given):
        """Declares the symbols of the inputs; returns their names."""
        names, taken = {}, set()
        for symbol, limits in self.program.range_constraints.items():
            if not symbol.is_Symbol or str(symbol).startswith(("u", "zuf")):
                continue  # see Translator.bind
            name = given.get(symbol, str(symbol))
            name = name if name not in taken else str(symbol)
            taken.add(name)
            names[symbol] = name
            # PyTorch takes sizes of 0 and 1 for numbers; programs run with 1 all the same.
            low, high = dims.bounds(limits)
            self.graph.symbol(name, 1 if low == 2 else low or 0, high)
        return names

    def _placeholder(self, node, spec):
        value = node.meta.get("val")
        if spec.kind in WEIGHTS:
            role = "parameter" if spec.kind == InputKind.PARAMETER else "constant"
            role = "state" if spec.target in self.changed else role
            return self.translator.variable(spec.target, self._tensor_of(spec), role)
        if spec.kind == InputKind.USER_INPUT and isinstance(value, torch.Tensor):
            translator = self.translator
            return self.graph.input(node.name, translator.dtype(value.dtype), translator.shape(value.shape))
        if spec.kind == InputKind.TOKEN:
            return None  # orders checks, which become nothing
        if spec.kind == InputKind.USER_INPUT:
            return value if isinstance(value, torch.SymInt) else getattr(spec.arg, "value", value)
        raise UnsupportedError({(str(spec.kind), f"input {node.name} is no tensor"): [""]})

    def _tensor_of(self, spec):
        tensors = {**self.program.constants, **self.program.state_dict}
        return tensors[spec.target]

    def _outputs(self, node):
        mutated = []
        results = []
        for spec, value in zip(self.signature.output_specs, node.args[0]):
            if spec.kind == OutputKind.TOKEN:
                continue
            if spec.kind == OutputKind.PARAMETER_MUTATION and self._renormalises(value):
                continue  # what is read of the table is the same in each run
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
                mutated.append((spec.target, self.translator.operand(value)))
            elif spec.kind == OutputKind.USER_OUTPUT:
                results.append(self.translator.operand(value))
            else:
                self._problem(f"output {spec.target}", f"a {spec.kind.name.lower().replace('_', ' ')} is not supported")
        for name, value in zip(self._output_names(len(results)), results):
            self._output(name, value)
        states = {spec.target: spec.arg.name for spec in self.signature.input_specs}
        placeholders = {n.name: n for n in self.program.graph.nodes if n.op == "placeholder"}
        for target, value in mutated:
            state = self.translator.values[placeholders[states[target]]]
            if not self.translator.problems and state.id != value.id:
                self.graph.store(state, value)
        if self.draws and not self.translator.problems:
            self.graph.store(self.translator.draws.state, self.translator.draws.after())

    @property
    def draws(self):
        """Does a run draw random numbers?"""
        return self.translator.draws.state is not None

    def _random_state(self):
        return self.translator.variable("random_state", torch.tensor([torch.initial_seed() % 2**63, 0]), "state")

    @staticmethod
    def _renormalises(node):
        return isinstance(node, torch.fx.Node) and node.target is torch.ops.aten.embedding_renorm.default

    def _output(self, name, value):
        if value is None:
            return
        try:
            self.graph.source = (name, "output")
            value = value.integers if isinstance(value, Quantised) else value
            if isinstance(value, Sparse):
                raise Unsupported("a sparse tensor as a result")
            tensor = value if isinstance(value, Value) else self.translator.full(value, _type_of_number(value))
            self.graph.output(name, tensor)
        except Unsupported as reason:
            self._problem(f"output {name}", str(reason))

    def _problem(self, what, reason):
        self.translator.problems.setdefault((what, reason), []).append("")

    def _output_names(self, count):
        """The names in the module's result: those of a dictionary's keys and a class's fields, or output_0 ..."""
        spec = self.program.module_call_graph[0].signature.out_spec
        tree = pytree.tree_unflatten(list(range(count)), spec)
        paths = pytree.tree_flatten_with_path(tree)[0]
        names = []
        for keys, _ in paths:
            parts = [re.sub(r"\W", "", pytree.keystr((key,))) for key in keys]
            name = "_".join(parts)
            names.append("output" if not name else f"output_{name}" if name[0].isdigit() else name)
        return names


def _type_of_number(value):
    if isinstance(value, bool):
        return "bool"
    return "i64" if isinstance(value, (int, torch.SymInt)) else "f32"
