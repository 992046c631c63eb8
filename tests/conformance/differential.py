#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Forge with onnxruntime on random ONNX graphs.

  tests/conformance/differential.py                                      200 graphs
  tests/conformance/differential.py --graphs 10000 --first 1000          a long run
  tests/conformance/differential.py --graphs 1 --first 4711              one graph again

Graph N is made from seed N alone. Each begins with one imported operator at one of the opsets where its meaning
changes, in turns, so that a few hundred graphs have all of them; the rest of the graph is random. A graph that fails
is cut down and saved in --out as NAME.onnx with its inputs NAME.npz. Runs in the environment that
tools/fetch-models --oracle makes.

Exit status: 1 there are findings, or an imported operator is in no graph; 77 there is no such environment.
"""

import argparse
import collections
import os
import pathlib
import re
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
ORACLE = CACHE / "forge" / "oracle-venv"
if pathlib.Path(sys.prefix).resolve() != ORACLE.resolve():
    if not (ORACLE / "forge-stamp").exists():
        print("differential: skipped: tools/fetch-models --oracle has not run")
        sys.exit(77)
    os.execv(ORACLE / "bin" / "python", [str(ORACLE / "bin" / "python"), *sys.argv])

import numpy as np  # noqa: E402
import onnx  # noqa: E402

sys.path.insert(0, str(ROOT / "tests" / "support"))
import forge_library  # noqa: E402
import graph_operators  # noqa: E402
import random_graph  # noqa: E402

OLDEST_OPSET, NEWEST_OPSET = 7, 23  # of which onnxruntime has kernels, and of which Forge has tests

# What Forge refuses and says why, where onnxruntime runs: (operator, pattern of the message).
REFUSALS = [
    ("ReduceMean", r"the mean of [iu]\d+ is not an integer"),
]

# Of which onnxruntime has no kernel, or none in the versions of the graphs.
NO_ORACLE = {"ImageDecoder", "ai.onnx.ml.TreeEnsemble", "com.microsoft.NhwcConv", "com.microsoft.QLinearReduceMean"}


def imported_operators():
    """{operator: versions} of docs/support.md, which the build keeps current."""
    text = (ROOT / "docs" / "support.md").read_text(encoding="utf-8").split("## ONNX operators")[1]
    rows = re.findall(r"^\| ([A-Za-z]\w*|com\.microsoft\.\w+|ai\.onnx\.ml\.\w+) \| ([\d, ]+) \|$", text, flags=re.M)
    return {name: [int(v) for v in versions.split(",")] for name, versions in rows}


def targets(operators):
    """(operator, opsets in which one of its versions holds), for those that onnxruntime has."""
    out = []
    for name, versions in operators.items():
        for version, following in zip(versions, versions[1:] + [NEWEST_OPSET + 1]):
            opsets = range(max(version, OLDEST_OPSET), following)
            gone = {"Scatter": 11, "Upsample": 10}
            opsets = range(opsets.start, min(opsets.stop, gone.get(name, opsets.stop)))
            if opsets:
                out.append((name, opsets))
    return out


def compare(wanted, got, tolerance):
    """What differs, in words; None where nothing does.

    tolerance: of each element; infinite where the graph does not determine it.
    """
    if wanted.dtype != got.dtype or wanted.shape != got.shape:
        return f"{got.dtype}{list(got.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if wanted.size == 0:
        return None
    exact = np.isinf(tolerance)
    if wanted.dtype.kind != "f":
        wrong = (wanted != got) & ~exact
        if wrong.any() and wanted.dtype.kind in "iu":
            wrong &= np.abs(wanted.astype(np.float64) - got.astype(np.float64)) > tolerance
    else:
        a, b = wanted.astype(np.float64), got.astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= tolerance
        wrong = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)) | exact)
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wanted.size} elements, first {list(at)}: {got[at]} instead of {wanted[at]}"


class Checker:
    """Runs graphs on the devices."""

    def __init__(self, devices, library):
        self.forge = forge_library.Forge(library, ROOT / "runtime" / "forge.h")
        self.devices = devices
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None)
        self.refusals = collections.Counter()

    def check(self, graph, devices=None):
        """The first (device, finding) of the graph, or None."""
        path = pathlib.Path(self.folder.name) / "graph.onnx"
        onnx.save(graph.model(), path)
        feeds = graph.feeds()
        try:
            model = self.forge.load(path)
        except forge_library.ForgeError as error:
            return self._refused("import", graph, error)
        try:
            for device in devices or self.devices:
                if finding := self._run(model, device, graph, feeds):
                    return device, finding
        finally:
            self.forge.model_free(model)
        return None

    def _run(self, model, device, graph, feeds):
        try:
            results = self.forge.run(model, device, feeds)
        except forge_library.ForgeError as error:
            refused = self._refused(device, graph, error)
            return refused and refused[1]
        for value, got in zip(graph.outputs(), results):
            if difference := compare(value.array, got, value.tolerance()):
                return f"output {value.name} of {value.made_by}: {difference}"
        return None

    def _refused(self, where, graph, error):
        message = str(error)
        names = {op for node in graph.nodes for op in node.operators()}
        for operator, pattern in REFUSALS:
            if re.search(pattern, message) and (not operator or operator in names):
                self.refusals[pattern] += 1
                return None
        return where, f"error {error.code}: {message}"


def cut_down(checker, graph, found):
    """The smallest graph found that still fails on the device."""
    device, finding = found
    progress = True
    while progress:
        progress = False
        for smaller in graph.simpler():
            result = checker.check(smaller, [device] if device != "import" else None)
            if result and ("elements" in result[1]) == ("elements" in finding):
                graph, finding, progress = smaller, result[1], True
                break
    return graph, finding


def save(graph, name, folder):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.onnx"
    onnx.save(graph.model(), path)
    np.savez(folder / f"{name}.npz", **graph.feeds())
    return path


def make_graph(seed, rows):
    operator, opsets = rows[seed % len(rows)]
    rng = np.random.default_rng(seed)
    graph = random_graph.Graph(rng, int(rng.integers(opsets.start, opsets.stop)))
    graph.grow(operator)
    usable = [name for name, opsets in rows if graph.opset in opsets]
    for _ in range(int(rng.integers(0, 6))):
        graph.grow(usable[int(rng.integers(0, len(usable)))])
    graph.choose_outputs()
    return graph


def run(options):
    operators = imported_operators()
    missing = [name for name in operators if name not in graph_operators.GENERATORS and name not in NO_ORACLE]
    if missing:
        sys.exit(f"differential: no generator for {', '.join(missing)}: add them to graph_operators.py")
    rows = targets({name: versions for name, versions in operators.items() if name not in NO_ORACLE})
    checker = Checker(options.device or ["reference", "cpu", "vulkan"], options.library)
    findings, seen, began = 0, collections.Counter(), time.monotonic()
    for seed in range(options.first, options.first + options.graphs):
        if (done := seed - options.first) % 500 == 0 and done:
            print(f"{done} graphs, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        graph = make_graph(seed, rows)
        if not graph.nodes:
            continue
        seen.update(op for node in graph.nodes for op in node.operators())
        found = checker.check(graph)
        if not found:
            continue
        findings += 1
        small, finding = cut_down(checker, graph, found)
        path = save(small, f"graph{seed}", options.out)
        print(f"graph {seed} (opset {graph.opset}) on {found[0]}: {finding}\n  {small.text()}\n  saved as {path}; "
              f"repeat with: {sys.argv[0]} --graphs 1 --first {seed}", flush=True)
    never = sorted({name for name, _ in rows if not seen[name]})
    print(f"{options.graphs} graphs, {sum(seen.values())} nodes of {len(seen)} operators on "
          f"{', '.join(checker.devices)}: {findings} findings, {sum(checker.refusals.values())} known refusals, "
          f"{time.monotonic() - began:.0f} s")
    if never and options.graphs >= len(rows):
        print(f"in no graph: {', '.join(never)}")
        return 1
    return 1 if findings else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--device", action="append", help="repeatable; default: reference, cpu and vulkan")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/release/lib/libforge.so")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/differential", help="for graphs that fail")
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
