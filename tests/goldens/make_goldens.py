#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the test cases of ops, and their gradients, with PyTorch: goldens that share no code with Forge.

  python3 -m venv ~/.cache/forge/goldens-venv
  ~/.cache/forge/goldens-venv/bin/pip install -r tests/goldens/requirements.txt
  ~/.cache/forge/goldens-venv/bin/python tests/goldens/make_goldens.py

Asks build/release/bin/forge-ops-doc --cases for the cases and writes tests/goldens/goldens.npz:
  f64, i64   all numbers, one after the other; booleans and integers are in i64, complex numbers are two in f64
  index      JSON: for each case its text and where its operands, results and gradients lie
Inputs are part of the file, so that a golden holds while the list of cases changes. Cases that PyTorch has no
counterpart for are counted by op.
"""

import argparse
import collections
import json
import math
import operator
import pathlib
import re
import subprocess
import sys

import numpy as np
import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
DTYPES = {"f64": torch.float64, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
          "u8": torch.uint8, "bool": torch.bool, "c128": torch.complex128}


class NotInTorch(Exception):
    """PyTorch has no such op, or refuses these operands."""


def require(condition):
    if not condition:
        raise NotInTorch()


def parse(text):
    """An attribute as Forge writes it."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {"infinity": math.inf, "-infinity": -math.inf, "inf": math.inf, "-inf": -math.inf,
                "nan": math.nan}.get(text, text)


# ---- element by element -------------------------------------------------------------------------


def divide(a, x, y):
    if x.dtype.is_floating_point or x.is_complex():
        return x / y
    require(bool((y != 0).all()))
    return torch.div(x, y, rounding_mode="trunc")


def clamp(a, x):
    limits = [bound if math.isfinite(bound) else None for bound in (a["low"], a["high"])]
    require(limits != [None, None])
    return torch.clamp(x, *limits)


# ---- where Forge's choice is another: docs/semantics.md, "Other choices than PyTorch's" ---------


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


# ---- movement -----------------------------------------------------------------------------------


def select_along(x, axis, indices):
    return torch.index_select(x, axis, torch.as_tensor(np.ascontiguousarray(indices), dtype=torch.int64))


def slice_(a, x):
    axes = a["axes"] or range(len(a["begin"]))
    steps = a["steps"] or [1] * len(a["begin"])
    for axis, begin, end, step in zip(axes, a["begin"], a["end"], steps):
        # ONNX begins at element 0 then, and NumPy before it.
        require(step > 0 or begin >= -x.shape[axis])
        x = select_along(x, axis, np.arange(x.shape[axis])[begin:end:step])
    return x


def pad(a, x):
    if a["mode"] == "constant":
        value = bool(a["value"]) if x.dtype == torch.bool else a["value"]
        require(not isinstance(value, int) or abs(value) <= 2**53)  # F.pad takes a double
        pairs = [n for pair in zip(a["before"], a["after"]) for n in pair]
        return F.pad(x, [n for axis in range(x.ndim - 1, -1, -1) for n in pairs[2 * axis:2 * axis + 2]], value=value)
    for axis, pads in enumerate(zip(a["before"], a["after"])):
        require(min(pads) >= 0)
        x = select_along(x, axis, np.pad(np.arange(x.shape[axis]), pads, mode=a["mode"]))
    return x


def wrapped(indices, extent):
    require(bool(((indices >= -extent) & (indices < extent)).all()))
    return torch.where(indices < 0, indices + extent, indices).to(torch.int64)


def gather(a, x, indices):
    axis = a["axis"] % x.ndim
    flat = torch.index_select(x, axis, wrapped(indices, x.shape[axis]).reshape(-1))
    return flat.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1:])


def gather_elements(a, x, indices):
    return torch.gather(x, a["axis"], wrapped(indices, x.shape[a["axis"]]))


def gather_nd(a, x, indices):
    require(a["batch_dims"] == 0)
    return x[tuple(wrapped(i, extent) for i, extent in zip(indices.unbind(-1), x.shape))]


# ---- sums ---------------------------------------------------------------------------------------


