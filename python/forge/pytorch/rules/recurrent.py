# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and cells: one op for each layer."""

from __future__ import annotations

from ..unsupported import Unsupported
from . import random_numbers


def layers(op, states, **attributes):
    """lstm, gru, rnn of any number of layers"""

    def rule(t, x, hx, parameters, has_biases, num_layers, dropout, train, bidirectional, batch_first, lengths=None):
        if not isinstance(hx, list):
            hx = [hx]
        directions = 2 if bidirectional else 1
        count = len(parameters) // (num_layers * directions)
        if count > (4 if has_biases else 2):
            raise Unsupported("projections of states")
        x = t.swap(x, 0, 1) if batch_first else x
        last = [[] for _ in range(states)]
        for layer in range(num_layers):
            x = random_numbers.dropout(t, x, dropout, train) if layer > 0 else x
            first = layer * directions
            own = [parameters[(first + d) * count:(first + d + 1) * count] for d in range(directions)]
            weights = [_stacked(t, [p[i] for p in own]) for i in range(count)] + [None] * (4 - count)
            initial = [t.slice(h, 0, first, first + directions) for h in hx]
            x, *ends = t.ops(op, x, *weights, lengths, *initial,
                             direction="bidirectional" if bidirectional else "forward", **attributes)
            for kept, end in zip(last, ends):
                kept.append(end)
        ends = [kept[0] if num_layers == 1 else t.op("concat", *kept, axis=0) for kept in last]
        return (t.swap(x, 0, 1) if batch_first else x, *ends)

    return rule


def layers_with_lengths(t, kind, x, lengths, hx, parameters, *options):
    """forge.recurrent_layers: see packed.py"""
    return RULES[f"aten.{kind}.input"](t, x, hx, parameters, *options, False, lengths)


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
