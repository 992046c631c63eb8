#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists every version of every operator that the onnx package defines, for onnx_schemas_test.cc.

  tests/formats/onnx_schemas.py --write    with the onnx package installed: renews onnx_schemas.tsv

A line is: domain, operator, version, how the importer has it. `row`: a row of its own; `earlier`: the row of an
earlier version serves it; `missing`: it is refused. New versions get `?`, which the test refuses: look at what
changed, then write one of the three.
"""

import argparse
import pathlib

from onnx import defs

LIST = pathlib.Path(__file__).with_name("onnx_schemas.tsv")
HEADER = "# domain, operator, version, how the importer has it; written by onnx_schemas.py\n"


def known():
    if not LIST.exists():
        return {}
    rows = [line.split("\t") for line in LIST.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {(domain, name, int(version)): how for domain, name, version, how in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="writes the list instead of printing what is new")
    write = parser.parse_args().write
    before = known()
    schemas = {(s.domain, s.name, s.since_version) for s in defs.get_all_schemas_with_history()}
    rows = [(*key, before.get(key, "?")) for key in sorted(schemas)]
    if write:
        lines = ["\t".join(map(str, row)) for row in rows]
        LIST.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    else:
        print("\n".join("\t".join(map(str, row)) for row in rows if row[3] == "?"))


if __name__ == "__main__":
    main()
