#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the recipes of README.md as models, and times the kernels that they become.

  kernels.py [--device cpu] [--threads N] [--save FOLDER] [--write] [FILTER]

Prints for each recipe how many kernels run, the time of a run, and its share of the bandwidth of a copy on the same
device, with each input and each output counted once. --save keeps the models, for forge-inspect --kernel; --write
updates the table of README.md.
"""

import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Callable

import numpy as np

import forge

HERE = pathlib.Path(__file__).resolve().parent
BYTES = {"f32": 4, "i64": 8}


class Recipe(forge.Graph):
    """A graph whose nodes are one call each"""

    def f32(self, name, *shape):
        return self.input(name, "f32", list(shape))

    def op(self, name, *operands, **attributes):
        return self.node(name, *operands, **attributes)[0]

    def number(self, value):
        return self.op("fill", value=value, dtype="f32", shape=[])

    def gradients_of(self, y, values):
        """The gradients of y, where `dy` flows back"""
        seed = self.f32("dy", *y.shape)
        for i, gradient in enumerate(self.gradients([y], [seed], values)):
            self.output(f"d{i}", gradient)


def copy(g):
    g.output("y", g.op("add", g.f32("x", 4096, 4096), g.number(1)))


def linear_relu(g):
    y = g.op("linear", g.f32("x", 1024, 784), g.f32("w", 256, 784), g.f32("b", 256))
    g.output("y", g.op("relu", y))


def relu_squared(g):
    y = g.op("relu", g.op("matmul", g.f32("x", 1024, 768), g.f32("w", 768, 3072)))
    g.output("y", g.op("mul", y, y))


def threshold_backward(g):
    x = g.f32("x", 4096, 4096)
    g.gradients_of(g.op("relu", x), [x])


def log_softmax(g):
    g.output("y", g.op("log_softmax", g.f32("x", 4096, 4096)))


def log_softmax_backward(g):
    x = g.f32("x", 4096, 1024)
    g.gradients_of(g.op("log_softmax", x), [x])


def cross_entropy(g):
    g.output("loss", g.op("cross_entropy", g.f32("scores", 4096, 1024), g.input("label", "i64", [4096])))


def cross_entropy_backward(g):
    scores = g.f32("scores", 4096, 1024)
    g.gradients_of(g.op("cross_entropy", scores, g.input("label", "i64", [4096])), [scores])


def adamw(g):
    shape = [4096, 1024]
    p, gradient, m, v = (g.f32(name, *shape) for name in ("p", "gradient", "m", "v"))

    def mixed(a, b, share):
        return g.op("add", g.op("mul", a, g.number(1 - share)), g.op("mul", b, g.number(share)))

    m, v = mixed(m, gradient, 0.1), mixed(v, g.op("mul", gradient, gradient), 0.001)
    step = g.op("div", m, g.op("add", g.op("sqrt", v), g.number(1e-8)))
    kept = g.op("mul", p, g.number(1 - 1e-3 * 0.01))
    for name, value in (("p", g.op("sub", kept, g.op("mul", step, g.number(1e-3)))), ("m", m), ("v", v)):
        g.output(f"new_{name}", value)


def layer_norm(g):
    g.output("y", g.op("layer_norm", g.f32("x", 4096, 1024), g.f32("gamma", 1024), g.f32("beta", 1024)))


def layer_norm_backward(g):
    x, gamma, beta = g.f32("x", 4096, 1024), g.f32("gamma", 1024), g.f32("beta", 1024)
    g.gradients_of(g.op("layer_norm", x, gamma, beta), [x, gamma, beta])


def rms_norm(g):
    g.output("y", g.op("rms_norm", g.f32("x", 4096, 1024), g.f32("gamma", 1024)))


def embedding_rms_norm(g):
    rows = g.op("embedding", g.f32("table", 4096, 1024), g.input("ids", "i64", [4096]))
    g.output("y", g.op("rms_norm", rows, g.f32("gamma", 1024)))


def rotary(g):
    x = g.f32("x", 8, 16, 512, 64)
    g.output("y", g.op("rotary_embedding", x, g.f32("cos", 512, 32), g.f32("sin", 512, 32)))


def attention(g):
    q, k, v = (g.f32(name, 1, 8, 1024, 64) for name in "qkv")
    g.output("y", g.op("attention", q, k, v, causal="top_left"))


def attention_backward(g):
    q, k, v = (g.f32(name, 1, 8, 1024, 64) for name in "qkv")
    g.gradients_of(g.op("attention", q, k, v, causal="top_left"), [q, k, v])


def lstm_backward(g):
    gates, weight = g.f32("gates", 64, 16, 1024), g.f32("weight", 256, 1024)
    g.gradients_of(g.op("lstm_steps", gates, weight), [gates, weight])


def max_pool_backward(g):
    x = g.f32("x", 32, 32, 56, 56)
    g.gradients_of(g.op("pool", x, kind="max", kernel=[2, 2], strides=[2, 2]), [x])


def fake_quantize_backward(g):
    x, scale = g.f32("x", 1024, 4096), g.f32("scale", 4096)
    g.gradients_of(g.op("fake_quantize", x, scale), [x, scale])


@dataclass(frozen=True)
class Entry:
    name: str
    build: Callable
    text: str


RECIPES = (
    Entry("linear + relu", linear_relu, "bias and activation in the registers of the product's tile"),
    Entry("relu squared", relu_squared, "the same with two element-wise ops behind the product"),
    Entry("threshold backward", threshold_backward, "comparison and product with dy"),
    Entry("log_softmax", log_softmax, "largest element, sum of exponentials and result of a row"),
    Entry("log_softmax backward", log_softmax_backward, "the result again, a sum of each row, the gradient"),
    Entry("cross_entropy", cross_entropy, "two numbers of each row, the score of its class and the mean"),
    Entry("cross_entropy backward", cross_entropy_backward, "the two numbers again, the softmax of them minus the one-hot row, made of its index"),
    Entry("AdamW step", adamw, "both moments and the parameter: four tensors read, three stored"),
    Entry("layer_norm", layer_norm, "mean, variance and result of a row"),
    Entry("layer_norm backward", layer_norm_backward, "layer_norm for its statistics; rows and sums of columns in one"),
    Entry("rms_norm", rms_norm, "as layer_norm, without the mean"),
    Entry("embedding + rms_norm", embedding_rms_norm, "rows are loaded by their index"),
    Entry("rotary_embedding", rotary, "products with both halves of each row"),
    Entry("attention", attention, "scores stay in the tile"),
    Entry("attention backward", attention_backward, "scores are computed again from the sums that attention keeps"),
    Entry("LSTM backward", lstm_backward, "all steps in one kernel, the weights' gradient in one product"),
    Entry("max_pool backward", max_pool_backward, "the largest element of each window is found again"),
    Entry("fake_quantize backward", fake_quantize_backward, "the rounding again, gradients of x and of the scales"),
)


def arrays_for(session, rng):
    """Inputs for a run."""
    make = {"f32": lambda shape: rng.random(shape, np.float32) + np.float32(0.5),
            "i64": lambda shape: rng.integers(0, 1000, shape)}
    return {port.name: make[port.dtype](port.shape) for port in session.inputs}


def time_run(model, options, turns=9):
    """(names of inputs, bytes of inputs and outputs, median seconds of a run)"""
    with model.session(options.device, threads=options.threads) as session:
        inputs = arrays_for(session, np.random.default_rng(0))
        ports = [*session.inputs, *session.outputs]
        size = sum(BYTES[p.dtype] * math.prod(p.shape) for p in ports)
        outputs, times = session.run(**inputs), []
        for _ in range(turns):
            begin = time.perf_counter()
            session.run(**inputs, out=outputs)
            times.append(time.perf_counter() - begin)
        return list(inputs), size, statistics.median(times)


def count_kernels(path, inputs, options):
    """How many kernels a run starts."""
    command = [options.tools / "forge-run", "--device", options.device, "--explain", "--json", path]
    for name in inputs:
        command += ["--input", f"{name}=random"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}{done.stdout}")
    return sum(step["number"] is not None for step in json.loads(done.stdout)["plan"]["steps"])


def measure(entry, folder, options):
    """(kernels, bytes, seconds)"""
    graph = Recipe()
    entry.build(graph)
    model, path = graph.finish(), folder / f"{re.sub('[^a-z]+', '_', entry.name.lower())}.bin"
    model.save(path)
    inputs, size, seconds = time_run(model, options)
    return count_kernels(path, inputs, options), size, seconds


def write_table(rows, device):
    """Replaces the table of README.md."""
    path = HERE / "README.md"
    before, mark, rest = path.read_text().partition("<!-- table -->\n")
    after = rest[rest.index("<!-- end of table -->"):]
    lines = ["| recipe | what it computes | kernels | ms | of a copy |", "|---|---|---|---|---|"]
    lines += [f"| {e.name} | {e.text} | {kernels} | {1e3 * seconds:.2f} | {share:.0%} |"
              for e, kernels, seconds, share in rows]
    path.write_text(before + mark + f"Measured on the device `{device}`.\n\n" + "\n".join(lines) + "\n" + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="", help="regular expression of names")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--tools", type=pathlib.Path, default=HERE.parents[1] / "build/release/bin",
                        help="where forge-run lies")
    parser.add_argument("--save", type=pathlib.Path, help="a folder for the models")
    parser.add_argument("--write", action="store_true", help="update README.md")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.save or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        _, size, seconds = measure(Entry("copy", copy, ""), folder, options)
        bandwidth = size / seconds
        print(f"{'copy':24} {size / 1e6:8.1f} MB {1e3 * seconds:9.2f} ms  {bandwidth / 1e9:6.1f} GB/s")
        for entry in RECIPES:
            if not re.search(options.filter, entry.name):
                continue
            kernels, size, seconds = measure(entry, folder, options)
            share = size / seconds / bandwidth
            rows.append((entry, kernels, seconds, share))
            print(f"{entry.name:24} {size / 1e6:8.1f} MB {1e3 * seconds:9.2f} ms  {share:6.0%} of a copy, "
                  f"{kernels} kernel{'s' if kernels != 1 else ''}", flush=True)
    if options.write:
        write_table(rows, options.device)


if __name__ == "__main__":
    main()
