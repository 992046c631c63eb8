# SPDX-License-Identifier: Apache-2.0
"""The console scripts: the tools, which lie beside the library."""

from __future__ import annotations

import os
import pathlib
import sys


def _start(name):
    path = pathlib.Path(__file__).parent / "bin" / name
    try:
        os.execv(path, [name, *sys.argv[1:]])
    except OSError as error:
        print(f"{name}: error: {path} cannot be started: {error.strerror}", file=sys.stderr)
        sys.exit(1)


def run():
    """forge-run"""
    _start("forge-run")


def devices():
    """forge-devices"""
    _start("forge-devices")


def convert():
    """forge-convert"""
    _start("forge-convert")


def inspect():
    """forge-inspect"""
    _start("forge-inspect")


def parity():
    """forge-parity"""
    _start("forge-parity")


def bench():
    """forge-bench"""
    _start("forge-bench")
