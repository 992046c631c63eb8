# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and tensors."""

from __future__ import annotations

from ..unsupported import Unsupported
from .elementwise import multiply


def linear(t, x, weight, bias=None):
    """x weight^T + bias"""
    if weight.rank == 1 or x.dtype[0] in "iu":
        y = matmul(t, x, weight if weight.rank == 1 else t.swap(weight, 0, 1))
        return y if bias is None else t.op("add", y, bias)
    if x.rank == 1:
        return t.reshape(t.op("linear", t.reshape(x, [1, *x.shape]), weight, bias), t.out_shape())
    return t.op("linear", x, weight, bias)


def matmul(t, a, b):
    """A product of any ranks: vectors are rows on the left, columns on the right"""
    a = t.reshape(a, [1, *a.shape]) if a.rank == 1 else a
    b = t.reshape(b, [*b.shape, 1]) if b.rank == 1 else b
    if a.dtype[0] in "iu":
        return t.reshape(_integers(t, a, b), t.out_shape())
    return t.reshape(t.op("matmul", a, b), t.out_shape())


def _integers(t, a, b):
    """Integers are multiplied and summed exactly"""
    products = t.op("mul", t.reshape(a, [*a.shape, 1]), t.reshape(b, [*b.shape[:-2], 1, *b.shape[-2:]]))
    return t.op("reduce", products, kind="sum", axes=[-2], keep_dims=False)


def add_product(t, c, a, b, *, beta=1, alpha=1):
    """beta c + alpha a b"""
    if a.dtype[0] not in "iu":
        return t.op("add_matmul", c, a, b, alpha=alpha, beta=beta)
    y = _integers(t, a, b)
    y = y if alpha == 1 else t.op("mul", y, t.full(alpha, y.dtype))
    return y if beta == 0 else t.op("add", c if beta == 1 else t.op("mul", c, t.full(beta, c.dtype)), y)


def add_outer(t, c, a, b, *, beta=1, alpha=1):
    """beta c + alpha a b^T of vectors"""
    return add_product(t, c, t.reshape(a, [*a.shape, 1]), t.reshape(b, [1, *b.shape]), beta=beta, alpha=alpha)


def add_vector(t, c, a, b, *, beta=1, alpha=1):
    """beta c + alpha a b of a matrix and a vector"""
    c = t.reshape(c, [*c.shape, 1]) if c.rank else c
    return t.reshape(add_product(t, c, a, t.reshape(b, [*b.shape, 1]), beta=beta, alpha=alpha), t.out_shape())


def add_batches(t, c, a, b, *, beta=1, alpha=1):
    """beta c + alpha times the sum of all products"""
    total = t.op("reduce", t.op("matmul", a, b), kind="sum", axes=[0], keep_dims=False)
    scaled = t.op("mul", total, t.full(alpha, total.dtype))
    return scaled if beta == 0 else t.op("add", t.op("mul", c, t.full(beta, c.dtype)), scaled)


def outer(t, a, b):
    """a b^T of vectors"""
    return multiply(t, t.reshape(a, [*a.shape, 1]), t.reshape(b, [1, *b.shape]))


def einsum(t, equation, operands, path=None):
    """A sum of products by letters"""
    return t.op("einsum", *t.promoted(*operands), equation=equation.replace(" ", ""))


def tensor_dot(t, a, b, dims_self, dims_other):
    """A product over the given axes"""
    return t.op("tensor_dot", a, b, axes_a=dims_self, axes_b=dims_other)


def inner(t, a, b):
    """A product over the last axes"""
    if a.rank == 0 or b.rank == 0:
        return t.op("mul", *t.promoted(a, b))
    return t.op("tensor_dot", a, b, axes_a=[-1], axes_b=[-1])


def kron(t, a, b):
    """Each element of a times b"""
    rank = max(a.rank, b.rank)
    shapes = [[1] * (rank - x.rank) + list(x.shape) for x in (a, b)]
    wide_a = [n for extent in shapes[0] for n in (extent, 1)]
    wide_b = [n for extent in shapes[1] for n in (1, extent)]
    return t.reshape(t.op("mul", t.reshape(a, wide_a), t.reshape(b, wide_b)), t.out_shape())


