#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's compiler makes of Forge's CUDA kernels: registers, spills, shared memory, occupancy, instructions.

  tests/lab/cuda_kernels.py                  the table's workloads on every architecture, against docs/cuda_kernels.tsv
  tests/lab/cuda_kernels.py sm_80 sm_90      these architectures
  tests/lab/cuda_kernels.py --write          make docs/cuda_kernels.tsv anew, after a change that was meant
  tests/lab/cuda_kernels.py --all-ops        only compile every kernel of every op case; prints counts

A row stands for one workload, a case of an op or a model at the shapes of tests/lab/compilers.py, on one architecture:
its kernels, the most registers, shared bytes and the least occupancy of any of them, the bytes that they spill, and how
many instructions of their machine code there are: all, matrix products, fused multiply-adds, copies from global to
shared memory without registers, global loads and those of 128 bits, loads of shared memory, barriers. No GPU and no
driver are needed; tests/lab/fetch-cuda brings the compiler. Kernels come from build/PRESET (default: release).

Exit status: 1 a kernel does not compile, spills where none may, has over 10 % more instructions than the table says, or
lacks matrix instructions that it should have; 2 bad usage.
"""

import argparse
import collections
import concurrent.futures
import csv
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import compilers

ROOT = compilers.ROOT
TABLE = ROOT / "docs/cuda_kernels.tsv"
ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
TOLERANCE = 1.10

# What machine code is counted by, in the order of the table.
MIX = {
    "instructions": r".",
    "matrix": r"[HIQ]G?MMA",
    "fma": r"[FDH]FMA",
    "async_copies": r"LDGSTS|UBLKCP|UTMALDG",
    "global_loads": r"LDG",
    "of_128_bits": r"LDG.*\.128",
    "shared_loads": r"LDSM?\b",
    "barriers": r"BAR",
}
COLUMNS = ["architecture", "workload", "kernels", "registers", "spilled", "shared", "occupancy", *MIX]

# Limits of a multiprocessor: warps, blocks, bytes of shared memory. Source: CUDA C++ Programming Guide, "Technical
# Specifications per Compute Capability". All have 65536 registers, given to warps in units of 256.
LIMITS = {
    "sm_75": (32, 16, 64 << 10),
    "sm_80": (64, 32, 164 << 10),
    "sm_86": (48, 16, 100 << 10),
    "sm_89": (48, 24, 100 << 10),
    "sm_90": (64, 32, 228 << 10),
    "sm_100": (64, 32, 228 << 10),
    "sm_120": (48, 24, 100 << 10),
}
REGISTERS, REGISTER_UNIT, RESERVED_SHARED, SHARED_UNIT = 65536, 256, 1024, 128
LANES = 32


def up(value, unit):
    return -(-value // unit) * unit


def occupancy(architecture, threads, registers, shared):
    """Percent of the warps that a multiprocessor can hold."""
    most_warps, most_blocks, most_shared = LIMITS[architecture]
    warps = -(-threads // LANES)
    by_registers = REGISTERS // up(max(registers, 1) * LANES, REGISTER_UNIT) // warps
    reserved = 0 if architecture == "sm_75" else RESERVED_SHARED
    by_shared = most_shared // max(up(shared + reserved, SHARED_UNIT), 1)
    return 100 * min(most_blocks, most_warps // warps, by_registers, by_shared) * warps // most_warps


def tool_folder():
    """The site-packages of tests/lab/fetch-cuda."""
    done = subprocess.run([ROOT / "tests/lab/fetch-cuda"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return pathlib.Path(done.stdout.strip())


def parity(build, architecture, packages, arguments):
    """Runs forge-parity on the device that only compiles."""
    environment = os.environ | {"FORGE_CUDA_PATH": str(packages), "FORGE_CUDA_COMPILE_FOR": architecture}
    command = [build / "bin/forge-parity", *arguments, "--devices", f"cuda:compiler for {architecture}", "--compile-only"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{architecture}: {' '.join(map(str, arguments))}: "
                           f"{done.stderr.strip()[-2000:] or done.stdout.strip()[-2000:]}")
    return done.stdout


def instructions(packages, cubin):
    """{column of MIX: count} of a cubin."""
    tool = next(packages.glob("nvidia/*/bin/nvdisasm"))
    done = subprocess.run([tool, "-c", cubin], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{cubin.name}: {done.stderr.strip()}")
    # "        /*0010*/                   @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;"
    opcodes = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", done.stdout, re.MULTILINE)
    opcodes = [o for o in opcodes if o != "NOP"]
    return {column: sum(re.match(pattern, o) is not None for o in opcodes) for column, pattern in MIX.items()}


class Workload:
    """What was seen of one workload on one architecture."""

    def __init__(self):
        self.kernels, self.registers, self.shared, self.occupancy, self.spilled = 0, 0, 0, 100, 0
        self.mix = collections.Counter()
        self.spilling = []

    def add(self, architecture, kernel, threads, statistics, mix):
        registers, shared = int(statistics["registers"]), int(statistics["shared bytes"])
        self.kernels += 1
        self.registers, self.shared = max(self.registers, registers), max(self.shared, shared)
        self.occupancy = min(self.occupancy, occupancy(architecture, threads, registers, shared))
        self.spilled += int(statistics["spilled bytes"])
        self.mix.update(mix)
        if statistics["spilled bytes"] > 0:
            self.spilling.append(kernel)

    def row(self, architecture, name):
        return [architecture, name, self.kernels, self.registers, self.spilled, self.shared, self.occupancy,
                *(self.mix[column] for column in MIX)]


def statistics_of(table):
    """{(workload, step, kernel): {statistic: value}}"""
    found = collections.defaultdict(dict)
    with open(table, newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            found[row["what"], int(row["step"]), row["kernel"]][row["statistic"]] = float(row["value"])
    return found


def measure_run(build, architecture, packages, name, arguments):
    """{workload: Workload} of one run of forge-parity: a model, or all cases of ops."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = pathlib.Path(folder)
        parity(build, architecture, packages, [*arguments, "--stats", folder / "stats.tsv", "--dump", folder / "dump"])
        workloads = {compilers.folder_of(case): case for case in compilers.CASES}
        files = sorted(folder.glob("dump/**/*.cubin"))
        mixes = dict(zip(files, pool.map(lambda file: instructions(packages, file), files)))
        statistics = statistics_of(folder / "stats.tsv")
        found = collections.defaultdict(Workload)
        for file in files:
            what = workloads[file.parent.name] if name == "ops" else name
            step, kernel = file.stem.split("_", 1)
            told = next(v for (w, s, k), v in statistics.items()
                        if s == int(step) and k == kernel and (name != "ops" or w == what))
            blocks = re.search(r"blocks of (\d+) x (\d+) x (\d+)", file.with_suffix(".cu").read_text())
            threads = int(blocks[1]) * int(blocks[2]) * int(blocks[3])
            found[what].add(architecture, kernel, threads, told, mixes[file])
        return found


