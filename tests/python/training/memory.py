#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the memory of training steps: forge-train with budgets for activations, and what PyTorch saves for backward.

  PYTHON tests/python/training/memory.py [--device cpu] [--batch N] [FILTER]

PyTorch's numbers are the bytes of all tensors that autograd saves, parameters left out, each memory once. Forge's are
those of the plan of a whole step, its inputs and gradients among them, and the time of a step.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn

import forge
from gradients import Scores

ROOT = pathlib.Path(__file__).resolve().parents[3]
SHARES = (None, 0.5, 0.25, 0.125, 0)  # of what gradients need; 0: as little as can be


def resnet18(batch):
    from torchvision.models import resnet18 as make

    return Scores(make(num_classes=10)), torch.randn(batch, 3, 64, 64)


def vit(batch):
    from torchvision.models import VisionTransformer

    return Scores(VisionTransformer(64, 8, 8, 4, 128, 256, num_classes=10)), torch.randn(batch, 3, 64, 64)


MODELS = {"resnet18": resnet18, "vit": vit}


def saved_bytes(module, x, label):
    own = {p.untyped_storage().data_ptr() for p in module.parameters()}
    saved = {}

    def keep(t):
        storage = t.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        loss = nn.functional.cross_entropy(module(x), label)
    loss.backward()
    return sum(saved.values())


def train(model, data, options, *more):
    command = [ROOT / "build/release/bin/forge-train", model, "--data", data, "--device", options.device, "--json"]
    command += ["--batch", str(options.batch), "--epochs", "3", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="", help="regular expression of models")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", default=32, type=int)
    options = parser.parse_args()
    for name, make in MODELS.items():
        if not re.search(options.filter, name):
            continue
        torch.manual_seed(0)
        module, x = make(options.batch)
        label = torch.randint(0, 10, (options.batch,))
        print(f"{name}, batch {options.batch}: PyTorch saves {saved_bytes(module, x, label) / 2**20:.0f} MiB")
        with tempfile.TemporaryDirectory() as folder:
            model, data = pathlib.Path(folder) / "model.bin", pathlib.Path(folder) / "data.npz"
            forge.export(module, (x,), path=model)
            np.savez(data, x=x.numpy(), label=label.numpy())
            needed = train(model, data, options, "--activation-budget", str(2**40))["activations"]["saved_bytes"]
            print("budget MiB   activations MiB   step MiB   forward again   seconds")
            for share in SHARES:
                more = [] if share is None else ["--activation-budget", str(max(1, int(share * needed)))]
                result = train(model, data, options, *more)
                a = result.get("activations", {"most_bytes": needed, "flops_again": 0, "flops": 1})
                print(f"{'none' if share is None else f'{share * needed / 2**20:.0f}':>10}   "
                      f"{a['most_bytes'] / 2**20:15.0f}   {result['step_bytes'] / 2**20:8.0f}   "
                      f"{100 * a['flops_again'] / a['flops']:11.0f} %   "
                      f"{min(e['seconds'] for e in result['epochs']):7.2f}", flush=True)


if __name__ == "__main__":
    main()
