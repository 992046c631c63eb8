# SPDX-License-Identifier: Apache-2.0
"""Statistics along axes."""

import torch
import torch.nn.functional as F

from torch_ops.common import require
from torch_ops.losses import checked


def over_axes(function):
    def compute(a, x):
        axes = [axis % x.ndim for axis in a["axes"]] or list(range(x.ndim))
        return function(a, x, axes, a["keep_dims"])

    return compute


def truth(function):
    def compute(a, x, axes, keep):
        return (function(x, axes, keepdim=keep) if axes else function(x)).to(torch.bool)

    return compute


def logsumexp(a, x, axes, keep):
    return torch.logsumexp(x, axes, keepdim=keep) if axes else torch.logsumexp(x, 0)


def spread(moment):
    def compute(a, x, axes, keep):
        require(x.ndim > 0)
        y = moment(x, axes, correction=a["correction"], keepdim=keep)
        return y

    return compute


def standard_deviation(x, axes, correction, keepdim):
    variance = torch.var(x, axes, correction=correction, keepdim=keepdim)
    y = torch.where(variance > 0, torch.sqrt(torch.where(variance > 0, variance, 1.0)), variance)
    return checked(y, torch.std(x.detach(), axes, correction=correction, keepdim=keepdim))


def vector_norm(a, x, axes, keep):
    return torch.linalg.vector_norm(x, a["p"], axes or None, keepdim=keep)


def local_response_norm(a, x):
    require(a["before"] in (-1, a["size"] // 2))
    return F.local_response_norm(x, a["size"], a["alpha"], a["beta"], a["bias"])


def batch_norm_training(a, x, gamma, beta, mean, variance):
    y = F.batch_norm(x.movedim(a["axis"], 1), None, None, gamma, beta, True, a["momentum"], a["epsilon"])
    return y.movedim(1, a["axis"])
