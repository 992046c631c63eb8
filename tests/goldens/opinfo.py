#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own sample inputs for its operators (the OpInfo database) through Forge's ops.

  ~/.cache/forge/goldens-venv/bin/python tests/goldens/opinfo.py
  ~/.cache/forge/goldens-venv/bin/python tests/goldens/opinfo.py '^fft' --devices cpu:0,vulkan:0

A sample that torch_ops/samples.py maps to an op runs through the reference and the devices, and is compared with the
result of PyTorch; where make_goldens.py has a function for the op, it must give that result too. Prints how many passed
and failed, those that the rule of the op refuses with what it says, and for those that are not mapped the reasons. Exit
status: 1 if a sample failed.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

from make_goldens import OPS, Writer, parse
from torch_ops.common import DTYPES, NotInTorch
from torch_ops.samples import NotMapped, call_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = {dtype: word for word, dtype in DTYPES.items()}
MOST_ELEMENTS = 4096


def text_of(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(text_of, value))}]"
    return value if isinstance(value, str) else repr(value)


def type_of(tensor):
    return f"{WORDS[tensor.dtype]}[{', '.join(map(str, tensor.shape))}]"


def module_of(op, attributes, operands, results):
    """A function of one node, in Forge's text form."""
    given = [(f"x{i}", t) for i, t in enumerate(operands) if t is not None]
    inputs = ", ".join(f"{name}: {type_of(t)}" for name, t in given)
    used = ", ".join("_" if t is None else f"%x{i}" for i, t in enumerate(operands))
    values = ", ".join(f"%y{i}" for i in range(results))
    fields = ", ".join(f"{name} = {text_of(value)}" for name, value in attributes.items())
    return f"module {{ function main({inputs}) {{ {values} = {op}({used}) {{{fields}}} return y0 = %y0 }} }}"


class Samples:
    """What is written for the test program, and what is not."""

    def __init__(self, catalogue):
        self.catalogue = catalogue  # op: source, attributes, number of results
        self.plain = {}
        for op, (source, attributes, _) in catalogue.items():
            named = re.search(r"torch\.([\w.]+)", source)
            if named and not attributes:
                self.plain.setdefault(named[1], op)
        self.writer, self.not_mapped, self.unlike = Writer(), collections.Counter(), []

    def add(self, info, sample):
        label = f"{info.name}{'.' + info.variant_test_name if info.variant_test_name else ''}"
        try:
            op, attributes, operands = call_of(info.name, info.variant_test_name, sample, self.plain)
            self.check(operands)
            results = 1 if op == "layer_norm" else self.catalogue[op][2]  # statistics only where asked for
            module = module_of(op, attributes, operands, results)
            want = info.op(sample.input, *sample.args, **sample.kwargs)
        except NotMapped as reason:
            self.not_mapped[label, str(reason).split("\n")[0]] += 1
            return
        want = want if isinstance(want, torch.Tensor) else want[0]
        if want.dtype not in WORDS:
            self.not_mapped[label, f"a result of {want.dtype}"] += 1
            return
        self.compare(op, attributes, operands, want)
        self.writer.add({"case": module, "op": label}, [None if t is None else t.resolve_neg() for t in operands],
                        [want.resolve_neg()], [])

    @staticmethod
    def check(operands):
        for t in operands:
            if t is not None and (not isinstance(t, torch.Tensor) or t.dtype not in WORDS):
                raise NotMapped("an operand that is no tensor of a type that is compared")
            if t is not None and t.numel() > MOST_ELEMENTS:
                raise NotMapped("more elements than are compared")

    def compare(self, op, attributes, operands, want):
        """The function of make_goldens.py gives what PyTorch's does."""
        if op not in OPS:
            return
        standard = {name: parse(text) for name, text in self.catalogue[op][1].items()}
        try:
            got = OPS[op]({**standard, **attributes}, *operands)
        except (NotInTorch, RuntimeError, IndexError, TypeError, ValueError, KeyError, AttributeError,
                ArithmeticError):
            return
        got = got[0] if isinstance(got, (tuple, list)) else got
        if got.dtype == want.dtype and got.shape == want.shape:
            if not torch.allclose(got, want, rtol=1e-9, atol=1e-9, equal_nan=True):
                self.unlike.append(f"make_goldens.py has another result for {op} {attributes}")


def catalogue_of(program):
    """The source, the standard attributes and the number of results of each op."""
    lines = subprocess.run([program, "--catalogue"], check=True, stdout=subprocess.PIPE).stdout.splitlines()
    return {entry["op"]: (entry["source"], entry["attributes"], entry["results"]) for entry in map(json.loads, lines)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("filter", nargs="?", default="", help="regular expression of names in the database")
    parser.add_argument("--devices", default="cpu:0", help="beside the reference, with commas")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--reasons", action="store_true", help="lists what is not mapped by name")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    samples = Samples(catalogue_of(options.bin / "forge-ops-doc"))
    for info in op_db:
        if not re.search(options.filter, info.name):
            continue
        for dtype in (torch.float64, torch.int64, torch.bool, torch.complex128):
            if dtype in info.supported_dtypes("cpu"):
                try:
                    for sample in info.sample_inputs("cpu", dtype):
                        samples.add(info, sample)
                except (RuntimeError, ImportError, ValueError) as error:
                    samples.not_mapped[info.name, f"no samples: {str(error).split(chr(10))[0]}"] += 1
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "opinfo.npz"
        samples.writer.save(path)
        environment = {**os.environ, "FORGE_OPINFO": str(path), "FORGE_OPINFO_DEVICES": options.devices}
        status = subprocess.run([options.bin / "forge_goldens_test", "--gtest_filter=OpInfo*", "--gtest_brief=1"],
                                env=environment, check=False).returncode
    reasons = collections.Counter()
    for (name, reason), count in samples.not_mapped.items():
        reasons[reason] += count
        if options.reasons:
            print(f"not mapped: {count:5} of {name}: {reason}")
    print(f"{len(samples.writer.index)} samples mapped, {sum(reasons.values())} not mapped:")
    for reason, count in reasons.most_common(25):
        print(f"  {count:6} {reason}")
    print(*samples.unlike, sep="\n")
    return 1 if samples.unlike else status


if __name__ == "__main__":
    sys.exit(main())
