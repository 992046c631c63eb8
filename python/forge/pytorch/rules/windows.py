# SPDX-License-Identifier: Apache-2.0
"""Convolutions, pools, resampling."""

from __future__ import annotations

import fractions

from ..unsupported import Unsupported
from .indexing import indices_of


def each(value, axes):
    """A number or a list of one as a list of one for each axis"""
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    return value * axes if len(value) == 1 else value


def batched(t, x, axes, work):
    """Adds the batch that PyTorch lets one leave out"""
    if x.rank == axes + 2:
        return work(x)
    if x.rank != axes + 1:
        raise Unsupported(f"a tensor of {x.rank} axes")
    y = work(t.reshape(x, [1, *x.shape]))
    whole = [t.reshape(v, v.shape[1:]) for v in (y if isinstance(y, tuple) else (y,))]
    return tuple(whole) if isinstance(y, tuple) else whole[0]


def conv(axes):
    """conv1d, conv2d, conv3d"""

    def rule(t, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        dilations = each(dilation, axes)
        if padding == "valid":
            before = after = [0] * axes
        elif padding == "same":
            total = [d * (t.fixed(k, "a kernel") - 1) for d, k in zip(dilations, weight.shape[2:])]
            before, after = [n // 2 for n in total], [n - n // 2 for n in total]
        else:
            before = after = each(padding, axes)
        return batched(t, x, axes, lambda y: t.op(
            "conv", y, weight, bias, strides=each(stride, axes), dilations=dilations, padding=[*before, *after],
            groups=groups))

    return rule


def conv_transpose(axes):
    """conv_transpose1d, 2d, 3d"""

    def rule(t, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        return batched(t, x, axes, lambda y: t.op(
            "conv_transpose", y, weight, bias, strides=each(stride, axes), dilations=each(dilation, axes),
            padding=each(padding, axes) * 2, output_padding=each(output_padding, axes), groups=groups))

    return rule


def convolution(t, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *_):
    """aten.convolution"""
    axes = weight.rank - 2
    if transposed:
        return conv_transpose(axes)(t, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(axes)(t, x, weight, bias, stride, padding, dilation, groups)


def max_pool(axes, indices):
    """max_pool1d, 2d, 3d, also with indices"""

    def rule(t, x, kernel, stride=(), padding=0, dilation=1, ceil_mode=False):
        attributes = {"kernel": each(kernel, axes), "strides": each(stride or kernel, axes),
                      "padding": each(padding, axes) * 2, "dilations": each(dilation, axes), "ceil_mode": ceil_mode}
        if not indices:
            return batched(t, x, axes, lambda y: t.op("pool", y, kind="max", **attributes))
        if not t.used(1):
            return batched(t, x, axes, lambda y: t.op("pool", y, kind="max", **attributes)), None
        return batched(t, x, axes, lambda y: tuple(t.ops("max_pool", y, **attributes)))

    return rule


def avg_pool(axes):
    """avg_pool1d, 2d, 3d"""

    def rule(t, x, kernel, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        kernel, stride, padding = each(kernel, axes), each(stride or kernel, axes), each(padding, axes)
        if ceil_mode:  # PyTorch takes a kernel that is larger than x, of which there is one window
            reach = [n + 2 * p if isinstance(n, int) else k for n, p, k in zip(x.shape[-axes:], padding, kernel)]
            kernel = [min(k, n) for k, n in zip(kernel, reach)]
        attributes = {"kernel": kernel, "strides": stride, "padding": padding * 2, "ceil_mode": ceil_mode}
        if divisor_override is not None:
            return batched(t, x, axes, lambda y: t.op("sum_pool", y, divisor=divisor_override, **attributes))
        return batched(t, x, axes, lambda y: t.op("pool", y, kind="average", count_include_pad=count_include_pad,
                                                  **attributes))

    return rule


def adaptive(axes, op, indices):
    """adaptive_avg_pool1d and its kin"""

    def rule(t, x, output_size):
        sizes = [0 if n is None else t.fixed(n, "a size") for n in each(output_size, axes)]
        if not indices:
            if sizes == [1] * axes:
                spatial = list(range(x.rank - axes, x.rank))
                return t.op("reduce", x, kind="mean", axes=spatial, keep_dims=True)
            return batched(t, x, axes, lambda y: t.op(op, y, sizes=sizes))
        return batched(t, x, axes, lambda y: tuple(t.ops(op, y, sizes=sizes)))

    return rule


def max_unpool(axes):
    """max_unpool2d, 3d"""

    def rule(t, x, indices, output_size, *_):
        return t.op("max_unpool", x, indices_of(t, indices), sizes=t.shape(output_size))

    return rule


def lp_pool(t, x, norm, kernel, stride, axes, ceil_mode):
    """lp_pool1d, 2d"""
    return batched(t, x, axes, lambda y: t.op("lp_pool", y, p=norm, kernel=each(kernel, axes),
                                              strides=each(stride or kernel, axes), ceil_mode=ceil_mode))


def unfold(t, x, kernel, dilation, padding, stride):
    """aten.im2col"""
    return batched(t, x, 2, lambda y: t.op("unfold", y, kernel=each(kernel, 2), dilations=each(dilation, 2),
                                           padding=each(padding, 2) * 2, strides=each(stride, 2)))


def fold(t, x, output_size, kernel, dilation, padding, stride):
    """aten.col2im"""
    return batched(t, x, 1, lambda y: t.op("fold", y, sizes=t.shape(output_size), kernel=each(kernel, 2),
                                           dilations=each(dilation, 2), padding=each(padding, 2) * 2,
                                           strides=each(stride, 2)))


def resize(t, x, sizes, scales, **attributes):
    """Resamples the last axes"""
    axes = len(sizes)
    spatial = list(range(x.rank - axes, x.rank))
    ratios = {}
    if scales and all(s is not None for s in scales):
        exact = [fractions.Fraction(float(s)).limit_denominator(2**20) for s in scales]
        ratios = {"numerators": [f.numerator for f in exact], "denominators": [f.denominator for f in exact]}
    return t.op("resize", x, axes=spatial, sizes=sizes, **attributes, **ratios)


def _sizes(t, axes, output_size):
    """The given sizes, or those that PyTorch computed"""
    return t.shape(output_size) if output_size else t.out_shape()[-axes:]


def nearest(axes, exact=False):
    """upsample_nearest1d and its kin"""
    how = ({"coordinates": "half_pixel", "rounding": "prefer_ceil"} if exact
           else {"coordinates": "asymmetric", "rounding": "floor"})

    def rule(t, x, output_size, *scales):
        factors = scales[0] if len(scales) == 1 and isinstance(scales[0], (list, tuple)) else scales
        return resize(t, x, _sizes(t, axes, output_size), factors, kind="nearest", **how)

    return rule


def interpolated(axes, kind):
    """upsample_bilinear2d and its kin"""

    def rule(t, x, output_size, align_corners, *scales):
        factors = scales[0] if len(scales) == 1 and isinstance(scales[0], (list, tuple)) else scales
        coordinates = "align_corners" if align_corners else "half_pixel"
        return resize(t, x, _sizes(t, axes, output_size), None if align_corners else factors, kind=kind,
                      coordinates=coordinates)

    return rule


def antialiased(call):
    """_upsample_bilinear2d_aa and its kin, along each axis a product with what PyTorch makes of the unit matrix"""

    def rule(t, x, output_size, align_corners, *scales):
        import torch  # noqa: PLC0415

        factors = scales[0] if len(scales) == 1 else scales
        for axis, factor in zip((-2, -1), factors or (None, None)):
            n, size = t.fixed(x.shape[axis], "the size"), t.fixed(t.out_shape()[axis], "the size")
            unit = torch.eye(n).reshape(1, 1, n, n)
            weights = getattr(torch.ops.aten, call)(unit, [size, n], align_corners, factor, None).reshape(size, n)
            matrix = t.cast(t.variable(f"{call}.weights", weights), x.dtype)
            x = t.op("matmul", x, matrix, transpose_b=True) if axis == -1 else t.op("matmul", matrix, x)
        return x

    return rule


def grid_sample(t, x, grid, interpolation_mode=0, padding_mode=0, align_corners=False):
    """aten.grid_sampler"""
    return t.op("grid_sample", x, grid, kind=("linear", "nearest", "cubic")[interpolation_mode],
                padding=("zeros", "border", "reflection")[padding_mode], align_corners=bool(align_corners))


def affine_grid(t, theta, size, align_corners=False):
    """aten.affine_grid_generator"""
    return t.op("affine_grid", theta, sizes=t.shape(size)[2:], align_corners=align_corners)


def roi_align(t, x, rois, spatial_scale, height, width, sampling_ratio, aligned):
    """torchvision's roi_align"""
    if sampling_ratio <= 0:
        raise Unsupported("as many samples as the size of a box tells")
    boxes, batch = t.slice(rois, 1, 1, 5), t.cast(t.select(rois, 1, 0), "i64")
    return t.op("roi_align", x, boxes, batch, sizes=[t.fixed(height, "a height"), t.fixed(width, "a width")],
                samples=sampling_ratio, scale=spatial_scale, half_pixel=aligned)


def nms(t, boxes, scores, iou_threshold):
    """torchvision's nms: the boxes that are kept, by falling score"""
    n, size = scores.shape[0], t.meta().shape[0]
    most, overlap = t.full(2**63 - 1, "i64", [1]), t.full(iou_threshold, "f32", [1])
    rows = t.op("select_boxes", t.reshape(boxes, [1, n, 4]), t.reshape(scores, [1, 1, n]), most, overlap,
                count=t.declare(size))
    t.bind(size, t.slice(t.op("shape_of", rows), 0, 0, 1))
    return t.select(rows, 1, 2)


RULES = {
    "aten.convolution": convolution,
    "aten._convolution": convolution,
    **{f"aten.conv{n}d": conv(n) for n in (1, 2, 3)},
    **{f"aten.conv_transpose{n}d": conv_transpose(n) for n in (1, 2, 3)},
    **{f"aten.max_pool{n}d": max_pool(n, False) for n in (1, 2, 3)},
    **{f"aten.max_pool{n}d_with_indices": max_pool(n, True) for n in (1, 2, 3)},
    **{f"aten.avg_pool{n}d": avg_pool(n) for n in (1, 2, 3)},
    **{f"aten.{prefix}adaptive_avg_pool{n}d": adaptive(n, "adaptive_avg_pool", False) for n in (1, 2, 3)
       for prefix in ("", "_")},
    **{f"aten.adaptive_max_pool{n}d": adaptive(n, "adaptive_max_pool", True) for n in (1, 2, 3)},
    **{f"aten.max_unpool{n}d": max_unpool(n) for n in (2, 3)},
    "aten.lp_pool1d": lambda t, x, norm, kernel, stride=(), ceil_mode=False: lp_pool(
        t, x, norm, kernel, stride, 1, ceil_mode),
    "aten.lp_pool2d": lambda t, x, norm, kernel, stride=(), ceil_mode=False: lp_pool(
        t, x, norm, kernel, stride, 2, ceil_mode),
    "aten.im2col": unfold,
    "aten.col2im": fold,
    **{f"aten.upsample_nearest{n}d": nearest(n) for n in (1, 2, 3)},
    **{f"aten._upsample_nearest_exact{n}d": nearest(n, exact=True) for n in (1, 2, 3)},
    "aten.upsample_linear1d": interpolated(1, "linear"),
    "aten.upsample_bilinear2d": interpolated(2, "linear"),
    "aten.upsample_trilinear3d": interpolated(3, "linear"),
    "aten.upsample_bicubic2d": interpolated(2, "cubic"),
    **{f"aten.{call}": antialiased(call) for call in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")},
    "aten.grid_sampler": grid_sample,
    "aten.grid_sampler_2d": grid_sample,
    "aten.grid_sampler_3d": grid_sample,
    "aten.affine_grid_generator": affine_grid,
    "torchvision.nms": nms,
    "torchvision.roi_align": roi_align,
}
