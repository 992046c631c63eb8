#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the test cases of ops, and their gradients, with PyTorch: goldens that share no code with Forge.

  python3 -m venv ~/.cache/forge/goldens-venv
  ~/.cache/forge/goldens-venv/bin/pip install -r tests/goldens/requirements.txt
  ~/.cache/forge/goldens-venv/bin/python tests/goldens/make_goldens.py

Asks build/release/bin/forge-ops-doc --cases for the cases and writes tests/goldens/goldens.npz:
  f64, i64   all numbers, one after the other; booleans and integers are in i64, complex numbers are two in f64
  index      JSON: for each case its text and where its operands, results and gradients lie (of a result that
             PyTorch does not give: null)
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


def dropping(x, axis, indices):
    """x with a slice more along the axis, for the indices that lie outside, and these indices."""
    extent = x.shape[axis]
    indices = indices.to(torch.int64)
    indices = torch.where(indices < 0, indices + extent, indices)
    indices = torch.where((indices < 0) | (indices >= extent), extent, indices)
    return torch.cat([x, torch.ones_like(x.narrow(axis, 0, 1))], axis), indices


def scatter(a, x, indices, updates):
    """One update of each column after the other, since the order of duplicates is undefined; dropped ones get a row
    of their own."""
    axis = a["axis"] % x.ndim
    y, indices = dropping(x, axis, indices.broadcast_to(updates.shape))
    if a["mode"] == "set":
        for i in range(updates.shape[axis]):
            y = y.scatter(axis, indices.narrow(axis, i, 1), updates.narrow(axis, i, 1))
    elif a["mode"] == "add":
        y = y.scatter_add(axis, indices, updates)
    else:
        y = y.scatter_reduce(axis, indices, updates, {"mul": "prod", "min": "amin", "max": "amax"}[a["mode"]])
    return y.narrow(axis, 0, x.shape[axis])


def scatter_reduce(a, x, indices, updates):
    axis, kinds = a["axis"] % x.ndim, {"max": "amax", "min": "amin"}
    y, indices = dropping(x, axis, indices.broadcast_to(updates.shape))
    y = y.scatter_reduce(axis, indices, updates, kinds.get(a["kind"], a["kind"]), include_self=a["include_self"])
    return y.narrow(axis, 0, x.shape[axis])


def index_reduce(a, x, indices, updates):
    axis, kinds = a["axis"] % x.ndim, {"max": "amax", "min": "amin"}
    y, indices = dropping(x, axis, indices)
    kind = kinds.get(a["kind"], a["kind"])
    return y.index_reduce(axis, indices, updates, kind, include_self=a["include_self"]).narrow(axis, 0, x.shape[axis])


def index_add(a, x, indices, updates):
    y, indices = dropping(x, a["axis"] % x.ndim, indices)
    return y.index_add(a["axis"], indices, updates, alpha=a["alpha"]).narrow(a["axis"], 0, x.shape[a["axis"]])


def unique(indices):
    require(len(set(indices.reshape(-1).tolist())) == indices.numel())


def index_copy(a, x, indices, updates):
    y, indices = dropping(x, a["axis"] % x.ndim, indices)
    unique(indices)
    return y.index_copy(a["axis"], indices, updates).narrow(a["axis"], 0, x.shape[a["axis"]])


def index_fill(a, x, indices):
    y, indices = dropping(x, a["axis"] % x.ndim, indices)
    value = bool(a["value"]) if x.dtype == torch.bool else a["value"]
    return y.index_fill(a["axis"], indices, value).narrow(a["axis"], 0, x.shape[a["axis"]])


def put(a, x, indices, updates):
    y, indices = dropping(x.reshape(-1), 0, indices)
    if not a["accumulate"]:
        unique(indices)
    return y.put(indices, updates, a["accumulate"])[:x.numel()].reshape(x.shape)


def scatter_nd(a, x, indices, updates):
    require(a["batch_dims"] == 0)
    depth = indices.shape[-1]
    extents = torch.tensor(x.shape[:depth])
    indices = indices.to(torch.int64)
    indices = torch.where(indices < 0, indices + extents, indices)
    inside = ((indices >= 0) & (indices < extents)).all(-1).reshape(-1)
    indices, updates = indices.reshape(-1, depth)[inside], updates.reshape(-1, *x.shape[depth:])[inside]
    require(a["mode"] in ("set", "add"))
    if a["mode"] == "set":
        require(len({tuple(index) for index in indices.tolist()}) == len(indices))
    return torch.index_put(x, tuple(indices.unbind(-1)), updates, a["mode"] == "add")


