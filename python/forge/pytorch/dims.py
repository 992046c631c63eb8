# SPDX-License-Identifier: Apache-2.0
"""Sizes: sympy expressions of torch as dimensions of the text form."""

from __future__ import annotations

import sympy
import torch
from torch.utils._sympy import functions

from .unsupported import Unsupported

BINARY = {functions.FloorDiv: "floordiv", functions.CleanDiv: "floordiv", functions.Mod: "mod",
          functions.PythonMod: "mod", sympy.Mod: "mod"}
EXTREMES = {functions.Max: "max", functions.Min: "min", sympy.Max: "max", sympy.Min: "min"}


def is_size(value):
    """Is this an integer, or an expression of sizes?"""
    return isinstance(value, (int, torch.SymInt)) and not isinstance(value, bool)


def bounds(value_range):
    """The least and the greatest value of a range, None where it has no such bound"""
    return tuple(int(bound) if abs(bound) < 2**62 else None for bound in (value_range.lower, value_range.upper))


def product(shape):
    """How many elements a shape has, as a dimension"""
    return " * ".join(f"({extent})" for extent in shape) or 1


def dim(size, names):
    """A size as an int where it is known, otherwise as text.  names: of symbols, by symbol"""
    if isinstance(size, int):
        return int(size)
    if not isinstance(size, torch.SymInt):
        raise Unsupported(f"the size {size!r} is no integer")
    expression = size.node.expr
    if expression.is_Integer:
        return int(expression)
    return _text(expression, names)


def _text(e, names):
    if e.is_Integer:
        return str(int(e))
    if e.is_Symbol:
        if e not in names:
            raise Unsupported(f"the size {e} depends on data")
        return names[e]
    if e.is_Add:
        return "(" + " + ".join(_text(term, names) for term in e.args) + ")"
    if e.is_Mul:
        numerator, denominator = sympy.fraction(e)
        if denominator != 1:
            return f"floordiv({_text(numerator, names)}, {_text(denominator, names)})"
        return " * ".join(_text(factor, names) for factor in e.args)
    if e.is_Pow and e.exp.is_Integer and e.exp > 0:
        return " * ".join([_text(e.base, names)] * int(e.exp))
    if e.func in BINARY:
        return f"{BINARY[e.func]}({_text(e.args[0], names)}, {_text(e.args[1], names)})"
    if e.func in EXTREMES:
        text = _text(e.args[0], names)
        for other in e.args[1:]:
            text = f"{EXTREMES[e.func]}({text}, {_text(other, names)})"
        return text
    if e.func is functions.CeilDiv:
        return f"floordiv({_text(e.args[0] + e.args[1] - 1, names)}, {_text(e.args[1], names)})"
    if e.func is functions.ModularIndexing:
        base, divisor, modulus = (_text(a, names) for a in e.args)
        return f"mod(floordiv({base}, {divisor}), {modulus})"
    raise Unsupported(f"the size {e} has no counterpart")


FUNCTIONS = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "min": min, "max": max}


def evaluate(size, values):
    """A dimension, as an int or text, where symbols have these values."""
    return size if isinstance(size, int) else eval(size, {"__builtins__": {}} | FUNCTIONS | values)  # noqa: S307
