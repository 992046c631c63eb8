# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors within a program: they are computed as dense ones, zeros included."""

from __future__ import annotations

from dataclasses import dataclass

from ..._graph import Value
from ..unsupported import Unsupported
from .products import add_product, matmul


@dataclass
class Sparse:
    """The same elements, dense"""

    dense: Value


def dense_of(x):
    """The elements of a tensor of either kind"""
    return x.dense if isinstance(x, Sparse) else x


def to_sparse(t, x, *_, **__):
    """aten.to_sparse"""
    return x if isinstance(x, Sparse) else Sparse(x)


def sparse_sum(t, x, *_, **__):
    """The sum of all elements"""
    return t.op("reduce", dense_of(x), kind="sum", keep_dims=False)


def stored_only(t, *_, **__):
    """Refuses"""
    raise Unsupported("how many elements a sparse tensor stores depends on data")


RULES = {
    "aten.to_sparse": to_sparse,
    "aten.to_sparse_csr": to_sparse,
    "aten.to_sparse_bsr": to_sparse,
    "aten.to_dense": lambda t, x, *_, **__: dense_of(x),
    "aten._sparse_mm": lambda t, a, b: matmul(t, dense_of(a), dense_of(b)),
    "aten._sparse_addmm": lambda t, c, a, b, *, beta=1, alpha=1: add_product(
        t, dense_of(c), dense_of(a), dense_of(b), beta=beta, alpha=alpha),
    "aten._sparse_sum": sparse_sum,
    **{f"aten.{name}": stored_only for name in (
        "sparse_coo_tensor", "sparse_csr_tensor", "sparse_compressed_tensor", "_sparse_softmax", "sparse_mask",
        "coalesce", "values", "indices")},
}