def index_key(a, x, indices):
    axes = a["axes"] or list(range(len(indices)))
    key = [slice(None)] * x.ndim
    for axis, one in zip(axes, indices):
        key[axis] = wrapped(one, x.shape[axis])
    return key


def index_put(a, x, updates, *indices):
    key = [one if isinstance(one, torch.Tensor) else None for one in index_key(a, x, indices)]
    if not a["accumulate"]:
        places = torch.arange(x.numel()).reshape(x.shape)[tuple(index_key(a, x, indices))]
        unique(places)
    return torch.ops.aten.index_put(x, key, updates, a["accumulate"])


def embedding(a, weight, indices):
    padding = a["padding"] if a["padding"] >= 0 else None
    return F.embedding(wrapped(indices, len(weight)), weight, padding, scale_grad_by_freq=a["scale_gradient"])


def embedding_bag(a, weight, indices, offsets=None, scale=None):
    padding = a["padding"] if a["padding"] >= 0 else None
    return F.embedding_bag(indices.long(), weight, None if offsets is None else offsets.long(), mode=a["kind"],
                           per_sample_weights=scale, include_last_offset=a["include_last_offset"], padding_idx=padding)


def embedding_renorm(a, weight, indices):
    y = weight.detach().clone()
    with torch.no_grad():
        return torch.embedding_renorm_(y, wrapped(indices, len(weight)), a["max_norm"], a["norm"])


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


def backwards(function, x, axis, reverse):
    return function(x.flip(axis)).flip(axis) if reverse else function(x)


def scan(a, x):
    axis, kind = a["axis"], a["kind"]
    if kind in ("sum", "prod"):
        function = torch.cumsum if kind == "sum" else torch.cumprod

        def cumulate(x):
            y = function(x, axis, dtype=x.dtype)
            if not a["exclusive"]:
                return y
            first = torch.full_like(y.narrow(axis, 0, min(1, y.shape[axis])), kind == "prod")
            return torch.cat([first, y.narrow(axis, 0, max(y.shape[axis] - 1, 0))], axis)

        return backwards(cumulate, x, axis, a["reverse"])
    if kind == "log_sum_exp":
        return backwards(lambda x: torch.logcumsumexp(x, axis), x, axis, a["reverse"])
    return scan_with_index(a, x)


def scan_with_index(a, x):
    function = torch.cummax if a["kind"] == "max" else torch.cummin
    return backwards(lambda x: function(x, a["axis"]).values, x, a["axis"], a["reverse"])


def arg_reduce(a, x):
    function = torch.argmax if a["kind"] == "max" else torch.argmin
    axis, flat = a["axis"], x.reshape(-1) if a["all"] else x
    if a["all"]:
        axis = 0
    y = function(flat.flip(axis) if a["select_last_index"] else flat, axis, keepdim=a["keep_dims"])
    y = flat.shape[axis] - 1 - y if a["select_last_index"] else y
    return y.reshape([1] * x.ndim if a["keep_dims"] else []) if a["all"] else y


def median(a, x):
    return (torch.nanmedian if a["skip_nan"] else torch.median)(x, a["axis"], a["keep_dims"]).values


def quantile(a, x):
    function = torch.nanquantile if a["skip_nan"] else torch.quantile
    return function(x, torch.tensor(a["q"], dtype=x.dtype), a["axis"], a["keep_dims"], interpolation=a["interpolation"])


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


def max_unpool(a, x, indices):
    indices = wrapped(indices, math.prod(a["sizes"]))
    for plane in indices.flatten(0, 1):
        unique(plane)
    if x.ndim == 5:
        return torch.ops.aten.max_unpool3d(x, indices, a["sizes"], [1, 1, 1], [0, 0, 0])
    if x.ndim == 4:
        return torch.ops.aten.max_unpool2d(x, indices, a["sizes"])
    return torch.ops.aten.max_unpool2d(x[..., None], indices[..., None], [*a["sizes"], 1])[..., 0]


