# SPDX-License-Identifier: Apache-2.0
"""Element-wise ops, and where Forge's choice is not PyTorch's: docs/semantics.md, "Other choices than PyTorch's"."""

import math

import torch
import torch.nn.functional as F

from torch_ops.common import DTYPES, require


def divide(a, x, y):
    if x.dtype.is_floating_point or x.is_complex():
        return x / y
    require(bool((y != 0).all()))
    return torch.div(x, y, rounding_mode="trunc")


def clamp(a, x):
    limits = [bound if math.isfinite(bound) else None for bound in (a["low"], a["high"])]
    require(limits != [None, None])
    return torch.clamp(x, *limits)


def hard_swish(a, x):
    """F.hardswish multiplies before it divides, which overflows."""
    return torch.where(x.abs() > 1e300, x * (x > 0), F.hardswish(x))


def sign(a, x):
    """torch.sign takes NaN for 0."""
    return torch.where(x.isnan(), x, torch.sign(x)) if x.dtype.is_floating_point else torch.sign(x)


def cast(a, x):
    to = DTYPES.get(a.get("dtype", a.get("to")))
    require(to is not None)
    if x.is_complex() and to != torch.bool and not to.is_complex:
        x = x.real
    if x.dtype.is_floating_point and not (to.is_floating_point or to.is_complex) and to != torch.bool:
        limits = torch.iinfo(to)  # beyond them C++ leaves it undefined
        require(bool(((x > limits.min) & (x < limits.max)).all()))
    return x.to(to)


def bit_cast(a, x):
    to = DTYPES.get(a.get("to", "i32"))
    require(to is not None and to.itemsize == x.dtype.itemsize and torch.bool not in (to, x.dtype))
    return x.view(to)


def one_sided(a, x):
    """torch.isinf of the infinities that count."""
    return (x == math.inf) & bool(a["positive"]) | (x == -math.inf) & bool(a["negative"])


def softplus(a, x):
    """F.softplus, but without overflow above a threshold of infinity."""
    finite = min(a["threshold"], 500.0)
    return F.softplus(x, a["beta"], finite)


def selu(a, x):
    if (a["alpha"], a["gamma"]) == (1.6732632423543772, 1.0507009873554805):
        return F.selu(x)
    return a["gamma"] * F.elu(x, a["alpha"])


def shrink(a, x):
    require(a["bias"] in (0, a["lambda"]))
    return (F.softshrink if a["bias"] else F.hardshrink)(x, a["lambda"])


def prelu(a, x, slope):
    """By its formula: F.prelu takes no slopes along other axes than the second."""
    return torch.where(x > 0, x, x * slope)


def fake_quantize(a, x, scale, zero=None):
    """By its formula: PyTorch has gradients in f32 alone, and of rounding and clipping only."""
    require(a["straight_through"] == "clipped")

    def slowed(v):
        return v * a["scale_gradient"] + (v * (1 - a["scale_gradient"])).detach()

    def through(v, to):
        return to.detach() + (v - v.detach())  # exactly `to`, with the gradient of v

    scale, zero = slowed(scale), torch.zeros_like(scale) if zero is None else slowed(zero)
    zero = through(zero, zero.round().clamp(a["low"], a["high"]))
    quotient = x * (1 / scale)
    step = through(quotient, quotient.round()) + zero
    bounded = step.clamp(a["low"], a["high"]).detach()  # whose gradient at a bound would be 0
    return (torch.where(step == bounded, step, bounded) - zero) * scale