def reduce(a, x):
    axes = [axis % x.ndim for axis in a["axes"]] or list(range(x.ndim))
    require(x.numel() > 0)
    if a["kind"] == "prod":
        for axis in sorted(axes, reverse=True):
            x = torch.prod(x, axis, keepdim=a["keep_dims"], dtype=x.dtype)
        return x
    if not axes:
        return x.clone()
    functions = {"sum": lambda *args, **more: torch.sum(*args, dtype=x.dtype, **more), "mean": torch.mean,
                 "max": torch.amax, "min": torch.amin}
    return functions[a["kind"]](x, axes, keepdim=a["keep_dims"])


def transposed(a, x, y):
    return (x.mT if a.get("transpose_a") else x), (y.mT if a.get("transpose_b") else y)


def matmul(a, x, y):
    return torch.matmul(*transposed(a, x, y))


def matmul_integer(a, x, y):
    return torch.matmul(*(operand.to(torch.int32) for operand in transposed(a, x, y)))


def halves(padding):
    return padding[:len(padding) // 2], padding[len(padding) // 2:]


def padded(x, padding, value=0.0):
    before, after = halves(padding)
    return F.pad(x, [n for axis in range(len(before) - 1, -1, -1) for n in (before[axis], after[axis])], value=value)


def conv(a, x, weight, bias=None):
    function = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[x.ndim]
    return function(padded(x, a["padding"]), weight, bias, a["strides"] or 1, 0, a["dilations"] or 1, a["groups"])


def conv_transpose(a, x, weight, bias=None):
    before, after = halves(a["padding"])
    require(before == after)
    function = {3: F.conv_transpose1d, 4: F.conv_transpose2d, 5: F.conv_transpose3d}[x.ndim]
    return function(x, weight, bias, a["strides"] or 1, before or 0, a["output_padding"] or 0, a["groups"],
                    a["dilations"] or 1)


def pool(a, x):
    before, after = halves(a["padding"])
    axes = x.ndim - 2
    if a["kind"] == "max":
        if before != after:
            require(not a["ceil_mode"])
            x, before = padded(x, a["padding"], -math.inf), [0] * axes
        function = [F.max_pool1d, F.max_pool2d, F.max_pool3d][axes - 1]
        return function(x, a["kernel"], a["strides"] or 1, before or 0, a["dilations"] or 1, a["ceil_mode"])
    require(before == after and max(a["dilations"] or [1]) == 1)
    function = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][axes - 1]
    return function(x, a["kernel"], a["strides"] or 1, before or 0, a["ceil_mode"], a["count_include_pad"])


def softmax(a, x):
    y = F.softmax(x, a["axis"])
    return torch.where((x == -math.inf).all(a["axis"], keepdim=True), torch.zeros_like(y), y) \
        if a["masked_rows_zero"] else y


def attention(a, q, k, v, mask=None):
    require(a["softcap"] == 0)
    rows, keys = q.shape[-2], k.shape[-2]
    offset = keys - rows if a["causal"] == "bottom_right" else 0
    distance = torch.arange(keys)[None, :] - torch.arange(rows)[:, None] - offset
    counts = torch.ones(rows, keys, dtype=torch.bool)
    if a["causal"] != "none":
        counts &= distance <= 0
    if a["window_left"] >= 0:
        counts &= distance >= -a["window_left"]
    if a["window_right"] >= 0:
        counts &= distance <= a["window_right"]
    bias = torch.zeros(rows, keys, dtype=q.dtype).masked_fill(~counts, -math.inf)
    if mask is not None:
        bias = bias + (torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -math.inf)
                       if mask.dtype == torch.bool else mask)
    return F.scaled_dot_product_attention(q, k, v, bias, scale=a["scale"] or None)


def batch_norm(a, x, gamma, beta, mean, variance):
    """By its formula: F.batch_norm has no gradient for mean and variance."""
    along = [-1 if axis == a["axis"] % max(x.ndim, 1) else 1 for axis in range(max(x.ndim, 1))]
    gamma_, beta_, mean_, variance_ = (t.reshape(along) for t in (gamma, beta, mean, variance))
    y = (x - mean_) * torch.rsqrt(variance_ + a["epsilon"]) * gamma_ + beta_
    if x.ndim > 1:
        own = F.batch_norm(x.detach().movedim(a["axis"], 1), *(t.detach() for t in (mean, variance, gamma, beta)),
                           False, 0.1, a["epsilon"]).movedim(1, a["axis"])
        assert torch.allclose(y, own, rtol=1e-12, atol=1e-12, equal_nan=True)
    return y


