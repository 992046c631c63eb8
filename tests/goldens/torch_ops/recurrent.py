# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks."""

import torch

from torch_ops.common import require


def steps(cell, states):
    """A loop over the steps: cell(sums of the input's gates, products, weight, bias, state) is the new state."""

    def run(a, gates, weight, bias=None, lengths=None, *more):
        more = [*more, *[None] * (states + 1 - len(more))]
        size = (gates.shape[1], weight.shape[0])
        state = [gates.new_zeros(size) if s is None else s for s in more[:states]]
        y = [gates.new_zeros(size)] * gates.shape[0]
        for t in reversed(range(len(y))) if a["reverse"] else range(len(y)):
            runs = torch.ones(size[0], 1, dtype=torch.bool) if lengths is None else (t < lengths)[:, None]
            new = cell(a, gates[t], weight, gates.new_zeros(weight.shape[1]) if bias is None else bias, state,
                       more[states])
            y[t] = torch.where(runs, new[0], torch.zeros_like(new[0]))
            state = [torch.where(runs, n, s) for n, s in zip(new, state)]
        return (torch.stack(y) if y else gates.new_zeros((0, *size)), *state)

    return run


def lstm_cell(a, gates, weight, bias, state, peepholes):
    hidden, cell = state
    i, f, g, o = (gates + hidden @ weight + bias).chunk(4, 1)
    pi, pf, po = (0, 0, 0) if peepholes is None else peepholes.chunk(3)
    cell = torch.sigmoid(f + pf * cell) * cell + torch.sigmoid(i + pi * cell) * torch.tanh(g)
    return torch.sigmoid(o + po * cell) * torch.tanh(cell), cell


def gru_cell(a, gates, weight, bias, state, _):
    hidden, = state
    (gr, gz, gn), (pr, pz, pn) = gates.chunk(3, 1), (hidden @ weight + bias).chunk(3, 1)
    reset, update = torch.sigmoid(gr + pr), torch.sigmoid(gz + pz)
    inner = reset * pn if a["reset_after"] else (reset * hidden) @ weight.chunk(3, 1)[2] + bias.chunk(3)[2]
    return (1 - update) * torch.tanh(gn + inner) + update * hidden,


def rnn_cell(a, gates, weight, bias, state, _):
    return {"tanh": torch.tanh, "relu": torch.relu}[a["activation"]](gates + state[0] @ weight + bias),


def layer(function, states):
    """torch.lstm and its kin, of one layer."""

    def run(a, x, weight_x, weight_h, bias_x=None, bias_h=None, lengths=None, *more):
        require(lengths is None and len(more) <= states and a.get("reset_after", True))
        zeros = weight_x.new_zeros(weight_x.shape[:2])
        parameters = [weight_x, weight_h, *(zeros if b is None else b for b in (bias_x, bias_h))]
        flat = [p[d] for d in range(weight_x.shape[0]) for p in parameters]
        more = [*more, *[None] * (states - len(more))]
        state = [x.new_zeros(len(weight_x), x.shape[1], weight_h.shape[2]) if s is None else s for s in more]
        flip = (lambda t: t.flip(0)) if a["direction"] == "reverse" else (lambda t: t)
        y, *last = function(a)(flip(x), state if states == 2 else state[0], flat, True, 1, 0.0, False,
                               a["direction"] == "bidirectional", False)
        return (flip(y), *last)

    return run


def steps_gradient(a, sums, weight, hidden=None, first_cell=None, lengths=None, dy=None, d_hidden=None, d_cell=None):
    """What flows back through steps that have these sums: the numbers are given, their paths are those of the steps."""
    sums, count = sums.detach().requires_grad_(), sums.shape[0]
    require(count)
    zeros = sums.new_zeros(sums.shape[1], weight.shape[0])
    first = [zeros.clone().requires_grad_(),
             (zeros if first_cell is None else first_cell.detach()).clone().requires_grad_()]
    (h, c), total = first, 0
    for t in reversed(range(count)) if a["reverse"] else range(count):
        runs = torch.ones(len(zeros), 1, dtype=torch.bool) if lengths is None else (t < lengths)[:, None]
        moved = (h - h.detach()) @ weight  # zero, with the gradient of the recurrent product
        if a["cell"] == "lstm":
            i, f, g, o = (sums[t] + moved).chunk(4, 1)
            new_c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            new_h, c = torch.sigmoid(o) * torch.tanh(new_c), torch.where(runs, new_c, c)
        elif a["cell"] == "gru":
            (r, z, p, x), (mr, mz, mp) = sums[t].chunk(4, 1), moved.chunk(3, 1)
            update = torch.sigmoid(z + mz)
            before = hidden[t].detach() + h - h.detach()
            new_h = (1 - update) * torch.tanh(x + torch.sigmoid(r + mr) * (p + mp)) + update * before
        else:
            new_h = {"tanh": torch.tanh, "relu": torch.relu}[a["cell"]](sums[t] + moved)
        if dy is not None:
            total = total + (torch.where(runs, new_h, zeros) * dy[t].detach()).sum()
        h = torch.where(runs, new_h, h)
    for state, d in ((h, d_hidden), (c, d_cell)):
        total = total if d is None else total + (state * d.detach()).sum()
    require(isinstance(total, torch.Tensor))
    found = torch.autograd.grad(total, [sums, *first], allow_unused=True)
    found = [torch.zeros_like(t) if g is None else g for t, g in zip((sums, *first), found)]
    return found[0], torch.stack(found[1:] if a["cell"] == "lstm" else found[1:2])
