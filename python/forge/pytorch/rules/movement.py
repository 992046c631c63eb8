# SPDX-License-Identifier: Apache-2.0
"""Shapes and movement of elements."""

from __future__ import annotations

from ..._graph import Value
from .. import dims
from ..unsupported import Unsupported
from .elementwise import truth


def as_shaped(t, x, *_, **__):
    """The elements in the shape that PyTorch computed"""
    return t.reshape(x, t.out_shape())


def permute(t, x, dims):
    """Axes in another order"""
    return t.transpose(x, dims)


def swap(t, x, a, b):
    """Two axes swapped"""
    return t.swap(x, a, b) if x.rank else x


def t_(t, x):
    """The transposed matrix"""
    return t.swap(x, 0, 1) if x.rank == 2 else x


def reverse_axes(t, x):
    """All axes in the other order"""
    return t.transpose(x, list(range(x.rank))[::-1])


def movedim(t, x, source, destination):
    """Axes moved to other places"""
    source = [source] if isinstance(source, int) else source
    destination = [destination] if isinstance(destination, int) else destination
    source, destination = [s % x.rank for s in source], [d % x.rank for d in destination]
    order = [axis for axis in range(x.rank) if axis not in source]
    for at, axis in sorted(zip(destination, source)):
        order.insert(at, axis)
    return t.transpose(x, order)


def expand(t, x, *_, **__):
    """Broadcasts to the shape that PyTorch computed"""
    return t.expand(x, t.out_shape())


def broadcast_tensors(t, xs):
    """All in one shape"""
    return tuple(t.expand(x, t.out_shape(i)) for i, x in enumerate(xs))


def slice_(t, x, dim=0, start=None, end=None, step=1):
    """A range of an axis"""
    if start in (None, 0) and end in (None, 2**63 - 1) and step == 1:
        return x
    end = x.shape[dim % x.rank] if end is None or end == 2**63 - 1 else end
    return t.slice(x, dim, 0 if start is None else start, end, t.fixed(step, "the step"))


def narrow(t, x, dim, start, length):
    """A range of an axis"""
    if isinstance(start, Value):
        raise Unsupported("a start that depends on data")
    axis = dim % x.rank
    begin = t.dim(start)
    if isinstance(begin, int) and begin < 0:
        begin = f"{x.shape[axis]} + {begin}"
    size = t.dim(length)
    end = begin + size if isinstance(begin, int) and isinstance(size, int) else f"{begin} + {size}"
    return t.slice(x, axis, begin, end)


def select(t, x, dim, index):
    """One index of an axis"""
    return t.select(x, dim, t.dim(index))


def pieces(t, x, dim):
    """The pieces whose sizes PyTorch computed, those that are read"""
    axis, begin, out = dim % x.rank, 0, []
    for i, meta in enumerate(t.meta()):
        size = t.dim(meta.shape[axis])
        end = begin + size if isinstance(begin, int) and isinstance(size, int) else f"{begin} + {size}"
        out.append(t.slice(x, axis, begin, end) if t.used(i) else None)
        begin = end
    return tuple(out)


def split(t, x, _, dim=0):
    """Pieces of given sizes"""
    return pieces(t, x, dim)


def unbind(t, x, dim=0):
    """Each index of an axis"""
    return tuple(t.select(x, dim, i) if t.used(i) else None for i in range(len(t.meta())))


def concat(t, xs, dim=0):
    """Tensors joined along an axis; PyTorch passes over empty rows of no rank"""
    xs = [x for x in xs if not (x.rank == 1 and x.shape[0] == 0 and t.meta().dim() != 1)]
    xs = [t.cast(x, t.out_dtype()) for x in xs]
    return xs[0] if len(xs) == 1 else t.op("concat", *xs, axis=dim)


def stack(t, xs, dim=0):
    """Tensors joined along a new axis"""
    return t.op("stack", *(t.cast(x, t.out_dtype()) for x in xs), axis=dim)


def flip(t, x, dims):
    """Axes in the other direction"""
    return t.op("flip", x, axes=dims) if dims and x.rank else x


def roll(t, x, shifts, dims=()):
    """Elements moved around an axis"""
    return t.op("roll", x, shifts=[t.fixed(s, "a shift") for s in shifts], axes=dims)


def rot90(t, x, k=1, dims=(0, 1)):
    """A plane turned by quarters"""
    a, b = dims
    k %= 4
    if k == 2:
        return t.op("flip", x, axes=[a, b])
    if k == 0:
        return x
    turned = t.op("flip", x, axes=[b if k == 1 else a])
    return t.swap(turned, a, b)


def repeat(t, x, repeats):
    """Copies side by side"""
    return t.op("tile", x, repeats=t.shape(repeats))