def layer_norm(a, x, gamma=None, beta=None):
    over = x.shape[a["axis"] % x.ndim:]
    y = (F.layer_norm if a["subtract_mean"] else F.rms_norm)(x, over, eps=a["epsilon"])
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def resize(a, x):
    require(x.dtype == torch.float64 and not a["numerators"])
    axes = [axis % x.ndim for axis in a["axes"]] or list(range(len(a["sizes"])))
    require(axes == list(range(2, x.ndim)))
    sizes = a["sizes"]
    if a["kind"] == "nearest":
        require(a["coordinates"] == "asymmetric" and a["rounding"] == "floor")
        return F.interpolate(x, sizes, mode="nearest")
    require(a["coordinates"] in ("half_pixel", "align_corners"))
    modes = {("linear", 1): "linear", ("linear", 2): "bilinear", ("linear", 3): "trilinear", ("cubic", 2): "bicubic"}
    require((a["kind"], len(axes)) in modes and (a["kind"] == "linear" or a["cubic"] == -0.75))
    return F.interpolate(x, sizes, mode=modes[a["kind"], len(axes)], align_corners=a["coordinates"] == "align_corners")


def instance_norm(a, x, gamma=None, beta=None):
    return F.instance_norm(x, None, None, gamma, beta, True, 0.1, a["epsilon"])


def rms_norm(a, x, gamma=None, beta=None):
    y = x * torch.rsqrt(x.square().mean(a["axes"], keepdim=True) + a["epsilon"])
    y = y if gamma is None else y * gamma
    return y if beta is None else y + beta


def update_slice(a, x, part):
    y = x.clone()
    y[tuple(slice(at, at + n) for at, n in zip(a["begin"], part.shape))] = part
    return y


def iota(a):
    require(a["modulus"] == 0 and a["dtype"] in DTYPES)
    return torch.arange(a["count"], dtype=torch.int64).mul(a["step"]).add(a["begin"]).to(DTYPES[a["dtype"]])


def fill(a):
    require(a["dtype"] in DTYPES)
    return torch.full(a["shape"], a["value"], dtype=DTYPES[a["dtype"]])


def mul_high(a, x, y):
    require(x.dtype == torch.int32)
    return (x.long() * y.long() >> 32).int()


def strided_gather(a, x):
    at = torch.arange(a["size"]) * a["step"] + a["shift"]
    at = torch.div(at, a["divisor"], rounding_mode="floor").clamp(0, x.shape[a["axis"]] - 1)
    return torch.index_select(x, a["axis"], at)


def fmod(a, x, y):
    """torch.fmod is NaN where quotients are beyond 2^1000 or so, C's function is not."""
    result = torch.fmod(x, y)
    if not x.dtype.is_floating_point:
        return result
    with np.errstate(all="ignore"):
        beyond = torch.from_numpy(np.fmod(x.detach().numpy(), y.detach().numpy()))
    return torch.where((x / y).abs() > 2.0**1000, beyond, result)


def remainder(a, x, y):
    r = fmod(a, x, y)
    floored = torch.where((r != 0) & ((r < 0) != (y < 0)), r + y, r)
    return torch.where((x / y).abs() > 2.0**1000, floored, torch.remainder(x, y))


class Digamma(torch.autograd.Function):
    """torch.digamma loses digits beside the poles below 0, and its gradient, torch.polygamma(1), is within 1e-9."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        reflected = torch.digamma(1 - x) - math.pi / torch.tan(math.pi * (x - torch.round(x)))
        return torch.where((x < 0) & (x != torch.round(x)), reflected, torch.digamma(x))

    @staticmethod
    def backward(context, dy):
        return dy * torch.special.zeta(2.0, context.saved_tensors[0])


def polygamma(a, x):
    """0 and NaN at the infinities, of which torch.polygamma has both at either."""
    y = torch.special.zeta(2.0, x) if a["order"] == 1 else torch.polygamma(a["order"], x)
    return torch.where(x.isinf(), torch.where(x > 0, -0.0 if a["order"] % 2 == 0 else 0.0, math.nan), y)


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


# ---- losses -------------------------------------------------------------------------------------


def reduced(a, losses):
    return {"none": losses, "mean": losses.mean(), "sum": losses.sum()}[a["reduction"]]


def checked(y, own):
    """A formula that has gradients where PyTorch's function has none, if it agrees with the function."""
    assert torch.allclose(y, own, rtol=1e-12, atol=1e-12, equal_nan=True), (y, own)
    return y


