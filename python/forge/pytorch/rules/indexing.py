# SPDX-License-Identifier: Apache-2.0
"""Reads and writes at indices."""

from __future__ import annotations

import torch

from ..._graph import Value
from .. import dims
from ..unsupported import Unsupported
from .creation import constant
from .elementwise import truth
from .reductions import count_nonzero


def indices_of(t, index):
    """An index as i64, unless it is i32"""
    return index if index.dtype == "i32" else t.cast(index, "i64")


def gather_axis(t, x, dim, index):
    """aten.index_select"""
    scalar = x.rank == 0
    y = t.op("gather", t.reshape(x, [1]) if scalar else x, indices_of(t, t.reshape(index, index.shape or [1])),
             axis=dim)
    return t.reshape(y, []) if scalar else y


def gather_elements(t, x, dim, index, *, sparse_grad=False):
    """aten.gather"""
    scalar = x.rank == 0
    x = t.reshape(x, [1]) if scalar else x
    y = t.op("gather_elements", x, indices_of(t, t.reshape(index, index.shape or [1])), axis=dim)
    return t.reshape(y, index.shape)


def _is_mask(index):
    return index is not None and index.dtype in ("bool", "u8")


def _split_indices(t, indices, count):
    """Axes and their indices. A mask is the indices of its ones.

    count: how many ones a mask has, given the mask
    """
    axes, given, axis = [], [], 0
    for index in indices:
        if _is_mask(index):
            places = t.op("nonzero", index, count=count(index))
            given += [t.select(places, 0, a) for a in range(index.rank)]
            axes += range(axis, axis + index.rank)
        elif index is not None:
            given.append(indices_of(t, index))
            axes.append(axis)
        axis += index.rank if _is_mask(index) else 1
    dtype = given[0].dtype if given and len({i.dtype for i in given}) == 1 else "i64"
    return axes, [t.cast(i, dtype) for i in given]


def index(t, x, indices):
    """aten.index"""
    at = [i for i, index in enumerate(indices) if index is not None]
    place = at[0] if at == list(range(at[0], at[0] + len(at))) else 0  # of what is indexed, in the result
    axes, given = _split_indices(t, indices, lambda mask: t.bind(t.meta().shape[place], count_nonzero(t, mask)))
    return t.op("index", x, *given, axes=axes)


def nonzero(t, x):
    """The indices of the elements that are not 0, a row each"""
    return t.swap(t.op("nonzero", x, count=t.bind(t.meta().shape[0], count_nonzero(t, x))), 0, 1)


def masked_select(t, x, mask):
    """The elements where the mask holds"""
    x = t.op("select", mask, x, x)  # of their common shape
    mask = t.expand(mask, x.shape)
    n = dims.product(x.shape)
    places = t.op("nonzero", t.reshape(mask, [n]), count=t.bind(t.meta().shape[0], count_nonzero(t, mask)))
    return t.op("gather", t.reshape(x, [n]), t.select(places, 0, 0), axis=0)


def repeated(t, repeats, *, axis=0, output_size=None):
    """Each position as often as `repeats` says; axis: of the call's result that has them"""
    repeats = t.cast(repeats, "i64")
    ends = t.op("scan", repeats, kind="sum", axis=0)
    count = t.bind(t.meta().shape[axis], t.op("reduce", repeats, kind="sum", keep_dims=False))
    return bucketize(t, t.op("iota", dtype="i64", count=count), ends, right=True)


def repeat_rows(t, x, repeats, dim=None, *, output_size=None):
    """Slices along an axis, each as often as `repeats` says"""
    if dim is None:
        x, dim = t.reshape(x, [dims.product(x.shape)]), 0
    axis = dim % x.rank
    return t.op("gather", x, repeated(t, t.expand(repeats, [x.shape[axis]]), axis=axis), axis=axis)


def bincount(t, x, weights=None, minlength=0):
    """How often each number occurs, or the sums of its weights"""
    most = t.op("reduce", t.op("pad", t.cast(x, "i64"), before=[1], after=[0], value=-1), kind="max", keep_dims=False)
    least = t.op("maximum", t.op("add", most, t.full(1, "i64")), t.full(minlength, "i64"))
    count, dtype = t.bind(t.meta().shape[0], least), t.out_dtype()
    terms = t.full(1, dtype, x.shape) if weights is None else t.cast(weights, dtype)
    return t.op("scatter", t.full(0, dtype, [count]), t.cast(x, "i64"), terms, mode="add")


