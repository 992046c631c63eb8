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


# Other ops without attributes are the function of PyTorch that their source names.
OPS = {
    "attention": attention, "batch_norm": batch_norm,
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
    "embedding": embedding, "embedding_bag": embedding_bag, "embedding_renorm": embedding_renorm,
    "index": lambda a, x, *indices: x[tuple(index_key(a, x, indices))], "index_put": index_put,
    "masked_fill": lambda a, x, mask: torch.masked_fill(x, mask, a["value"]),
    "adaptive_avg_pool": adaptive("avg"), "adaptive_max_pool": adaptive("max"),
    "lp_pool": lp_pool, "max_pool": lambda a, x: pool({**a, "kind": "max"}, x), "max_unpool": max_unpool,
    "sum_pool": sum_pool,
    "affine_grid": affine_grid, "fold": lambda a, x: F.fold(x, a["sizes"], *folded(a)), "grid_sample": grid_sample,
    "roi_align": roi_align,
    "unfold": lambda a, x: F.unfold(x, *folded(a)),
    "index_add": index_add, "index_copy": index_copy, "index_fill": index_fill, "index_reduce": index_reduce,
    "put": put, "scatter": scatter, "scatter_nd": scatter_nd, "scatter_reduce": scatter_reduce,
    "take": lambda a, x, indices: torch.take(x, wrapped(indices, x.numel())),
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