def detached(*tensors):
    return [None if t is None else t.detach() for t in tensors]


def regression(name, *more):
    def compute(a, *operands):
        operands = torch.broadcast_tensors(*operands)
        return getattr(F, name)(*operands, reduction=a["reduction"], **{n: a[m] for n, m in more})

    return compute


def binary_cross_entropy(a, x, target, weight=None):
    y = -(target * torch.log(x).clamp_min(-100) + (1 - target) * torch.log1p(-x).clamp_min(-100))
    y = reduced(a, y if weight is None else y * weight)
    require(bool(((x >= 0) & (x <= 1)).all()))
    return checked(y, F.binary_cross_entropy(*detached(x, target, weight), reduction=a["reduction"]))


def bce_with_logits(a, x, target, weight=None, pos_weight=None):
    y = (1 - target) * x - F.logsigmoid(x) * (1 if pos_weight is None else 1 + (pos_weight - 1) * target)
    own = F.binary_cross_entropy_with_logits(*detached(x, target, weight), reduction=a["reduction"],
                                             pos_weight=detached(pos_weight)[0])
    return checked(reduced(a, y if weight is None else y * weight), own)


def kl_div(a, x, target):
    return F.kl_div(*torch.broadcast_tensors(x, target), reduction=a["reduction"], log_target=a["log_target"])


def poisson_nll_loss(a, x, target):
    return F.poisson_nll_loss(x, target, log_input=a["log_input"], full=a["full"], eps=a["epsilon"],
                              reduction=a["reduction"])


def gaussian_nll_loss(a, x, target, variance):
    require(bool((variance >= a["epsilon"]).all()) or not variance.requires_grad)
    return F.gaussian_nll_loss(x, target, variance if variance.ndim else variance.expand(x.shape), a["full"],
                               a["epsilon"], a["reduction"])


def class_targets(a, x, target):
    """Targets of no class are ignored, where PyTorch raises."""
    classes = x.shape[min(1, x.ndim - 1)]
    return torch.where((target >= 0) & (target < classes), target.long(), a["ignore_index"])


def nll_loss(a, x, target, weight=None):
    y = F.nll_loss(x, class_targets(a, x, target), None if weight is None else weight.detach(),
                   ignore_index=a["ignore_index"], reduction=a["reduction"])
    return with_weight_gradient(a, x, target, weight, y)


def with_weight_gradient(a, x, target, weight, y):
    """By the formula where the weights want gradients, which PyTorch's function does not give."""
    if weight is None or not weight.requires_grad:
        return y
    axis = min(1, x.ndim - 1)
    target = class_targets(a, x, target)
    counts = (target != a["ignore_index"]).to(x.dtype)
    index = torch.where(counts > 0, target, 0)
    weights = weight[index] * counts
    smoothing = a.get("label_smoothing", 0)
    losses = -weights * torch.gather(x, axis, index.unsqueeze(axis)).squeeze(axis) * (1 - smoothing)
    if smoothing:
        along = weight.reshape([-1] + [1] * (x.ndim - 1 - axis))
        losses = losses - counts * (x * along).mean(axis) * smoothing
    formula = losses.sum() / weights.sum() if a["reduction"] == "mean" else reduced(a, losses)
    return checked(formula, y.detach())


def cross_entropy(a, x, target, weight=None):
    y = F.cross_entropy(x, class_targets(a, x, target), None if weight is None else weight.detach(),
                        ignore_index=a["ignore_index"], reduction=a["reduction"], label_smoothing=a["label_smoothing"])
    return with_weight_gradient(a, F.log_softmax(x, min(1, x.ndim - 1)), target, weight, y)


def cross_entropy_of_probabilities(a, x, target, weight=None):
    return F.cross_entropy(x, target, weight, reduction=a["reduction"], label_smoothing=a["label_smoothing"])


def soft_margin_loss(a, x, target):
    """By its formula, which does not overflow."""
    y = reduced(a, -F.logsigmoid(target * x))
    own = F.soft_margin_loss(*detached(x, target), reduction=a["reduction"])
    return y if own.isinf().any() else checked(y, own)