def _groups(t, x, order=None):
    """Runs of equal elements of a vector in an order: unique elements, the group of each, the sizes of groups"""
    n = x.shape[0]
    ordered = x if order is None else t.op("gather", x, order)
    before = t.op("maximum", t.op("iota", dtype="i64", begin=-1, count=n), t.full(0, "i64"))
    differs = t.op("not_equal", ordered, t.op("gather", ordered, before))
    first = t.op("equal", t.op("iota", dtype="i64", count=n), t.full(0, "i64"))
    starts = t.op("or", differs, first)
    size = t.meta(0).shape[0]
    count = t.bind(size, count_nonzero(t, starts))
    places = t.select(t.op("nonzero", starts, count=count), 0, 0)
    groups = t.op("sub", t.op("scan", t.cast(starts, "i64"), kind="sum", axis=0), t.full(1, "i64"))
    counts = t.op("scatter", t.full(0, "i64", [count]), groups, t.full(1, "i64", [n]), mode="add")
    if order is not None:
        groups = t.op("scatter", t.full(0, "i64", [n]), order, groups)
    return t.op("gather", ordered, places), groups, counts


def unique(sorts):
    """aten._unique2 and aten.unique_consecutive of all elements"""

    def rule(t, x, *arguments, dim=None, **_):
        if dim is not None or (not sorts and len(arguments) > 2 and arguments[2] is not None):
            raise Unsupported("unique slices along an axis")
        flat = t.reshape(x, [dims.product(x.shape)])
        elements, groups, counts = _groups(t, flat, t.op("arg_sort", flat) if sorts else None)
        results = elements, t.reshape(groups, x.shape), counts
        return tuple(result if t.used(i) else None for i, result in enumerate(results))

    return rule


def index_put(t, x, indices, values, accumulate=False, unsafe=False):
    """aten.index_put; one value where a mask holds is a selection"""
    masks = [i for i in indices if _is_mask(i)]
    values = t.cast(values, x.dtype)
    whole = len(masks) == 1 and len([i for i in indices if i is not None]) == 1 and indices[0] is not None
    if whole and all(extent == 1 for extent in values.shape) and not accumulate:
        mask = t.reshape(truth(t, masks[0]), [*masks[0].shape, *[1] * (x.rank - masks[0].rank)])
        return t.op("select", mask, t.reshape(values, []), x)

    def count(mask):
        if not whole or values.rank != 1 + x.rank - mask.rank or values.shape[0] == 1:
            raise Unsupported("a mask as an index, with values that do not tell how many it selects")
        return values.shape[0]

    axes, given = _split_indices(t, indices, count)
    selected = t.op("index", x, *given, axes=axes)
    return t.op("index_put", x, t.expand(values, selected.shape), *given, axes=axes, accumulate=accumulate)


def _updates(t, x, index, source):
    """Updates at the indices' places: those of a larger source are not used."""
    if not isinstance(source, Value):
        return t.full(source, x.dtype, index.shape)
    source = t.cast(source, x.dtype)
    if source.rank == 0:
        return t.expand(source, index.shape)
    if list(source.shape) != list(index.shape):
        source = t.op("slice", source, begin=[0] * source.rank, end=list(index.shape))
    return source


def scatter(mode):
    """aten.scatter with set, add or multiply"""

    def rule(t, x, dim, index, source=None, *, value=None, src=None, reduce=None):
        source = next((s for s in (source, src, value) if s is not None), None)
        modes = {None: mode, "add": "add", "multiply": "mul"}
        if x.rank == 0:
            x, index = t.reshape(x, [1]), t.reshape(index, [1])
            return t.reshape(rule(t, x, 0, index, source, reduce=reduce), [])
        if index.rank == 0:
            index = t.reshape(index, [1])
        return t.op("scatter", x, indices_of(t, index), _updates(t, x, index, source), axis=dim, mode=modes[reduce])

    return rule


KINDS = {"sum": "sum", "prod": "prod", "mean": "mean", "amax": "max", "amin": "min"}


def scatter_reduce(t, x, dim, index, src, reduce, *, include_self=True):
    """aten.scatter_reduce"""
    return t.op("scatter_reduce", x, indices_of(t, index), _updates(t, x, index, src), axis=dim, kind=KINDS[reduce],
                include_self=include_self)


