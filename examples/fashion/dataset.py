# SPDX-License-Identifier: Apache-2.0
"""Reads Fashion-MNIST as Debian's package dataset-fashion-mnist installs it, and prepares it."""

import gzip
import pathlib

import numpy as np

DEBIAN_FOLDER = pathlib.Path("/usr/share/datasets/fashion-mnist")

LABELS = (
    "t-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle-boot",
)

# Mean and standard deviation of the 60,000 training pictures after division by 255.
MEAN = 0.2860
STD = 0.3530
PREPROCESS = f"resize=28x28,mean={MEAN:.4f},std={STD:.4f},layout=nchw,color=gray"


def read_idx(path):
    """Reads a gzip-compressed idx file of unsigned bytes: uint8, of the shape its header states."""
    with gzip.open(path, "rb") as file:
        data = file.read()
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise ValueError(f"{path}: not an idx file of unsigned bytes")
    rank = data[3]
    shape = np.frombuffer(data, ">u4", rank, 4).astype(np.int64)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def load(part, folder=DEBIAN_FOLDER):
    """Loads `part`, "train" or "t10k": pictures [n, 28, 28] and labels [n], both uint8."""
    folder = pathlib.Path(folder)
    pictures = read_idx(folder / f"{part}-images-idx3-ubyte.gz")
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")
    if len(pictures) != len(labels):
        raise ValueError(f"{folder}: {len(pictures)} pictures but {len(labels)} labels")
    return pictures, labels


def normalise(pictures, mean=MEAN, std=STD):
    """What the model's `preprocess` metadata asks for: (value / 255 - mean) / std, all in f32.

    pictures: uint8 [n, 28, 28]; returns f32 [n, 1, 28, 28].
    """
    scaled = pictures.astype(np.float32) / np.float32(255)
    return ((scaled - np.float32(mean)) / np.float32(std))[:, None, :, :]
