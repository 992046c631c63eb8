# SPDX-License-Identifier: Apache-2.0
"""What the makers of inputs share."""

import json
import pathlib
import subprocess
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """One run of a model."""

    name: str  # Letters, digits and "-".
    feeds: dict[str, np.ndarray]
    meaning: Any = None  # What the outputs should say, for the judge of the model.
    inner: str = ""  # Compare this value of the graph instead of the outputs.


class Missing(Exception):
    """Something that makes inputs is not there: a program, a font, a vocabulary."""


def run(command, given=None):
    """The stdout of `command`, with `given` on its stdin.  errors: Missing"""
    try:
        return subprocess.run(command, input=given, check=True, stdout=subprocess.PIPE).stdout
    except FileNotFoundError:
        raise Missing(f"{command[0]} is not installed") from None


def read_json(model, name):
    """The JSON file `name` of the model's folder.  errors: Missing"""
    model = pathlib.Path(model)
    folder = model.parent if model.parent.name == model.stem else model.with_suffix("")
    if not (folder / name).is_file():
        raise Missing(f"tools/fetch-models {model.stem} has not brought {name}")
    return json.loads((folder / name).read_text(encoding="utf-8"))