def index_reduce(t, x, dim, index, source, reduce, *, include_self=True):
    """aten.index_reduce"""
    return t.op("index_reduce", x, indices_of(t, index), source, axis=dim, kind=KINDS[reduce],
                include_self=include_self)


def index_write(op):
    """aten.index_add and index_copy"""

    def rule(t, x, dim, index, source, *, alpha=None):
        if x.rank == 0:
            row = rule(t, t.reshape(x, [1]), 0, t.reshape(index, [1]), t.reshape(source, [1]), alpha=alpha)
            return t.reshape(row, [])
        index = t.reshape(index, index.shape or [1])
        attributes = {"alpha": alpha} if alpha is not None else {}
        if x.dtype == "bool" and op == "index_add":  # a sum is true where a term is
            sums = rule(t, t.cast(x, "i32"), dim, index, t.cast(source, "i32"), alpha=alpha)
            return t.cast(sums, "bool")
        return t.op(op, x, indices_of(t, index), t.cast(source, x.dtype), axis=dim, **attributes)

    return rule


def index_fill(t, x, dim, index, value):
    """aten.index_fill"""
    if x.rank == 0:
        return t.reshape(index_fill(t, t.reshape(x, [1]), 0, index, value), [])
    index = t.reshape(index, index.shape or [1])
    if isinstance(value, Value):
        n = index.shape[0]
        axis = dim % x.rank
        shape = [*x.shape[:axis], n, *x.shape[axis + 1:]]
        return t.op("index_copy", x, indices_of(t, index), t.expand(t.cast(value, x.dtype), shape), axis=dim)
    return t.op("index_fill", x, indices_of(t, index), axis=dim, value=value)


def take(t, x, index):
    """aten.take"""
    return t.op("take", x, indices_of(t, index))


def put(t, x, index, source, accumulate=False):
    """aten.put"""
    whole = t.reshape(x, x.shape or [1])
    index, source = t.reshape(index, index.shape or [1]), t.reshape(source, source.shape or [1])
    source = t.reshape(source, index.shape)
    return t.reshape(t.op("put", whole, indices_of(t, index), source, accumulate=accumulate), x.shape)


