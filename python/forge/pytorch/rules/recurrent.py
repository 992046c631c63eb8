# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and cells: one op for each layer."""

from __future__ import annotations

from . import random_numbers


def layers(op, states, **attributes):
    """lstm, gru, rnn of any number of layers"""

    def rule(t, x, hx, parameters, has_biases, num_layers, dropout, train, bidirectional, batch_first, lengths=None):
        if not isinstance(hx, list):
            hx = [hx]
        directions = 2 if bidirectional else 1
        count = len(parameters) // (num_layers * directions)
        projects = count > (4 if has_biases else 2)
        x = t.swap(x, 0, 1) if batch_first else x
        last = [[] for _ in range(states)]
        for layer in range(num_layers):
            x = random_numbers.dropout(t, x, dropout, train) if layer > 0 else x
            first = layer * directions
            own = [parameters[(first + d) * count:(first + d + 1) * count] for d in range(directions)]
            weights = [_stacked(t, [p[i] for p in own]) for i in range(count)]
            projection = weights.pop() if projects else None
            weights += [None] * (4 - len(weights))
            initial = [t.slice(h, 0, first, first + directions) for h in hx]
            if projects:
                x, weights, initial = _unprojected(t, x, weights, projection, lengths, initial)
            x, *ends = t.ops(op, x, *weights, lengths, *initial,
                             direction="bidirectional" if bidirectional else "forward", **attributes)
            if projects:
                x, ends[0] = _projected(t, x, ends[0], projection)
            for kept, end in zip(last, ends):
                kept.append(end)
        ends = [kept[0] if num_layers == 1 else t.op("concat", *kept, axis=0) for kept in last]
        return (t.swap(x, 0, 1) if batch_first else x, *ends)

    return rule


def layers_with_lengths(t, kind, x, lengths, hx, parameters, *options):
    """forge.recurrent_layers: see packed.py"""
    return RULES[f"aten.{kind}.input"](t, x, hx, parameters, *options, False, lengths)


def _unprojected(t, x, weights, projection, lengths, initial):
    """An LSTM whose states h = projection h' are what the op does not know: it computes h'. The weights of h' are those
    of h times the projection. The first h, of which there is no h', is an input of the first step.

    projection: [directions, p, h]   initial: h and c, [directions, n, p] and [directions, n, h]
    """
    weight_x, weight_h, *biases = weights
    hidden, cell = initial
    directions, gates, width = weight_h.shape
    inputs, columns = [x], [weight_x]
    for d in range(directions):
        inputs.append(t.op("select", _is_first(t, x, lengths, d), t.slice(hidden, 0, d, d + 1), t.full(0, x.dtype)))
        rows = [t.slice(weight_h, 0, d, d + 1) if d == k else t.full(0, x.dtype, [1, gates, width])
                for k in range(directions)]
        columns.append(rows[0] if directions == 1 else t.op("concat", *rows, axis=0))
    weights = [t.op("concat", *columns, axis=2), t.op("matmul", weight_h, projection), *biases]
    return t.op("concat", *inputs, axis=2), weights, [None, cell]


def _is_first(t, x, lengths, direction):
    """Whether a step is the first that a direction takes: [steps, 1 or n, 1]"""
    steps = t.reshape(t.op("iota", dtype="i64", count=x.shape[0]), [x.shape[0], 1, 1])
    if direction == 0 or lengths is None:
        first = t.op("equal", steps, t.full(0, "i64"))
        return first if direction == 0 else t.op("flip", first, axes=[0])
    last = t.op("sub", t.cast(lengths, "i64"), t.full(1, "i64"))
    return t.op("equal", steps, t.reshape(last, [1, lengths.shape[0], 1]))


def _projected(t, y, last, projection):
    directions, _, width = projection.shape
    parts = [t.op("matmul", t.slice(y, 2, d * width, (d + 1) * width), t.select(projection, 0, d), transpose_b=True)
             for d in range(directions)]
    y = parts[0] if directions == 1 else t.op("concat", *parts, axis=2)
    return y, t.op("matmul", last, projection, transpose_b=True)


def _stacked(t, parameters):
    parts = [t.reshape(p, [1, *p.shape]) for p in parameters]
    return parts[0] if len(parts) == 1 else t.op("concat", *parts, axis=0)


def cell(op, states, **attributes):
    """One step of a layer"""

    def rule(t, x, hx, weight_x, weight_h, bias_x=None, bias_h=None):
        hx = hx if isinstance(hx, list) else [hx]
        given = [None if v is None else t.reshape(v, [1, *v.shape])
                 for v in (x, weight_x, weight_h, bias_x, bias_h)]
        initial = [t.reshape(h, [1, *h.shape]) for h in hx]
        _, *ends = t.ops(op, *given, None, *initial, **attributes)
        ends = [t.reshape(end, h.shape) for end, h in zip(ends, hx)]
        return tuple(ends) if states > 1 else ends[0]

    return rule


RULES = {
    "aten.lstm.input": layers("lstm", 2),
    "aten.gru.input": layers("gru", 1),
    "aten.rnn_tanh.input": layers("rnn", 1, activation="tanh"),
    "aten.rnn_relu.input": layers("rnn", 1, activation="relu"),
    "forge.recurrent_layers": layers_with_lengths,
    "aten.lstm_cell": cell("lstm", 2),
    "aten.gru_cell": cell("gru", 1),
    "aten.rnn_tanh_cell": cell("rnn", 1, activation="tanh"),
    "aten.rnn_relu_cell": cell("rnn", 1, activation="relu"),
}
