#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs an ONNX model in onnxruntime on random inputs and saves what went in and what came out.

  make_oracle.py MODEL.onnx OUT_DIR --input x=6,3,48,192:7
  make_oracle.py MODEL.onnx OUT_DIR --input ids=1,16:7 --input mask=1,16:8:0..1

OUT_DIR gets NAME.npy for each input and output, where any character of the name other than letters,
digits and ._:- becomes _, and then oracle.json, which lists them with the latency in milliseconds.
Floats are uniform in [-1, 1), integers in [0, 256) or what of that the type holds, or in the range
given, its end included for integers. Runs in the environment that tools/fetch-models --oracle makes.

Exit status: 1 the run failed, 2 bad usage, 3 the model cannot be loaded.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys
import time

import numpy as np
import onnxruntime

THREADS = 2
DTYPES = {
    "tensor(float16)": np.float16,
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int8)": np.int8,
    "tensor(int16)": np.int16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}


class Failure(Exception):
    """An error to show as one sentence, with the exit status it deserves."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def parse_input(text):
    """Name, shape, seed and range of NAME=SHAPE[:SEED[:LOW..HIGH]]; names may hold "=" and ":"."""
    number = r"-?[0-9]+(?:\.[0-9]+)?"
    pattern = rf"(.+)=([0-9]+(?:,[0-9]+)*)?(?::([0-9]+)(?::({number})\.\.({number}))?)?"
    match = re.fullmatch(pattern, text, re.DOTALL)
    if not match:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not NAME=SHAPE[:SEED[:LOW..HIGH]], like x=1,3,48,192:7"
        )
    name, shape, seed, low, high = match.groups()
    shape = tuple(int(n) for n in shape.split(",")) if shape else ()
    return name, shape, int(seed or 0), (float(low), float(high)) if low else None


def file_name(name):
    """The file for the tensor `name`."""
    return re.sub(r"[^A-Za-z0-9._:-]", "_", name) + ".npy"


def random_array(dtype, shape, seed, bounds):
    """Random values of `dtype`, the same for the same seed."""
    rng = np.random.default_rng(seed)
    if dtype is np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        low, high = bounds or (-1, 1)
        return np.asarray(rng.uniform(low, high, shape), dtype)
    low, high = bounds or (0, min(255, np.iinfo(dtype).max))
    return rng.integers(int(low), int(high), shape, dtype, endpoint=True)


def make_inputs(session, requested):
    """The feed dictionary of random arrays; every input of the model must be requested once."""
    types = {value.name: value.type for value in session.get_inputs()}
    names = [name for name, *_ in requested]
    if sorted(names) != sorted(types):
        raise Failure(2, f"inputs given: {', '.join(names)}; the model has: {', '.join(types)}")
    unknown = [f"{name} ({types[name]})" for name in names if types[name] not in DTYPES]
    if unknown:
        raise Failure(2, f"no random values for {', '.join(unknown)}")
    return {name: random_array(DTYPES[types[name]], *how) for name, *how in requested}


def measure(session, feeds, repeat, warmup):
    """Outputs of the first run, and the latency of `repeat` runs after `warmup` others."""
    first = session.run(None, feeds)
    for _ in range(warmup):
        session.run(None, feeds)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(1e3 * (time.perf_counter() - start))
    latency = {"min": min(times), "median": statistics.median(times), "runs": repeat}
    return first, latency


def save_arrays(folder, arrays):
    """Writes {name: array} as .npy files; returns their entries for oracle.json."""
    entries = []
    for name, array in arrays.items():
        np.save(folder / file_name(name), array)
        entry = {"name": name, "dtype": array.dtype.name, "shape": list(array.shape)}
        entries.append(entry | {"file": file_name(name)})
    return entries


def load_session(path):
    """An onnxruntime session on two CPU threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no common public base.
        raise Failure(3, f"{path}: {error}") from error


def make_oracle(args):
    """Does the work of the command line `args`."""
    session = load_session(args.model)
    feeds = make_inputs(session, args.input)
    names = [value.name for value in session.get_outputs()]
    files = [file_name(name) for name in [*feeds, *names]]
    if len(set(files)) != len(files):
        raise Failure(1, f"two tensors would share a file: {', '.join(sorted(files))}")
    try:
        outputs, latency = measure(session, feeds, args.repeat, args.warmup)
    except Exception as error:
        raise Failure(1, f"{args.model}: {error}") from error
    folder = pathlib.Path(args.out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    report = {
        "model": pathlib.Path(args.model).name,
        "onnxruntime": onnxruntime.__version__,
        "threads": THREADS,
        "inputs": save_arrays(folder, feeds),
        "outputs": save_arrays(folder, dict(zip(names, outputs))),
        "latency_ms": latency,
    }
    (folder / "oracle.json").write_text(json.dumps(report, indent=2) + "\n")
    print(f"{folder}: median {latency['median']:.3f} ms, min {latency['min']:.3f} ms")


def main():
    parser = argparse.ArgumentParser(
        prog="make_oracle",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("out_dir", metavar="OUT_DIR")
    parser.add_argument(
        "--input", metavar="NAME=SHAPE[:SEED[:LOW..HIGH]]", type=parse_input, action="append", default=[]
    )
    parser.add_argument("--repeat", type=int, default=20, help="timed runs, at least 1")
    parser.add_argument("--warmup", type=int, default=3, help="runs before them")
    args = parser.parse_args()
    if args.repeat < 1 or args.warmup < 0:
        parser.error("--repeat must be at least 1 and --warmup at least 0")
    try:
        make_oracle(args)
    except Failure as failure:
        print(f"make_oracle: error: {failure}", file=sys.stderr)
        return failure.status
    except OSError as error:
        print(f"make_oracle: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