def embedding(t, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """Rows of a table"""
    return t.op("embedding", weight, indices_of(t, indices), padding=padding_idx, scale_gradient=scale_grad_by_freq)


def embedding_renorm(t, weight, indices, max_norm, norm_type):
    """The table with its used rows shortened"""
    return t.op("embedding_renorm", weight, indices_of(t, indices), max_norm=max_norm, norm=norm_type)


def embedding_bag(t, weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
                  include_last_offset=False, padding_idx=-1):
    """Sums, means or extremes of rows; of four results only the first is computed"""
    if any(t.used(i) for i in (1, 2, 3)):
        raise Unsupported("its further results")
    bags = t.op("embedding_bag", weight, indices_of(t, indices), t.cast(offsets, indices_of(t, indices).dtype),
                per_sample_weights, kind=("sum", "mean", "max")[mode], include_last_offset=include_last_offset,
                padding=-1 if padding_idx is None else padding_idx)
    return bags, None, None, None


def one_hot(t, indices, num_classes=-1):
    """1 at the index, else 0"""
    if num_classes == -1:
        raise Unsupported("as many classes as data tell")
    return t.op("one_hot", indices_of(t, indices), constant(t, torch.tensor([0, 1])), depth=t.dim(num_classes))


def slice_scatter(t, x, source, dim=0, start=None, end=None, step=1):
    """x with a range of an axis replaced"""
    axis, size = dim % x.rank, x.shape[dim % x.rank]
    begin = 0 if start is None else t.dim(start)
    stop = size if end is None or end == 2**63 - 1 else t.dim(end)
    numbers = all(isinstance(n, int) for n in (begin, size))
    if step == 1 and numbers:
        begin = min(begin + size if begin < 0 else begin, size)
        return t.op("update_slice", x, t.cast(source, x.dtype),
                    begin=[begin if a == axis else 0 for a in range(x.rank)])
    if not numbers and (not isinstance(begin, int) or begin < 0 or (isinstance(stop, int) and stop < 0)):
        raise Unsupported("a range whose place varies")
    index = t.op("iota", dtype="i64", begin=begin, step=t.fixed(step, "the step"), count=source.shape[axis])
    return t.op("index_copy", x, index, t.cast(source, x.dtype), axis=axis)


def select_scatter(t, x, source, dim, index):
    """x with one index of an axis replaced"""
    axis = dim % x.rank
    at = t.dim(index)
    if isinstance(at, int) and at < 0:
        at = x.shape[axis] + at if isinstance(x.shape[axis], int) else f"{x.shape[axis]} - {-at}"
    row = t.reshape(t.cast(source, x.dtype), [*x.shape[:axis], 1, *x.shape[axis + 1:]])
    return t.op("update_slice", x, row, begin=[at if a == axis else 0 for a in range(x.rank)])


def bucketize(t, x, boundaries, *, out_int32=False, right=False):
    """How many boundaries lie below x; where `right`, at it too"""
    x, boundaries = t.promoted(t.reshape(x, [*x.shape, 1]), boundaries)
    below = t.op("greater_equal" if right else "greater", x, boundaries)
    count = t.op("reduce", t.cast(below, "i32" if out_int32 else "i64"), kind="sum", axes=[-1], keep_dims=False)
    return count


def copy(t, x, source, non_blocking=False):
    """The source in the shape and the element type of x"""
    return t.expand(t.cast(source, x.dtype), x.shape)


def masked_scatter(t, x, mask, source):
    """Elements of the source, in order, where the mask holds"""
    shape = t.out_shape()
    x, mask = t.expand(x, shape), t.expand(truth(t, mask), shape)
    flat = t.reshape(t.cast(mask, "i64"), [dims.product(mask.shape)])
    place = t.op("sub", t.op("scan", flat, kind="sum", axis=0), t.full(1, "i64"))
    place = t.op("maximum", place, t.full(0, "i64"))
    return t.op("select", mask, t.op("take", t.cast(source, x.dtype), t.reshape(place, shape)), x)


RULES = {
    "aten.index_select": gather_axis,
    "aten.gather": gather_elements,
    "aten.take_along_dim": lambda t, x, index, dim: gather_elements(
        t, t.expand(x, [b if a == 1 and i != dim % x.rank else a for i, (a, b) in enumerate(zip(x.shape, index.shape))]),
        dim, t.expand(index, [a if b == 1 and i != dim % x.rank else b
                              for i, (a, b) in enumerate(zip(x.shape, index.shape))])),
    "aten.index": index,
    "aten.nonzero": nonzero,
    "aten.masked_select": masked_select,
    "aten.repeat_interleave.Tensor": repeated,
    "aten.repeat_interleave.self_Tensor": repeat_rows,
    "aten.bincount": bincount,
    "aten._unique2": unique(sorts=True),
    "aten.unique_consecutive": unique(sorts=False),
    "aten._unsafe_index": index,
    "aten.index_put": index_put,
    "aten._unsafe_index_put": index_put,
    "aten._index_put_impl": index_put,
    "aten.scatter": scatter("set"),
    "aten.scatter_add": scatter("add"),
    "aten.scatter_reduce": scatter_reduce,
    "aten.index_reduce": index_reduce,
    "aten.index_add": index_write("index_add"),
    "aten.index_copy": index_write("index_copy"),
    "aten.index_fill": index_fill,
    "aten.take": take,
    "aten.put": put,
    "aten.embedding": embedding,
    "aten.embedding_renorm": embedding_renorm,
    "aten.embedding_bag": embedding_bag,
    "aten._embedding_bag": embedding_bag,
    "aten._embedding_bag_forward_only": embedding_bag,
    "aten.one_hot": one_hot,
    "aten.slice_scatter": slice_scatter,
    "aten.select_scatter": select_scatter,
    "aten.bucketize.Tensor": bucketize,
    "aten.searchsorted.Tensor": lambda t, boundaries, x, *, out_int32=False, right=False, side=None, sorter=None:
        _searchsorted(t, boundaries, x, out_int32, right or side == "right", sorter),
    "aten.copy": copy,
    "aten.masked_scatter": masked_scatter,
}


def _searchsorted(t, boundaries, x, out_int32, right, sorter):
    if sorter is not None:
        boundaries = t.op("gather_elements", boundaries, sorter, axis=-1)
    if boundaries.rank > 1:
        boundaries = t.reshape(boundaries, [*boundaries.shape[:-1], 1, boundaries.shape[-1]])
    return bucketize(t, x, boundaries, out_int32=out_int32, right=right)
