# SPDX-License-Identifier: Apache-2.0
"""Tensors made of sizes and numbers."""

from __future__ import annotations

import torch

from ..._graph import Value


def filled(number):
    """zeros, ones: the number in the shape that PyTorch computed"""
    return lambda t, *_, **__: t.full(number, t.out_dtype(), t.out_shape())


def full(t, _, value, **__):
    """A number in the shape that PyTorch computed; a scalar tensor is broadcast"""
    if isinstance(value, Value):
        return t.expand(t.cast(value, t.out_dtype()), t.out_shape())
    return t.full(value, t.out_dtype(), t.out_shape())


def new_full(t, x, size, value, **named):
    """aten.new_full"""
    return full(t, x, value, **named)


def scalar(t, value, **_):
    """A number as a tensor"""
    return t.tensor(value, t.out_dtype())


def arange(t, start, end=None, step=1, **_):
    """start, start + step ... before end"""
    if end is None:
        start, end = 0, start
    count = t.dim(t.meta().shape[0])
    whole = all(isinstance(n, (int, torch.SymInt)) or n == int(n) for n in (start, step) if not isinstance(n, Value))
    begin, step = (int(n) if isinstance(n, float) and whole else n for n in (start, step))
    if whole:
        return t.op("iota", dtype=t.out_dtype(), begin=t.dim(begin), step=t.dim(step), count=count)
    y = t.op("iota", dtype=t.out_dtype(), count=count)
    return t.op("add", t.op("mul", y, t.full(step, y.dtype)), t.full(start, y.dtype))


def linspace(t, start, end, steps, **_):
    """Equal steps from start to end; the second half is counted from the end, as PyTorch does"""
    n = t.fixed(steps, "the number of steps")
    dtype = t.out_dtype()
    numbers = torch.linspace(start, end, n, dtype=t.torch_dtype(dtype))
    return constant(t, numbers)


def constant(t, tensor):
    """A tensor whose elements are known now"""
    from ... import _arrays  # noqa: PLC0415

    return t.graph.variable(f"{t.node.name}", _arrays.view_of_torch(tensor), "constant")


def eye(t, n, m=None, **_):
    """The identity matrix"""
    rows, columns = t.out_shape()
    row, column = t.op("iota", dtype="i64", count=rows), t.op("iota", dtype="i64", count=columns)
    on = t.op("equal", t.reshape(row, [rows, 1]), t.reshape(column, [1, columns]))
    return t.cast(on, t.out_dtype())


def indices_of_triangle(function):
    """tril_indices, triu_indices"""
    return lambda t, row, col, offset=0, **_: constant(
        t, function(t.fixed(row, "the rows"), t.fixed(col, "the columns"), offset))


def frequencies(function):
    """fft_fftfreq and fft_rfftfreq"""
    return lambda t, n, d=1.0, **_: constant(t, function(t.fixed(n, "n"), d).to(t.torch_dtype(t.out_dtype())))


def window(function):
    """hann_window and its kin"""

    def rule(t, length, periodic=True, **_):
        return constant(t, function(t.fixed(length, "the length"), periodic=periodic).to(t.torch_dtype(t.out_dtype())))

    return rule


def size_of(t, size, **_):
    """A size as a tensor"""
    return t.full(size, t.out_dtype())


RULES = {
    **{f"aten.{name}": filled(0) for name in ("zeros", "zeros_like", "new_zeros", "zero", "empty", "empty_like",
                                              "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")},
    **{f"aten.{name}": filled(1) for name in ("ones", "ones_like", "new_ones")},
    **{f"aten.{name}": full for name in ("full", "full_like", "fill")},
    "aten.new_full": new_full,
    "aten._efficientzerotensor": filled(0),
    "aten.scalar_tensor": scalar,
    "aten.arange": arange,
    "aten.arange.start_step": arange,
    "prims.iota": lambda t, length, *, start, step, **_: t.op("iota", dtype=t.out_dtype(), begin=t.dim(start),
                                                              step=t.dim(step), count=t.dim(length)),
    "aten.linspace": linspace,
    "aten.eye": eye,
    "aten.tril_indices": indices_of_triangle(torch.tril_indices),
    "aten.triu_indices": indices_of_triangle(torch.triu_indices),
    "aten.fft_fftfreq": frequencies(torch.fft.fftfreq),
    "aten.fft_rfftfreq": frequencies(torch.fft.rfftfreq),
    "aten.hann_window": window(torch.hann_window),
    "aten.hamming_window": window(torch.hamming_window),
}
