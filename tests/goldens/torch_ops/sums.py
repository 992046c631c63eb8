# SPDX-License-Identifier: Apache-2.0
"""Reductions, products, windows and what normalises."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from torch_ops.common import DTYPES, require
from torch_ops.movement import unique, wrapped


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


def conv_weight_gradient(a, x, dy):
    weight = torch.zeros(dy.shape[1], x.shape[1] // a["groups"], *a["kernel"], dtype=x.dtype, requires_grad=True)
    return torch.autograd.grad(conv(a, x.detach(), weight), weight, dy.detach())[0]


def conv_integer(a, x, weight):
    require(weight.numel() > 0)
    return conv({**a, "padding": []}, x.double(), weight.double()).to(torch.int32)


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
        even = before == after
        if not even:
            require(not a["ceil_mode"])
            x, before = padded(x, a["padding"], -math.inf), [0] * axes
        function = [F.max_pool1d, F.max_pool2d, F.max_pool3d][axes - 1]
        y, places = function(x, a["kernel"] or 1, a["strides"] or 1, before or 0, a["dilations"] or 1, a["ceil_mode"],
                             return_indices=True)
        return (y, places if even else None) if a["indices"] else y
    require(before == after and max(a["dilations"] or [1]) == 1)
    function = [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d][axes - 1]
    return function(x, a["kernel"], a["strides"] or 1, before or 0, a["ceil_mode"], a["count_include_pad"])


def max_pool_gradient(a, x, dy):
    axes = x.ndim - 2
    before, after = a["padding"][:axes], a["padding"][axes:]
    require(before == after and not a["ceil_mode"] and x.numel())
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[axes - 1]
    own = x.detach().requires_grad_()
    y = pool(own, a["kernel"] or 1, a["strides"] or 1, before or 0, a["dilations"] or 1)
    return torch.autograd.grad(y, own, dy.detach())[0]


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
        bins = length.flip(0) / torch.tensor(a["sizes"])
        grid = [a["samples"], a["samples"]]
        if a["adaptive"]:
            grid = [min(max(math.ceil(b), 0), n) for b, n in zip(bins.tolist(), grid)]
        if 0 in grid:
            out += [torch.zeros(x.shape[1], dtype=x.dtype)] * math.prod(a["sizes"])
            continue
        step = bins / torch.tensor(grid)
        for i, j in np.ndindex(*a["sizes"]):
            points = [sample(x[item], box[1] + (i * grid[0] + p + 0.5) * step[0],
                             box[0] + (j * grid[1] + q + 0.5) * step[1])
                      for p, q in np.ndindex(*grid)]
            points = torch.stack(points)
            out.append(points.amax((0, 1)) if a["largest"] else points.sum(1).mean(0))
    return torch.stack(out).reshape(len(rois), *a["sizes"], x.shape[1]).permute(0, 3, 1, 2)


def folded(a):
    before, after = halves(a["padding"])
    require(before == after)
    return a["kernel"] or 1, a["dilations"] or 1, before or 0, a["strides"] or 1


def softmax(a, x):
    if a["log"]:
        return F.log_softmax(x, a["axis"])
    y = F.softmax(x, a["axis"])
    return torch.where((x == -math.inf).all(a["axis"], keepdim=True), torch.zeros_like(y), y) \
        if a["masked_rows_zero"] else y


def softmax_statistics(a, x):
    require(x.numel() and not (x == -math.inf).all(a["axis"]).any())
    top = x.amax(a["axis"], keepdim=True)
    return top, torch.logsumexp(x - top, a["axis"], keepdim=True)


def masked(a, q, k, mask):
    """What masks add to scores: -infinity where a key does not count"""
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
    if mask is None:
        return bias
    return bias + (torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -math.inf)
                   if mask.dtype == torch.bool else mask)


def attention(a, q, k, v, mask=None):
    require(a["softcap"] == 0)
    bias = masked(a, q, k, mask)
    y = F.scaled_dot_product_attention(q, k, v, bias, scale=a["scale"] or None)
    if not a["log_sums"]:
        return y
    sums = torch.logsumexp(q @ k.mT * (a["scale"] or q.shape[-1] ** -0.5) + bias, -1, keepdim=True)
    sums = torch.where(sums == -math.inf, math.inf, sums)
    return y, sums.expand(*y.shape[:-1], 1)


def attention_gradient(a, q, k, v, log_sum, dy, delta, mask=None):
    """By its formula: PyTorch's kernel, which gives the same, has no second gradient."""
    scale, bias = a["scale"] or q.shape[-1] ** -0.5, masked(a, q, k, mask)
    scores = q @ k.mT * scale
    slope = scale
    if a["softcap"]:
        t = torch.tanh(scores / a["softcap"])
        scores, slope = t * a["softcap"], scale * (1 - t * t)
    p = torch.exp(scores + bias - log_sum)
    ds = p * (dy @ v.mT - delta) * slope
    results = ds @ k, (ds.mT @ q).sum_to_size(k.shape), (p.mT @ dy).sum_to_size(v.shape)
    if q.ndim == 3 and q.shape[0] == k.shape[0] > 0 and q.shape[-1] == v.shape[-1] and bias.ndim == 2 \
            and not a["softcap"]:
        whole = [x.detach()[None] for x in (dy, q, k, v)]
        out = whole[0] * delta.detach() / (whole[0] ** 2).sum(-1, keepdim=True)  # whose product with dy is delta
        own = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            *whole, out, log_sum.detach()[None, ..., 0], 0.0, False, attn_mask=bias.detach(), scale=scale)
        for x, of_torch in zip(results, own):
            assert torch.allclose(x, of_torch[0], rtol=1e-9, atol=1e-9 * float(x.detach().abs().max()))
    return results


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


def layer_norm_gradient(a, dy, x, inverse_deviation, mean=None, gamma=None):
    """By its formula: PyTorch's kernel, which gives the same, has no second gradient."""
    first = a["axis"] % x.ndim
    inner, outer = list(range(first, x.ndim)), list(range(first))
    z = (x if mean is None else x - mean) * inverse_deviation
    dz = dy if gamma is None else dy * gamma
    off = dz if mean is None else dz - dz.mean(inner, keepdim=True)
    dx = inverse_deviation * (off - z * (dz * z).mean(inner, keepdim=True))
    results = (dx, (dy * z).sum(outer), dy.sum(outer)) if outer else (dx, dy * z, dy)
    if mean is not None and x.numel():
        row, given = x.shape[first:], [t.detach() for t in (dy, x, mean, inverse_deviation)]
        weight = torch.ones(row, dtype=x.dtype) if gamma is None else gamma.detach().expand(row).contiguous()
        own = torch.ops.aten.native_layer_norm_backward(*given[:2], row, *given[2:], weight, weight, [True] * 3)
        for of_formula, of_torch in zip(results, own):
            assert torch.allclose(of_formula, of_torch, rtol=1e-9, atol=1e-9)
    return results if a["columns"] else dx


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
