# SPDX-License-Identifier: Apache-2.0
"""Losses."""

import math

import torch
import torch.nn.functional as F

from torch_ops.common import require


def reduced(a, losses):
    return {"none": losses, "mean": losses.mean(), "sum": losses.sum()}[a["reduction"]]


def checked(y, own):
    """A formula that has gradients where PyTorch's function has none, if it agrees with the function."""
    assert torch.allclose(y, own, rtol=1e-12, atol=1e-12, equal_nan=True), (y, own)
    return y


def detached(*tensors):
    return [None if t is None else t.detach() for t in tensors]


def regression(name, *more):
    def compute(a, *operands):
        operands = torch.broadcast_tensors(*operands)
        return getattr(F, name)(*operands, reduction=a["reduction"], **{n: a[m] for n, m in more})

    return compute


def binary_cross_entropy(a, x, target, weight=None):
    y = -(target * torch.log(x).clamp_min(-100) + (1 - target) * torch.log1p(-x).clamp_min(-100))
    y = reduced(a, y if weight is None else y * weight)
    require(bool(((x >= 0) & (x <= 1)).all()))
    return checked(y, F.binary_cross_entropy(*detached(x, target, weight), reduction=a["reduction"]))


def bce_with_logits(a, x, target, weight=None, pos_weight=None):
    y = (1 - target) * x - F.logsigmoid(x) * (1 if pos_weight is None else 1 + (pos_weight - 1) * target)
    own = F.binary_cross_entropy_with_logits(*detached(x, target, weight), reduction=a["reduction"],
                                             pos_weight=detached(pos_weight)[0])
    return checked(reduced(a, y if weight is None else y * weight), own)


def kl_div(a, x, target):
    return F.kl_div(*torch.broadcast_tensors(x, target), reduction=a["reduction"], log_target=a["log_target"])


def poisson_nll_loss(a, x, target):
    return F.poisson_nll_loss(x, target, log_input=a["log_input"], full=a["full"], eps=a["epsilon"],
                              reduction=a["reduction"])


def gaussian_nll_loss(a, x, target, variance):
    require(bool((variance >= a["epsilon"]).all()) or not variance.requires_grad)
    return F.gaussian_nll_loss(x, target, variance if variance.ndim else variance.expand(x.shape), a["full"],
                               a["epsilon"], a["reduction"])


def class_targets(a, x, target):
    """Targets of no class are ignored, where PyTorch raises."""
    classes = x.shape[min(1, x.ndim - 1)]
    return torch.where((target >= 0) & (target < classes), target.long(), a["ignore_index"])


def log_softmax_at(a, x, target):
    axis = min(1, x.ndim - 1)
    inside = (target >= 0) & (target < x.shape[axis])
    y = torch.log_softmax(x, axis).gather(axis, torch.where(inside, target, 0).long().unsqueeze(axis)).squeeze(axis)
    return torch.where(inside, y, 0)


def nll_loss(a, x, target, weight=None):
    y = F.nll_loss(x, class_targets(a, x, target), None if weight is None else weight.detach(),
                   ignore_index=a["ignore_index"], reduction=a["reduction"])
    return with_weight_gradient(a, x, target, weight, y)


def with_weight_gradient(a, x, target, weight, y):
    """By the formula where the weights want gradients, which PyTorch's function does not give."""
    if weight is None or not weight.requires_grad:
        return y
    axis = min(1, x.ndim - 1)
    target = class_targets(a, x, target)
    counts = (target != a["ignore_index"]).to(x.dtype)
    index = torch.where(counts > 0, target, 0)
    weights = weight[index] * counts
    smoothing = a.get("label_smoothing", 0)
    losses = -weights * torch.gather(x, axis, index.unsqueeze(axis)).squeeze(axis) * (1 - smoothing)
    if smoothing:
        along = weight.reshape([-1] + [1] * (x.ndim - 1 - axis))
        losses = losses - counts * (x * along).mean(axis) * smoothing
    formula = losses.sum() / weights.sum() if a["reduction"] == "mean" else reduced(a, losses)
    return checked(formula, y.detach())


