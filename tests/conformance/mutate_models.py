#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs models that are valid but for a change or two: another operand, attribute, constant or input.

  tests/conformance/mutate_models.py                                     2,000 models on the reference
  tests/conformance/mutate_models.py --models 20000 --first 5000 --device vulkan
  tests/conformance/mutate_models.py --models 1 --first 4711             one of them again

Model N is made from seed N: a node of an imported operator as the differential test draws it, then changed. It must run,
or be refused with a sentence; a crash, another exception, and a run of more than a minute are findings. Each part of the
models runs in a process with at most 6 GiB of memory, and what needs more is refused by the system.

Exit status: 1 there are findings, 77 there is no environment of tools/fetch-models --oracle.
"""

import argparse
import copy
import os
import pathlib
import resource
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
import in_oracle  # noqa: E402,F401  isort: skip

os.environ.setdefault("FORGE_LIBRARY", str(ROOT / "build/release/lib/libforge.so"))

import differential  # noqa: E402
import numpy as np  # noqa: E402
import random_graph  # noqa: E402
from onnx import AttributeProto, TensorProto, helper, numpy_helper  # noqa: E402
from operand_kinds import KINDS  # noqa: E402

MEMORY = 6 << 30  # bytes
SECONDS = 60  # of one model
INTEGERS = [-1, 0, 1, 2, 3, 7, -2, 64, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 62, -(1 << 63), (1 << 63) - 1]
NUMBERS = [0.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e30, -1e-30]
# What the models take beside their own inputs, as values of each kind.
PREFIX, SEED_INPUT = "kind_", "kind_x"


class Mutation:
    """A model and its inputs, changed in place."""

    def __init__(self, model, feeds, rng):
        self.model, self.feeds, self.rng = model, feeds, rng

    def choose(self, options):
        return options[int(self.rng.integers(0, len(options)))]

    def change(self):
        """Changes one thing."""
        graph, node = self.model.graph, self.choose(self.model.graph.node)
        draw = self.rng.random()
        if draw < 0.4 and node.input:
            node.input[int(self.rng.integers(0, len(node.input)))] = self._other_operand()
        elif draw < 0.75 and node.attribute:
            self._change_attribute(self.choose(node.attribute))
        elif graph.initializer and self.rng.random() < 0.7:
            tensor = self.choose(graph.initializer)
            tensor.CopyFrom(numpy_helper.from_array(self._other_array(numpy_helper.to_array(tensor)), tensor.name))
        elif self.feeds:
            name = self.choose(list(self.feeds))
            self.feeds[name] = self._other_array(self.feeds[name])

    def _other_operand(self):
        return PREFIX + self.choose(list(KINDS)) if self.rng.random() < 0.8 else ""

    def _change_attribute(self, attribute):
        if attribute.type == AttributeProto.INT:
            attribute.i = self.choose(INTEGERS)
        elif attribute.type == AttributeProto.INTS and attribute.ints and self.rng.random() < 0.6:
            attribute.ints[int(self.rng.integers(0, len(attribute.ints)))] = self.choose(INTEGERS)
        elif attribute.type == AttributeProto.INTS and attribute.ints and self.rng.random() < 0.5:
            attribute.ints.pop()
        elif attribute.type == AttributeProto.INTS:
            attribute.ints.append(self.choose(INTEGERS))
        elif attribute.type == AttributeProto.FLOAT:
            attribute.f = self.choose(NUMBERS)
        elif attribute.type == AttributeProto.STRING:
            attribute.s = self.choose([b"", b"x", b"\xff\xfe"])

    def _other_array(self, array):
        """With another element, or fewer of them."""
        array = array.copy()
        if array.dtype.kind not in "iuf" or not array.size or self.rng.random() < 0.2:
            return array.reshape(-1)[:max(1, array.size // 2)]
        at = int(self.rng.integers(0, array.size))
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                array.reshape(-1)[at] = self.choose(NUMBERS)
        else:
            limits = np.iinfo(array.dtype)
            array.reshape(-1)[at] = min(max(self.choose(INTEGERS), limits.min), limits.max)
        return array

    def add_kinds(self):
        """Defines the values of other kinds, where a node reads one."""
        graph = self.model.graph
        if not any(name.startswith(PREFIX) for node in graph.node for name in node.input):
            return
        nodes, made = list(graph.node), []
        for kind in KINDS.values():
            node = copy.deepcopy(kind)
            for names in (node.input, node.output):
                names[:] = [SEED_INPUT if name == "x" else PREFIX + name for name in names]
            made.append(node)
        del graph.node[:]
        graph.node.extend(made + nodes)
        graph.input.append(helper.make_tensor_value_info(SEED_INPUT, TensorProto.FLOAT, ["kind_n", "kind_m"]))
        self.feeds[SEED_INPUT] = np.array([[1, 2], [3, 0]], np.float32)


def make(seed, rows):
    """(operator, model, inputs) of a seed; None where onnxruntime refuses what was drawn."""
    operator, opsets = rows[seed % len(rows)]
    rng = np.random.default_rng(seed)
    graph = random_graph.Graph(rng, int(rng.integers(opsets.start, opsets.stop)))
    if not graph.grow(operator):
        return None
    graph.choose_outputs()
    mutation = Mutation(graph.model(), graph.feeds(), rng)
    for _ in range(int(rng.integers(1, 3))):
        mutation.change()
    mutation.add_kinds()
    return operator, mutation.model, mutation.feeds


def run_models(first, end, device):
    """Runs them one after another, and prints each before it begins."""
    import forge

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    operators = {k: v for k, v in differential.imported_operators().items() if k not in differential.NO_ORACLE}
    rows = differential.targets(operators)
    for seed in range(first, end):
        made = make(seed, rows)
        if made is None:
            continue
        operator, model, feeds = made
        print(f"model {seed}: {operator}", flush=True)
        signal.alarm(SECONDS)
        try:
            session = forge.load(model.SerializeToString()).session(device)
            session.run({name: array for name, array in feeds.items() if any(p.name == name for p in session.inputs)})
        except (forge.Error, MemoryError):
            pass
    signal.alarm(0)
    print("done")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--device", default="reference")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    first, end = options.first, options.first + options.models
    if options.inside:
        run_models(first, end, options.device)
        return 0
    findings = 0
    while first < end:
        command = [sys.executable, __file__, "--inside", "--device", options.device, "--first", str(first), "--models",
                   str(end - first)]
        child = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        begun = [line for line in child.stdout.splitlines() if line.startswith("model ")]
        if child.returncode == 0:
            break
        if not begun:
            sys.exit(f"mutate_models: {child.stderr}")
        findings += 1
        why = "took too long" if child.returncode == -signal.SIGALRM else f"exit status {child.returncode}"
        print(f"{begun[-1]}: {why}; {''.join(child.stderr.strip().splitlines()[-1:])}", flush=True)
        first = int(begun[-1].split()[1].rstrip(":")) + 1
    print(f"{options.models} models on {options.device}: {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
