# SPDX-License-Identifier: Apache-2.0
"""What the functions of all families need."""

import json
import math

import torch

DTYPES = {"f64": torch.float64, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
          "u8": torch.uint8, "bool": torch.bool, "c128": torch.complex128}


class NotInTorch(Exception):
    """PyTorch has no such op, or refuses these operands."""


def require(condition):
    if not condition:
        raise NotInTorch()


def parse(text):
    """An attribute as Forge writes it."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {"infinity": math.inf, "-infinity": -math.inf, "inf": math.inf, "-inf": -math.inf,
                "nan": math.nan}.get(text, text)
