#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a model on a device beside onnxruntime, in turns, with the same number of threads.

  ~/.cache/forge/oracle-venv/bin/python tests/conformance/time_onnxruntime.py MODEL.onnx x=1x3x48x192
  ... time_onnxruntime.py minilm.onnx input_ids=1x256:30522 attention_mask=1x256:2 token_type_ids=1x256:2

The virtual environment is the one of tools/fetch-models --oracle.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]


def time_onnxruntime(session, feeds, runs):
    for _ in range(10):
        session.run(None, feeds)
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def time_creation(options, settings):
    """Milliseconds to make a session from the model's file, the median of as many as there are turns."""
    times = []
    for _ in range(options.turns):
        begin = time.perf_counter()
        onnxruntime.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"])
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def open_dimensions(session, shapes):
    """Forge's names of the dimensions that the model leaves open."""
    for info in session.get_inputs():
        for axis, extent in enumerate(info.shape):
            if isinstance(extent, int):
                continue
            named = extent and extent != "?"
            yield (extent if named else f"{info.name}.{axis}"), shapes[info.name][axis]


def random_input(info, shape, limit, random):
    """Numbers below the limit for integers; standard normal ones for floats."""
    if "int" in info.type:
        dtype = info.type.removeprefix("tensor(").removesuffix(")")
        return random.integers(0, limit, shape).astype(dtype)
    return random.standard_normal(shape, dtype=numpy.float32)


def time_forge(options, files, dims):
    command = [options.forge_run, "--device", options.device, "--threads", str(options.threads),
               options.model, "--repeat", str(options.runs), "--warmup", "10", "--json"]
    for name, file in files.items():
        command += ["--input", f"{name}={file}"]
    for name, extent in dims.items():
        command += ["--dim", f"{name}={extent}"]
    out = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    return out["latency_ms"]["median"], out["load_ms"] + out["compile_ms"]


def compare(options, session, settings, feeds, folder):
    files = {name: folder / f"{i}.npy" for i, name in enumerate(feeds)}
    for name, file in files.items():
        numpy.save(file, feeds[name])
    shapes = {name: value.shape for name, value in feeds.items()}
    dims = dict(open_dimensions(session, shapes))
    print(f"medians of {options.runs} runs in ms, {options.threads} threads")
    print(f"turn   onnxruntime {onnxruntime.__version__}   forge {options.device}   ratio")
    ratios, creations = [], []
    for turn in range(options.turns):
        theirs = time_onnxruntime(session, feeds, options.runs)
        ours, creation = time_forge(options, files, dims)
        ratios.append(ours / theirs)
        creations.append(creation)
        print(f"{turn:4}   {theirs:18.3f}   {ours:9.3f}   {ratios[-1]:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f}")
    print(f"session creation: onnxruntime {time_creation(options, settings):.0f} ms, "
          f"forge {statistics.median(creations):.0f} ms (reading the file, and compiling for these shapes)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("inputs", nargs="+", help="NAME=1x3x48x192, or NAME=1x256:30522 for integers below 30522")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--forge-run", default=str(ROOT / "build/release/bin/forge-run"))
    options = parser.parse_args()

    shapes, limits = {}, {}
    for text in options.inputs:
        name, shape = text.rsplit("=", 1)
        shape, _, limit = shape.partition(":")
        shapes[name], limits[name] = [int(n) for n in shape.split("x")], int(limit or 2)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    session = onnxruntime.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"])
    random = numpy.random.default_rng(1)
    feeds = {info.name: random_input(info, shapes[info.name], limits[info.name], random)
             for info in session.get_inputs()}
    with tempfile.TemporaryDirectory() as folder:
        compare(options, session, settings, feeds, pathlib.Path(folder))


if __name__ == "__main__":
    main()
