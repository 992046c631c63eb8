#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites expected_failures.tsv after a change: the tests of the ONNX standard that fail, with their causes.

  tests/conformance/onnx/expected_failures.py                  on the devices of this machine

Causes that the file states are kept; the others are what Forge says, to be replaced by hand where that is no cause.
A test that fails on every device is one line with the backend * and the cause on the reference.
Exit status: 1 the tests could not be run.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TABLE = HERE / "expected_failures.tsv"
PROGRAM = ROOT / "build" / "release" / "bin" / "forge_conformance_test"
MOST = 160  # Characters of a cause.


def results():
    """(test, backend, message) of every test; the message is empty where it passes."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        environment = os.environ | {"FORGE_ONNX_EXPECT": "nothing", "GTEST_OUTPUT": f"json:{report}"}
        subprocess.run([PROGRAM, "--gtest_filter=Standard/OnnxNodeTest.*", "--gtest_brief=1"], env=environment,
                       check=False, stdout=subprocess.DEVNULL)
        if not report.exists():
            sys.exit("expected_failures: the tests crash, or are not built")
        tests = json.loads(report.read_text(encoding="utf-8"))["testsuites"][0]["testsuite"]
    for test in tests:
        where, backend = re.fullmatch(r"(.*) on ([a-z]+):\d+", test["value_param"]).groups()
        failures = test.get("failures", [])
        yield where, backend, failures[0]["failure"] if failures else ""


def cause_of(message):
    found = re.search(r"[A-Z_]{5,}: (.*)", message)
    text = re.sub(r"\S*/model\.onnx: ", "", found[1] if found else message.splitlines()[-1])
    return text[:MOST].replace("\t", " ").strip()


def main():
    stated = {}
    header = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            test, backend, cause = line.split("\t")
            stated[test, backend] = cause
    failing = collections.defaultdict(dict)
    backends = set()
    for test, backend, message in results():
        backends.add(backend)
        if message:
            failing[test][backend] = cause_of(message)
    rows = []
    for test, causes in failing.items():
        if set(causes) == backends:
            causes = {"*": causes["reference"]}
        rows += [(test, backend, stated.get((test, backend), cause)) for backend, cause in causes.items()]
    rows.sort(key=lambda row: (row[2], row[0], row[1]))
    TABLE.write_text("\n".join([*header, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    for backend in sorted(backends):
        print(f"{backend}: {sum(backend in causes for causes in failing.values())} fail")
    return 0


if __name__ == "__main__":
    sys.exit(main())
