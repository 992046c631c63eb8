#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantises real models with onnxruntime's own quantiser, and compares Forge with onnxruntime on them.

  tests/conformance/quantised_models.py                     cpu and vulkan
  tests/conformance/quantised_models.py --device reference --device cpu
  tests/conformance/quantised_models.py --time              also times the CPU and onnxruntime, in turns

PP-OCR's recognition network and MiniLM, quantised dynamically, statically with QDQ pairs, and statically with operators
on quantised tensors. Weights have seven bits: processors without VNNI add pairs of products in 16 bits, which saturate.
A step of a quantised activation that is rounded otherwise moves everything behind it, so errors are allowed as large as
onnxruntime's own: between its optimised graph and the plain one, and where inputs and weights differ by rounding.

Exit status: 1 a device differs, 77 the environment of tools/fetch-models --oracle is absent.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
import in_oracle  # noqa: E402,F401  isort: skip

os.environ.setdefault("FORGE_LIBRARY", str(ROOT / "build/release/lib/libforge.so"))

import logging  # noqa: E402

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnxruntime import quantization  # noqa: E402

import forge  # noqa: E402

BATCH = 2
# Of ||x - r|| / ||r||: where no activation is quantised, and where results of 8 bits may be rounded to the next step.
SMALLEST_BOUND, STEP_BOUND = 1e-5, 2e-2


def feeds_of(name, rng):
    if name == "minilm":
        return {"input_ids": rng.integers(1000, 30000, (BATCH, 16)), "attention_mask": np.ones((BATCH, 16), np.int64),
                "token_type_ids": np.zeros((BATCH, 16), np.int64)}
    return {"x": rng.uniform(-1, 1, (BATCH, 3, 48, 160)).astype(np.float32)}


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, name):
        rng = np.random.default_rng(5)
        self.feeds = iter([feeds_of(name, rng) for _ in range(4)])

    def get_next(self):
        return next(self.feeds, None)


def with_initialisers(path, to):
    """Constant nodes as initialisers, which is where the quantiser looks for weights."""
    model = onnx.load(path)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type != "Constant":
            model.graph.node.append(node)
            continue
        tensor = model.graph.initializer.add()
        tensor.CopyFrom(node.attribute[0].t)
        tensor.name = node.output[0]
    onnx.save(model, to)
    return to


def quantise(name, folder):
    """{way: path}"""
    path = subprocess.run([ROOT / "tools/fetch-models", name], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.split()[-1]
    plain = with_initialisers(path, folder / f"{name}.onnx")
    weights = {"weight_type": quantization.QuantType.QInt8, "reduce_range": True}
    made = {"plain": plain} | {way: folder / f"{name}-{way}.onnx" for way in ("dynamic", "qdq", "operators")}
    quantization.quantize_dynamic(plain, made["dynamic"], **weights)
    for way, form in (("qdq", quantization.QuantFormat.QDQ), ("operators", quantization.QuantFormat.QOperator)):
        quantization.quantize_static(plain, made[way], Calibration(name), quant_format=form,
                                     activation_type=quantization.QuantType.QUInt8, **weights)
    return made


def oracle(path, optimised=False):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # Forge is timed in between
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def distance(got, wanted):
    return max(float(np.linalg.norm(a.astype(np.float64) - b) / np.linalg.norm(b)) for a, b in zip(got, wanted))


def nudged_inputs(feeds):
    return {name: x * np.float32(1 + 1e-6) if x.dtype == np.float32 else x for name, x in feeds.items()}


def nudged_weights(path, to):
    """The model with weights that differ by rounding; those that are integers, and scales, are kept."""
    model, rng = onnx.load(path), np.random.default_rng(3)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and np.prod(tensor.dims) > 1:
            array = onnx.numpy_helper.to_array(tensor)
            noise = (1 + 1e-6 * rng.uniform(-1, 1, array.shape)).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array * noise, tensor.name))
    onnx.save(model, to)
    return to


def milliseconds(runs, turns=15):
    """The best time of each, in turns."""
    best = [float("inf")] * len(runs)
    for _ in range(turns):
        for i, run in enumerate(runs):
            began = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - began)
    return [1e3 * t for t in best]


def compare(name, folder, options):
    wrong = 0
    for way, path in quantise(name, folder).items():
        feeds = feeds_of(name, np.random.default_rng(11))
        run, optimised = oracle(path), oracle(path, optimised=True)
        wanted = run(feeds)
        others = [run(nudged_inputs(feeds)), optimised(feeds), oracle(nudged_weights(path, folder / "nudged.onnx"))(feeds)]
        own = max(distance(other, wanted) for other in others)
        bound = max(STEP_BOUND if way in ("qdq", "operators") else SMALLEST_BOUND, 4 * own)
        for device in options.device or ["cpu", "vulkan"]:
            session = forge.load(str(path)).session(device=device)
            error = distance(list(session.run(feeds).values()), wanted)
            wrong += not error <= bound
            print(f"{name:<12} {way:<10} {device:<10} {error:.1e}, allowed {bound:.1e}{'' if error <= bound else '  WRONG'}",
                  flush=True)
        if options.time:
            session = forge.load(str(path)).session(device="cpu")
            ours, theirs = milliseconds([lambda: session.run(feeds), lambda: optimised(feeds)])
            print(f"{name:<12} {way:<10} cpu {ours:.1f} ms, onnxruntime {theirs:.1f} ms")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", action="append", help="repeatable; default: cpu and vulkan")
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    onnxruntime.set_default_logger_severity(4)
    with tempfile.TemporaryDirectory() as folder:
        return 1 if sum(compare(name, pathlib.Path(folder), options) for name in ("ppocr-rec", "minilm")) else 0


if __name__ == "__main__":
    sys.exit(main())
