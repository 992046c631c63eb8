#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times training steps of Adam beside PyTorch, eager and compiled, alternately in one run; or beside the model's own
forward run.

  PYTHON tests/python/training/speed.py [--device cpu] [--threads 2] [--turns 15] [--no-compile] [FILTER]
  PYTHON tests/python/training/speed.py --device vulkan --forward [FILTER]

Prints the medians in milliseconds and Forge's share of the others. Needs torch, torchvision and transformers.
"""

import argparse
import copy
import re
import statistics
import sys
import time

import torch
from torch import nn

import forge
from compare_torch import Net
from gradients import Lstm, Scores

BATCH = 64


def classes(module, batch, *shape):
    return module, torch.rand(batch, *shape), torch.randint(0, 10, (batch,))


def resnet18():
    from torchvision.models import resnet18 as make

    return classes(make(num_classes=10), 16, 3, 64, 64)


def vit():
    from torchvision.models import VisionTransformer

    return classes(VisionTransformer(64, 8, 4, 4, 128, 256, num_classes=10), 16, 3, 64, 64)


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=4, n_embd=256, n_head=8, vocab_size=2048, n_positions=128, resid_pdrop=0, embd_pdrop=0,
                        attn_pdrop=0)
    return Scores(GPT2LMHeadModel(config), use_cache=False), torch.randint(0, 2048, (4, 128)), \
        torch.randint(0, 2048, (512,))


def lstm():
    return Scores(Lstm(2048, 256)), torch.randint(0, 2048, (16, 64)), torch.randint(0, 2048, (1024,))


MODELS = {
    "mlp": lambda: classes(Net("mnist-mlp"), BATCH, 784),
    "cnn": lambda: classes(Net("mnist-cnn"), BATCH, 1, 28, 28),
    "resnet18": resnet18,
    "vit": vit,
    "gpt2": gpt2,
    "lstm": lstm,
}


def torch_step(module, run, x, label):
    """A function that takes a step."""
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(run(x), label).backward()
        optimizer.step()

    return step


def steps_of(module, x, label, options):
    """The functions that are timed, by name."""
    own = copy.deepcopy(module)  # whose memory the exported model shares
    model = forge.export(own, (x,))
    training = model.training(options.device, loss="cross_entropy", optimizer="adam", threads=options.threads)
    batch = {"x": x.numpy(), "label": label.numpy()}
    out = {"Forge": lambda: training.step(1e-3, **batch)}
    if options.forward:
        session = model.session(options.device, threads=options.threads)
        out["forward"] = lambda: session.run(x=batch["x"])
        return out
    eager = copy.deepcopy(module)
    out["eager"] = torch_step(eager, eager, x, label)
    if not options.no_compile:
        compiled = copy.deepcopy(module)
        out["compiled"] = torch_step(compiled, torch.compile(compiled), x, label)
    return out


def medians(steps, turns):
    """The median of each step in milliseconds, over `turns` in turn."""
    times = {name: [] for name in steps}
    for step in steps.values():
        for _ in range(3):
            step()
    for _ in range(turns):
        for name, step in steps.items():
            begin = time.perf_counter()
            step()
            times[name].append(1e3 * (time.perf_counter() - begin))
    return {name: statistics.median(t) for name, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="", help="regular expression of models")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", default=2, type=int)
    parser.add_argument("--turns", default=15, type=int)
    parser.add_argument("--forward", action="store_true", help="beside the forward run on the same device")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name, make in MODELS.items():
        if not re.search(options.filter, name):
            continue
        torch.manual_seed(1)
        found = medians(steps_of(*make(), options), options.turns)
        others = "  ".join(f"{other} {ms:8.2f} ms {found['Forge'] / ms:5.2f}"
                           for other, ms in found.items() if other != "Forge")
        print(f"{name:10} Forge {found['Forge']:8.2f} ms  {others}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