def adaptive(kind):
    def pooled(a, x):
        function = getattr(F, f"adaptive_{kind}_pool{x.ndim - 2}d")
        return function(x, [size or None for size in a["sizes"]] if x.ndim > 3 else a["sizes"][0] or x.shape[2])
    return pooled


def sum_pool(a, x):
    before, after = halves(a["padding"])
    require(before == after and x.ndim > 3)
    function = {4: F.avg_pool2d, 5: F.avg_pool3d}[x.ndim]
    require(a["divisor"] == int(a["divisor"]))
    return function(x, a["kernel"], a["strides"] or 1, before or 0, a["ceil_mode"], True, int(a["divisor"]))


def lp_pool(a, x):
    function = {3: F.lp_pool1d, 4: F.lp_pool2d, 5: F.lp_pool3d}[x.ndim]
    kernel = a["kernel"][0] if x.ndim == 3 else a["kernel"]
    return function(x, a["p"], kernel, (a["strides"] or [1] * (x.ndim - 2))[0] if x.ndim == 3 else a["strides"] or 1,
                    a["ceil_mode"])


def grid_sample(a, x, grid):
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(a["kind"], a["kind"])
    return F.grid_sample(x, grid, mode, a["padding"], a["align_corners"])


def affine_grid(a, theta):
    return F.affine_grid(theta, [len(theta), 1, *a["sizes"]], a["align_corners"])


def roi_align(a, x, rois, batch):
    """Point by point: PyTorch itself has it in torchvision alone."""
    offset = 0.5 if a["half_pixel"] else 0.0

    def sample(image, y, x_):
        values = []
        for at, extent in ((y, image.shape[1]), (x_, image.shape[2])):
            if at < -1 or at > extent:
                return torch.zeros((4, image.shape[0]), dtype=image.dtype)
            at = at.clamp(0, extent - 1)
            low = int(at.floor())
            values.append(((low, 1 - (at - low)), (min(low + 1, extent - 1), at - low)))
        return torch.stack([image[:, i, j] * (p * q) for i, p in values[0] for j, q in values[1]])

    out = []
    for box, item in zip(rois * a["scale"] - offset, batch.tolist()):
        length = box[2:] - box[:2]
        length = length if a["half_pixel"] else length.clamp(min=1)
        step = length.flip(0) / torch.tensor(a["sizes"]) / a["samples"]
        for i, j in np.ndindex(*a["sizes"]):
            points = [sample(x[item], box[1] + (i * a["samples"] + p + 0.5) * step[0],
                             box[0] + (j * a["samples"] + q + 0.5) * step[1])
                      for p, q in np.ndindex(a["samples"], a["samples"])]
            points = torch.stack(points)
            out.append(points.amax((0, 1)) if a["largest"] else points.sum(1).mean(0))
    return torch.stack(out).reshape(len(rois), *a["sizes"], x.shape[1]).permute(0, 3, 1, 2)


def folded(a):
    before, after = halves(a["padding"])
    require(before == after)
    return a["kernel"] or 1, a["dilations"] or 1, before or 0, a["strides"] or 1


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


# ---- recurrent networks -------------------------------------------------------------------------


def steps(cell, states):
    """A loop over the steps: cell(sums of the input's gates, products, weight, bias, state) is the new state."""

    def run(a, gates, weight, bias=None, lengths=None, *more):
        more = [*more, *[None] * (states + 1 - len(more))]
        size = (gates.shape[1], weight.shape[0])
        state = [gates.new_zeros(size) if s is None else s for s in more[:states]]
        y = [gates.new_zeros(size)] * gates.shape[0]
        for t in reversed(range(len(y))) if a["reverse"] else range(len(y)):
            runs = torch.ones(size[0], 1, dtype=torch.bool) if lengths is None else (t < lengths)[:, None]
            new = cell(a, gates[t], weight, gates.new_zeros(weight.shape[1]) if bias is None else bias, state,
                       more[states])
            y[t] = torch.where(runs, new[0], torch.zeros_like(new[0]))
            state = [torch.where(runs, n, s) for n, s in zip(new, state)]
        return (torch.stack(y) if y else gates.new_zeros((0, *size)), *state)

    return run


