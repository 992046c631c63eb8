# SPDX-License-Identifier: Apache-2.0
"""What is timed: modules with seeded weights, and their arguments."""

import math
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "export"))
import run_models  # noqa: E402


class Mlp(nn.Module):
    """Linear layers with GELU between them"""

    def __init__(self, *widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.gelu(layer(x))
        return self.layers[-1](x)


class Block(nn.Module):
    """A layer of a transformer, its norms first

    attention: "written out", with products and softmax, or "one call", scaled_dot_product_attention
    """

    def __init__(self, width, heads, attention):
        super().__init__()
        self.heads, self.written_out = heads, attention == "written out"
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.back = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (t.reshape(batch, tokens, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(self.first(x)).chunk(3, -1))
        if self.written_out:
            y = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.back(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Attention(nn.Module):
    """scaled_dot_product_attention: plain, causal, with a mask of keys, with numbers that are added, or grouped heads"""

    def __init__(self, variant):
        super().__init__()
        self.options = {"causal": {"is_causal": True}, "grouped heads": {"enable_gqa": True}}.get(variant, {})

    def forward(self, q, k, v, mask=None):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **self.options)


def attention(variant, batch, heads, queries, keys, depth):
    """A module and its arguments"""
    of_keys = heads // 4 if variant == "grouped heads" else heads
    q, k, v = torch.randn(batch, heads, queries, depth), *torch.randn(2, batch, of_keys, keys, depth)
    mask = {"mask of keys": lambda: torch.rand(batch, 1, 1, keys) > 0.1,
            "added to keys": lambda: torch.randn(batch, 1, 1, keys),
            "added to scores": lambda: torch.randn(1, heads, queries, keys)}.get(variant)
    return Attention(variant), (q, k, v) + ((mask(),) if mask else ())


def tokens(make, batch, length):
    """A model of run_models.py and tokens"""
    return make()[0], (torch.randint(0, 96, (batch, length)),)


def _attention_rows():
    variants = ("plain", "causal", "mask of keys", "added to keys", "added to scores", "grouped heads")
    shapes = ((1, 12, 128, 128, 64), (8, 12, 384, 384, 64), (1, 16, 1024, 1024, 128), (1, 8, 2048, 2048, 64),
              (32, 12, 256, 256, 32), (4, 16, 1, 1024, 64))
    for shape in shapes:
        for variant in variants:
            if variant != "causal" or shape[2] == shape[3]:
                yield " x ".join(map(str, shape)) + ", " + variant, lambda v=variant, s=shape: attention(v, *s)


# {table: {row: a function that gives a module and its arguments}}
TABLES = {
    "mlp": {
        "784-512-256-10, batch 1": lambda: (Mlp(784, 512, 256, 10), (torch.randn(1, 784),)),
        "784-512-256-10, batch 64": lambda: (Mlp(784, 512, 256, 10), (torch.randn(64, 784),)),
        "1024-4096-4096-1024, batch 32": lambda: (Mlp(1024, 4096, 4096, 1024), (torch.randn(32, 1024),)),
    },
    "block": {
        f"width 384, 12 heads, {b} x {t} tokens, attention {how}":
            lambda b=b, t=t, how=how: (Block(384, 12, how), (torch.randn(b, t, 384),))
        for b, t in ((1, 64), (8, 128), (1, 512)) for how in ("written out", "one call")
    },
    "attention": dict(_attention_rows()),
    "gpt2": {f"12 layers, {b} x {t} tokens": lambda b=b, t=t: tokens(lambda: run_models.gpt2(12), b, t)
             for b, t in ((1, 1), (1, 32), (1, 128), (4, 128), (1, 512))},
    "qwen3": {f"28 layers, {b} x {t} tokens": lambda b=b, t=t: tokens(run_models.real_qwen3, b, t)
              for b, t in ((1, 1), (1, 32), (1, 128))},
}
