# SPDX-License-Identifier: Apache-2.0
"""Movement ops."""

import numpy as np
import torch
import torch.nn.functional as F

from torch_ops.common import require


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


def nonzero(a, x):
    """The first of the places that torch.nonzero gives; where there are fewer, those of zeros follow."""
    places = torch.cat([torch.nonzero(x), torch.nonzero(x == 0)])
    return places[:a["count"]].T.contiguous()
