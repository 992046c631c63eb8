# SPDX-License-Identifier: Apache-2.0
"""Losses."""

from __future__ import annotations

from ..unsupported import Unsupported
from .indexing import indices_of

REDUCTIONS = ("none", "mean", "sum")


def of_pair(op, *names):
    """A loss of x and a target, with numbers in PyTorch's order; names: of the attributes they are"""

    def rule(t, x, target, *numbers, **more):
        attributes = {name: value for name, value in zip(names, numbers)} | more
        attributes["reduction"] = REDUCTIONS[attributes.get("reduction", 1)]
        return t.op(op, *t.promoted(x, target), **attributes)

    return rule


def binary_cross_entropy(t, x, target, weight=None, reduction=1):
    """aten.binary_cross_entropy"""
    return t.op("binary_cross_entropy", x, target, weight, reduction=REDUCTIONS[reduction])


def with_logits(t, x, target, weight=None, pos_weight=None, reduction=1):
    """aten.binary_cross_entropy_with_logits"""
    return t.op("binary_cross_entropy_with_logits", x, target, weight, pos_weight, reduction=REDUCTIONS[reduction])


def nll(t, x, target, weight=None, reduction=1, ignore_index=-100):
    """aten.nll_loss; classes are axis 1, or the only one"""
    scalar = x.rank == 1
    if scalar:
        x, target = t.reshape(x, [1, *x.shape]), t.reshape(target, [1])
    y = t.op("nll_loss", x, indices_of(t, target), weight, reduction=REDUCTIONS[reduction], ignore_index=ignore_index)
    return t.reshape(y, []) if scalar else y


def nll_forward(t, x, target, weight, reduction, ignore_index):
    """With the total weight, which is 0 without a reduction"""
    y = nll(t, x, target, weight, reduction, ignore_index)
    if not t.used(1) or reduction == 0:
        return y, t.full(0, x.dtype)
    counted = t.cast(t.op("not_equal", target, t.full(ignore_index, target.dtype)), x.dtype)
    if weight is not None:
        counted = t.op("mul", counted, t.op("gather", weight, t.op("maximum", target, t.full(0, target.dtype)), axis=0))
    axes = list(range(target.rank))
    return y, t.op("reduce", counted, kind="sum", axes=axes, keep_dims=False) if axes else counted


def cross_entropy(t, x, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    """Of classes, or of probabilities"""
    if target.dtype[0] not in "iu":
        return t.op("cross_entropy_of_probabilities", x, t.cast(target, x.dtype), weight,
                    reduction=REDUCTIONS[reduction], label_smoothing=label_smoothing)
    scalar = x.rank == 1
    if scalar:
        x, target = t.reshape(x, [1, *x.shape]), t.reshape(target, [1])
    y = t.op("cross_entropy", x, indices_of(t, target), weight, reduction=REDUCTIONS[reduction],
             ignore_index=ignore_index, label_smoothing=label_smoothing)
    return t.reshape(y, []) if scalar else y


def kl_div(t, x, target, reduction=1, *, log_target=False):
    """aten.kl_div"""
    return t.op("kl_div", x, target, reduction=REDUCTIONS[reduction], log_target=log_target)


def poisson(t, x, target, log_input, full, eps, reduction):
    """aten.poisson_nll_loss"""
    return t.op("poisson_nll_loss", x, target, log_input=log_input, full=full, epsilon=eps,
                reduction=REDUCTIONS[reduction])


def of_three(op):
    """margin_ranking_loss, cosine_embedding_loss"""
    return lambda t, a, b, target, margin=0.0, reduction=1: t.op(
        op, a, b, t.cast(target, a.dtype), margin=margin, reduction=REDUCTIONS[reduction])


def triplet(t, anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
    """aten.triplet_margin_loss"""
    return t.op("triplet_margin_loss", anchor, positive, negative, margin=margin, p=p, epsilon=eps, swap=swap,
                reduction=REDUCTIONS[reduction])


def multi_margin(t, x, target, p=1, margin=1, weight=None, reduction=1):
    """aten.multi_margin_loss"""
    return t.op("multi_margin_loss", x, indices_of(t, target), weight, p=int(p), margin=margin,
                reduction=REDUCTIONS[reduction])


def multilabel_margin(t, x, target, reduction=1):
    """aten.multilabel_margin_loss"""
    return t.op("multilabel_margin_loss", x, indices_of(t, target), reduction=REDUCTIONS[reduction])


def multilabel_margin_forward(t, x, target, reduction):
    """With what its gradient reads"""
    if t.used(1):
        raise Unsupported("its further result")
    return multilabel_margin(t, x, target, reduction), None


def ctc(t, x, target, x_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    """aten.ctc_loss"""
    lengths = [_lengths(t, lengths) for lengths in (x_lengths, target_lengths)]
    if target.rank == 1:
        target = _padded(t, target, lengths[1])
    return t.op("ctc_loss", x, indices_of(t, target), *lengths, blank=blank, reduction=REDUCTIONS[reduction],
                zero_infinity=zero_infinity)


def _padded(t, joined, lengths):
    """Sequences that stand one after the other, as rows that have room for all of them"""
    begins = t.op("sub", t.op("scan", lengths, kind="sum", axis=0), lengths)
    at = t.op("add", t.reshape(begins, [lengths.shape[0], 1]), t.op("iota", dtype=lengths.dtype, count=joined.shape[0]))
    last = t.op("iota", dtype=lengths.dtype, begin=f"{joined.shape[0]} - 1", count=1)
    return t.op("gather", joined, t.op("minimum", at, last), axis=0)


def ctc_losses(t, x, target, x_lengths, target_lengths, blank, zero_infinity):
    """forge.ctc_losses: see functions.py"""
    return ctc(t, x, target, x_lengths, target_lengths, blank, 0, zero_infinity)


def _lengths(t, lengths):
    import torch  # noqa: PLC0415

    from .creation import constant  # noqa: PLC0415

    if isinstance(lengths, list):
        return constant(t, torch.tensor([t.fixed(n, "a length") for n in lengths]))
    return indices_of(t, lengths)


RULES = {
    "aten.mse_loss": of_pair("mse_loss", "reduction"),
    "aten.l1_loss": of_pair("l1_loss", "reduction"),
    "aten.smooth_l1_loss": of_pair("smooth_l1_loss", "reduction", "beta"),
    "aten.huber_loss": of_pair("huber_loss", "reduction", "delta"),
    "aten.soft_margin_loss": of_pair("soft_margin_loss", "reduction"),
    "aten.hinge_embedding_loss": of_pair("hinge_embedding_loss", "margin", "reduction"),
    "aten.binary_cross_entropy": binary_cross_entropy,
    "aten.binary_cross_entropy_with_logits": with_logits,
    "aten.nll_loss": nll,
    "aten.nll_loss_nd": nll,
    "aten.nll_loss2d": nll,
    "aten.nll_loss_forward": nll_forward,
    "aten.nll_loss2d_forward": nll_forward,
    "aten.cross_entropy_loss": cross_entropy,
    "aten.kl_div": kl_div,
    "aten.poisson_nll_loss": poisson,
    "aten.margin_ranking_loss": of_three("margin_ranking_loss"),
    "aten.cosine_embedding_loss": of_three("cosine_embedding_loss"),
    "aten.triplet_margin_loss": triplet,
    "aten.multi_margin_loss": multi_margin,
    "aten.multilabel_margin_loss": multilabel_margin,
    "aten.multilabel_margin_loss_forward": multilabel_margin_forward,
    "aten.ctc_loss": ctc,
    "forge.ctc_losses": ctc_losses,
}