def cross_entropy(a, x, target, weight=None):
    y = F.cross_entropy(x, class_targets(a, x, target), None if weight is None else weight.detach(),
                        ignore_index=a["ignore_index"], reduction=a["reduction"], label_smoothing=a["label_smoothing"])
    return with_weight_gradient(a, F.log_softmax(x, min(1, x.ndim - 1)), target, weight, y)


def cross_entropy_of_probabilities(a, x, target, weight=None):
    return F.cross_entropy(x, target, weight, reduction=a["reduction"], label_smoothing=a["label_smoothing"])


def soft_margin_loss(a, x, target):
    """By its formula, which does not overflow."""
    y = reduced(a, -F.logsigmoid(target * x))
    own = F.soft_margin_loss(*detached(x, target), reduction=a["reduction"])
    return y if own.isinf().any() else checked(y, own)


def multi_margin_loss(a, x, target, weight=None):
    y = F.multi_margin_loss(x, target.long(), a["p"], a["margin"], None if weight is None else weight.detach(),
                            reduction=a["reduction"])
    if weight is None:
        return y
    lack = (a["margin"] - torch.gather(x, 1, target[:, None].long()) + x).clamp_min(0)**a["p"]
    lack = lack.masked_fill(F.one_hot(target.long(), x.shape[1]).bool(), 0)
    return checked(reduced(a, lack.mean(1) * weight[target.long()]), y.detach())


def multilabel_soft_margin_loss(a, x, target, weight=None):
    return F.multilabel_soft_margin_loss(x, target, weight, reduction=a["reduction"])


def triplet_margin_loss(a, anchor, positive, negative):
    return F.triplet_margin_loss(anchor, positive, negative, a["margin"], a["p"], a["epsilon"], a["swap"],
                                 reduction=a["reduction"])


def cosine_similarity(a, x, y):
    """Where F.cosine_similarity limits a norm, its gradient passes by the limit."""
    axis, least = a["axis"], a["epsilon"]
    product = x * y

    def norm(v):
        square = (v.expand(product.shape)**2).sum(axis)
        return torch.where(square > 0, torch.where(square > 0, square, 1.0).sqrt(), square).clamp_min(least)

    return checked(product.sum(axis) / (norm(x) * norm(y)), F.cosine_similarity(*detached(x, y), axis, least))


def ctc_loss(a, x, target, x_lengths, target_lengths):
    """One step after another: the gradient of F.ctc_loss is that of the logits that x is a log_softmax of."""
    losses = []
    for n in range(x.shape[1]):
        labels = [a["blank"]]
        for label in target[n, :int(target_lengths[n])].tolist():
            labels += [label, a["blank"]]
        never = x.new_tensor(-math.inf)
        alpha = [x[0, n, label] if i < 2 else never for i, label in enumerate(labels)]
        for row in x[1:int(x_lengths[n]), n]:
            following = []
            for i, label in enumerate(labels):
                from_ = [alpha[i], *alpha[max(i - 1, 0):i]]
                if i > 1 and label != a["blank"] and label != labels[i - 2]:
                    from_.append(alpha[i - 2])
                open_ = [v for v in from_ if v != never]
                following.append(row[label] + torch.logsumexp(torch.stack(open_), 0) if open_ else never)
            alpha = following
        ends = [v for v in alpha[-2:] if v != never]
        loss = -torch.logsumexp(torch.stack(ends), 0) if ends else x.new_tensor(0 if a["zero_infinity"] else math.inf)
        losses.append(loss / max(int(target_lengths[n]), 1) if a["reduction"] == "mean" else loss)
    y = reduced(a, torch.stack(losses))
    return checked(y, F.ctc_loss(x.detach(), target.long(), x_lengths.long(), target_lengths.long(), a["blank"],
                                 a["reduction"], a["zero_infinity"]))
