# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors: integers with a scale and a zero point that are known."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..._graph import Value
from ..unsupported import Unsupported

TYPES = {torch.quint8: ("u8", 0, 255), torch.qint8: ("i8", -128, 127), torch.qint32: ("i32", -2**31, 2**31 - 1)}


@dataclass
class Quantised:
    """(integers - zero) * scale, of float type"""

    integers: Value
    scale: Value
    zero: Value
    kind: torch.dtype


def _all_steps(t, x, scale, zero):
    """The numbers of the steps that lie nearest, half to even; floats"""
    inverse = t.op("div", t.full(1, x.dtype), scale)
    return t.op("add", t.op("round", t.op("mul", x, inverse)), zero)


def _steps(t, x, scale, zero, low, high):
    """The same within bounds"""
    return t.op("clamp", _all_steps(t, x, scale, zero), low=low, high=high)


def _along(t, x, v, axis):
    """Numbers of the indices of an axis, as what broadcasts to x"""
    shape = [1] * x.rank
    shape[axis] = x.shape[axis]
    return t.reshape(t.cast(v, x.dtype), shape)


def quantize(t, x, scale, zero_point, dtype):
    """aten.quantize_per_tensor"""
    if dtype not in TYPES:
        raise Unsupported(f"the element type {dtype}")
    name, low, high = TYPES[dtype]
    scale, zero = t.tensor(scale, x.dtype), t.tensor(zero_point, x.dtype)
    return Quantised(t.cast(_steps(t, x, scale, zero, low, high), name), scale, zero, dtype)


def quantize_per_channel(t, x, scales, zero_points, axis, dtype):
    """aten.quantize_per_channel"""
    return quantize(t, x, _along(t, x, scales, axis), _along(t, x, zero_points, axis), dtype)


def dequantize(t, q):
    """aten.dequantize"""
    if not isinstance(q, Quantised):
        return q
    steps = t.op("sub", t.cast(q.integers, q.scale.dtype), q.zero)
    return t.op("mul", steps, q.scale)


def fake_quantize(t, x, scale, zero_point, low, high, grad_factor=1.0):
    """aten.fake_quantize_per_tensor_affine: to the nearest step and back"""
    return t.op("fake_quantize", x, t.tensor(scale, x.dtype), t.tensor(zero_point, x.dtype), low=low, high=high,
                scale_gradient=grad_factor)


def fake_quantize_channels(t, x, scale, zero_point, axis, low, high, grad_factor=1.0):
    """The same with a scale for each channel"""
    return fake_quantize(t, x, _along(t, x, scale, axis), _along(t, x, zero_point, axis), low, high, grad_factor)


def with_mask(t, x, scale, zero_point, low, high):
    """aten.fake_quantize_per_tensor_affine_cachemask: also where no bound is passed"""
    steps = _all_steps(t, x, t.tensor(scale, x.dtype), t.tensor(zero_point, x.dtype))
    return (fake_quantize(t, x, scale, zero_point, low, high),
            t.op("equal", steps, t.op("clamp", steps, low=low, high=high)))


def with_mask_where_enabled(t, x, scale, zero_point, enabled, low, high):
    """aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams: of a number that says whether to"""
    y, mask = with_mask(t, x, scale, zero_point, low, high)
    on = t.op("greater", enabled, t.full(0, enabled.dtype))
    return t.op("select", on, y, x), t.op("or", mask, t.op("not", on))


def with_mask_of_channels(t, x, scale, zero_point, axis, low, high):
    """aten.fake_quantize_per_channel_affine_cachemask"""
    return with_mask(t, x, _along(t, x, scale, axis), _along(t, x, zero_point, axis), low, high)


def relu(t, x):
    """The zero point is the least"""
    if not isinstance(x, Quantised):
        return t.op("relu", x) if x.dtype != "bool" else x
    zero = t.cast(x.zero, x.integers.dtype)
    return Quantised(t.op("maximum", x.integers, zero), x.scale, x.zero, x.kind)


RULES = {
    "aten.quantize_per_tensor": quantize,
    "aten.quantize_per_channel": quantize_per_channel,
    "aten.dequantize": dequantize,
    "aten.int_repr": lambda t, q: q.integers,
    "aten.fake_quantize_per_tensor_affine": fake_quantize,
    "aten.fake_quantize_per_channel_affine": fake_quantize_channels,
    "aten.fake_quantize_per_tensor_affine_cachemask": with_mask,
    "aten.fake_quantize_per_channel_affine_cachemask": with_mask_of_channels,
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams": with_mask_where_enabled,
    "aten._fake_quantize_learnable_per_tensor_affine": fake_quantize,
    "aten._fake_quantize_learnable_per_channel_affine": fake_quantize_channels,
    "aten.relu": relu,
    "quantized_decomposed.quantize_per_tensor": lambda t, x, scale, zero, low, high, dtype: t.cast(
        _steps(t, x, t.tensor(scale, x.dtype), t.tensor(zero, x.dtype), low, high), t.out_dtype()),
    "quantized_decomposed.dequantize_per_tensor": lambda t, x, scale, zero, low, high, dtype, **_: t.op(
        "mul", t.op("sub", t.cast(x, "f32"), t.tensor(zero, "f32")), t.tensor(scale, "f32")),
}
