# SPDX-License-Identifier: Apache-2.0
"""What flows back through calls: the gradients that the library has of the rule of each call. What PyTorch decomposes
has no rule here."""

from __future__ import annotations

from ..unsupported import Unsupported
from . import attention, indexing, movement, norms, quantization, windows


def flows_back(t, gradient, y, values):
    """The gradients of the values, where this gradient flows back to y; None for values that are None"""
    wanted = [v for v in values if v is not None]
    made = iter(t.graph.gradients([y], [t.cast(gradient, y.dtype)], wanted))
    return tuple(None if v is None else next(made) for v in values)


def through(rule, own=0):
    """Back through a rule of one tensor, which is called with the arguments after it.

    own: how many of the last arguments the call has for itself
    """

    def back(t, gradient, x, *arguments):
        y = rule(t, x, *arguments[:len(arguments) - own])
        return flows_back(t, gradient, y, [x])[0]

    return back


def convolution(t, gradient, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
                output_mask):
    """aten.convolution_backward"""
    y = windows.convolution(t, x, weight, None, stride, padding, dilation, transposed, output_padding, groups)
    results = flows_back(t, gradient, y, [v if wanted else None for v, wanted in zip((x, weight), output_mask)])
    if not output_mask[2]:
        return *results, None
    return *results, t.op("reduce", gradient, kind="sum", axes=norms.but_channels(gradient), keep_dims=False)


def adaptive_pool(op, axes):
    """Back through a pool whose windows follow from the size of the gradient"""

    def back(t, gradient, x, *_):
        sizes = [t.fixed(size, "a size") for size in gradient.shape[-axes:]]
        y = windows.batched(t, x, axes, lambda batch: t.ops(op, batch, sizes=sizes)[0])
        return flows_back(t, gradient, y, [x])[0]

    return back


def embedding(t, gradient, indices, rows, padding_idx, scale_grad_by_freq):
    """aten.embedding_dense_backward"""
    table = t.full(0, gradient.dtype, [rows, gradient.shape[-1]])
    y = indexing.embedding(t, table, indices, padding_idx, scale_grad_by_freq)
    return flows_back(t, gradient, y, [table])[0]


def resampled(rule):
    """Back through an interpolation, whose input is given by its size"""

    def back(t, gradient, output_size, input_size, *arguments):
        x = t.full(0, gradient.dtype, t.shape(input_size))
        y = rule(t, x, output_size, *arguments)
        return flows_back(t, gradient, y, [x])[0]

    return back


def grid_sample(t, gradient, x, grid, interpolation_mode, padding_mode, align_corners, output_mask):
    """aten.grid_sampler_2d_backward and 3d"""
    y = windows.grid_sample(t, x, grid, interpolation_mode, padding_mode, align_corners)
    return flows_back(t, gradient, y, [v if wanted else None for v, wanted in zip((x, grid), output_mask)])


def flash_attention(t, gradient, q, k, v, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None):
    """aten._scaled_dot_product_flash_attention_for_cpu_backward"""
    if dropout_p:
        raise Unsupported("dropout")
    wide = t.wide(q.dtype)
    products = t.op("mul", t.cast(gradient, wide), t.cast(out, wide))
    delta = t.op("reduce", products, kind="sum", axes=[-1], keep_dims=True)
    sums = t.reshape(t.cast(logsumexp, wide), [*logsumexp.shape, 1])
    return t.ops("attention_gradient", q, k, v, sums, t.cast(gradient, q.dtype), delta,
                 attention.mask_for(t, q, attn_mask), **attention.attributes(is_causal, scale))


def layer_norm(t, gradient, x, normalized_shape, mean, inverse_deviation, weight, bias, output_mask):
    """aten.native_layer_norm_backward"""
    statistics = [t.cast(v, t.wide(x.dtype)) for v in (inverse_deviation, mean)]
    dx, *columns = t.ops("layer_norm_gradient", t.cast(gradient, x.dtype), x, *statistics, weight,
                         axis=-len(normalized_shape), columns=True)
    return dx, *(t.cast(v, x.dtype) if wanted else None for v, wanted in zip(columns, output_mask[1:]))


def rounded(rule):
    """Back through a rounding to steps whose scale and zero point are learned"""

    def back(t, gradient, x, scale, zero_point, *arguments):
        return flows_back(t, gradient, rule(t, x, scale, zero_point, *arguments), [x, scale, zero_point])

    return back


RULES = {
    "aten.convolution_backward": convolution,
    "aten.max_pool2d_with_indices_backward": through(windows.max_pool(2, False), own=1),
    "aten.max_pool3d_with_indices_backward": through(windows.max_pool(3, False), own=1),
    "aten.avg_pool2d_backward": through(windows.avg_pool(2)),
    "aten.avg_pool3d_backward": through(windows.avg_pool(3)),
    **{f"aten._adaptive_avg_pool{n}d_backward": adaptive_pool("adaptive_avg_pool", n) for n in (2, 3)},
    "aten.grid_sampler_2d_backward": grid_sample,
    "aten.grid_sampler_3d_backward": grid_sample,
    **{f"aten.{name}_pad{n}d_backward": through(movement.pad_by(mode)) for n in (1, 2, 3)
       for name, mode in (("reflection", "reflect"), ("replication", "replicate"))},
    **{f"aten.adaptive_max_pool{n}d_backward": adaptive_pool("adaptive_max_pool", n) for n in (2, 3)},
    "aten.embedding_dense_backward": embedding,
    "aten.native_layer_norm_backward": layer_norm,
    "aten._fake_quantize_learnable_per_tensor_affine_backward": rounded(quantization.fake_quantize),
    "aten._fake_quantize_learnable_per_channel_affine_backward": rounded(quantization.fake_quantize_channels),
    **{f"aten.upsample_nearest{n}d_backward": resampled(windows.nearest(n)) for n in (1, 2, 3)},
    "aten.upsample_linear1d_backward": resampled(windows.interpolated(1, "linear")),
    "aten.upsample_bilinear2d_backward": resampled(windows.interpolated(2, "linear")),
    "aten.upsample_trilinear3d_backward": resampled(windows.interpolated(3, "linear")),
    "aten.upsample_bicubic2d_backward": resampled(windows.interpolated(2, "cubic")),
    "aten._scaled_dot_product_flash_attention_for_cpu_backward": flash_attention,
}
