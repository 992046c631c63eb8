# SPDX-License-Identifier: Apache-2.0
"""Random numbers, and what leaves elements out by them. Their numbers are not PyTorch's, their distributions are."""

from __future__ import annotations

import math

from ..unsupported import Unsupported

LEAST = 2.0**-25  # below what uniform numbers have, so that logarithms are finite
MOST_INTEGERS = 2**24  # of a draw


def standard_normal(t, shape, dtype):
    """Normal numbers by the method of Box and Muller"""
    wide = t.wide(dtype)
    radius, angle = (t.draws.uniform(shape, wide) for _ in range(2))
    radius = t.op("sqrt", t.op("mul", _minus_log(t, radius), t.full(2.0, wide)))
    angle = t.op("cos", t.op("mul", angle, t.full(2 * math.pi, wide)))
    return t.cast(t.op("mul", radius, angle), dtype)


def _minus_log(t, uniform):
    """Exponential numbers of rate 1"""
    return t.op("neg", t.op("log", t.op("maximum", uniform, t.full(LEAST, uniform.dtype))))


def _exponential(t, shape, dtype):
    wide = t.wide(dtype)
    return t.cast(_minus_log(t, t.draws.uniform(shape, wide)), dtype)


def _moved(t, x, factor, by):
    """x * factor + by, of numbers"""
    return t.op("add", t.op("mul", x, t.full(factor, x.dtype)), t.full(by, x.dtype))


def uniform(t, *_, **__):
    """rand, rand_like"""
    return t.draws.uniform(t.out_shape(), t.out_dtype())


def between(t, x, low=0.0, high=1.0, **_):
    """aten.uniform"""
    return _moved(t, t.draws.uniform(t.out_shape(), t.out_dtype()), high - low, low)


def normal(t, mean=0.0, std=1.0, *_, **__):
    """aten.normal of numbers and tensors"""
    numbers, dtype = standard_normal(t, t.out_shape(), t.out_dtype()), t.out_dtype()
    return t.op("add", t.op("mul", numbers, t.tensor(std, dtype)), t.tensor(mean, dtype))


def exponential(t, x, rate=1.0, **_):
    """aten.exponential"""
    numbers = _exponential(t, t.out_shape(), t.out_dtype())
    return t.op("div", numbers, t.full(rate, numbers.dtype))


def integers(like):
    """randint, randint_like; like: is there an operand before the bounds?"""

    def rule(t, *arguments, **_):
        low, high = _bounds(t, arguments[1:] if like else arguments)
        numbers = t.draws.uniform(t.out_shape(), "f32")
        numbers = t.op("floor", t.op("mul", numbers, t.full(float(high - low), "f32")))
        return t.cast(t.op("add", t.cast(numbers, "i64"), t.full(low, "i64")), t.out_dtype())

    return rule


def _bounds(t, arguments):
    numbers = [t.fixed(a, "a bound") for a in arguments if not isinstance(a, (list, tuple))]
    low, high = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    if not 0 < high - low <= MOST_INTEGERS:
        raise Unsupported(f"random integers of {low} to {high}: a range of more than 2^24")
    return low, high


def bernoulli(t, x, p=None, **_):
    """1 with the probability that an element, or p, is"""
    dtype = "f64" if "f64" in (x.dtype, getattr(p, "dtype", "")) else "f32"
    numbers = t.draws.uniform(t.out_shape(), dtype)
    return t.cast(t.op("greater", t.tensor(x if p is None else p, dtype), numbers), t.out_dtype())


def permutation(t, n, **_):
    """randperm"""
    return t.cast(t.op("arg_sort", t.draws.uniform([t.dim(n)]), axis=0), t.out_dtype())


