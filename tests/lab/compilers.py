#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the lab's compilers make of Forge's kernels: registers, occupancy, cycles and spills of every GPU family.

  tests/lab/compilers.py                     every family but Mali (emulated: 4 minutes), against docs/compilers.tsv
  tests/lab/compilers.py radv:navi31 mali:g610
  tests/lab/compilers.py --write             make docs/compilers.tsv anew, after a change that was meant
  tests/lab/compilers.py --summary           the committed table as one row for each family
  tests/lab/compilers.py --matrix            only look for matrix instructions

A row stands for one workload, a case of an op or a model at the shapes below, on one family: its pipelines, the most
registers and the least occupancy of any of them, the sum of their estimated cycles, and how many spill to memory.
Units are the driver's own, so only rows of one family compare. Kernels come from build/PRESET (default: release).
On families that have matrix instructions, the product of f16 matrices must hold them in the code that its driver shows.

Exit status: 1 a pipeline failed, spills where none may, needs over 10 % more cycles than the table says, or lacks the
matrix instructions that it should have; 2 bad usage.
"""

import argparse
import collections
import concurrent.futures
import csv
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs/compilers.tsv"
LAB = ROOT / "tests/lab/lab"
CACHE = pathlib.Path.home() / ".cache/forge/models"
COLUMNS = ["device", "workload", "pipelines", "registers", "occupancy", "cycles", "spilled"]
TOLERANCE = 1.10

RADV = ["polaris10", "vega20", "navi10", "navi21", "navi31", "gfx1150", "gfx1201", "gfx940"]
ANV = ["skylake", "uhd630", "tigerlake", "a770", "meteorlake"]
DEVICES = ([f"radv:{d}" for d in RADV] + [f"anv:{d}" for d in ANV] + [f"nvk:{d}" for d in ["turing", "ampere", "ada"]] +
           [f"turnip:{d}" for d in ["660", "730", "740", "750"]] + ["honeykrisp:m1", "honeykrisp:m2"])
MALI = [f"mali:{d}" for d in ["g310", "g610", "g720", "g725"]]

# The cases of ops, as forge-bench ops names them.
CASES = [
    "matmul(f32[512, 512], f32[512, 512])",
    "matmul(f32[1024, 1024], f32[1024, 1024])",
    "matmul(f16[1024, 1024], f16[1024, 1024])",
    "matmul_integer(i8[1024, 1024], i8[1024, 1024])",
    "matmul(f32[1, 4096], f32[4096, 4096])",
    "matmul{transpose_b = true}(f32[12, 128, 64], f32[12, 128, 64])",
    "conv{padding = [1, 1, 1, 1]}(f32[1, 64, 56, 56], f32[64, 64, 3, 3])",
    "conv(f32[1, 256, 56, 56], f32[64, 256, 1, 1], f32[64])",
    "conv{strides = [2, 2], padding = [3, 3, 3, 3]}(f32[1, 3, 224, 224], f32[64, 3, 7, 7], f32[64])",
    "conv{padding = [1, 1, 1, 1], groups = 144}(f32[1, 144, 56, 56], f32[144, 1, 3, 3], f32[144])",
    "conv_integer(u8[1, 64, 58, 58], i8[64, 64, 3, 3])",
    "attention(f32[12, 256, 32], f32[12, 256, 32], f32[12, 256, 32])",
    "attention(f32[8, 1024, 64], f32[8, 1024, 64], f32[8, 1024, 64])",
    "attention(f16[8, 1024, 64], f16[8, 1024, 64], f16[8, 1024, 64])",
    "softmax(f32[4096, 4096])",
    "layer_norm(f32[1024, 384], f32[384], f32[384])",
    "reduce{axes = [0]}(f32[4096, 4096])",
    "reduce{axes = [1]}(f32[4096, 4096])",
    "transpose{permutation = [1, 0]}(f32[4096, 4096])",
    "dft(f32[2048, 256], f32[2048, 256])",
    "sort(f32[1048576])",
]
# Those that only families with units for them have a kernel for.
WHERE_UNITS_ARE = ("matmul(f16", "conv_integer")
DET, REC = "p2o.DynamicDimension.{}", {"p2o.DynamicDimension.0": 1, "x.2": 48, "p2o.DynamicDimension.1": 320}
MODELS = {
    "basic-pitch": ("basic-pitch.onnx", {"unk__749": 1}),
    "magika": ("magika.onnx", {"unk__214": 1}),
    "minilm": ("minilm/minilm.onnx", {"batch": 1, "sequence": 256}),
    "ppocr-cls": ("ppocr-cls.onnx", {"x.0": 1, "x.2": 48, "x.3": 192}),
    "ppocr-det": ("ppocr-det.onnx", {DET.format(0): 1, DET.format(1): 640, DET.format(2): 640}),
    "ppocr-rec": ("ppocr-rec.onnx", REC),
}
# What families with matrix instructions call them, and the case that must be made of them.
MATRIX = {"radv:navi31": "v_wmma", "radv:gfx1150": "v_wmma", "anv:a770": "dpas",
          **{f"nvk:{d}": "hmma" for d in ["turing", "ampere", "ada"]}}
MATRIX_CASE = "matmul(f16[1024, 1024], f16[1024, 1024])"
# Kernels whose values must stay in registers.
NO_SPILLS = ("matmul", "conv", "attention", "reduce", "softmax", "layer_norm")


def first(statistics, *names):
    """The value of the first of `names` that the driver tells."""
    for name in names:
        if name in statistics:
            return statistics[name]
    return 0.0


def judge(statistics):
    """Registers, occupancy, cycles and spills to memory, by the names that each driver has for them."""
    registers = first(statistics, "VGPRs", "Number of GPRs", "Registers used", "GPRs", "Max live registers")
    occupancy = first(statistics, "Subgroups per SIMD", "Max warps/SM", "Max Waves Per Core", "Threads",
                      "Max dispatch width")
    cycles = first(statistics, "Inverse Throughput", "Cycles", "Static cycle count")
    if "Estimated cycles stalled on SY" in statistics:
        cycles = (statistics["Instruction Count"] + statistics["Estimated cycles stalled on SS"] +
                  statistics["Estimated cycles stalled on SY"])
    elif "FSCIB" in statistics:
        cycles = max(statistics["ALU"], statistics["FSCIB"], statistics["IC"])
    # SGPRs of AMD go to lanes of VGPRs, not to memory.
    spills = first(statistics, "Spilled VGPRs", "Spills to memory", "STP Count", "Spills")
    return registers, occupancy, cycles, spills


class Workload:
    """What was seen of one workload on one device."""

    def __init__(self):
        self.pipelines, self.registers, self.occupancy, self.cycles, self.spilled = 0, 0, float("inf"), 0, []

    def add(self, kernel, statistics):
        registers, occupancy, cycles, spills = judge(statistics)
        self.pipelines += 1
        self.registers = max(self.registers, registers)
        self.occupancy = min(self.occupancy, occupancy)
        self.cycles += cycles
        if spills > 0:
            self.spilled.append(kernel)

    def row(self, device, name):
        return [device, name, self.pipelines, *(f"{v:.0f}" for v in (self.registers, self.occupancy, self.cycles)),
                len(self.spilled)]


def run_parity(build, device, arguments):
    """Runs forge-parity on `device`; {(workload, step, kernel): {statistic: value}} as its driver tells."""
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "statistics.tsv"
        command = [LAB, "run", device, "--", build / "bin/forge-parity", *arguments, "--devices", "vulkan",
                   "--compile-only", "--stats", table]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{device}: {' '.join(map(str, arguments))}: {done.stderr.strip() or done.stdout.strip()}")
        kernels = collections.defaultdict(dict)
        with open(table, newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
                statistics = kernels[row["what"], row["step"], row["kernel"]]
                statistics[row["statistic"]] = max(statistics.get(row["statistic"], 0.0), float(row["value"]))
        return kernels


def parity(build, device, arguments):
    """{workload: Workload} of one run of forge-parity."""
    found = collections.defaultdict(Workload)
    for (what, _, kernel), statistics in run_parity(build, device, arguments).items():
        found[what].add(kernel, statistics)
    return found


def dims(extents):
    return [word for name, extent in extents.items() for word in ("--dim", f"{name}={extent}")]


def case_pattern(cases):
    return "^(" + "|".join("".join("\\" + c if not c.isalnum() else c for c in case) for case in cases) + ")$"


def folder_of(case):
    """What forge-parity --dump names a case's folder."""
    return re.sub(r"[^A-Za-z0-9._:-]", "_", case)


