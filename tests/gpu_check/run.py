#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks Forge on the GPU of this machine: results against the reference, and times.

  ./run                      everything, in under 8 minutes
  ./run --parts devices,ops  some parts: devices, ops, vulkan, instructions, models, peaks, products, kernels,
                             latencies, torch
  ./run --output FOLDER      where gpu_check.md, gpu_check.json and the logs go; default: gpu_check
  ./run --software           takes devices that compute on the processor for GPUs, to try this program
  ./run --parts ops --filter 'AllDevices/*vulkan*' --seconds 100
                             only these tests of the op cases, for so long
  ./run --without-nvrtc      only CUDA kernels that pack has compiled before, as on a machine with a driver alone

tests/gpu_check/pack has made this folder. Nothing is installed. A part that needs a device which is not here is
reported as not run. NVRTC and cuBLASLt are found as FORGE_CUDA_PATH says, or in the packages of this Python.

Exit status: 0 all that could run passed; 1 something failed; 2 bad usage.
"""

import argparse
import atexit
import collections
import concurrent.futures
import datetime
import importlib.util
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SHARDS = max(2, min(16, os.cpu_count() or 2))
# Bindings of the models' open dimensions.
DETECTION = "p2o.DynamicDimension.{}"
MODELS = {
    "magika": {"unk__214": 1},
    "basic-pitch": {"unk__749": 1},
    "ppocr-cls": {"x.0": 1, "x.2": 48, "x.3": 192},
    "ppocr-det": {DETECTION.format(0): 1, DETECTION.format(1): 640, DETECTION.format(2): 640},
    "ppocr-rec": {DETECTION.format(0): 1, "x.2": 48, DETECTION.format(1): 320},
    "minilm": {"batch": 1, "sequence": 16},
    "minilm 32x256": {"batch": 32, "sequence": 256},
}
MINILM_BYTES = 90868376  # of its weights, which do not travel
PRODUCTS = [f"matmul({t}[{n}, {n}], {t}[{n}, {n}])" for t, n in
            (("f16", 1024), ("f16", 4096), ("bf16", 4096), ("f32", 512), ("f32", 1024), ("f32", 2048))]
PRODUCTS += ["matmul(f32[1, 4096], f32[4096, 4096])"]
KERNELS = [
    "softmax(f32[4096, 4096])",
    "layer_norm(f32[1024, 384], f32[384], f32[384])",
    "reduce{axes = [0]}(f32[4096, 4096])",
    "reduce{axes = [1]}(f32[4096, 4096])",
    "attention(f32[12, 256, 32], f32[12, 256, 32], f32[12, 256, 32])",
    "attention(f32[8, 1024, 64], f32[8, 1024, 64], f32[8, 1024, 64])",
    "attention(f16[8, 1024, 64], f16[8, 1024, 64], f16[8, 1024, 64])",
    "conv{padding = [1, 1, 1, 1]}(f32[1, 64, 56, 56], f32[64, 64, 3, 3])",
]


class Part:
    """What one part found: a state, a line, and rows of a table."""

    def __init__(self, name, state="passed", text="", rows=()):
        self.name, self.state, self.text, self.rows = name, state, text, list(rows)


class Check:
    def __init__(self, forge, output, options):
        self.forge, self.output, self.software = forge, output, options.software
        self.filter, self.seconds = options.filter, options.seconds
        self.environment = dict(os.environ)
        self.environment["LD_LIBRARY_PATH"] = f"{forge}/libraries:" + os.environ.get("LD_LIBRARY_PATH", "")
        self.environment["XDG_CACHE_HOME"] = str(forge / "cache")
        if options.without_nvrtc:
            self.environment["FORGE_CUDA_PATH"] = str(forge / "nothing")
        elif "FORGE_CUDA_PATH" not in os.environ:
            package = importlib.util.find_spec("nvidia")
            if package and package.submodule_search_locations:
                self.environment["FORGE_CUDA_PATH"] = str(pathlib.Path(list(package.submodule_search_locations)[0]).parent)
        self.devices = []

    def run(self, program, arguments, seconds, environment=None):
        """Runs a program of the folder; returns its status (None: too slow) and its output."""
        command = [str(self.forge / "bin" / program), *arguments]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, text=True,
                                  errors="replace", env={**self.environment, **(environment or {})})
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired as e:
            text = e.stdout or b""
            return None, text if isinstance(text, str) else text.decode(errors="replace")

    def log(self, name, text):
        (self.output / name).write_text(text)

    def gpus(self):
        return [d["id"] for d in self.devices
                if d["usable"] and d["backend"] in ("cuda", "vulkan") and (self.software or not d["software"])]

    # ---- parts -------------------------------------------------------------------------------------------------------

    def part_devices(self):
        status, text = self.run("forge-devices", ["--json"], 60)
        try:
            self.devices = json.loads(text)
        except ValueError:
            return Part("devices", "failed", f"forge-devices ended with {status}: {text[-500:]}")
        self.log("devices.txt", self.run("forge-devices", ["-v"], 60)[1])
        rows = [("device", "name", "driver", "interface")]
        rows += [(d["id"], d["name"], d["driver"], d["api"] if d["usable"] else "unusable") for d in self.devices]
        return Part("devices", text=f"{len(self.gpus())} GPU devices", rows=rows)

    def tests(self, name, program, pattern, seconds):
        """Runs tests in parallel. A shard that is cut counts the tests that ended."""
        def shard(index):
            return self.run(program, [f"--gtest_filter={pattern}"], seconds,
                            {"GTEST_TOTAL_SHARDS": str(SHARDS), "GTEST_SHARD_INDEX": str(index)})

        with concurrent.futures.ThreadPoolExecutor(SHARDS) as pool:
            results = list(pool.map(shard, range(SHARDS)))
        text = "".join(output for _, output in results)
        self.log(re.sub(r"\W+", "_", name) + ".log", text)
        count = {word: len(re.findall(rf"^\[ +{word} +\] .* ms\)$", text, re.M)) for word in ("OK", "FAILED", "SKIPPED")}
        cut = sum(status is None for status, _ in results)
        crashed = sum(status not in (None, 0, 1) for status, _ in results)
        said = f"{count['OK']} passed, {count['FAILED']} failed, {count['SKIPPED']} skipped"
        said += f"; {cut} of {SHARDS} shards cut after {seconds} s" if cut else ""
        said += f"; {crashed} shards crashed" if crashed else ""
        failed = sorted(set(re.findall(r"^\[ +FAILED +\] (\S+?),? .*ms\)$", text, re.M)))
        state = "failed" if failed or crashed or not count["OK"] else "passed"
        return Part(name, state, said, [("failed test",)] + [(f,) for f in failed] if failed else ())

    def part_ops(self):
        if self.filter:
            yield self.tests(f"op cases and models: {self.filter[:60]}", "forge_conformance_test", self.filter, self.seconds)
            return
        for device in self.gpus():
            pattern = "*" + device.replace(":", "_") + "*"
            yield self.tests(f"op cases and models on {device} against the reference", "forge_conformance_test",
                             f"AllDevices/{pattern}", self.seconds)

    def part_vulkan(self):
        if any(d.startswith("vulkan") for d in self.gpus()):
            # What needs the layer that injects faults stays behind: a driver that works has none.
            return self.tests("the Vulkan device's own tests", "forge_vulkan_test",
                              "-Slow*:*Budget*:FaultyMatrixTest*:LostDeviceTest*", 60)
        return Part("the Vulkan device's own tests", "not run", "no Vulkan device")

    def part_instructions(self):
        """What the tests of the PTX interpreter expect, of the GPU's own instructions."""
        name = "PTX instructions as tests/ptx expects them"
        if not any(d.startswith("cuda") for d in self.gpus()):
            return Part(name, "not run", "no CUDA device")
        self.environment["FORGE_PTX_ON"] = "hardware"
        try:
            return self.tests(name, "forge_ptx_test", "*Ops*:KernelsTest*", 60)
        finally:
            del self.environment["FORGE_PTX_ON"]

    def model(self, name):
        path = self.forge / "models" / (name.split()[0] + ".onnx")
        dims = [f"--dim={symbol}={n}" for symbol, n in MODELS[name].items()]
        return (str(path), dims) if path.exists() else (None, dims)

    def part_models(self):
        names = ",".join(["reference", *self.gpus(), "cpu"])
        rows = [("model", "device", "against", "output", "relative error", "verdict")]
        state = "passed"
        for name in MODELS:
            path, dims = self.model(name)
            if path is None or name == "minilm 32x256":
                continue
            status, text = self.run("forge-parity", [path, "--device", names, "--json", *dims], 90)
            try:
                rows += [(name, p["b"], p["a"], p["output"], f"{p['rel_error']:.1e}", "agree" if p["within"] else "differ")
                         for p in json.loads(text)]
            except (ValueError, KeyError, TypeError):
                rows.append((name, "", "", "", "", text.strip().splitlines()[-1] if text.strip() else "no output"))
            if status != 0:
                state = "failed"
        return Part("models on every pair of devices", state, names, rows)

    def bench(self, arguments, seconds, environment=None):
        status, text = self.run("forge-bench", ["--json", *arguments], seconds, environment)
        try:
            return json.loads(text), ""
        except ValueError:
            return [], (text.strip().splitlines() or ["no output in time"])[-1] if status is not None else "no output in time"

    def part_peaks(self):
        rows, state = [("device", "FMA TFLOP/s", "read GB/s", "copy GB/s", "upload GB/s")], "passed"
        for device in self.gpus():
            found, why = self.bench(["peak", "--device", device], 40)
            state = "failed" if why else state
            rows += [(p["device"], f"{p['fma_gflops'] / 1e3:.1f}", f"{p['read_gbps']:.0f}", f"{p['copy_gbps']:.0f}",
                      f"{p['upload_gbps']:.1f}") for p in found] or [(device, why)]
        return Part("rates", state, rows=rows)

    def cases(self, title, cases, ways, seconds):
        """Times cases in several ways: a device and what is switched off."""
        rows = [("case", *(title for title, _, _ in ways))]
        table, state = collections.defaultdict(dict), "passed"
        for way, device, off in ways:
            arguments = ["ops", "--device", device, *(f"--case={c}" for c in cases)]
            found, why = self.bench(arguments, seconds, {"FORGE_CUDA_DISABLE": off})
            for row in found:
                table[row["name"]][way] = row
            if why:
                table[cases[0]].setdefault(way, {"why": why})
                state = "failed"

        def cell(row):
            if row is None:
                return "-"
            return row["why"] if "why" in row else f"{row['time_us']:.1f} us, {row['gflops'] / 1e3:.1f} TFLOP/s"

        rows += [(c, *(cell(table[c].get(way)) for way, _, _ in ways)) for c in cases]
        return Part(title, state, rows=rows)

    def ways(self, library):
        ways = []
        for device in self.gpus():
            ways.append((device, device, ""))
            if library and device.startswith("cuda"):
                ways.append((device + " without cuBLASLt", device, "cublaslt"))
        return ways

    def part_products(self):
        return self.cases("products", PRODUCTS, self.ways(True), 60)

    def part_kernels(self):
        return self.cases("other kernels", KERNELS, self.ways(False), 60)

    def part_latencies(self):
        rows, state = [("model", "device", "median ms", "p99 ms")], "passed"
        for name in MODELS:
            path, dims = self.model(name)
            for device in self.gpus() if path else ():
                found, why = self.bench([path, "--device", device, "--warmup", "3", "--repeat", "30", *dims], 40)
                state = "failed" if why else state
                rows += [(name, device, f"{m['time_us'] / 1e3:.3f}", f"{m['latency_ms']['p99']:.3f}") for m in found] or [
                    (name, device, why, "")]
        return Part("latencies", state, rows=rows)

    def part_torch(self):
        if not any(d.startswith("cuda") for d in self.gpus()):
            return Part("PyTorch", "not run", "no CUDA device")
        if importlib.util.find_spec("torch") is None:
            return Part("PyTorch", "not run", "this Python has no torch")
        try:
            done = subprocess.run([sys.executable, str(HERE / "torch_rates.py")], stdout=subprocess.PIPE, text=True, timeout=120)
            found = json.loads(done.stdout.strip().splitlines()[-1])
        except (subprocess.TimeoutExpired, ValueError, IndexError) as e:
            return Part("PyTorch", "failed", str(e))
        rows = [("case", "us")] + [(name, f"{us:.1f}") for name, us in found["us"].items()]
        return Part("PyTorch", text=f"{found['torch']} on {found['device']}", rows=rows)


