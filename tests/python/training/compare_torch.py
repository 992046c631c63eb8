#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares forge-train with PyTorch on Fashion-MNIST.

steps: 20 steps of each optimiser on one batch from the same weights; every parameter must agree.
accuracy: trains both on the same data with the same options; prints accuracies and samples a second. The rate falls
  along a cosine: at a constant rate accuracies of seeds differ by more than a point at the end.

Needs torch, numpy and Debian's package dataset-fashion-mnist.
  PYTHON tests/python/training/compare_torch.py steps --device cpu
  PYTHON tests/python/training/compare_torch.py accuracy --model mnist-cnn --samples 10000 --seeds 2
"""

import argparse
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from unittest import mock

import numpy as np
import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[3]
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
# Adam divides gradients by their size, so rounding of small ones moves weights by a share of the
# rate. The bound is therefore PyTorch's own distance in f32 from f64, a few times over, since the
# two round differently, and at least the distance of a sum in another order. Its own distance is the
# largest of some orders of the batch, since a gradient that cancels to nothing is of any sign.
FACTOR, LEAST, ORDERS = 8, 1e-5, 5
HALVES = {"f16": torch.float16, "bf16": torch.bfloat16}
ROWS = (
    ("mnist-mlp", "sgd", 0.1, {}),
    ("mnist-mlp", "sgd", 0.05, {"momentum": 0.9}),
    ("mnist-mlp", "adam", 1e-3, {}),
    ("mnist-mlp", "adam", 1e-3, {"weight-decay": 0.1}),
    ("mnist-mlp", "adamw", 1e-3, {"weight-decay": 0.1}),
    ("mnist-mlp", "sgd", 0.1, {"clip-norm": 0.5}),
    ("mnist-mlp", "sgd", 0.1, {"clip-value": 0.003}),
    ("mnist-mlp", "sgd", 0.05, {"momentum": 0.9, "nesterov": True}),
    ("mnist-mlp", "adagrad", 0.01, {"weight-decay": 0.01}),
    ("mnist-mlp", "rmsprop", 1e-3, {}),
    ("mnist-mlp", "rmsprop", 1e-3, {"momentum": 0.5}),
    ("mnist-mlp", "lion", 1e-4, {"weight-decay": 0.1}),
    ("mnist-mlp", "muon", 1e-3, {"weight-decay": 0.1}),
    ("mnist-mlp", "muon", 1e-3, {"momentum": 0.9, "by-adamw": "fc2"}),
    ("mnist-mlp", "sgd", 0.1, {"accumulate": 4, "batch": 16}),
    ("mnist-mlp", "sgd", 0.1, {"average": 0.9}),
    ("mnist-mlp", "sgd", 0.1, {"precision": "bf16"}),
    ("mnist-mlp", "sgd", 0.1, {"precision": "f16"}),
    ("mnist-cnn", "sgd", 0.05, {"momentum": 0.9}),
    ("mnist-cnn", "adam", 1e-3, {}),
    ("mnist-cnn", "sgd", 0.05, {"momentum": 0.9, "precision": "bf16"}),
    ("mnist-cnn", "sgd", 0.05, {"momentum": 0.9, "precision": "f16"}),
)


def read_idx(path):
    data = gzip.open(path).read()
    shape = np.frombuffer(data, ">u4", data[3], 4).astype(np.int64)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def load(part, samples, model):
    """Pictures as `model` takes them, f32 in 0..1, and labels."""
    x = read_idx(DATA / f"{part}-images-idx3-ubyte.gz")[:samples].astype(np.float32) / 255
    x = x.reshape(-1, 784) if model == "mnist-mlp" else x[:, None]
    return x, read_idx(DATA / f"{part}-labels-idx1-ubyte.gz")[:samples].astype(np.int64)


class Net(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        if model == "mnist-mlp":
            self.fc1, self.fc2 = nn.Linear(784, 256), nn.Linear(256, 10)
            return
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(1568, 128), nn.Linear(128, 10)

    def forward(self, x):
        if self.model == "mnist-cnn":
            x = torch.max_pool2d(torch.relu(self.conv1(x)), 2)
            x = torch.max_pool2d(torch.relu(self.conv2(x)), 2).flatten(1)
        return self.fc2(torch.relu(self.fc1(x)))


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of Chen et al., "Symbolic discovery of optimization algorithms", 2023, which torch does not have."""

    def __init__(self, parameters, lr, weight_decay):
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * torch.sign(0.9 * m + 0.1 * p.grad))
                m.mul_(0.99).add_(0.01 * p.grad)


