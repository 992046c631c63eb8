# SPDX-License-Identifier: Apache-2.0
"""Normalisations."""

from __future__ import annotations

from ..unsupported import Unsupported


def layer_norm(t, x, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """Over the last axes"""
    return t.op("layer_norm", x, weight, bias, axis=-len(normalized_shape), epsilon=eps)


def native_layer_norm(t, x, normalized_shape, weight, bias, eps):
    """With the mean and the inverse deviation of each row, which PyTorch keeps in the type of narrow weights"""
    axis = -len(normalized_shape)
    if not (t.used(1) or t.used(2)):
        return t.op("layer_norm", x, weight, bias, axis=axis, epsilon=eps), None, None
    y, *statistics = t.ops("layer_norm", x, weight, bias, axis=axis, epsilon=eps, statistics=True)
    return y, *(t.cast(v, t.dtype(t.meta(i).dtype)) for i, v in enumerate(statistics, 1))


def rms_norm(t, x, normalized_shape, weight=None, eps=None):
    """Without the mean; no epsilon means the smallest step at 1"""
    import torch  # noqa: PLC0415

    eps = torch.finfo(t.torch_dtype(x.dtype)).eps if eps is None else eps
    return t.op("layer_norm", x, weight, None, axis=-len(normalized_shape), epsilon=eps, subtract_mean=False)


def _or(t, x, value, number):
    return t.full(number, x.dtype, [x.shape[1]]) if value is None else t.cast(value, x.dtype)


def batch_norm(t, x, weight, bias, mean, variance, training, momentum=0.1, eps=1e-5, cudnn_enabled=True):
    """With the running statistics, or the batch's where there are none"""
    scale, shift = _or(t, x, weight, 1), _or(t, x, bias, 0)
    if mean is None:
        return t.ops("batch_norm_training", x, scale, shift, _or(t, x, None, 0), _or(t, x, None, 1), epsilon=eps)[0]
    if training:
        raise Unsupported("statistics of the batch: export the module in evaluation mode")
    return t.op("batch_norm", x, scale, shift, t.cast(mean, x.dtype), t.cast(variance, x.dtype), epsilon=eps)


def native_batch_norm(t, x, weight, bias, mean, variance, momentum, eps):
    """aten._native_batch_norm_legit_no_training"""
    return batch_norm(t, x, weight, bias, mean, variance, False, momentum, eps), None, None


def batch_norm_training(t, x, weight, bias, mean, variance, training, momentum, eps):
    """aten._native_batch_norm_legit_functional: the batch's statistics, and the running ones after it"""
    if not training:
        return batch_norm(t, x, weight, bias, mean, variance, False, momentum, eps), None, None, mean, variance
    y, new_mean, new_variance = t.ops("batch_norm_training", x, _or(t, x, weight, 1), _or(t, x, bias, 0), mean,
                                      variance, epsilon=eps, momentum=momentum)
    return y, *batch_statistics(t, x, eps), new_mean, new_variance


def batch_norm_without_running(t, x, weight, bias, training, momentum, eps):
    """aten._native_batch_norm_legit.no_stats, with the statistics of the batch"""
    y = batch_norm(t, x, weight, bias, None, None, training, momentum, eps)
    return y, *batch_statistics(t, x, eps)


def but_channels(x):
    """All axes but the second"""
    return [axis for axis in range(x.rank) if axis != 1]


def batch_statistics(t, x, eps):
    """Of each channel, where the call's second or third result is used"""
    return statistics(t, x, but_channels(x), eps) if t.used(1) or t.used(2) else (None, None)


def statistics(t, x, axes, eps):
    """The mean and the inverse deviation over axes"""
    mean = t.op("reduce", x, kind="mean", axes=axes, keep_dims=False)
    variance = t.op("variance", x, axes=axes, correction=0, keep_dims=False)
    return mean, t.op("rsqrt", t.op("add", variance, t.full(eps, x.dtype)))


def instance_norm(t, x, weight, bias, mean, variance, use_input_stats, momentum, eps, cudnn_enabled):
    """Over each channel"""
    if not use_input_stats:
        return batch_norm(t, x, weight, bias, mean, variance, False, momentum, eps)
    return t.op("instance_norm", x, weight, bias, epsilon=eps)


def group_norm(t, x, groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """Over groups of channels"""
    return t.op("group_norm", x, weight, bias, groups=groups, epsilon=eps)


def native_group_norm(t, x, weight, bias, n, c, hxw, groups, eps):
    """aten.native_group_norm, with the mean and the inverse deviation of each group"""
    y = group_norm(t, x, groups, weight, bias, eps)
    if not (t.used(1) or t.used(2)):
        return y, None, None
    size = t.fixed(c, "the number of channels") // groups
    return y, *statistics(t, t.reshape(x, [x.shape[0], groups, size, *x.shape[2:]]), list(range(2, x.rank + 1)), eps)


RULES = {
    "aten.layer_norm": layer_norm,
    "aten.native_layer_norm": native_layer_norm,
    "aten.rms_norm": rms_norm,
    "aten.batch_norm": batch_norm,
    "aten._native_batch_norm_legit_no_training": native_batch_norm,
    "aten._native_batch_norm_legit_functional": batch_norm_training,
    "aten._native_batch_norm_legit.no_stats": batch_norm_without_running,
    "aten.instance_norm": instance_norm,
    "aten.group_norm": group_norm,
    "aten.native_group_norm": native_group_norm,
}