def multi_margin_loss(a, x, target, weight=None):
    y = F.multi_margin_loss(x, target.long(), a["p"], a["margin"], None if weight is None else weight.detach(),
                            reduction=a["reduction"])
    if weight is None:
        return y
    lack = (a["margin"] - torch.gather(x, 1, target[:, None].long()) + x).clamp_min(0)**a["p"]
    lack = lack.masked_fill(F.one_hot(target.long(), x.shape[1]).bool(), 0)
    return checked(reduced(a, lack.mean(1) * weight[target.long()]), y.detach())


def multilabel_soft_margin_loss(a, x, target, weight=None):
    return F.multilabel_soft_margin_loss(x, target, weight, reduction=a["reduction"])


def triplet_margin_loss(a, anchor, positive, negative):
    return F.triplet_margin_loss(anchor, positive, negative, a["margin"], a["p"], a["epsilon"], a["swap"],
                                 reduction=a["reduction"])


def cosine_similarity(a, x, y):
    """Where F.cosine_similarity limits a norm, its gradient passes by the limit."""
    axis, least = a["axis"], a["epsilon"]
    product = x * y

    def norm(v):
        square = (v.expand(product.shape)**2).sum(axis)
        return torch.where(square > 0, torch.where(square > 0, square, 1.0).sqrt(), square).clamp_min(least)

    return checked(product.sum(axis) / (norm(x) * norm(y)), F.cosine_similarity(*detached(x, y), axis, least))


def ctc_loss(a, x, target, x_lengths, target_lengths):
    """One step after another: the gradient of F.ctc_loss is that of the logits that x is a log_softmax of."""
    losses = []
    for n in range(x.shape[1]):
        labels = [a["blank"]]
        for label in target[n, :int(target_lengths[n])].tolist():
            labels += [label, a["blank"]]
        never = x.new_tensor(-math.inf)
        alpha = [x[0, n, label] if i < 2 else never for i, label in enumerate(labels)]
        for row in x[1:int(x_lengths[n]), n]:
            following = []
            for i, label in enumerate(labels):
                from_ = [alpha[i], *alpha[max(i - 1, 0):i]]
                if i > 1 and label != a["blank"] and label != labels[i - 2]:
                    from_.append(alpha[i - 2])
                open_ = [v for v in from_ if v != never]
                following.append(row[label] + torch.logsumexp(torch.stack(open_), 0) if open_ else never)
            alpha = following
        ends = [v for v in alpha[-2:] if v != never]
        loss = -torch.logsumexp(torch.stack(ends), 0) if ends else x.new_tensor(0 if a["zero_infinity"] else math.inf)
        losses.append(loss / max(int(target_lengths[n]), 1) if a["reduction"] == "mean" else loss)
    y = reduced(a, torch.stack(losses))
    return checked(y, F.ctc_loss(x.detach(), target.long(), x_lengths.long(), target_lengths.long(), a["blank"],
                                 a["reduction"], a["zero_infinity"]))


# ---- reductions ---------------------------------------------------------------------------------


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


# ---- movement by composites ---------------------------------------------------------------------


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