@functools.cache
def poorest_kernels(build):
    """{SPIR-V: [(workload, kernel)]} of what a GPU with the guaranteed limits gets; many steps have the same."""
    hide = os.environ | {"FORGE_VK_DISABLE": "all,host_cores", "FORGE_VK_LIMITS": "guaranteed"}
    runs = {"ops": ["ops", "--filter", case_pattern(CASES)]}
    runs |= {name: [CACHE / path, *dims(extents)] for name, (path, extents) in MODELS.items()}
    workloads = {folder_of(case): case for case in CASES}
    kernels = collections.defaultdict(list)
    for name, arguments in runs.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [build / "bin/forge-parity", *arguments, "--devices", "vulkan", "--compile-only", "--dump", folder]
            done = subprocess.run(command, capture_output=True, text=True, env=hide)
            if done.returncode != 0:
                raise RuntimeError(f"{name}: {done.stderr.strip()}")
            for file in sorted(pathlib.Path(folder).rglob("*.spv")):
                workload = workloads[file.parent.name] if name == "ops" else name
                kernels[file.read_bytes()].append((workload, re.sub(r"^\d+_", "", file.stem)))
    return kernels


def lab_stats(device, files):
    """{file: {statistic: value}} of kernels that are compiled by themselves."""
    done = subprocess.run([LAB, "stats", device, *files], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{device}: {done.stderr.strip()}")
    told = {str(file): {} for file in files}
    for file, statistic, value in (line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 2):
        told[file][statistic] = float(value)
    if silent := [file for file, statistics in told.items() if not statistics]:
        raise RuntimeError(f"{device}: nothing is told of {', '.join(silent)}")
    return told


def mali(build, device):
    """{workload: Workload} of what a GPU with the guaranteed limits gets: no driver for Mali runs here, only its compiler,
    under an emulator, where it takes all the time there is: one process for each processor."""
    kernels = poorest_kernels(build)
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / f"{i}.spv" for i in range(len(kernels))]
        for file, spirv in zip(files, kernels):
            file.write_bytes(spirv)
        by_size = sorted(files, key=lambda f: f.stat().st_size)
        shares = [share for i in range(os.cpu_count()) if (share := by_size[i::os.cpu_count()])]
        with concurrent.futures.ThreadPoolExecutor(len(shares)) as pool:
            told = dict(collections.ChainMap(*pool.map(functools.partial(lab_stats, device), shares)))
    found = collections.defaultdict(Workload)
    for file, users in zip(files, kernels.values()):
        for workload, kernel in users:
            found[workload].add(kernel, told[str(file)])
    return found