def lstm_cell(a, gates, weight, bias, state, peepholes):
    hidden, cell = state
    i, f, g, o = (gates + hidden @ weight + bias).chunk(4, 1)
    pi, pf, po = (0, 0, 0) if peepholes is None else peepholes.chunk(3)
    cell = torch.sigmoid(f + pf * cell) * cell + torch.sigmoid(i + pi * cell) * torch.tanh(g)
    return torch.sigmoid(o + po * cell) * torch.tanh(cell), cell


def gru_cell(a, gates, weight, bias, state, _):
    hidden, = state
    (gr, gz, gn), (pr, pz, pn) = gates.chunk(3, 1), (hidden @ weight + bias).chunk(3, 1)
    reset, update = torch.sigmoid(gr + pr), torch.sigmoid(gz + pz)
    inner = reset * pn if a["reset_after"] else (reset * hidden) @ weight.chunk(3, 1)[2] + bias.chunk(3)[2]
    return (1 - update) * torch.tanh(gn + inner) + update * hidden,


def rnn_cell(a, gates, weight, bias, state, _):
    return {"tanh": torch.tanh, "relu": torch.relu}[a["activation"]](gates + state[0] @ weight + bias),


def layer(function, states):
    """torch.lstm and its kin, of one layer."""

    def run(a, x, weight_x, weight_h, bias_x=None, bias_h=None, lengths=None, *more):
        require(lengths is None and len(more) <= states and a.get("reset_after", True))
        zeros = weight_x.new_zeros(weight_x.shape[:2])
        parameters = [weight_x, weight_h, *(zeros if b is None else b for b in (bias_x, bias_h))]
        flat = [p[d] for d in range(weight_x.shape[0]) for p in parameters]
        more = [*more, *[None] * (states - len(more))]
        state = [x.new_zeros(len(weight_x), x.shape[1], weight_h.shape[2]) if s is None else s for s in more]
        flip = (lambda t: t.flip(0)) if a["direction"] == "reverse" else (lambda t: t)
        y, *last = function(a)(flip(x), state if states == 2 else state[0], flat, True, 1, 0.0, False,
                               a["direction"] == "bidirectional", False)
        return (flip(y), *last)

    return run


# ---- Fourier transforms -------------------------------------------------------------------------


def dft(a, re, im=None):
    y = (torch.fft.ifft if a["inverse"] else torch.fft.fft)(
        torch.complex(re, torch.zeros_like(re) if im is None else im), norm="forward" if a["inverse"] else "backward")
    return y.real, y.imag


def fourier(forward, inverse):
    def run(a, x):
        backwards = a.get("inverse", forward is None)
        norm = a["norm"] if a["norm"] != "none" else "forward" if backwards else "backward"
        return (inverse if backwards else forward)(x, a["sizes"] or None, a["axes"], norm)

    return run