def measure(build, architecture, packages):
    """The rows of an architecture, and what is wrong with them."""
    found = measure_run(build, architecture, packages, "ops", ["ops", "--filter", compilers.case_pattern(compilers.CASES)])
    for name, (path, extents) in compilers.MODELS.items():
        found |= measure_run(build, architecture, packages, name, [compilers.CACHE / path, *compilers.dims(extents)])
    rows, wrong = [], []
    for name in [*compilers.CASES, *compilers.MODELS]:
        if name not in found:
            wrong.append(f"{architecture}: {name}: no kernels")
            continue
        rows.append(found[name].row(architecture, name))
        if bad := sorted({k for k in found[name].spilling if k.startswith(compilers.NO_SPILLS)}):
            wrong.append(f"{architecture}: {name}: spills: {', '.join(bad)}")
    if found[compilers.MATRIX_CASE].mix["matrix"] == 0:
        wrong.append(f"{architecture}: {compilers.MATRIX_CASE}: no matrix instructions")
    return rows, wrong


def committed():
    if not TABLE.is_file():
        return {}
    with open(TABLE, newline="") as lines:
        return {(r["architecture"], r["workload"]): r
                for r in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)}


def write(rows, table):
    """Puts rows into the committed table."""
    table.update({(r[0], r[1]): dict(zip(COLUMNS, r)) for r in rows})
    order = {a: i for i, a in enumerate(ARCHITECTURES)}
    kept = sorted(table.values(), key=lambda r: order[r["architecture"]])
    TABLE.write_text("\n".join(["\t".join(COLUMNS), *("\t".join(str(r[c]) for c in COLUMNS) for r in kept)]) + "\n")


def compare(rows, table):
    """What differs from the committed table."""
    wrong = []
    for row in rows:
        now = dict(zip(COLUMNS, row))
        name = f"{now['architecture']}: {now['workload']}"
        before = table.get((now["architecture"], now["workload"]))
        if before is None:
            wrong.append(f"{name}: not in {TABLE.relative_to(ROOT)}")
        elif now["instructions"] > TOLERANCE * int(before["instructions"]):
            wrong.append(f"{name}: {now['instructions']} instructions, {before['instructions']} before")
    return wrong


def all_ops(build, architecture, packages):
    """Compiles the kernels of every op case; what is wrong."""
    text = parity(build, architecture, packages, ["ops"])
    totals = collections.Counter()
    for line in text.splitlines()[1:]:
        _, _, kernels, decomposed, refused, failed = line.split()
        totals.update(kernels=int(kernels), decomposed=int(decomposed), refused=int(refused), failed=int(failed))
    print(f"{architecture}: cases: " + ", ".join(f"{n} {what}" for what, n in totals.items()))
    return [f"{architecture}: {totals['failed']} cases of ops failed"] if totals["failed"] else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architectures", nargs="*", metavar="ARCHITECTURE", help=f"default: {' '.join(ARCHITECTURES)}")
    parser.add_argument("--write", action="store_true", help="make the table anew instead of comparing with it")
    parser.add_argument("--all-ops", action="store_true", help="only compile the kernels of every op case")
    parser.add_argument("--preset", default="release")
    options = parser.parse_args()
    if unknown := [a for a in options.architectures if a not in ARCHITECTURES]:
        parser.error(f"no such architecture: {', '.join(unknown)}; there are {', '.join(ARCHITECTURES)}")
    build, table = ROOT / "build" / options.preset, committed()
    wrong, rows = [], []
    architectures = options.architectures or ARCHITECTURES
    for architecture in architectures:
        print(f"{architecture} ...", file=sys.stderr, flush=True)
        try:
            packages = tool_folder()
            if options.all_ops:
                wrong += all_ops(build, architecture, packages)
                continue
            made, problems = measure(build, architecture, packages)
        except RuntimeError as error:
            wrong.append(str(error))
            continue
        rows += made
        wrong += problems + ([] if options.write else compare(made, table))
        if options.write:
            write(made, table)
    for problem in wrong:
        print(problem, file=sys.stderr)
    if not options.all_ops:
        print(f"{len(rows)} rows of {len(architectures)} architectures, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