def multinomial(t, x, count, replacement=False, **_):
    """Indices by weights: the largest of each row's logarithms plus Gumbel numbers"""
    count = t.fixed(count, "the number of samples")
    logarithms = t.op("log", t.cast(x, "f32"))
    shape = list(x.shape)
    if replacement:
        shape = [*shape[:-1], count, shape[-1]]
        logarithms = t.reshape(logarithms, [*shape[:-2], 1, shape[-1]])
    gumbel = t.op("neg", t.op("log", _exponential(t, shape, "f32")))
    chances = t.op("add", logarithms, gumbel)
    if replacement:
        return t.op("arg_reduce", chances, kind="max", axis=-1, keep_dims=False)
    return t.ops("top_k", chances, k=count, axis=-1, largest=True)[1]


def kept(t, shape, p):
    """Where an element is kept that is left out with probability p"""
    return t.op("greater_equal", t.draws.uniform(shape), t.full(float(p), "f32"))


def scaled(t, x, mask, p):
    """Kept elements, by so much larger that the mean stays; zeros elsewhere"""
    if p == 1:
        return t.full(0, x.dtype, x.shape)
    return dropout_backward(t, x, mask, 1 / (1 - p))


def dropout(t, x, p=0.5, train=True, shape=None):
    """aten.dropout; shape: of what decides, which broadcasts to x"""
    return scaled(t, x, kept(t, shape or x.shape, p), p) if train and p > 0 else x


def dropout_and_mask(t, x, p, train):
    """aten.native_dropout"""
    if not (train is None or train) or p == 0:
        return x, t.full(True, "bool", x.shape)
    mask = kept(t, x.shape, p)
    return scaled(t, x, mask, p), mask


def dropout_backward(t, gradient, mask, scale):
    """aten.native_dropout_backward"""
    return t.op("select", mask, t.op("mul", gradient, t.full(scale, gradient.dtype)), t.full(0, gradient.dtype))


def whole_features(x):
    """The shape of one number for each feature of each example"""
    return [*x.shape[:2], *[1] * (x.rank - 2)]


def feature_dropout(t, x, p=0.5, train=True):
    """aten.feature_dropout"""
    return dropout(t, x, p, train, whole_features(x))


def alpha_dropout(features):
    """aten.alpha_dropout and feature_alpha_dropout: mean and variance of SELU's results stay"""

    def rule(t, x, p=0.5, train=True):
        if not train or p == 0:
            return x
        left_out = -1.7580993408473766
        factor = ((1 - p) * (1 + p * left_out**2)) ** -0.5 if p < 1 else 0.0
        mask = kept(t, whole_features(x) if features else x.shape, p)
        return _moved(t, t.op("select", mask, x, t.full(left_out, x.dtype)), factor, -factor * left_out * p)

    return rule


def rrelu(t, x, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    """Slopes below 0 at random; without training their mean"""
    if not training:
        return t.op("leaky_relu", x, slope=(lower + upper) / 2)
    slopes = _moved(t, t.draws.uniform(x.shape, x.dtype), upper - lower, lower)
    zero = t.full(0, x.dtype)
    return t.op("select", t.op("greater_equal", x, zero), x, t.op("mul", x, slopes))


RULES = {
    "aten.rand": uniform,
    "aten.rand_like": uniform,
    "aten.uniform": between,
    "aten.randn": lambda t, *_, **__: standard_normal(t, t.out_shape(), t.out_dtype()),
    "aten.randn_like": lambda t, *_, **__: standard_normal(t, t.out_shape(), t.out_dtype()),
    "aten.normal_functional": lambda t, x, mean=0.0, std=1.0, **_: normal(t, mean, std),
    "aten.normal": normal,
    "aten.exponential": exponential,
    "aten.random": integers(like=True),
    "aten.randint": integers(like=False),
    "aten.randint_like": integers(like=True),
    "aten.bernoulli": bernoulli,
    "aten.randperm": permutation,
    "aten.multinomial": multinomial,
    "aten.dropout": dropout,
    "aten.native_dropout": dropout_and_mask,
    "aten.native_dropout_backward": dropout_backward,
    "aten.feature_dropout": feature_dropout,
    "aten.alpha_dropout": alpha_dropout(features=False),
    "aten.feature_alpha_dropout": alpha_dropout(features=True),
    "aten.rrelu": rrelu,
}
