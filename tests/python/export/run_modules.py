#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the modules of modules.tsv and compares them with PyTorch: run_modules.py [--devices cpu,reference] [FILTER]"""

import argparse
import re
import sys

from compare import compare, print_table
from modules import EXTENTS, OTHER_EXTENTS, cases


def main():
    """Prints a table; status 1 where an exported module differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", default="reference,cpu", help="separated by commas")
    parser.add_argument("filter", nargs="?", default="", help="a regular expression of ids")
    options = parser.parse_args()
    devices, outcomes = options.devices.split(","), []
    for case in cases():
        if not re.search(options.filter, case.id):
            continue
        extents = [EXTENTS, OTHER_EXTENTS] if case.dynamic else [EXTENTS]
        variants = [(tuple(tensor for _, tensor, _ in case.tensors(e)), {}) for e in extents]
        outcomes.append(compare(case.id, case.module(), variants, devices, case.dynamic_shapes()))
    print_table(outcomes, devices)
    wrong = [o.id for o in outcomes if not o.refused and any(v != "equal" for v in o.devices.values())]
    sys.exit(1 if wrong or not outcomes else 0)


if __name__ == "__main__":
    main()