def matrix_problems(build, device):
    """Why a family's matrix instructions are not seen where they should be: a list, empty where they are."""
    with tempfile.TemporaryDirectory() as folder:
        run_parity(build, device, ["ops", "--filter", case_pattern([MATRIX_CASE]), "--dump", folder])
        kernels = sorted(pathlib.Path(folder).rglob("*.spv"))
        instructions = collections.Counter()
        for kernel in kernels:
            size = re.search(r"subgroups of (\d+)", kernel.with_suffix(".kernel").read_text())
            done = subprocess.run([LAB, "code", device, size.group(1) if size else "0", kernel], capture_output=True,
                                  text=True)
            if done.returncode != 0:
                return [f"{device}: {kernel.name}: {done.stderr.strip()}"]
            assembly = done.stdout.rpartition("\n; ")[2]  # the last form that is shown
            instructions.update(re.findall(rf"\b{MATRIX[device]}[\w.]*", assembly))
        names = ", ".join(re.sub(r"^\d+_", "", kernel.stem) for kernel in kernels)
    if not instructions:
        return [f"{device}: {MATRIX_CASE}: no {MATRIX[device]} in {names or 'no kernel'}"]
    print(f"{device}: {names}: " + ", ".join(f"{n} {name}" for name, n in instructions.items()), file=sys.stderr)
    return []


