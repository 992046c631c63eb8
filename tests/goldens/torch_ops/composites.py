# SPDX-License-Identifier: Apache-2.0
"""Movement by composites."""

import torch
import torch.nn.functional as F

from torch_ops.common import require


def diff(a, x, prepend=None, append=None):
    return torch.diff(x, a["n"], a["axis"], prepend, append)


def one_hot(a, indices, values):
    depth = a["depth"]
    wrapped_ = torch.where(indices < 0, indices + depth, indices).long()
    inside = (wrapped_ >= 0) & (wrapped_ < depth)
    require(depth > 0)
    hit = F.one_hot(torch.where(inside, wrapped_, 0), depth).bool() & inside[..., None]
    return torch.where(hit.movedim(-1, a["axis"]), values[1], values[0])


def blocks(shuffle, axes):
    """PyTorch has the order crd; the other is the same of channels in another order."""

    def compute(a, x):
        if a["order"] == "crd":
            return shuffle(x, a["block"])
        n, c, h, w = x.shape
        b = a["block"]
        if axes == "down":
            return shuffle(x, b).reshape(n, c, b * b, h // b, w // b).movedim(1, 2).reshape(n, -1, h // b, w // b)
        return shuffle(x.reshape(n, b * b, c // b**2, h, w).movedim(1, 2).reshape(n, c, h, w), b)

    return compute
