# SPDX-License-Identifier: Apache-2.0
"""Reductions, sorts, running sums."""

from __future__ import annotations

from .. import dims
from ..unsupported import Unsupported
from .elementwise import truth


def axes_of(x, dim):
    """Axes as a list; None and [] mean all."""
    if dim is None or dim == []:
        return list(range(x.rank))
    return [d % max(x.rank, 1) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]


def reduce_over(t, x, kind, dim=None, keepdim=False):
    """A reduction; a scalar is its own"""
    axes = axes_of(x, dim) if x.rank else []
    return t.op("reduce", x, kind=kind, axes=axes, keep_dims=keepdim) if axes else x


def total(kind):
    """sum or prod or mean, in the result's element type"""

    def rule(t, x, dim=None, keepdim=False, dtype=None):
        if x.dtype == "bool" and t.out_dtype() == "bool":
            raise Unsupported(f"{kind} of bool")
        return reduce_over(t, t.cast(x, t.out_dtype()), kind, dim, keepdim)

    return rule


def extreme(kind):
    """amax or amin"""

    def rule(t, x, dim=None, keepdim=False):
        if x.dtype == "bool" and x.rank:
            return t.op("any" if kind == "max" else "all", x, axes=axes_of(x, dim), keep_dims=keepdim)
        return reduce_over(t, x, kind, dim, keepdim)

    return rule


def extreme_with_index(kind):
    """max or min along an axis, and where it lies"""

    def rule(t, x, dim, keepdim=False):
        if x.rank == 0:
            return x, t.full(0, "i64")
        of = t.cast(x, "u8") if x.dtype == "bool" else x
        value = extreme(kind)(t, x, dim, keepdim) if t.used(0) else None
        return value, t.op("arg_reduce", of, kind=kind, axis=dim, keep_dims=keepdim) if t.used(1) else None

    return rule


def arg_extreme(kind):
    """Where the extreme lies"""

    def rule(t, x, dim=None, keepdim=False):
        x = t.cast(x, "u8") if x.dtype == "bool" else x
        if x.rank == 0:
            return t.full(0, "i64")
        return t.op("arg_reduce", x, kind=kind, axis=0 if dim is None else dim, all=dim is None, keep_dims=keepdim)

    return rule


def quantifier(op):
    """any or all"""

    def rule(t, x, dim=None, keepdim=False):
        if x.rank == 0:
            y = truth(t, x)
        else:
            y = t.op(op, x, axes=axes_of(x, dim), keep_dims=keepdim)
        return t.cast(y, t.out_dtype())

    return rule


