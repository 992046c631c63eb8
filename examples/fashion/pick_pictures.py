#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes one PNG for each class: the first test picture of it that the model classifies right."""

import argparse
import pathlib

import numpy as np
from PIL import Image

import dataset
import export


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=dataset.DEBIAN_FOLDER, help="folder of the idx files")
    parser.add_argument("--model", default=here / "fashion.onnx", type=pathlib.Path)
    parser.add_argument("--output-dir", default=here / "pictures", type=pathlib.Path)
    args = parser.parse_args()

    pictures, labels = dataset.load("t10k", args.data)
    probabilities = export.run(args.model, pictures)
    right = probabilities.argmax(1) == labels
    args.output_dir.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(dataset.LABELS):
        candidates = np.flatnonzero(right & (labels == number))
        if not candidates.size:
            raise SystemExit(f"pick_pictures: error: no picture of {name} is classified right")
        index = candidates[0]
        path = args.output_dir / f"{name}.png"
        Image.fromarray(pictures[index], "L").save(path, optimize=True)
        print(f"{path}: test picture {index}, probability {probabilities[index, number]:.4f}")


if __name__ == "__main__":
    main()
