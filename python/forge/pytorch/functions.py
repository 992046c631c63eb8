# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch that look at data while they are traced, replaced by others that do not."""

from __future__ import annotations

import contextlib
import math
import sys
from unittest import mock

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from . import detection, packed


@torch.library.custom_op("forge::ctc_losses", mutates_args=())
def _ctc_losses(x: torch.Tensor, target: torch.Tensor, x_lengths: torch.Tensor, target_lengths: torch.Tensor,
                blank: int, zero_infinity: bool) -> torch.Tensor:
    return torch.ctc_loss(x, target, x_lengths.tolist(), target_lengths.tolist(), blank, 0, zero_infinity)


@_ctc_losses.register_fake
def _(x, target, x_lengths, target_lengths, blank, zero_infinity):
    return x.new_empty(x.shape[1:2])


def _reduced(losses, reduction):
    return {"none": lambda: losses, "mean": losses.mean, "sum": losses.sum}[reduction]()


def _lengths(lengths, device):
    """Lengths as a tensor, if one or some of them are; None: they are numbers"""
    if isinstance(lengths, torch.Tensor):
        return lengths
    if not any(isinstance(n, torch.Tensor) for n in lengths):
        return None
    return torch.stack([torch.as_tensor(n, device=device) for n in lengths])


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """F.ctc_loss, which reads lengths that are tensors"""
    lengths = [_lengths(n, targets.device) for n in (input_lengths, target_lengths)]
    joined = targets.dim() == 1  # then PyTorch reads even lengths that are numbers
    if joined:
        lengths = [torch.tensor(n) if own is None else own
                   for n, own in zip((input_lengths, target_lengths), lengths)]
    if any(n is None for n in lengths) or log_probs.dim() != 3:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
    losses = _ctc_losses(log_probs, targets, *lengths, blank, zero_infinity)
    return _reduced(losses / lengths[1].clamp(min=1) if reduction == "mean" else losses, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """F.gaussian_nll_loss without its check that no variance is negative"""
    var = torch.as_tensor(var, dtype=input.dtype, device=input.device)
    if var.dim() == input.dim() - 1 and var.dim() > 0 and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    var = var.clamp(min=eps)
    losses = 0.5 * (var.log() + (input - target) ** 2 / var)
    return _reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def split(x, sizes, dim=0):
    """torch.split; one part, whose size may depend on data, is the whole"""
    return (x,) if isinstance(sizes, (list, tuple)) and len(sizes) == 1 else torch.Tensor.split(x, sizes, dim)


def one_hot(tensor, num_classes=-1):
    """F.one_hot; without a number of classes the largest index gives it"""
    if num_classes >= 0:
        return F.one_hot(tensor, num_classes)
    classes = torch.arange((tensor.max() + 1).item(), device=tensor.device)
    return (tensor.unsqueeze(-1) == classes).to(tensor.dtype)


REPLACED = {
    F.ctc_loss: ctc_loss,
    F.gaussian_nll_loss: gaussian_nll_loss,
    F.one_hot: one_hot,
    torch.Tensor.split: split,
    torch.split: split,
    **packed.REPLACED,
}


class Traceable(TorchFunctionMode):
    """While it is active, functions that look at data are replaced."""

    def __enter__(self):
        self._patches = contextlib.ExitStack()
        for (module, name), function in detection.NAMES.items():
            if module in sys.modules:
                self._patches.enter_context(mock.patch.object(sys.modules[module], name, function, create=True))
        for owner in (torch.nn.RNNBase, torch.nn.LSTM):
            self._patches.enter_context(mock.patch.object(owner, "check_forward_args",
                                                          packed.unless_packed(owner.check_forward_args)))
        return super().__enter__()

    def __exit__(self, *failure):
        self._patches.close()
        return super().__exit__(*failure)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return REPLACED.get(func, func)(*args, **(kwargs or {}))