def repeat_interleave(t, x, repeats, dim=None, output_size=None):
    """Each element several times in a row"""
    if dim is None:
        x, dim = t.reshape(x, [dims.product(x.shape)]), 0
    if x.rank == 0:
        x = t.reshape(x, [1])
    axis, count = dim % x.rank, t.dim(repeats)
    x = t.reshape(x, [*x.shape[:axis + 1], 1, *x.shape[axis + 1:]])
    x = t.expand(x, [*x.shape[:axis + 1], count, *x.shape[axis + 2:]])
    return t.reshape(x, t.out_shape())


def pad_widths(t, x, pad):
    """Widths before and after each axis, from PyTorch's pairs, the last axis first"""
    before, after = [0] * x.rank, [0] * x.rank
    for i in range(len(pad) // 2):
        before[x.rank - 1 - i], after[x.rank - 1 - i] = t.dim(pad[2 * i]), t.dim(pad[2 * i + 1])
    return {"before": before, "after": after}


MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(t, x, widths, mode="constant", value=None):
    """Elements added around"""
    return t.op("pad", x, **pad_widths(t, x, widths), mode=MODES[mode], value=value or 0)


def constant_pad(t, x, widths, value=0):
    """aten.constant_pad_nd"""
    return pad(t, x, widths, "constant", value)


def pad_by(mode):
    """aten.reflection_pad1d and its kin"""
    return lambda t, x, widths: pad(t, x, widths, mode)


def triangle(upper):
    """tril or triu"""
    return lambda t, x, diagonal=0: t.op("triangle", x, upper=upper, diagonal=diagonal)


def diagonal(t, x, offset=0, dim1=0, dim2=1):
    """The diagonal of a plane as the last axis"""
    return t.op("diagonal", x, offset=offset, axis1=dim1, axis2=dim2)


def diag_embed(t, x, offset=0, dim1=-2, dim2=-1):
    """A diagonal as a plane"""
    rank = x.rank + 1
    n = t.fixed(t.meta().shape[dim1], "the size of the plane")
    row, column = (t.op("iota", dtype="i64", count=n) for _ in range(2))
    on = t.op("equal", t.op("add", t.reshape(row, [n, 1]), t.full(offset, "i64")), t.reshape(column, [1, n]))
    before, after = (0, offset) if offset >= 0 else (-offset, 0)
    last = x.rank - 1
    # Element i of the diagonal lies in column i + offset, or in row i - offset.
    along = t.op("pad", x, before=[0] * last + [max(before, after)], after=[0] * (last + 1))
    along = t.reshape(along, [*x.shape[:-1], 1, n] if offset >= 0 else [*x.shape[:-1], n, 1])
    plane = t.op("select", on, t.expand(along, [*x.shape[:-1], n, n]), t.full(0, x.dtype))
    order = list(range(rank - 2))
    for at, axis in sorted(((dim1 % rank, rank - 2), (dim2 % rank, rank - 1))):
        order.insert(at, axis)
    return t.transpose(plane, order)


def pixel_shuffle(t, x, factor):
    """Channels to space"""
    return _images(t, x, lambda y: t.op("depth_to_space", y, block=factor, order="crd"))


def pixel_unshuffle(t, x, factor):
    """Space to channels"""
    return _images(t, x, lambda y: t.op("space_to_depth", y, block=factor, order="crd"))


def channel_shuffle(t, x, groups):
    """Channels of groups interleaved"""
    n, c, *rest = x.shape
    y = t.reshape(x, [n, groups, c // groups, *rest])
    return t.reshape(t.swap(y, 1, 2), x.shape)


def _images(t, x, work):
    if x.rank == 4:
        return work(x)
    if x.rank != 3:
        raise Unsupported(f"a tensor of {x.rank} axes")
    y = work(t.reshape(x, [1, *x.shape]))
    return t.reshape(y, y.shape[1:])


def unfold_axis(t, x, dimension, size, step):
    """Windows of an axis, along a new last one"""
    axis = dimension % max(x.rank, 1)
    count = t.fixed(t.meta().shape[axis], "the number of windows")
    starts = t.op("iota", dtype="i64", step=step, count=count)
    within = t.op("iota", dtype="i64", count=size)
    index = t.op("add", t.reshape(starts, [count, 1]), t.reshape(within, [1, size]))
    y = t.op("gather", x, index, axis=axis)
    order = [a for a in range(y.rank) if a != axis + 1] + [axis + 1]
    return t.transpose(y, order)


def meshgrid(t, xs, indexing="ij"):
    """Coordinates of a grid"""
    out = []
    for i, x in enumerate(xs):
        axis = i if indexing == "ij" or i > 1 or len(xs) < 2 else 1 - i
        shape = [1] * len(xs)
        shape[axis] = x.shape[0] if x.rank else 1
        out.append(t.expand(t.reshape(x, shape), t.out_shape(i)))
    return tuple(out)


def as_strided(t, x, size, stride, storage_offset=None):
    """Only where it is the whole tensor in order"""
    sizes, expected = t.shape(size), 1
    for extent, step in zip(reversed(sizes), reversed(t.shape(stride))):
        if extent != 1 and step != expected:
            raise Unsupported("strides of memory")
        expected = expected * extent if isinstance(extent, int) and isinstance(expected, int) else None
    return t.reshape(x, sizes)


def view_dtype(t, x, dtype):
    """The bytes as another element type"""
    if t.out_dtype() == x.dtype:
        return x
    raise Unsupported(f"the bytes of {x.dtype} as {t.out_dtype()}")


def block_diag(t, xs):
    """Matrices along the diagonal"""
    rows, columns = t.out_shape()
    row = column = 0
    out = None
    for x in xs:
        h, w = x.shape if x.rank == 2 else (1, *(x.shape or (1,)))
        block = t.op("pad", t.cast(t.reshape(x, [h, w]), t.out_dtype()), before=[row, column],
                     after=[rows - row - h, columns - column - w])
        row, column = row + h, column + w
        out = block if out is None else t.op("add", out, block)
    return out


def at_least(t, x):
    """aten.atleast_1d and its kin, of one tensor or several"""
    if isinstance(x, list):
        return tuple(t.reshape(one, t.out_shape(i)) for i, one in enumerate(x))
    return t.reshape(x, t.out_shape())


def side_by_side(t, xs):
    """aten.hstack: vectors along their axis, others along the second"""
    xs = [t.reshape(x, x.shape or [1]) for x in xs]
    return concat(t, xs, 0 if xs[0].rank == 1 else 1)


def one_above_another(t, xs):
    """aten.vstack: vectors are rows"""
    return concat(t, [x if x.rank > 1 else t.reshape(x, [1, *(x.shape or [1])]) for x in xs], 0)


def split_along(axis):
    """hsplit and its kin"""
    return lambda t, x, _: pieces(t, x, axis if x.rank > 1 or axis != 1 else 0)


SHAPED = ("view", "reshape", "_unsafe_view", "flatten", "unflatten", "ravel", "squeeze", "unsqueeze", "view_copy",
          "_reshape_alias", "reshape_as", "view_as")

RULES = {
    **{f"aten.{name}": as_shaped for name in SHAPED},
    "aten.view.dtype": view_dtype,
    "aten.permute": permute,
    "aten.transpose": swap,
    "aten.swapaxes": swap,
    "aten.swapdims": swap,
    "aten.t": t_,
    "aten.numpy_T": reverse_axes,
    "aten.mT": lambda t, x: t.swap(x, -2, -1),
    "aten.adjoint": lambda t, x: t.swap(x, -2, -1),
    "aten.movedim": movedim,
    "aten.moveaxis": movedim,
    "aten.expand": expand,
    "aten.expand_as": expand,
    "aten.broadcast_to": expand,
    "aten.broadcast_tensors": broadcast_tensors,
    "aten.slice": slice_,
    "aten.narrow": narrow,
    "aten.select.int": select,
    "aten.split": split,
    "aten.split_with_sizes": split,
    "aten.chunk": split,
    "aten.tensor_split": split,
    "aten.unsafe_split": split,
    "aten.unsafe_chunk": split,
    "aten.hsplit": split_along(1),
    "aten.vsplit": split_along(0),
    "aten.unbind": unbind,
    "aten.cat": concat,
    "aten.concat": concat,
    "aten.concatenate": concat,
    "aten.stack": stack,
    **{f"aten.atleast_{n}d": at_least for n in (1, 2, 3)},
    "aten.hstack": side_by_side,
    "aten.vstack": one_above_another,
    "aten.flip": flip,
    "aten.fliplr": lambda t, x: flip(t, x, [1]),
    "aten.flipud": lambda t, x: flip(t, x, [0]),
    "aten.roll": roll,
    "aten.rot90": rot90,
    "aten.repeat": repeat,
    "aten.tile": repeat,
    "aten.repeat_interleave.self_int": repeat_interleave,
    "aten.pad": pad,
    "aten.constant_pad_nd": constant_pad,
    **{f"aten.{name}_pad{n}d": pad_by(mode) for n in (1, 2, 3)
       for name, mode in (("reflection", "reflect"), ("replication", "replicate"))},
    "aten._pad_circular": pad_by("circular"),
    "aten.tril": triangle(False),
    "aten.triu": triangle(True),
    "aten.diagonal": diagonal,
    "aten.diag_embed": diag_embed,
    "aten.linalg_diagonal": lambda t, x, *, offset=0, dim1=-2, dim2=-1: diagonal(t, x, offset, dim1, dim2),
    "aten.pixel_shuffle": pixel_shuffle,
    "aten.pixel_unshuffle": pixel_unshuffle,
    "aten.channel_shuffle": channel_shuffle,
    "aten.native_channel_shuffle": channel_shuffle,
    "aten.unfold": unfold_axis,
    "aten.meshgrid": meshgrid,
    "aten.as_strided": as_strided,
    "aten.block_diag": block_diag,
    "aten.masked_fill": lambda t, x, mask, value: (
        t.op("select", truth(t, mask), t.cast(value, x.dtype), x) if isinstance(value, Value)
        else t.op("masked_fill", x, truth(t, mask), value=value)),
}