# Other ops without attributes are the function of PyTorch that their source names.
OPS = {
    "all": over_axes(truth(torch.all)), "any": over_axes(truth(torch.any)), "attention": attention,
    "add_matmul": lambda a, c, x, y: a["beta"] * (c if a["beta"] else torch.zeros_like(c)) + a["alpha"] * (x @ y),
    "batch_norm": batch_norm, "batch_norm_training": batch_norm_training,
    "binary_cross_entropy": binary_cross_entropy, "binary_cross_entropy_with_logits": bce_with_logits,
    "celu": lambda a, x: F.celu(x, a["alpha"]),
    "cosine_embedding_loss": lambda a, x, y, t: F.cosine_embedding_loss(x, y, t, a["margin"], reduction=a["reduction"]),
    "cosine_similarity": cosine_similarity,
    "cross_entropy": cross_entropy, "ctc_loss": ctc_loss, "cross_entropy_of_probabilities": cross_entropy_of_probabilities,
    "depth_to_space": blocks(torch.pixel_shuffle, "up"),
    "diagonal": lambda a, x: torch.diagonal(x, a["offset"], a["axis1"], a["axis2"]), "diff": diff,
    "einsum": lambda a, *xs: torch.einsum(a["equation"], *xs), "elu": lambda a, x: F.elu(x, a["alpha"]),
    "flip": lambda a, x: torch.flip(x, a["axes"]), "gaussian_nll_loss": gaussian_nll_loss,
    "hinge_embedding_loss": regression("hinge_embedding_loss", ("margin", "margin")),
    "huber_loss": regression("huber_loss", ("delta", "delta")), "is_inf": one_sided,
    "kl_div": kl_div, "l1_loss": regression("l1_loss"), "leaky_relu": lambda a, x: F.leaky_relu(x, a["slope"]),
    "local_response_norm": local_response_norm, "log_softmax": lambda a, x: F.log_softmax(x, a["axis"]),
    "log_sum_exp": over_axes(logsumexp),
    "margin_ranking_loss": regression("margin_ranking_loss", ("margin", "margin")),
    "mse_loss": regression("mse_loss"), "multi_margin_loss": multi_margin_loss,
    "multilabel_margin_loss": lambda a, x, t: F.multilabel_margin_loss(x, t.long(), reduction=a["reduction"]),
    "multilabel_soft_margin_loss": multilabel_soft_margin_loss, "nll_loss": nll_loss, "one_hot": one_hot,
    "pairwise_distance": lambda a, x, y: F.pairwise_distance(x, y, a["p"], a["epsilon"], a["keep_dims"]),
    "poisson_nll_loss": poisson_nll_loss, "prelu": prelu,
    "roll": lambda a, x: torch.roll(x, a["shifts"], a["axes"] or None), "selu": selu, "shrink": shrink,
    "smooth_l1_loss": regression("smooth_l1_loss", ("beta", "beta")), "soft_margin_loss": soft_margin_loss,
    "softplus": softplus, "space_to_depth": blocks(torch.pixel_unshuffle, "down"),
    "stack": lambda a, *xs: torch.stack(xs, a["axis"]), "standard_deviation": over_axes(spread(standard_deviation)),
    "tensor_dot": lambda a, x, y: torch.tensordot(x, y, (a["axes_a"], a["axes_b"])),
    "threshold": lambda a, x: F.threshold(x, a["threshold"], a["value"]),
    "tile": lambda a, x: torch.tile(x, a["repeats"]), "triplet_margin_loss": triplet_margin_loss,
    "triangle": lambda a, x: (torch.triu if a["upper"] else torch.tril)(x, a["diagonal"]),
    "variance": over_axes(spread(torch.var)), "vector_norm": over_axes(vector_norm),
    "broadcast_to": lambda a, x: x.broadcast_to(a["shape"]), "cast": cast, "clamp": clamp,
    "concat": lambda a, *xs: torch.cat(xs, a["axis"]), "conv": conv, "conv_transpose": conv_transpose,
    "digamma": lambda a, x: Digamma.apply(x), "div": divide,
    "fill": fill, "floor_divide": lambda a, x, y: torch.floor_divide(x.detach(), y.detach()), "fmod": fmod,
    "gather": gather, "gather_elements": gather_elements, "gather_nd": gather_nd,
    "gelu": lambda a, x: F.gelu(x, approximate="tanh" if a["tanh_form"] else "none"),
    "glu": lambda a, x: F.glu(x, a["axis"]),
    "group_norm": lambda a, x, gamma=None, beta=None: F.group_norm(x, a["groups"], gamma, beta, a["epsilon"]),
    "hard_sigmoid": lambda a, x: torch.clamp(a["alpha"] * x + a["beta"], 0, 1), "hard_swish": hard_swish,
    "instance_norm": instance_norm, "iota": iota, "layer_norm": layer_norm, "matmul": matmul,
    "matmul_integer": matmul_integer, "mul_high": mul_high, "not": lambda a, x: torch.bitwise_not(x),
    "pad": pad, "polygamma": polygamma, "pool": pool, "reduce": reduce,
    "remainder": remainder, "reshape": lambda a, x: x.reshape(a["shape"]), "resize": resize, "rms_norm": rms_norm,
    "shape_of": lambda a, x: torch.tensor(x.shape, dtype=torch.int64), "sign": sign, "slice": slice_,
    "softmax": softmax, "strided_gather": strided_gather,
    "transpose": lambda a, x: x.permute(a["permutation"]), "update_slice": update_slice,
}


