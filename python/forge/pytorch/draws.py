# SPDX-License-Identifier: Apache-2.0
"""Random numbers of a program."""

from __future__ import annotations

from . import dims
from .unsupported import Unsupported

BITS = {"f16": 11, "bf16": 8, "f32": 24, "f64": 24}  # of a number within [0, 1)


class Draws:
    """A generator with a seed, of which each call takes numbers of its own.

    t: the translator of the program
    state: adds i64[2] to the graph and returns it: the seed, and how many groups of four numbers were drawn before;
        None: there are no random numbers
    """

    def __init__(self, t, state):
        self._t, self._make = t, state
        self.state = None  # what `state` returned, once numbers were drawn
        self._seed = self._drawn = None

    def uniform(self, shape, dtype="f32"):
        """Numbers within [0, 1)"""
        t = self._t
        if self._make is None:
            raise Unsupported("random numbers in a branch or a loop")
        if self.state is None:
            self.state = self._make()
            self._seed, self._drawn = (t.select(self.state, 0, i) for i in range(2))
        numbers = t.op("random_uniform", self._seed, self._drawn, dtype=t.wide(dtype), shape=list(shape))
        groups = t.op("iota", dtype="i64", begin=f"floordiv({dims.product(shape)} + 3, 4)", count=1)
        self._drawn = t.op("add", self._drawn, t.reshape(groups, []))
        if BITS[dtype] < 24:  # what is rounded must stay below 1
            steps = t.full(2.0 ** BITS[dtype], "f32")
            numbers = t.op("div", t.op("floor", t.op("mul", numbers, steps)), steps)
        return t.cast(numbers, dtype)

    def after(self):
        """The state after the program"""
        t = self._t
        return t.op("concat", *(t.reshape(number, [1]) for number in (self._seed, self._drawn)), axis=0)