class Muon:
    """torch.optim.Muon of matrices, in their type instead of in bf16, and AdamW of all else"""

    def __init__(self, net, lr, options):
        decay, pattern = options.get("weight-decay", 0), options.get("by-adamw")
        matrices, others = [], []
        for name, p in net.named_parameters():
            (matrices if p.ndim == 2 and not (pattern and re.search(pattern, name)) else others).append(p)
        self.dtype = others[0].dtype
        self.parts = [
            torch.optim.Muon(matrices, lr=lr, weight_decay=decay, momentum=options.get("momentum", 0.95),
                             adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=lr, weight_decay=decay),
        ]

    def zero_grad(self):
        for part in self.parts:
            part.zero_grad()

    def step(self):
        with mock.patch.object(torch, "bfloat16", self.dtype):
            for part in self.parts:
                part.step()


def optimizer_of(net, name, lr, options):
    if name == "muon":
        return Muon(net, lr, options)
    kwargs = {"lr": lr, "weight_decay": options.get("weight-decay", 0)}
    if name in ("sgd", "rmsprop"):
        kwargs["momentum"] = options.get("momentum", 0)
    if name == "sgd":
        kwargs["nesterov"] = options.get("nesterov", False)
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
             "adagrad": torch.optim.Adagrad, "rmsprop": torch.optim.RMSprop, "lion": Lion}
    return kinds[name](net.parameters(), **kwargs)


def torch_step(net, optimizer, x, y, options):
    optimizer.zero_grad()
    half = HALVES.get(options.get("precision")) if x.dtype == torch.float32 else None
    scale = 65536 if half == torch.float16 else 1
    with torch.autocast("cpu", dtype=half, enabled=half is not None):
        scores = net(x)
    (nn.functional.cross_entropy(scores.to(x.dtype), y) * scale).backward()
    for p in net.parameters():
        p.grad /= scale
    if "clip-value" in options:
        nn.utils.clip_grad_value_(net.parameters(), options["clip-value"])
    if "clip-norm" in options:
        nn.utils.clip_grad_norm_(net.parameters(), options["clip-norm"])
    optimizer.step()


