# SPDX-License-Identifier: Apache-2.0
"""Imported first: runs the script in the environment that tools/fetch-models --oracle makes, which has numpy.

Exit status 77 where there is none.
"""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
ORACLE = CACHE / "forge" / "oracle-venv"
if pathlib.Path(sys.prefix).resolve() != ORACLE.resolve():
    if not (ORACLE / "forge-stamp").exists():
        print(f"{sys.argv[0]}: skipped: tools/fetch-models --oracle has not run")
        sys.exit(77)
    os.execv(ORACLE / "bin" / "python", [str(ORACLE / "bin" / "python"), *sys.argv])
sys.path.insert(0, str(ROOT / "python"))