def measure(build, device):
    """The rows of one device, and what is wrong with them."""
    wrong, found = [], {}
    if device in MALI:
        return judge_rows(device, mali(build, device))
    found.update(parity(build, device, ["ops", "--filter", case_pattern(CASES)]))
    for case in CASES:
        if case not in found and not case.startswith(WHERE_UNITS_ARE):
            wrong.append(f"{device}: no statistics of {case}")
    for name, (path, extents) in MODELS.items():
        found.update({name: w for w in parity(build, device, [CACHE / path, *dims(extents)]).values()})
    if device in MATRIX:
        wrong += matrix_problems(build, device)
    rows, spills = judge_rows(device, found)
    return rows, wrong + spills


def judge_rows(device, found):
    """The rows of a device in the table's order, and which kernels spill that must not."""
    rows, wrong = [], []
    for name in [*CASES, *MODELS]:
        if name not in found:
            continue
        rows.append(found[name].row(device, name))
        bad = [k for k in found[name].spilled if k.startswith(NO_SPILLS)]
        if bad:
            wrong.append(f"{device}: {name}: spills to memory: {', '.join(sorted(set(bad)))}")
    return rows, wrong


def committed():
    if not TABLE.is_file():
        return {}
    with open(TABLE, newline="") as lines:
        return {(r["device"], r["workload"]): r for r in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)}


def compare(rows, table):
    """What differs from the committed table."""
    wrong = []
    for row in rows:
        now = dict(zip(COLUMNS, row))
        before = table.get((now["device"], now["workload"]))
        if before is None:
            wrong.append(f"{now['device']}: {now['workload']}: not in {TABLE.relative_to(ROOT)}")
        elif float(now["cycles"]) > TOLERANCE * float(before["cycles"]):
            wrong.append(f"{now['device']}: {now['workload']}: {now['cycles']} cycles, {before['cycles']} before")
    return wrong


def summary(table):
    """The committed table, a line for each device."""
    devices = collections.defaultdict(lambda: [0, 0, 0])
    for (device, _), row in table.items():
        total = devices[device]
        for i, value in enumerate((1, int(row["pipelines"]), int(row["spilled"]))):
            total[i] += value
    print(f"{'device':16} {'workloads':>9} {'pipelines':>9} {'spilled':>7}")
    for device, (workloads, pipelines, spilled) in devices.items():
        print(f"{device:16} {workloads:9} {pipelines:9} {spilled:7}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("devices", nargs="*", metavar="DEVICE", help="of tests/lab/lab list (default: all that compile)")
    parser.add_argument("--write", action="store_true", help="make the table anew instead of comparing with it")
    parser.add_argument("--summary", action="store_true", help="print the committed table by device, run nothing")
    parser.add_argument("--matrix", action="store_true", help="only look for matrix instructions")
    parser.add_argument("--preset", default="release")
    options = parser.parse_args()
    table = committed()
    if options.summary:
        return summary(table)
    known = list(MATRIX) if options.matrix else DEVICES + MALI
    unknown = [d for d in options.devices if d not in known]
    if unknown:
        parser.error(f"no such device: {', '.join(unknown)}; there are {', '.join(known)}")
    missing = [str(CACHE / path) for path, _ in MODELS.values() if not (CACHE / path).is_file()]
    if missing:
        parser.error(f"run tools/fetch-models --all: {', '.join(missing)} cannot be found")
    wrong, rows = [], []
    devices = options.devices or (list(MATRIX) if options.matrix else DEVICES)
    for device in devices:
        print(f"{device} ...", file=sys.stderr, flush=True)
        build = ROOT / "build" / options.preset
        try:
            made, problems = ([], matrix_problems(build, device)) if options.matrix else measure(build, device)
        except RuntimeError as error:
            wrong.append(str(error))
            continue
        rows += made
        wrong += problems + ([] if options.write else compare(made, table))
    if options.write:
        table.update({(r[0], r[1]): dict(zip(COLUMNS, r)) for r in rows})
        order = {d: i for i, d in enumerate(DEVICES + MALI)}
        kept = [r for r in table.values() if r["workload"] in [*CASES, *MODELS]]
        kept.sort(key=lambda r: order.get(r["device"], len(order)))
        lines = ["\t".join(COLUMNS), *("\t".join(str(r[c]) for c in COLUMNS) for r in kept)]
        TABLE.write_text("\n".join(lines) + "\n")
    for problem in wrong:
        print(problem, file=sys.stderr)
    print(f"{len(rows)} rows of {len(devices)} devices, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
