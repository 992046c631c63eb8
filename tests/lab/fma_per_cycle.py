#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Useful multiplications in an estimated cycle of one subgroup, for every GPU family of the lab.

  tests/lab/fma_per_cycle.py                          matrix products, a convolution and attention, on every family
  tests/lab/fma_per_cycle.py radv:navi31 nvk:ada      these families only
  tests/lab/fma_per_cycle.py --against OLD/build/release
                                                      another build's kernels beside them: before and after

A case's own multiplications are divided by the cycles that all subgroups of its launches take: padding of tiles, the
transforms of a convolution and the loads are paid for and count as no use. Compilers estimate a loop's body without
knowing how often it runs: LOOPS times, whatever the loop. Cycles are scaled from that to the outermost loop's trips;
a loop within the loop stays as the compiler has it. Compilers differ in what a cycle is, and know nothing of memory: compare
the columns of one family.

The other build is one whose forge-parity writes the kernels of ops (--dump) and the subgroup size of each.
Exit status: 1 a pipeline failed; 2 bad usage.
"""

import argparse
import math
import os
import pathlib
import re
import sys
import tempfile

import compilers

# Multiplications that a case cannot do without.
CASES = {
    "matmul(f32[1024, 1024], f32[1024, 1024])": 1024**3,
    "matmul(f16[1024, 1024], f16[1024, 1024])": 1024**3,
    "conv{padding = [1, 1, 1, 1]}(f32[1, 64, 56, 56], f32[64, 64, 3, 3])": 56 * 56 * 64 * 64 * 9,
    "attention(f32[8, 1024, 64], f32[8, 1024, 64], f32[8, 1024, 64])": 2 * 8 * 1024 * 1024 * 64,
}
# How often compilers take a loop to run; the others count its body once.
LOOPS = {"radv": 8, "anv": 10, "nvk": 10}


def trips(text, statistics, guess):
    """What estimated cycles are multiplied by, since the outermost loop of a kernel runs otherwise than the compiler
    guessed. One that holds all multiplications of all trips has been unrolled."""
    loop = re.search(r" in 0 \.\. (\d+) step (\d+)", text)
    if not loop:
        return 1
    count = math.ceil(int(loop.group(1)) / int(loop.group(2)))
    instructions = compilers.first(statistics, "Instructions", "Instruction Count", "Instruction count")
    multiplications = text.count(" = fma ")
    if 0 < multiplications * count <= instructions:
        return 1
    return count / guess


def subgroup_cycles(text, statistics, guess):
    """Estimated cycles of all subgroups of a launch."""
    workgroup, grid = (math.prod(int(n) for n in re.search(rf"{what} (\d+) x (\d+) x (\d+)", text).groups())
                       for what in ("workgroup", "grid"))
    subgroups = grid * math.ceil(workgroup / statistics["Subgroup size"])
    return subgroups * compilers.judge(statistics)[2] * trips(text, statistics, guess)


def rates(build, device):
    """{case: (multiplications in a cycle, [kernel])} of a build on a family."""
    with tempfile.TemporaryDirectory() as folder:
        told = compilers.run_parity(build, device, ["ops", "--filter", compilers.case_pattern(CASES), "--dump", folder])
        files = {(f.parent.name, re.sub(r"^\d+_", "", f.stem)): f.read_text()
                 for f in pathlib.Path(folder).rglob("*.kernel")}
    cycles, kernels = {}, {}
    for (case, _, kernel), statistics in told.items():
        text = files.get((compilers.folder_of(case), kernel))
        if text is None or "Subgroup size" not in statistics:
            raise RuntimeError(f"{build}: its forge-parity does not write the kernels of ops and their subgroup sizes")
        guess = LOOPS.get(device.partition(":")[0], 1)
        cycles[case] = cycles.get(case, 0) + subgroup_cycles(text, statistics, guess)
        kernels.setdefault(case, []).append(kernel)
    return {case: (CASES[case] / cycles[case], kernels[case]) for case in cycles}


def line(device, before, after):
    """A family's row: the rates of each build and how they compare."""
    cells = [f"{device:16}"]
    rates_of = [found[0] for found in (before, after) if found]
    cells += [f"{rate:8.3f}" for rate in rates_of]
    if len(rates_of) == 2:
        cells.append(f"{after[0] / before[0]:6.2f}x")
    by = [os.path.commonprefix(found[1]).rstrip("_") for found in (before, after) if found]
    return "  " + " ".join(cells) + "  " + (" -> ".join(by) if len(set(by)) > 1 else by[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("devices", nargs="*", metavar="DEVICE", help="of tests/lab/lab list (default: all that compile)")
    parser.add_argument("--against", type=pathlib.Path, metavar="BUILD", help="the folder of another build")
    parser.add_argument("--preset", default="release")
    options = parser.parse_args()
    unknown = [d for d in options.devices if d not in compilers.DEVICES]
    if unknown:
        parser.error(f"no such device: {', '.join(unknown)}; there are {', '.join(compilers.DEVICES)}")
    builds = ([options.against.resolve()] if options.against else []) + [compilers.ROOT / "build" / options.preset]
    found = {}
    for device in options.devices or compilers.DEVICES:
        print(f"{device} ...", file=sys.stderr, flush=True)
        try:
            found[device] = [rates(build, device) for build in builds]
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    for case in CASES:
        print(f"\n{case}")
        for device, by_build in found.items():
            made = [by.get(case) for by in by_build]
            if made[-1]:
                print(line(device, made[0] if len(made) > 1 else None, made[-1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