def unpack(folder):
    subprocess.run(["tar", "--extract", "--xz", "--file", str(HERE / "forge.tar.xz"), "--directory", folder], check=True)
    forge = pathlib.Path(folder) / "forge"
    # The tests read their data where they were built: there is a link for as long as this program runs.
    source = pathlib.Path((forge / "source_folder").read_text().strip())
    if not source.exists():
        above = [p for p in source.parents if not p.exists()]
        try:
            source.parent.mkdir(parents=True, exist_ok=True)
            source.symlink_to(forge / "source")
            atexit.register(lambda: [source.unlink(), *(p.rmdir() for p in above)])
        except OSError as e:
            print(f"gpu_check: tests that read files will fail: {source}: {e}", file=sys.stderr)
    values = random.Random(1)
    block = b"".join(struct.pack("<f", values.gauss(0, 0.03)) for _ in range(1 << 16))
    (forge / "models/model.safetensors").write_bytes((block * (MINILM_BYTES // len(block) + 1))[:MINILM_BYTES])
    return forge


def markdown(head, parts):
    lines = ["# GPU check", "", *(f"- {k}: {v}" for k, v in head.items()), ""]
    for part in parts:
        lines += [f"## {part.name}", "", f"{part.state}{': ' if part.text else ''}{part.text}", ""]
        if part.rows:
            first, *rest = part.rows
            lines += ["| " + " | ".join(first) + " |", "|" + "---|" * len(first)]
            lines += ["| " + " | ".join(row) + " |" for row in rest] + [""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [name[5:] for name in vars(Check) if name.startswith("part_")]
    parser.add_argument("--parts", default=",".join(every))
    parser.add_argument("--software", action="store_true")
    parser.add_argument("--filter")
    parser.add_argument("--seconds", type=int, default=200)
    parser.add_argument("--without-nvrtc", action="store_true")
    parser.add_argument("--model-arguments", action="store_true", help=argparse.SUPPRESS)  # for pack
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("gpu_check"))
    options = parser.parse_args()
    if options.model_arguments:
        for name, dims in MODELS.items():
            print(name.split()[0] + ".onnx", *(f"--dim={symbol}={n}" for symbol, n in dims.items()))
        return 0
    wanted = ["devices"] + [p for p in options.parts.split(",") if p != "devices"]
    for name in wanted:
        if name not in every:
            parser.error(f"'{name}' is no part; the parts are {', '.join(every)}")
    options.output.mkdir(parents=True, exist_ok=True)
    began, parts = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        forge = unpack(folder)
        head = {"commit": (forge / "commit").read_text().strip(), "date": datetime.date.today().isoformat()}
        check = Check(forge, options.output, options)
        for name in wanted:
            begun = time.monotonic()
            if name != "devices" and not check.gpus():
                found = [Part(name, "not run", "no GPU")]
            else:
                found = getattr(check, "part_" + name)()
                found = [found] if isinstance(found, Part) else list(found)
            for part in found:
                print(f"{part.state:8} {part.name}: {part.text} ({time.monotonic() - begun:.0f} s)", flush=True)
            parts += found
            # What was found is kept, should the machine go away.
            head["seconds"] = round(time.monotonic() - began)
            (options.output / "gpu_check.md").write_text(markdown(head, parts))
            (options.output / "gpu_check.json").write_text(json.dumps({**head, "parts": [vars(p) for p in parts]}, indent=1))
    return int(any(p.state == "failed" for p in parts))


if __name__ == "__main__":
    sys.exit(main())
