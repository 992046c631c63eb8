#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lab's spirv-val, the current one, over the kernels that devices get of every op case and model.

  tests/lab/validate_kernels.py                       the profiles below, which differ in what kernels use
  tests/lab/validate_kernels.py poorest radv:navi31   these profiles or devices of tests/lab/lab list only

What several profiles or steps share is validated once. Models are those of docs/compilers.tsv; kernels come from
build/PRESET (default: release). Exit status: 1 a kernel is invalid, or a case did not compile; 2 bad usage.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

import compilers

# {name: (device of the lab, what is hidden from it)}. The second gets what GPUs get, with cooperative matrices.
PROFILES = {
    "lavapipe-26": ("lavapipe-26", {}),
    "gpu": ("lavapipe-26", {"FORGE_VK_DISABLE": "host_cores"}),
    "poorest": ("lavapipe-26", {"FORGE_VK_DISABLE": "all,host_cores", "FORGE_VK_LIMITS": "guaranteed"}),
    "radv:navi31": ("radv:navi31", {}),
}
MATRICES = b"\x11\x00\x02\x00\x86\x17\x00\x00"  # OpCapability CooperativeMatrixKHR


def kernels_of(build, profile):
    """{SPIR-V: one of its names} of a profile."""
    device, hide = PROFILES.get(profile, (profile, {}))
    runs = {"ops": ["ops"]}
    runs |= {name: [compilers.CACHE / path, *compilers.dims(extents)] for name, (path, extents) in compilers.MODELS.items()}
    kernels = {}
    for name, arguments in runs.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [compilers.LAB, "run", device, "--", build / "bin/forge-parity", *arguments, "--devices", "vulkan",
                       "--compile-only", "--dump", folder]
            done = subprocess.run(command, capture_output=True, text=True, env=os.environ | hide)
            if done.returncode != 0:
                raise RuntimeError(f"{profile}: {name}: {(done.stderr.strip() or done.stdout.strip())[-2000:]}")
            for file in sorted(pathlib.Path(folder).rglob("*.spv")):
                kernels.setdefault(file.read_bytes(), f"{profile}: {name}: {file.relative_to(folder)}")
    return kernels


def errors_of(file):
    done = subprocess.run([compilers.LAB, "tool", "spirv-val", "--target-env", "vulkan1.1", file],
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip() or done.stdout.strip() or "spirv-val failed"


def validate(kernels):
    """What is wrong with {SPIR-V: name}."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        files = [pathlib.Path(folder) / f"{i}.spv" for i in range(len(kernels))]
        for file, spirv in zip(files, kernels):
            file.write_bytes(spirv)
        return [f"{name}: {wrong}" for name, wrong in zip(kernels.values(), pool.map(errors_of, files)) if wrong]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profiles", nargs="*", metavar="PROFILE", help=f"default: {', '.join(PROFILES)}")
    parser.add_argument("--preset", default="release")
    options = parser.parse_args()
    unknown = [p for p in options.profiles if p not in [*PROFILES, *compilers.DEVICES]]
    if unknown:
        parser.error(f"no such profile: {', '.join(unknown)}; there are {', '.join([*PROFILES, *compilers.DEVICES])}")
    kernels, counts = {}, collections.Counter()
    for profile in options.profiles or PROFILES:
        print(f"{profile} ...", file=sys.stderr, flush=True)
        try:
            made = kernels_of(compilers.ROOT / "build" / options.preset, profile)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
        counts[profile] = len(made)
        kernels = made | kernels
    print("spirv-val ...", file=sys.stderr, flush=True)
    wrong = validate(kernels)
    for problem in wrong:
        print(problem, file=sys.stderr)
    print(", ".join(f"{profile} {count}" for profile, count in counts.items()))
    matrices = sum(MATRICES in spirv for spirv in kernels)
    print(f"{len(kernels)} kernels, {matrices} with cooperative matrices: {len(wrong)} invalid")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
