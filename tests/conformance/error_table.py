#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how far each device's answers are from onnxruntime's, for every model of tests/models.tsv.

  tests/conformance/error_table.py                      all devices that run something here
  tests/conformance/error_table.py cpu lavapipe-26      these: reference, cpu, or of tests/lab/lab
  tests/conformance/error_table.py --keep swiftshader   from the reports of the last run, where there are any

Runs the slow model tests of build/PRESET; a cell is the worst ||x - r|| / ||r|| of any output of any
of their cases, random and real. Reports stay in build/PRESET/error-table.

Exit status: 1 a test failed or did not run, 2 bad usage.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICES = ["reference", "cpu", "lavapipe", "lavapipe-25", "lavapipe-26", "swiftshader"]
PROGRAM = "forge_conformance_test"


def test_filter(device):
    """The model tests on what gtest calls `device`."""
    return ":".join(f"*/{suite}.*/{device}_*" for suite in ("SlowModelsTest", "SlowRealInputsTest"))


def run(build, device, report):
    """Runs the tests on `device`; the report is left out where they did not come to an end."""
    report.unlink(missing_ok=True)
    if device in ("reference", "cpu"):
        command = [build / "bin" / PROGRAM, f"--gtest_filter={test_filter(device)}"]
        environment = os.environ | {"GTEST_OUTPUT": f"json:{report}", "GTEST_BRIEF": "1"}
        subprocess.run(command, env=environment, stdout=sys.stderr)
        return
    command = [ROOT / "tests/lab/run-tests", "--preset", build.name, device, test_filter("vulkan")]
    subprocess.run(command, stdout=sys.stderr)
    made = build / "lab" / device / f"{PROGRAM}.json"
    if made.is_file():
        shutil.copyfile(made, report)


def worst_errors(report):
    """{model: (worst error, whether a test failed, tests)} of a report."""
    found = {}
    for suite in json.loads(report.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            model = test.get("value_param", "").split(" on ")[0]
            error, failed, tests = found.get(model, (0.0, False, 0))
            error = max(error, float(test.get("rel_error", 0)))
            found[model] = (error, failed or "failures" in test, tests + ("rel_error" in test))
    return found


def cell(errors, model):
    error, failed, tests = errors.get(model, (0.0, False, 0))
    if failed:
        return "FAILED"
    return f"{error:.1e}" if tests else "skipped"


def main():
    parser = argparse.ArgumentParser(
        prog="error_table", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("devices", metavar="DEVICE", nargs="*", default=DEVICES)
    parser.add_argument("--preset", default="release")
    parser.add_argument("--keep", action="store_true", help="run nothing whose report is there")
    args = parser.parse_args()
    build = ROOT / "build" / args.preset
    reports = build / "error-table"
    reports.mkdir(parents=True, exist_ok=True)
    columns = {}
    for device in args.devices:
        report = reports / f"{device}.json"
        if not (args.keep and report.is_file()):
            run(build, device, report)
        columns[device] = worst_errors(report) if report.is_file() else {}
    models = sorted({model for errors in columns.values() for model in errors if model})
    print("| model | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    cells = {model: [cell(errors, model) for errors in columns.values()] for model in models}
    for model in models:
        print(f"| {model} | " + " | ".join(cells[model]) + " |")
    broken = not models or any("FAILED" in row for row in cells.values()) or not all(columns.values())
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