def function_of(case):
    """Takes attributes and operands.  errors: NotInTorch"""
    named = re.search(r"torch\.([\w.]+)", case["source"])
    if case["op"] in OPS:
        return OPS[case["op"]]
    require(named and not case["attributes"])
    function = operator.attrgetter(named[1])(torch)
    return lambda a, *operands: function(*operands)


# ---- the file -----------------------------------------------------------------------------------


def tensor_of(operand):
    if operand is None:
        return None
    require(operand["dtype"] in DTYPES)
    numbers = operand["numbers"]
    if operand["dtype"] == "f64":
        numbers = [float.fromhex(n) for n in numbers]
    if operand["dtype"] == "c128":
        numbers = [complex(*map(float.fromhex, n)) for n in numbers]
    return torch.tensor(numbers, dtype=DTYPES[operand["dtype"]]).reshape(operand["shape"])


def cotangent(shape):
    """The same numbers as goldens_test.cc feeds to a gradient."""
    count = math.prod(shape)
    return (0.5 + 0.5 * torch.arange(count, dtype=torch.float64).remainder(7) / 7).reshape(shape)


class Writer:
    """Numbers of all cases, one after the other."""

    def __init__(self):
        self.numbers = {"f64": [], "i64": []}
        self.index = []

    def place(self, tensor):
        if tensor is None:
            return None
        name = next(name for name, dtype in DTYPES.items() if dtype == tensor.dtype)
        shape = list(tensor.shape)
        tensor = torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()
        floats = tensor.dtype.is_floating_point
        pool = self.numbers["f64" if floats else "i64"]
        at = len(pool)
        pool += tensor.to(torch.float64 if floats else torch.int64).reshape(-1).tolist()
        return {"dtype": name, "shape": shape, "at": at}

    def add(self, case, operands, result, gradients):
        self.index.append({"case": case["case"], "op": case["op"], "operands": [self.place(t) for t in operands],
                           "result": self.place(result), "gradients": [self.place(t) for t in gradients]})

    def save(self, path):
        text = json.dumps(self.index, separators=(",", ":")).encode()
        np.savez_compressed(path, f64=np.array(self.numbers["f64"], np.float64),
                            i64=np.array(self.numbers["i64"], np.int64), index=np.frombuffer(text, np.uint8))


def compute(case):
    """Operands, result and gradients of a case.  errors: NotInTorch"""
    function = function_of(case)
    attributes = {name: parse(text) for name, text in case["attributes"].items()}
    operands = [tensor_of(operand) for operand in case["operands"]]
    wanted = [t for t in operands if t is not None and t.dtype == torch.float64]
    differentiable = case["gradient"] and not case["edges"] and bool(wanted)
    for tensor in wanted:
        tensor.requires_grad_(differentiable)
    try:
        result = function(attributes, *operands)
        gradients = []
        if differentiable and result.requires_grad and result.dtype == torch.float64:
            found = torch.autograd.grad(result, wanted, cotangent(result.shape), allow_unused=True)
            gradients = [torch.zeros_like(t) if g is None else g for t, g in zip(wanted, found)]
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        raise NotInTorch(str(error)) from error
    return operands, result, gradients


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", default=str(ROOT / "build/release/bin/forge-ops-doc"), help="the program")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/goldens/goldens.npz")
    options = parser.parse_args()
    lines = subprocess.run([options.cases, "--cases"], check=True, stdout=subprocess.PIPE).stdout.splitlines()
    writer, absent, reasons = Writer(), collections.Counter(), {}
    for case in map(json.loads, lines):
        try:
            writer.add(case, *compute(case))
        except NotInTorch as reason:
            absent[case["op"]] += 1
            reasons[case["op"]] = str(reason).split("\n")[0]
    writer.save(options.out)
    made = collections.Counter(entry["op"] for entry in writer.index)
    gradients = sum(bool(entry["gradients"]) for entry in writer.index)
    print(f"{len(writer.index)} cases of {len(made)} ops with PyTorch {torch.__version__}, {gradients} with gradients: "
          f"{options.out.stat().st_size} bytes")
    for op, count in sorted(absent.items()):
        print(f"  without a counterpart: {count} cases of {op}{': ' + reasons[op] if reasons[op] else ''}")


if __name__ == "__main__":
    sys.exit(main())
