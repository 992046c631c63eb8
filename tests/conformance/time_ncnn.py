#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a model with one f32 input on a Vulkan device beside ncnn, in turns.

  python3 -m venv V && V/bin/pip install numpy ncnn==1.0.20261020 && V/bin/pip install --no-deps pnnx==20261020
  V/bin/python tests/conformance/time_ncnn.py ~/.cache/forge/models/ppocr-det.onnx 1x3x640x640

pnnx converts the ONNX file for this shape, in f32. Both run on the first Vulkan device of the loader
with the same numbers as input; the answers are compared, since a peer that is wrong is no peer.
"""
import argparse
import importlib.util
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import ncnn
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]


def convert(model, shape, folder):
    """The path of the converted model, without its suffixes."""
    copy = folder / "model.onnx"
    copy.write_bytes(pathlib.Path(model).expanduser().read_bytes())
    # The package itself wants torch, its program does not.
    converter = pathlib.Path(importlib.util.find_spec("pnnx").origin).parent / "pnnx"
    converter.chmod(0o755)
    text = ",".join(str(extent) for extent in shape)
    subprocess.run([converter, copy.name, f"inputshape=[{text}]f32", "fp16=0"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "model.ncnn"


def load(path, threads):
    net = ncnn.Net()
    net.opt.use_vulkan_compute = True
    net.opt.num_threads = threads
    for name in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
        setattr(net.opt, name, False)
    net.load_param(f"{path}.param")
    net.load_model(f"{path}.bin")
    return net


def run_ncnn(net, x):
    with net.create_extractor() as extractor:
        extractor.input("in0", ncnn.Mat(x[0]).clone())
        return numpy.array(extractor.extract("out0")[1])


def time_ncnn(net, x, runs):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        run_ncnn(net, x)
        times.append(time.perf_counter() - begin)
    return times


def run_forge(options, x, folder):
    """What forge-run says, and the first output."""
    numpy.save(folder / "x.npy", x)
    command = [options.forge_run, "--device", "vulkan", "--threads", str(options.threads), options.model,
               "--input", str(folder / "x.npy"), "--repeat", str(options.runs), "--warmup", "1", "--json",
               "--output-dir", str(folder / "out")]
    out = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    return out, numpy.load(out["outputs"][0]["file"])


def compare(options, shape, folder):
    x = numpy.random.default_rng(1).standard_normal(shape, dtype=numpy.float32)
    path = convert(options.model, shape, folder)
    begin = time.perf_counter()
    net = load(path, options.threads)
    theirs = run_ncnn(net, x)
    first = time.perf_counter() - begin
    said, ours = run_forge(options, x, folder)
    difference = numpy.linalg.norm(ours.ravel() - theirs.ravel()) / numpy.linalg.norm(ours)
    print(f"{said['device']}: loading and first run: ncnn {first * 1e3:.0f} ms, forge "
          f"{said['load_ms'] + said['compile_ms'] + said['first_ms']:.0f} ms (kernels compiled {said['kernels_compiled']}, "
          f"from the cache {said['kernels_cached']}); relative difference of the answers {difference:.1e}")
    print(f"medians (lowest) of {options.runs} runs in ms\nturn        ncnn {ncnn.__version__:16}   forge              ratio")
    ratios = []
    for turn in range(options.turns):
        times = [t * 1e3 for t in time_ncnn(net, x, options.runs)]
        latency = run_forge(options, x, folder)[0]["latency_ms"]
        ratios.append(latency["median"] / statistics.median(times))
        print(f"{turn:4}   {statistics.median(times):10.2f} ({min(times):8.2f})   {latency['median']:10.2f} ({latency['min']:8.2f})"
              f"   {ratios[-1]:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("shape", help="of the input: 1x3x640x640")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--forge-run", default=str(ROOT / "build/release/bin/forge-run"))
    options = parser.parse_args()
    shape = [int(extent) for extent in options.shape.split("x")]
    with tempfile.TemporaryDirectory() as folder:
        compare(options, shape, pathlib.Path(folder))


if __name__ == "__main__":
    main()