def cross(t, a, b, dim=None):
    """The cross product of vectors of three numbers"""
    if dim is None:
        dim = next((i for i, extent in enumerate(a.shape) if extent == 3), -1)
    a, b = t.expand(a, t.out_shape()), t.expand(b, t.out_shape())
    axis = dim % a.rank
    rolled = [[t.op("roll", x, shifts=[s], axes=[axis]) for s in (-1, -2)] for x in (a, b)]
    return t.op("sub", t.op("mul", rolled[0][0], rolled[1][1]), t.op("mul", rolled[0][1], rolled[1][0]))


def cosine_similarity(t, a, b, dim=1, eps=1e-8):
    """The cosine of the angle of vectors"""
    return t.op("cosine_similarity", a, b, axis=dim, epsilon=eps)


def pairwise_distance(t, a, b, p=2, eps=1e-6, keepdim=False):
    """The p-norm of a - b + eps"""
    return t.op("pairwise_distance", a, b, p=p, epsilon=eps, keep_dims=keepdim)


def cdist(t, a, b, p=2, compute_mode=None):
    """The p-norms of all differences of rows"""
    a = t.reshape(a, [*a.shape[:-1], 1, a.shape[-1]])
    b = t.reshape(b, [*b.shape[:-2], 1, *b.shape[-2:]])
    return t.op("vector_norm", t.op("sub", a, b), p=p, axes=[-1], keep_dims=False)


def bilinear(t, a, b, weight, bias=None):
    """y_k = a W_k b + bias_k"""
    y = t.op("einsum", a, weight, b, equation="...i,kij,...j->...k")
    return y if bias is None else t.op("add", y, bias)


def grouped_product(t, x, weight, offs=None, bias=None, out_dtype=None):
    """The rows of x up to each offset times the matrix of their group"""
    if x.rank != 2 or weight.rank != 3 or offs is None or bias is not None:
        raise Unsupported("groups of other than rows")
    row = t.op("iota", dtype=offs.dtype, begin=0, count=x.shape[0])
    group = t.op("reduce", t.cast(t.op("greater_equal", t.reshape(row, [x.shape[0], 1]), offs), "i64"), kind="sum",
                 axes=[1], keep_dims=False)
    return t.cast(t.op("grouped_matmul", x, weight, group), t.out_dtype())


def trilinear(t, a, b, c, expand_a, expand_b, expand_c, sum_dims, unroll_dim=1):
    """The product of three tensors that get axes of extent 1, summed over axes"""
    wide = []
    for x, axes in ((a, expand_a), (b, expand_b), (c, expand_c)):
        shape = list(x.shape)
        for axis in sorted(axes):
            shape.insert(axis, 1)
        wide.append(t.reshape(x, shape))
    product = t.op("mul", t.op("mul", wide[0], wide[1]), wide[2])
    return t.op("reduce", product, kind="sum", axes=list(sum_dims), keep_dims=False) if sum_dims else product


RULES = {
    "aten.linear": linear,
    "aten.matmul": matmul,
    "aten.mm": matmul,
    "aten.bmm": matmul,
    "aten.mv": matmul,
    "aten.dot": matmul,
    "aten.vdot": matmul,
    "aten.linalg_matmul": matmul,
    "aten._trilinear": trilinear,
    "aten._grouped_mm": grouped_product,
    "transformers.grouped_mm_fallback": grouped_product,
    "aten.addmm": add_product,
    "aten.baddbmm": add_product,
    "aten.addbmm": add_batches,
    "aten.addmv": add_vector,
    "aten.addr": add_outer,
    "aten.outer": outer,
    "aten.ger": outer,
    "aten.einsum": einsum,
    "aten.tensordot": tensor_dot,
    "aten.inner": inner,
    "aten.kron": kron,
    "aten.linalg_cross": cross,
    "aten.cross": cross,
    "aten.linalg_vecdot": lambda t, x, y, *, dim=-1: t.op(
        "reduce", t.op("mul", *t.promoted(x, y)), kind="sum", axes=[dim], keep_dims=False),
    "aten.cosine_similarity": cosine_similarity,
    "aten.pairwise_distance": pairwise_distance,
    "aten.cdist": cdist,
    "aten._cdist_forward": cdist,
    "aten.bilinear": bilinear,
}
