# SPDX-License-Identifier: Apache-2.0
"""Branches and loops over programs within the program."""

from __future__ import annotations

from ..._graph import Value
from ..unsupported import Unsupported


def cond(t, condition, yes, no, operands=()):
    """torch.cond: the results of one of two programs"""
    if isinstance(condition, bool):
        return t.inline(yes if condition else no, operands)
    if not isinstance(condition, Value):
        raise Unsupported("a condition on sizes that vary")
    captures = t.captures(operands)
    bodies = [_body(t, program, captures, operands) for program in (yes, no)]
    return tuple(t.ops("if", t.reshape(condition, []), *captures, yes=bodies[0], no=bodies[1]))


def _body(t, program, captures, operands):
    """A function of the captures that gives the program's results"""
    body = t.body()
    given = body.arguments(captures, operands)
    for i, result in enumerate(body.inline(program, given)):
        body.result(i, result)
    return body.name


def _step(t, carried, captures, operands):
    """The body of a loop, the number of its step, what it carries, and what it has for the operands of the call"""
    body = t.body()
    number = body.graph.input("step", "i64", [])
    body.graph.input("goes_on", "bool", [])
    state = [body.graph.input(f"carried_{i}", v.dtype, v.shape) for i, v in enumerate(carried)]
    return body, number, state, body.arguments(captures, operands)


def while_loop(t, goes_on, step, carried, captured=()):
    """torch.while_loop: what is carried when the condition fails"""
    carried = [value if isinstance(value, Value) else t.full(value, "i64") for value in carried]
    captures = t.captures(captured)
    body, _, state, given = _step(t, carried, captures, captured)
    after = body.inline(step, [*state, *given])
    body.result("goes_on", body.reshape(body.inline(goes_on, [*after, *given])[0], []))
    for i, value in enumerate(after):
        body.result(i, value)
    first = t.reshape(t.inline(goes_on, [*carried, *captured])[0], [])
    return tuple(t.ops("loop", None, first, *carried, *captures, body=body.name, carried=len(carried)))


def scan(t, step, carried, rows, captured=()):
    """torch.scan: what is carried from row to row, then a row of results for each"""
    if not rows:
        raise Unsupported("no rows to go over")
    count = rows[0].shape[0]
    captures = t.captures([*rows, *captured])
    body, at, state, given = _step(t, carried, captures, [*rows, *captured])
    each = [body.reshape(body.op("gather", whole, body.reshape(at, [1]), axis=0), whole.shape[1:])
            for whole in given[:len(rows)]]
    results = body.inline(step, [*state, *each, *given[len(rows):]])
    body.result("goes_on", body.full(True, "bool"))
    for i, value in enumerate(results):
        body.result(i, value)
    steps = t.op("shape_of", rows[0])
    steps = t.reshape(t.slice(steps, 0, 0, 1), [])
    return tuple(t.ops("loop", steps, None, *carried, *captures, body=body.name, carried=len(carried), rows=count))


RULES = {
    "cond": cond,
    "while_loop": while_loop,
    "scan": scan,
    "map_impl": lambda t, step, rows, captured=(): scan(t, step, [], rows, captured),
}
