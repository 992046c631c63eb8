#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the gradients of whole models with PyTorch's, in f64: every parameter, after one step on one batch.

  PYTHON tests/python/training/gradients.py [--devices reference,cpu,vulkan] [--activation-budget BYTES] [FILTER]

Needs torch, torchvision and transformers; nothing is downloaded. Weights are seeded. A step of SGD moves each parameter
by its gradient times the rate, which is large, so that the difference of the parameters is not rounded away.
"""

import argparse
import copy
import re
import sys

import torch
from torch import nn

import forge

RATE = 2.0**16
ALLOWED = 1e-4  # of the largest element of a parameter's gradient
SEED = 2  # with which no ReLU of ResNet-18 gets a number that rounding, in PyTorch's f32 or ours, moves across 0


class Scores(nn.Module):
    """What a model says of each picture or token: [rows, classes]"""

    def __init__(self, model, **options):
        super().__init__()
        self.model, self.options = model, options

    def forward(self, x):
        scores = self.model(x, **self.options)
        return (scores if isinstance(scores, torch.Tensor) else scores[0]).flatten(0, -2)


class Lstm(nn.Module):
    """A language model of two LSTM layers whose output weights are those of the embedding"""

    def __init__(self, words, width):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(words, width), nn.LSTM(width, width, 2, batch_first=True)
        self.bias = nn.Parameter(torch.randn(words) / 10)

    def forward(self, tokens):
        hidden, _ = self.lstm(self.embedding(tokens))
        return hidden @ self.embedding.weight.T + self.bias


def language(model, words, **options):
    return Scores(model, **options), torch.randint(0, words, (2, 12)), torch.randint(0, words, (24,))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=96, n_positions=64, resid_pdrop=0, embd_pdrop=0,
                        attn_pdrop=0)
    return language(GPT2LMHeadModel(config), 96, use_cache=False)


def lstm():
    return language(Lstm(96, 48), 96)


def pictures(model, size):
    return Scores(model), torch.randn(4, 3, size, size), torch.randint(0, 10, (4,))


def resnet18():
    from torchvision.models import resnet18 as make

    return pictures(make(num_classes=10), 64)


def vit():
    from torchvision.models import VisionTransformer

    return pictures(VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10), 32)


MODELS = {"gpt2": gpt2, "lstm": lstm, "resnet18": resnet18, "vit": vit}


def torch_gradients(module, x, label):
    exact = copy.deepcopy(module).double()
    x = x.double() if x.is_floating_point() else x
    loss = nn.functional.cross_entropy(exact(x), label)
    loss.backward()
    return loss.item(), {name: p.grad for name, p in exact.named_parameters()}


def forge_gradients(model, device, budget, x, label):
    training = model.training(device, loss="cross_entropy", optimizer="sgd", activation_budget=budget)
    before = training.variables()
    grades = training.step(RATE, x=x.numpy(), label=label.numpy())
    after = training.variables()
    return grades.loss, {name: torch.from_numpy((v.astype("f8") - after[name]) / RATE) for name, v in before.items()
                         if v.dtype == "f4"}


def distance(have, want):
    """Of the parameter that is farthest: the largest difference, as a share of the largest element."""
    rows = []
    for name, gradient in want.items():
        largest = gradient.abs().max()
        rows.append((float((have[name] - gradient).abs().max() / largest) if largest > 0 else 0.0, name))
    return max(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="", help="regular expression of models")
    parser.add_argument("--devices", default="reference,cpu,vulkan")
    parser.add_argument("--activation-budget", default=0, type=int, help="1: compute as much again as can be")
    options = parser.parse_args()
    wrong = 0
    for name, make in MODELS.items():
        if not re.search(options.filter, name):
            continue
        torch.manual_seed(SEED)
        module, x, label = make()
        model = forge.export(module, (x,))
        loss, want = torch_gradients(module, x, label)
        for device in options.devices.split(","):
            have_loss, have = forge_gradients(model, device, options.activation_budget, x, label)
            missing = sorted(set(want) - set(have))
            if missing:
                print(f"{name:10} {device:10} WITHOUT {', '.join(missing)}")
                wrong += 1
                continue
            far, parameter = distance(have, want)
            wrong += far > ALLOWED
            print(f"{name:10} {device:10} loss {have_loss:.6f}, PyTorch {loss:.6f}; {len(want)} parameters, "
                  f"{far:.1e} ({parameter}){'' if far <= ALLOWED else ' WRONG'}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
