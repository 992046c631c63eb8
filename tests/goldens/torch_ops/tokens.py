# SPDX-License-Identifier: Apache-2.0
"""Positions, experts, spectra, histograms, and what draws tokens."""

import torch

from torch_ops.common import DTYPES, require


def rotary_embedding(a, x, cosine, sine):
    n = cosine.shape[-1]
    left, right, rest = x[..., :n], x[..., n:2 * n], x[..., 2 * n:]
    return torch.cat([left * cosine - right * sine, right * cosine + left * sine, rest], -1)


def axial_rotary_embedding(a, x):
    """By complex numbers, as SAM 2 does."""
    *batch, tokens, channels = x.shape
    head, grid = channels // a["heads"], tokens // a["repeats"]
    rates = a["theta"] ** (-torch.arange(0, head, 4, dtype=torch.float64) / head)
    places = torch.arange(grid)
    angles = torch.cat([torch.outer((places % a["width"]).double(), rates),
                        torch.outer((places // a["width"]).double(), rates)], -1)
    turns = torch.polar(torch.ones_like(angles), angles)[:, None, :]
    pairs = torch.view_as_complex(x.reshape(*batch, a["repeats"], grid, a["heads"], head // 2, 2))
    return torch.view_as_real(pairs * turns).reshape(x.shape)


def grouped_matmul(a, x, weight, expert):
    index = torch.where(expert < 0, expert + weight.shape[0], expert).long()
    inside = ((index >= 0) & (index < weight.shape[0]))[:, None]
    y = torch.einsum("mk,mkn->mn", x, weight[index.clamp(0, weight.shape[0] - 1)])
    return torch.where(inside, y, torch.zeros_like(y))


def log_mel(a, re, im, filters):
    mel = torch.clamp((re * re + im * im) @ filters.T, min=1e-10).log10()
    return (torch.maximum(mel, mel.max() - 8) + 4) / 4


def histogram(a, x):
    return torch.histc(x[(x >= a["low"]) & (x <= a["high"])], a["bins"], a["low"], a["high"]).long()


MASK = 2**32 - 1


def philox(counter, key):
    """Philox4x32-10 of Salmon and others, in whole numbers."""
    c = [counter & MASK, counter >> 32 & MASK, 0, 0]
    k = [key & MASK, key >> 32 & MASK]
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & MASK, first >> 32 ^ c[3] ^ k[1], first & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # Random123's known answer


def random_uniform(a, seed, offset):
    dtype = DTYPES.get(a.get("dtype", "f32"))
    require(dtype is not None)
    count = 1
    for extent in a["shape"]:
        count *= extent
    words = [word for i in range((count + 3) // 4)
             for word in philox((int(offset) + i) % 2**64, int(seed) % 2**64)]
    return torch.tensor([(w >> 8) / 2**24 for w in words[:count]], dtype=dtype).reshape(a["shape"])


def sample_token(a, logits, uniform):
    """One row after another."""
    tokens = []
    for row, goal in zip(logits, uniform):
        order = torch.argsort(row, descending=True, stable=True)[:a["top_k"] or None]
        shares = torch.softmax(row[order] / a["temperature"], 0)
        kept = [i for i in range(len(order)) if i == 0 or float(shares[:i].sum()) < a["top_p"]]
        goal, total = goal * shares[kept].sum(), 0.0
        for i in kept:
            total = total + shares[i]
            if total > goal:
                break
        tokens.append(int(order[i]))
    return torch.tensor(tokens, dtype=torch.int64)
