#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes ../data/encoder.bin, an exported layer of a transformer, and encoder.npz, what PyTorch computes with it; the
tests that have no torch run it."""

import pathlib

import numpy as np
import torch
from torch import nn
from torch.export import Dim

import forge

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data"


def main():
    """Writes both."""
    torch.manual_seed(7)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    first, second = torch.randn(2, 5, 16), torch.randn(3, 7, 16)
    FOLDER.mkdir(exist_ok=True)
    forge.export(layer, (first,), dynamic_shapes={"src": {0: Dim("batch"), 1: Dim("sequence")}},
                 path=FOLDER / "encoder.bin")
    with torch.no_grad():
        np.savez(FOLDER / "encoder.npz", x0=first, y0=layer(first), x1=second, y1=layer(second))


if __name__ == "__main__":
    main()