def overflowing(function, least=-math.inf):
    """0 for complex numbers of which PyTorch's formula overflows on the way, to NaN."""

    def run(a, x):
        y = function(x)
        if not x.is_complex():
            return y
        return torch.where(y.isnan() & (x.real < -700) & (x.real >= least), torch.zeros_like(y), y)

    return run
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
    "adaptive_avg_pool": adaptive("avg"),
    "adaptive_max_pool": adaptive("max"),
    "add_matmul": lambda a, c, x, y: a["beta"] * (c if a["beta"] else torch.zeros_like(c)) + a["alpha"] * (x @ y),
    "affine_grid": affine_grid,
    "all": over_axes(truth(torch.all)),
    "any": over_axes(truth(torch.any)),
    "arg_reduce": arg_reduce,
    "arg_sort": lambda a, x: torch.argsort(x, dim=a["axis"], descending=a["descending"], stable=True),
    "attention": attention,
    "batch_norm": batch_norm,
    "batch_norm_training": batch_norm_training,
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": bce_with_logits,
    "broadcast_to": lambda a, x: x.broadcast_to(a["shape"]),
    "cast": cast,
    "celu": lambda a, x: F.celu(x, a["alpha"]),
    "clamp": clamp,
    "concat": lambda a, *xs: torch.cat(xs, a["axis"]),
    "conv": conv,
    "conv_transpose": conv_transpose,
    "cosine_embedding_loss": lambda a, x, y, t: F.cosine_embedding_loss(x, y, t, a["margin"], reduction=a["reduction"]),
    "cosine_similarity": cosine_similarity,
    "cross_entropy": cross_entropy,
    "cross_entropy_of_probabilities": cross_entropy_of_probabilities,
    "ctc_loss": ctc_loss,
    "depth_to_space": blocks(torch.pixel_shuffle, "up"),
    "dft": dft,
    "diagonal": lambda a, x: torch.diagonal(x, a["offset"], a["axis1"], a["axis2"]),
    "diff": diff,
    "digamma": lambda a, x: Digamma.apply(x),
    "div": divide,
    "einsum": lambda a, *xs: torch.einsum(a["equation"], *xs),
    "elu": lambda a, x: F.elu(x, a["alpha"]),
    "embedding": embedding,
    "embedding_bag": embedding_bag,
    "embedding_renorm": embedding_renorm,
    "fft": fourier(torch.fft.fftn, torch.fft.ifftn),
    "fill": fill,
    "flip": lambda a, x: torch.flip(x, a["axes"]),
    "floor_divide": lambda a, x, y: torch.floor_divide(x.detach(), y.detach()),
    "fmod": fmod,
    "fold": lambda a, x: F.fold(x, a["sizes"], *folded(a)),
    "gather": gather,
    "gather_elements": gather_elements,
    "gather_nd": gather_nd,
    "gaussian_nll_loss": gaussian_nll_loss,
    "gelu": lambda a, x: F.gelu(x, approximate="tanh" if a["tanh_form"] else "none"),
    "glu": lambda a, x: F.glu(x, a["axis"]),
    "grid_sample": grid_sample,
    "group_norm": lambda a, x, gamma=None, beta=None: F.group_norm(x, a["groups"], gamma, beta, a["epsilon"]),
    "gru": layer(lambda a: torch.gru, 1),
    "gru_steps": steps(gru_cell, 1),
    "hard_sigmoid": lambda a, x: torch.clamp(a["alpha"] * x + a["beta"], 0, 1),
    "hard_swish": hard_swish,
    "hinge_embedding_loss": regression("hinge_embedding_loss", ("margin", "margin")),
    "huber_loss": regression("huber_loss", ("delta", "delta")),
    "index": lambda a, x, *indices: x[tuple(index_key(a, x, indices))],
    "index_add": index_add,
    "index_copy": index_copy,
    "index_fill": index_fill,
    "index_put": index_put,
    "index_reduce": index_reduce,
    "instance_norm": instance_norm,
    "iota": iota,
    "irfft": fourier(None, torch.fft.irfftn),
    "is_inf": one_sided,
    "kl_div": kl_div,
    "kth_value": lambda a, x: torch.kthvalue(x, a["k"], a["axis"], a["keep_dims"]).values,
    "l1_loss": regression("l1_loss"),
    "layer_norm": layer_norm,
    "leaky_relu": lambda a, x: F.leaky_relu(x, a["slope"]),
    "local_response_norm": local_response_norm,
    "log_softmax": lambda a, x: F.log_softmax(x, a["axis"]),
    "log_sum_exp": over_axes(logsumexp),
    "lp_pool": lp_pool,
    "lstm": layer(lambda a: torch.lstm, 2),
    "lstm_steps": steps(lstm_cell, 2),
    "margin_ranking_loss": regression("margin_ranking_loss", ("margin", "margin")),
    "masked_fill": lambda a, x, mask: torch.masked_fill(x, mask, a["value"]),
    "matmul": matmul,
    "matmul_integer": matmul_integer,
    "max_pool": lambda a, x: pool({**a, "kind": "max"}, x),
    "max_unpool": max_unpool,
    "median": median,
    "mode": lambda a, x: torch.mode(x, a["axis"], a["keep_dims"]).values,
    "mse_loss": regression("mse_loss"),
    "mul_high": mul_high,
    "multi_margin_loss": multi_margin_loss,
    "multilabel_margin_loss": lambda a, x, t: F.multilabel_margin_loss(x, t.long(), reduction=a["reduction"]),
    "multilabel_soft_margin_loss": multilabel_soft_margin_loss,
    "nll_loss": nll_loss,
    "not": lambda a, x: torch.bitwise_not(x),
    "one_hot": one_hot,
    "pad": pad,
    "pairwise_distance": lambda a, x, y: F.pairwise_distance(x, y, a["p"], a["epsilon"], a["keep_dims"]),
    "poisson_nll_loss": poisson_nll_loss,
    "polygamma": polygamma,
    "pool": pool,
    "prelu": prelu,
    "put": put,
    "quantile": quantile,
    "reduce": reduce,
    "remainder": remainder,
    "reshape": lambda a, x: x.reshape(a["shape"]),
    "resize": resize,
    "rfft": fourier(torch.fft.rfftn, None),
    "rms_norm": rms_norm,
    "rnn": layer(lambda a: getattr(torch, "rnn_" + a["activation"]), 1),
    "rnn_steps": steps(rnn_cell, 1),
    "roi_align": roi_align,
    "roll": lambda a, x: torch.roll(x, a["shifts"], a["axes"] or None),
    "scan": scan,
    "scan_with_index": scan_with_index,
    "scatter": scatter,
    "scatter_nd": scatter_nd,
    "scatter_reduce": scatter_reduce,
    "selu": selu,
    "shape_of": lambda a, x: torch.tensor(x.shape, dtype=torch.int64),
    "shrink": shrink,
    "sigmoid": overflowing(torch.sigmoid),
    "sign": sign,
    "silu": overflowing(F.silu, -sys.float_info.max),
    "slice": slice_,
    "smooth_l1_loss": regression("smooth_l1_loss", ("beta", "beta")),
    "soft_margin_loss": soft_margin_loss,
    "softmax": softmax,
    "softplus": softplus,
    "sort": lambda a, x: tuple(torch.sort(x, dim=a["axis"], descending=a["descending"], stable=True)),
    "space_to_depth": blocks(torch.pixel_unshuffle, "down"),
    "stack": lambda a, *xs: torch.stack(xs, a["axis"]),
    "standard_deviation": over_axes(spread(standard_deviation)),
    "strided_gather": strided_gather,
    "sum_pool": sum_pool,
    "take": lambda a, x, indices: torch.take(x, wrapped(indices, x.numel())),
    "tensor_dot": lambda a, x, y: torch.tensordot(x, y, (a["axes_a"], a["axes_b"])),
    "threshold": lambda a, x: F.threshold(x, a["threshold"], a["value"]),
    "tile": lambda a, x: torch.tile(x, a["repeats"]),
    "top_k": lambda a, x: torch.topk(x, a["k"], a["axis"], a["largest"]).values,
    "transpose": lambda a, x: x.permute(a["permutation"]),
    "triangle": lambda a, x: (torch.triu if a["upper"] else torch.tril)(x, a["diagonal"]),
    "triplet_margin_loss": triplet_margin_loss,
    "unfold": lambda a, x: F.unfold(x, *folded(a)),
    "update_slice": update_slice,
    "variance": over_axes(spread(torch.var)),
    "vector_norm": over_axes(vector_norm),
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

    def add(self, case, operands, results, gradients):
        self.index.append({"case": case["case"], "op": case["op"], "operands": [self.place(t) for t in operands],
                           "results": [self.place(t) for t in results],
                           "gradients": [self.place(t) for t in gradients]})

    def save(self, path):
        text = json.dumps(self.index, separators=(",", ":")).encode()
        np.savez_compressed(path, f64=np.array(self.numbers["f64"], np.float64),
                            i64=np.array(self.numbers["i64"], np.int64), index=np.frombuffer(text, np.uint8))


def compute(case):
    """Operands, results and gradients (of the first result) of a case.  errors: NotInTorch"""
    function = function_of(case)
    attributes = {name: parse(text) for name, text in case["attributes"].items()}
    operands = [tensor_of(operand) for operand in case["operands"]]
    wanted = [t for t in operands if t is not None and t.dtype == torch.float64]
    differentiable = case["gradient"] and not case["edges"] and bool(wanted)
    for tensor in wanted:
        tensor.requires_grad_(differentiable)
    try:
        results = function(attributes, *operands)
        results = results if isinstance(results, (tuple, list)) else [results]
        result, gradients = results[0], []
        if differentiable and result.requires_grad and result.dtype == torch.float64:
            found = torch.autograd.grad(result, wanted, cotangent(result.shape), allow_unused=True)
            gradients = [torch.zeros_like(t) if g is None else g for t, g in zip(wanted, found)]
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        raise NotInTorch(str(error)) from error
    return operands, results, gradients


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