def read_weights(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    out = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        out[name] = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
    return {name: torch.from_numpy(array.copy()) for name, array in out.items()}


def forge(args, model, data, lr, *more):
    command = [ROOT / "build/release/bin/forge-train", model, "--data", data, "--device", args.device]
    command += ["--json", "--lr", str(lr), *map(str, more)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {run.stderr}")
    return json.loads(run.stdout)


def torch_weights(model, weights, x, y, optimizer, dtype):
    """The parameters after 20 steps in `dtype`; optimizer: name, rate, options."""
    net = Net(model)
    net.load_state_dict(weights)
    net, x = net.to(dtype), torch.from_numpy(x).to(dtype)
    made = optimizer_of(net, *optimizer)
    decay = optimizer[2].get("average", 0)
    average = {name: p.detach().clone() for name, p in net.named_parameters()}
    for _ in range(20):
        torch_step(net, made, x, torch.from_numpy(y), optimizer[2])
        for name, p in net.named_parameters():
            average[name].mul_(decay).add_(p.detach(), alpha=1 - decay)
    return average


def distance(have, want):
    return max(float((have[k] - want[k]).abs().max() / want[k].abs().max()) for k in want)


def compare_steps(args):
    """Prints a row for each optimiser, with the largest distances of a parameter from PyTorch in f64,
    as shares of its largest element: Forge's, and the largest of PyTorch in f32. Returns how many disagree."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for model, name, lr, options in ROWS:
            x, y = load("train", 64, model)
            # Flat backgrounds make ties in max pools, which rounding decides differently.
            x = x + np.random.default_rng(0).random(x.shape).astype(np.float32) / 100
            np.savez(folder / "d.npz", image=x, label=y)
            forge(args, model, folder / "d.npz", 0, "--weights-out", folder / "a")
            weights = read_weights(folder / "a")
            exact = torch_weights(model, weights, x, y, (name, lr, options), torch.float64)
            own = []
            for turn in range(ORDERS):
                order = np.random.default_rng(turn).permutation(len(y))
                own.append(torch_weights(model, weights, x[order], y[order], (name, lr, options), torch.float32))
            more = [word for key, value in options.items()
                    for word in ((f"--{key}",) if value is True else (f"--{key}", value))]
            more += ["--optimizer", name, "--epochs", 20, "--weights-out", folder / "b"]
            forge(args, model, folder / "d.npz", lr, *more)
            here, there = distance(read_weights(folder / "b"), exact), max(distance(o, exact) for o in own)
            wrong += here > max(FACTOR * there, LEAST)
            print(f"{model}  {name:5}  {str(options):22}  forge {here:.1e}  torch {there:.1e}", flush=True)
    return wrong


def save_data(args, folder):
    """Writes train.npz and t10k.npz, as forge-train reads them."""
    for part, samples in (("train", args.samples), ("t10k", 10000)):
        x, y = load(part, samples, args.model)
        np.savez(folder / f"{part}.npz", image=x, label=y)


def forge_epochs(args, folder, seed, *more):
    """Trains on what save_data wrote; forge-train's report."""
    return forge(args, args.model, folder / "train.npz", 1e-3, "--schedule", "cosine", "--validate",
                 folder / "t10k.npz", "--epochs", args.epochs, "--seed", seed, *more)


def torch_epochs(args, seed):
    """Trains; the accuracy on the test set and the seconds of training, for each epoch."""
    torch.manual_seed(seed)
    x, y = map(torch.from_numpy, load("train", args.samples, args.model))
    held, labels = map(torch.from_numpy, load("t10k", 10000, args.model))
    net = Net(args.model)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * -(-len(x) // 64))
    epochs = []
    for _ in range(args.epochs):
        begin = time.monotonic()
        for batch in torch.randperm(len(x)).split(64):
            torch_step(net, optimizer, x[batch], y[batch], {})
            rate.step()
        seconds = time.monotonic() - begin
        with torch.no_grad():
            epochs.append((float((net(held).argmax(1) == labels).float().mean()), seconds))
    return epochs


def torch_accuracy(args, seed):
    epochs = torch_epochs(args, seed)
    return epochs[-1][0], args.epochs * args.samples / sum(seconds for _, seconds in epochs)


def compare_accuracy(args):
    """Prints a row for each seed, and the means."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        save_data(args, folder)
        for seed in range(args.seeds):
            result = forge_epochs(args, folder, seed)
            seconds = sum(e["seconds"] for e in result["epochs"])
            rows.append(
                (
                    result["validation"]["accuracy"],
                    args.epochs * args.samples / seconds,
                    *torch_accuracy(args, seed),
                )
            )
            print("seed {}  forge {:.4f} {:6.0f}/s  torch {:.4f} {:6.0f}/s".format(seed, *rows[-1]))
    mean = np.mean(rows, axis=0)
    print("mean    forge {:.4f} {:6.0f}/s  torch {:.4f} {:6.0f}/s".format(*mean))
    return int(abs(mean[0] - mean[2]) > args.points / 100)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("steps", "accuracy"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default="mnist-mlp", choices=("mnist-mlp", "mnist-cnn"))
    parser.add_argument("--samples", default=60000, type=int)
    parser.add_argument("--epochs", default=3, type=int)
    parser.add_argument("--seeds", default=2, type=int)
    parser.add_argument("--points", default=0.3, type=float, help="largest difference of the means")
    args = parser.parse_args()
    torch.set_num_threads(2)
    sys.exit(1 if (compare_steps if args.what == "steps" else compare_accuracy)(args) else 0)


if __name__ == "__main__":
    main()