def spread(op):
    """variance or standard deviation"""

    def rule(t, x, dim=None, unbiased=True, keepdim=False, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        correction = float(unbiased) if correction is None else correction
        return t.op(op, x, axes=axes_of(x, dim), correction=correction, keep_dims=keepdim)

    return rule


def spread_by_correction(op):
    """The overloads in which a correction is given by name; None is 1"""
    return lambda t, x, dim=None, correction=None, keepdim=False: t.op(
        op, x, axes=axes_of(x, dim), correction=1 if correction is None else correction, keep_dims=keepdim)


def spread_and_mean(op):
    """variance or standard deviation, and mean"""

    def rule(t, x, dim=None, unbiased=True, keepdim=False, correction=None):
        return (spread(op)(t, x, dim, unbiased, keepdim, correction),
                reduce_over(t, x, "mean", dim if not isinstance(dim, bool) else None, keepdim))

    return rule


def softmax(op):
    """softmax or log_softmax, in the result's element type"""

    def rule(t, x, dim, dtype=None):
        x = t.cast(x, t.out_dtype())
        if x.rank == 0:
            return t.reshape(t.op(op, t.reshape(x, [1]), axis=0), [])
        return t.op(op, x, axis=dim)

    return rule


def log_sum_exp(t, x, dim, keepdim=False):
    """log(sum(exp(x)))"""
    if x.rank == 0:
        return t.cast(x, t.out_dtype())
    return t.op("log_sum_exp", t.cast(x, t.out_dtype()), axes=axes_of(x, dim), keep_dims=keepdim)


def vector_norm(t, x, ord=2, dim=None, keepdim=False, dtype=None):  # noqa: A002 (PyTorch's name)
    """The p-norm"""
    x = t.cast(x, t.out_dtype())
    if x.rank == 0:
        return t.reshape(t.op("vector_norm", t.reshape(x, [1]), p=2 if ord is None else ord, axes=[0]), [])
    return t.op("vector_norm", x, p=2 if ord is None else ord, axes=axes_of(x, dim), keep_dims=keepdim)


def norm(t, x, p=2, dim=None, keepdim=False, dtype=None):
    """torch.norm"""
    return vector_norm(t, x, p, dim, keepdim)


def running(kind):
    """cumsum, cumprod"""

    def rule(t, x, dim, dtype=None):
        x = t.cast(x, t.out_dtype())
        return t.op("scan", x, kind=kind, axis=dim) if x.rank else x

    return rule


def running_extreme(kind):
    """cummax, cummin with indices"""

    def rule(t, x, dim):
        if x.rank == 0:
            return x, t.full(0, "i64")
        boolean = x.dtype == "bool"
        value, index = t.ops("scan_with_index", t.cast(x, "u8") if boolean else x, kind=kind, axis=dim)
        return (t.cast(value, "bool") if boolean else value), index

    return rule


def sort(t, x, dim=-1, descending=False):
    """Sorted elements and where they were; the sort is stable"""
    return ordered(t, x, lambda y: t.ops("sort", y, axis=dim, descending=descending))


def sort_stable(t, x, *, stable=None, dim=-1, descending=False):
    """aten.sort.stable"""
    return sort(t, x, dim, descending)


def ordered(t, x, work):
    """An op on ordered elements: booleans as bytes, scalars as rows of one"""
    boolean, scalar = x.dtype == "bool", x.rank == 0
    y = t.reshape(t.cast(x, "u8") if boolean else x, [1] if scalar else x.shape)
    value, index = work(y)
    value = t.cast(value, "bool") if boolean else value
    return (t.reshape(value, []), t.reshape(index, [])) if scalar else (value, index)


def argsort(t, x, dim=-1, descending=False):
    """Where the sorted elements were"""
    return sort(t, x, dim, descending)[1]


def top_k(t, x, k, dim=-1, largest=True, sorted=True):  # noqa: A002 (PyTorch's name)
    """The k largest or smallest elements"""
    k = t.dim(k)
    if isinstance(k, int):
        return ordered(t, x, lambda y: t.ops("top_k", y, k=k, axis=dim, largest=largest))
    places = t.slice(t.op("arg_sort", x, axis=dim, descending=largest), dim, 0, k)
    return t.op("gather_elements", x, places, axis=dim), places


def k_th(t, x, k, dim=-1, keepdim=False):
    """The k-th smallest element"""
    return ordered(t, x, lambda y: t.ops("kth_value", y, k=k, axis=dim, keep_dims=keepdim))


def median(skip_nan):
    """The lower median"""

    def rule(t, x, dim=None, keepdim=False):
        if dim is None:
            flat = t.op("reshape", x, shape=[dims.product(x.shape)])
            return t.ops("median", flat, axis=0, skip_nan=skip_nan)[0]
        return ordered(t, x, lambda y: t.ops("median", y, axis=dim, keep_dims=keepdim, skip_nan=skip_nan))

    return rule


def mode(t, x, dim=-1, keepdim=False):
    """The most frequent element"""
    return ordered(t, x, lambda y: t.ops("mode", y, axis=dim, keep_dims=keepdim))


def count_nonzero(t, x, dim=None):
    """How many elements are not 0"""
    return reduce_over(t, t.cast(truth(t, x), "i64"), "sum", dim)


def diff(t, x, n=1, dim=-1, prepend=None, append=None):
    """n-th differences; an operand of none is not joined"""
    ends = [None if end is None or end.shape[dim] == 0 else end for end in (prepend, append)]
    return t.op("diff", x, *ends, n=n, axis=dim)


def all_extreme(kind):
    """max or min of all elements"""
    return lambda t, x: extreme(kind)(t, x)


def aminmax(t, x, *, dim=None, keepdim=False):
    """min and max"""
    return extreme("min")(t, x, dim, keepdim), extreme("max")(t, x, dim, keepdim)


def histogram(t, x, bins=100, min=0, max=0):
    """Counts by bin, as floats; equal ends stand for the least and the largest element"""
    dtype = x.dtype
    if min == max:
        x, min, max = _bins_between_extremes(t, x, bins), 0, bins
    return t.cast(t.op("histogram", x, bins=bins, low=min, high=max), dtype)


def _bins_between_extremes(t, x, bins):
    """In which bin between the least and the largest element each lies: 0 to bins"""
    x = t.cast(x, t.wide(x.dtype))
    low, high = (t.op("reduce", x, kind=kind, keep_dims=False) for kind in ("min", "max"))
    wider = t.op("select", t.op("equal", low, high), t.full(1, x.dtype), t.full(0, x.dtype))
    low, high = t.op("sub", low, wider), t.op("add", high, wider)
    scale = t.op("div", t.full(bins, x.dtype), t.op("sub", high, low))
    return t.op("minimum", t.op("mul", t.op("sub", x, low), scale), t.full(bins, x.dtype))


RULES = {
    "aten.histc": histogram,
    "aten.sum": total("sum"),
    "aten.mean": total("mean"),
    "aten.prod": total("prod"),
    "aten.amax": extreme("max"),
    "aten.amin": extreme("min"),
    "aten.aminmax": aminmax,
    "aten.max": all_extreme("max"),
    "aten.min": all_extreme("min"),
    "aten.max.dim": extreme_with_index("max"),
    "aten.min.dim": extreme_with_index("min"),
    "aten.argmax": arg_extreme("max"),
    "aten.argmin": arg_extreme("min"),
    "aten.any": quantifier("any"),
    "aten.all": quantifier("all"),
    "aten.var": spread("variance"),
    "aten.var.correction": spread_by_correction("variance"),
    "aten.std": spread("standard_deviation"),
    "aten.std.correction": spread_by_correction("standard_deviation"),
    "aten.var_mean": spread_and_mean("variance"),
    "aten.std_mean": spread_and_mean("standard_deviation"),
    "aten.softmax": softmax("softmax"),
    "aten._softmax": softmax("softmax"),
    "aten.log_softmax": softmax("log_softmax"),
    "aten._log_softmax": softmax("log_softmax"),
    "aten._safe_softmax": lambda t, x, dim, dtype=None: t.op("softmax", t.cast(x, t.out_dtype()), axis=dim,
                                                             masked_rows_zero=True),
    "aten.special_softmax": softmax("softmax"),
    "aten.special_log_softmax": softmax("log_softmax"),
    "aten.logsumexp": log_sum_exp,
    "aten.linalg_vector_norm": vector_norm,
    "aten.norm": norm,
    "aten.cumsum": running("sum"),
    "aten.cumprod": running("prod"),
    "aten.logcumsumexp": running("log_sum_exp"),
    "aten.cummax": running_extreme("max"),
    "aten.cummin": running_extreme("min"),
    "aten.sort": sort,
    "aten.sort.stable": sort_stable,
    "aten.argsort": argsort,
    "aten.argsort.stable": lambda t, x, *, stable, dim=-1, descending=False: argsort(t, x, dim, descending),
    "aten.msort": lambda t, x: t.op("msort", x),
    "aten.topk": top_k,
    "aten.kthvalue": k_th,
    "aten.median": median(False),
    "aten.nanmedian": median(True),
    "aten.mode": mode,
    "aten.count_nonzero": count_nonzero,
    "aten.diff": diff,
}
