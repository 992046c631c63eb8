# SPDX-License-Identifier: Apache-2.0
"""The backend "forge" of torch.compile: graphs of AOTAutograd as models."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupport

from .. import _arrays
from .._errors import RefusedError
from .._graph import Graph, Value
from . import dims
from .translator import Translator, rule_of
from .unsupported import UnsupportedError


RANDOM_STATE = "random_state"  # an input of programs that draw: a number of PyTorch's generator is their seed


@dataclass(frozen=True)
class Options:
    """options of torch.compile.

    device: see Model.session     threads: likewise
    fallback: leave operators that have no counterpart to PyTorch, with a warning that lists them
    """

    device: str = "auto"
    threads: int | None = None
    fallback: bool = False


def forge_backend(graph_module, example_inputs, *, options=None, **_):
    """torch.compile(module, backend="forge", options={"device": "vulkan"}).

    Parameters stay in the memory of PyTorch's tensors. For inference changing one prepares the model anew; where
    gradients are wanted, they are inputs, and the graph of the gradients is a model of its own. Raises
    UnsupportedError with every operator that has no counterpart.
    """
    chosen = Options(**(options or {}))

    def inference(program, _):
        fixed = torch._guards.TracingContext.get().fw_metadata.static_input_indices
        return _boxed(_program(program, {i: example_inputs[i] for i in fixed
                                         if isinstance(example_inputs[i], torch.Tensor)}, chosen))

    def training(program, _):
        return _boxed(_program(program, {}, chosen))

    return aot_autograd(fw_compiler=training, bw_compiler=training, inference_compiler=inference,
                        partition_fn=min_cut_rematerialization_partition, decompositions=_decompositions())(
        graph_module, example_inputs)


def _boxed(run):
    """A function in the way of PyTorch: it takes a list of arguments, which may be emptied."""

    def boxed(arguments):
        values = list(arguments)
        arguments.clear()
        return run(values)

    boxed._boxed_call = True
    return boxed


@functools.cache
def _decompositions():
    """Of the operators that have no rule."""
    return {call: known for call, known in torch.export.default_decompositions().items() if rule_of(call) is None}


def _program(program, weights, options):
    """A function of a list of arguments."""
    try:
        return Compiled(program, weights, options)
    except UnsupportedError as refused:
        if not options.fallback:
            raise
        return _partitioned(program, weights, options, refused)


class _Without(OperatorSupport):
    """Supports all calls but these."""

    def __init__(self, failed):
        super().__init__()
        self.failed = set(failed)

    def is_node_supported(self, submodules, node):
        return node.op == "call_function" and node not in self.failed


def _partitioned(program, weights, options, refused):
    """The program with its supported parts compiled; PyTorch runs the others."""
    failed = refused.nodes
    calls = sum(node.op == "call_function" for node in program.graph.nodes)
    warnings.warn(f"forge leaves {len(failed)} of {calls} calls to PyTorch; {refused}", stacklevel=2)
    parts = CapabilityBasedPartitioner(program, _Without(failed), allows_single_node_partition=True)
    fused = parts.partition_and_fuse()
    places = {node: i for i, node in enumerate(n for n in fused.graph.nodes if n.op == "placeholder")}
    for node in fused.graph.nodes:
        if node.op != "call_module":
            continue
        own = {i: weights[places[a]] for i, a in enumerate(node.args) if places.get(a) in weights}
        part = Compiled(getattr(fused, node.target), own, options)
        setattr(fused, node.target, _Part(part))
    return lambda arguments: fused(*arguments)


class _Part(torch.nn.Module):
    def __init__(self, compiled):
        super().__init__()
        self.compiled = compiled

    def forward(self, *arguments):
        results = self.compiled(list(arguments))
        return results if self.compiled.several else results[0]


class Compiled:
    """A program on a device.

    weights: the tensors that arguments are, by position; what they hold is prepared once
    """

    def __init__(self, program, weights, options):
        self.options = options
        self.nodes = list(program.graph.nodes)
        self.places = [node for node in self.nodes if node.op == "placeholder"]
        output = self.nodes[-1].args[0]
        self.several = isinstance(output, (list, tuple))
        self.results = list(output) if self.several else [output]
        self.module = program
        self.fixed = sorted(weights)
        self._prepare(weights)

    def __call__(self, arguments):
        """The results of the program."""
        weights = {i: arguments[i] for i in self.fixed}
        if self._state(weights) != self.state:
            self._prepare(weights)
        inputs = {name: arguments[i] for i, name in self.inputs.items()}
        if self.draws:
            inputs[RANDOM_STATE] = torch.stack([torch.randint(2**63 - 1, []), torch.tensor(0)])
        outputs = self.session.run(inputs) if self.session is not None else {}
        sizes = {str(self.places[i].meta["val"].node.expr): int(a) for i, a in enumerate(arguments)
                 if isinstance(a, int) and isinstance(self.places[i].meta["val"], torch.SymInt)}
        return [self._result(how, outputs, arguments, sizes) for how in self.plan]

    @staticmethod
    def _result(how, outputs, arguments, sizes):
        kind, what = how
        if kind == "output":
            return torch.as_tensor(outputs[what])
        if kind == "argument":
            return arguments[what]
        return what if kind == "constant" else dims.evaluate(what, sizes)

    @staticmethod
    def _state(weights):
        return [(t.data_ptr(), t._version) for t in weights.values()]

    def _prepare(self, weights):
        """Translates the program with these weights.  errors: UnsupportedError"""
        with unset_fake_temporarily():  # the compiler of PyTorch has a mode in which tensors have no elements
            self._translate(weights)
        self.state = self._state(weights)

    def _translate(self, weights):
        graph = Graph()
        translator = Translator(graph, self._symbols(graph), lambda: graph.input(RANDOM_STATE, "i64", [2]))
        self.inputs = {}
        for node in self.nodes:
            if node.op == "placeholder":
                translator.values[node] = self._placeholder(node, weights, graph, translator)
            elif node.op == "get_attr":
                translator.values[node] = translator.attribute(self.module, node.target)
            elif node.op == "call_function":
                translator.call(node)
        self.plan = [self._plan(i, result, graph, translator) for i, result in enumerate(self.results)]
        if translator.problems:
            raise UnsupportedError(translator.problems, translator.failed)
        self.draws = translator.draws.state is not None
        self.session = None
        if any(kind == "output" for kind, _ in self.plan):
            self.session = graph.finish().session(self.options.device, threads=self.options.threads)

    def _symbols(self, graph):
        symbols = {}
        for node in self.places:
            value = node.meta["val"]
            for size in [value] if isinstance(value, torch.SymInt) else getattr(value, "shape", ()):
                if isinstance(size, torch.SymInt):
                    symbols.update({s: size.node.shape_env for s in size.node.expr.free_symbols})
        for symbol in sorted(symbols, key=str):
            graph.symbol(str(symbol), 0)
        return {symbol: str(symbol) for symbol in symbols}

    def _placeholder(self, node, weights, graph, translator):
        place, value = self.places.index(node), node.meta["val"]
        if place in weights:
            return graph.variable(node.name, _arrays.view_of_torch(weights[place].detach()), "parameter")
        if not isinstance(value, torch.Tensor):
            return value
        if value.device.type != "cpu":
            raise RefusedError(f"an argument is on {value.device}; the backend forge takes tensors on the CPU")
        self.inputs[place] = node.name
        return graph.input(node.name, translator.dtype(value.dtype), translator.shape(value.shape))

    def _plan(self, index, result, graph, translator):
        """Where a result comes from."""
        if not isinstance(result, torch.fx.Node):
            return "constant", result
        if result.op == "placeholder":
            return "argument", self.places.index(result)
        value = translator.values[result]
        if isinstance(value, Value):
            graph.output(f"output_{index}", value)
            return "output", f"output_{index}"
        if isinstance(value, torch.SymInt):
            return "size", translator.dim(value)
        return "constant", value
