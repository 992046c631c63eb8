# SPDX-License-Identifier: Apache-2.0
"""Attention, whole: causal masks and groups of heads are attributes and broadcasts of one op."""

from __future__ import annotations

import math

from ..unsupported import Unsupported
from . import random_numbers


def attention(t, q, k, v, mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    """aten.scaled_dot_product_attention"""
    mask = mask_for(t, q, mask)
    if dropout_p:
        k, v = (_repeated(t, x, q.shape[-3]) if enable_gqa else x for x in (k, v))
        shares = t.op("softmax", scores(t, q, k, mask, is_causal, scale), axis=-1)
        return t.op("matmul", random_numbers.dropout(t, shares, dropout_p), v)
    if not enable_gqa or q.shape[-3] == k.shape[-3]:
        return t.op("attention", q, k, v, mask, **attributes(is_causal, scale))
    return _grouped(t, (q, k, v, mask), attributes(is_causal, scale))


def mask_for(t, q, mask):
    """The mask as the op takes it"""
    return mask if mask is None or mask.dtype == "bool" else t.cast(mask, q.dtype)


def attributes(is_causal, scale):
    """Those of the op and of that of its gradients"""
    return {"scale": 0 if scale is None else float(scale), "causal": "top_left" if is_causal else "none"}


def _grouped(t, operands, options):
    """Query heads in groups that share a head of k and v, by an axis of extent 1 in these"""
    q, k, v, mask = operands
    heads, shared = (t.fixed(x.shape[-3], "the number of heads") for x in (q, k))
    grouped = t.reshape(q, [*q.shape[:-3], shared, heads // shared, *q.shape[-2:]])
    k, v = (t.reshape(x, [*x.shape[:-2], 1, *x.shape[-2:]]) for x in (k, v))
    if mask is not None and mask.rank > 2:
        of = [1, 1] if mask.shape[-3] == 1 else [shared, heads // shared]
        mask = t.reshape(mask, [*mask.shape[:-3], *of, *mask.shape[-2:]])
    y = t.op("attention", grouped, k, v, mask, **options)
    return t.reshape(y, [*q.shape[:-1], v.shape[-1]])


def with_more(t, q, k, v, *arguments, attn_mask=None, scale=None, attn_bias=None, compute_log_sumexp=None):
    """The fused overloads, with the first two results at most"""
    if any(t.used(i) for i in range(2, len(t.meta()))):
        raise Unsupported("its further results")
    mask = attn_mask
    arguments = list(arguments)
    if arguments and not isinstance(arguments[0], (int, float)):
        mask = arguments.pop(0)
    dropout, causal = ([*arguments, 0.0, False])[:2] if arguments else (0.0, False)
    further = [None] * (len(t.meta()) - 2)
    if not t.used(1):
        return (attention(t, q, k, v, mask, dropout, bool(causal), scale=scale), None, *further)
    if dropout:
        raise Unsupported("the sums of its rows, with dropout")
    y, sums = t.ops("attention", q, k, v, mask_for(t, q, mask), log_sums=True, **attributes(bool(causal), scale))
    return (y, t.reshape(sums, sums.shape[:-1]), *further)


def scores(t, q, k, mask, causal, scale):
    """The products of queries and keys with their mask"""
    factor = float(scale) if scale is not None else t.fixed(q.shape[-1], "the width of a head") ** -0.5
    products = t.op("mul", t.op("matmul", q, k, transpose_b=True), t.full(factor, q.dtype))
    if causal:
        rows, columns = (t.op("iota", dtype="i64", begin=0, count=x.shape[-2]) for x in (q, k))
        seen = t.op("greater_equal", t.reshape(rows, [q.shape[-2], 1]), columns)
        products = t.op("select", seen, products, t.full(-math.inf, q.dtype))
    if mask is not None and mask.dtype == "bool":
        products = t.op("select", mask, products, t.full(-math.inf, q.dtype))
    elif mask is not None:
        products = t.op("add", products, t.cast(mask, q.dtype))
    return products


def flex_attention(t, q, k, v, score_mod, block_mask, scale, options, score_captures=(), mask_captures=()):
    """torch's flex_attention: its programs on one score become element-wise nodes on all of them"""
    if any(t.used(i) for i in range(2, len(t.meta()))):
        raise Unsupported("its largest scores")
    k, v = (_repeated(t, x, q.shape[1]) for x in (k, v))
    extents = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    places = [t.reshape(t.op("iota", dtype="i32", count=n), [n if a == axis else 1 for a in range(4)])
              for axis, n in enumerate(extents)]
    mask = t.inline(block_mask[-1], [*places, *mask_captures], spread=True)[0]
    mask = t.expand(t.tensor(mask, "bool"), extents)
    products = t.op("matmul", t.cast(q, "f32"), t.cast(k, "f32"), transpose_b=True)
    products = t.op("mul", products, t.full(scale, "f32"))
    products = t.cast(t.inline(score_mod, [products, *places, *score_captures], spread=True)[0], "f32")
    products = t.op("select", mask, products, t.full(-math.inf, "f32"))
    sums = t.op("log_sum_exp", products, axes=[-1], keep_dims=True)
    seen = t.op("greater", sums, t.full(-math.inf, "f32"))  # a row without any score gives zeros
    shares = t.op("exp", t.op("sub", products, t.op("select", seen, sums, t.full(0, "f32"))))
    y = t.cast(t.op("matmul", t.cast(shares, v.dtype), v), q.dtype)
    return (y, t.reshape(sums, sums.shape[:-1]), *[None] * (len(t.meta()) - 2))


def _repeated(t, x, heads):
    """Keys or values for each head, where groups share one"""
    own = t.fixed(x.shape[1], "the number of heads")
    if own == heads:
        return x
    each = t.expand(t.reshape(x, [x.shape[0], own, 1, *x.shape[2:]]), [x.shape[0], own, heads // own, *x.shape[2:]])
    return t.reshape(each, [x.shape[0], heads, *x.shape[2:]])


def element_at(t, function, spec, operator, x, *indices):
    """x[i, j] of flex_attention's programs, with their captured tensors"""
    if getattr(operator, "__name__", "") != "ModIndex":
        raise Unsupported("a function that is no index")
    return t.op("index", x, *indices, axes=list(range(len(indices))))


RULES = {
    "flex_attention": flex_attention,
    "flat_apply": element_at,
    "aten.scaled_dot_product_attention": attention,
    "aten._scaled_dot_product_flash_attention_for_cpu": with_more,
    "aten._scaled_dot_product_flash_attention": with_more,
    "aten._scaled_dot_product_attention_math": with_more,
}
