#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the files beside this script from the shipped model and the Fashion-MNIST test pictures.

  pictures.npz       `pictures` uint8 [1000, 28, 28] and `labels` uint8 [1000], the first of the set
  probabilities.npy  f32 [1000, 10], by onnxruntime

Run it after training, in the virtual environment of examples/fashion/requirements.txt.
"""

import argparse
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = HERE.parents[2] / "examples" / "fashion"
sys.path.insert(0, str(EXAMPLE))

import dataset  # noqa: E402
import export  # noqa: E402

COUNT = 1000


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=dataset.DEBIAN_FOLDER, help="folder of the idx files")
    parser.add_argument("--model", default=EXAMPLE / "fashion.onnx", type=pathlib.Path)
    parser.add_argument("--output-dir", default=HERE, type=pathlib.Path)
    args = parser.parse_args()

    pictures, labels = (part[:COUNT] for part in dataset.load("t10k", args.data))
    probabilities = export.run(args.model, pictures)
    np.savez_compressed(args.output_dir / "pictures.npz", pictures=pictures, labels=labels)
    np.save(args.output_dir / "probabilities.npy", probabilities)
    hits = int((probabilities.argmax(1) == labels).sum())
    print(f"{args.output_dir}: {hits} of {COUNT} pictures right")


if __name__ == "__main__":
    main()
