# SPDX-License-Identifier: Apache-2.0
"""Functions of packed sequences, replaced by others that do not look at data while they are traced."""

from __future__ import annotations

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.utils import rnn


def pack_padded_sequence(x, lengths, batch_first):
    """The steps of all sequences, the longest first, and how many sequences have each step"""
    steps = x.transpose(0, 1) if batch_first else x
    lengths = torch.as_tensor(lengths)
    longest = lengths[0].item()
    torch._check(longest <= steps.shape[0])
    seen = torch.arange(steps.shape[0])[:, None] < lengths
    return steps[seen], seen.sum(1)[torch.arange(longest)]


def pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length):
    """The inverse of pack_padded_sequence: a tensor with steps of the padding value, and the lengths"""
    steps = batch_sizes.shape[0]
    x, seen = _padded(data, batch_sizes, batch_sizes[0].item(), padding_value)
    if not statically_known_true(total_length == steps):
        x = torch.cat([x, data.new_full((total_length - steps, *x.shape[1:]), padding_value)])
    return x.transpose(0, 1) if batch_first else x, seen.sum(0)


def _padded(data, batch_sizes, batch, padding_value=0):
    """Packed steps as [steps, batch, ...], and which of them there are: [steps, batch]"""
    seen = torch.arange(batch) < batch_sizes[:, None]
    x = data.new_full((*seen.shape, *data.shape[1:]), padding_value)
    return torch.index_put(x, (seen,), data), seen


@torch.library.custom_op("forge::recurrent_layers", mutates_args=())
def _layers(kind: str, x: torch.Tensor, lengths: torch.Tensor, hx: list[torch.Tensor], weights: list[torch.Tensor],
            has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool) -> list[torch.Tensor]:
    packed = rnn.pack_padded_sequence(x, lengths)
    states = tuple(hx) if kind == "lstm" else hx[0]
    data, *ends = getattr(torch._VF, kind)(packed.data, packed.batch_sizes, states, weights, has_biases, num_layers,
                                           dropout, train, bidirectional)
    return [rnn.pad_packed_sequence(packed._replace(data=data), total_length=x.shape[0])[0], *ends]


@_layers.register_fake
def _(kind, x, lengths, hx, weights, has_biases, num_layers, dropout, train, bidirectional):
    columns = hx[0].shape[-1] * (2 if bidirectional else 1)
    return [x.new_empty((*x.shape[:2], columns)), *(torch.empty_like(h) for h in hx)]


def _layers_of(kind):
    function = getattr(torch._VF, kind)

    def layers(*args):
        if not isinstance(args[3], (list, tuple)):
            return function(*args)
        data, batch_sizes, hx, weights, *options = args
        hx = [hx] if isinstance(hx, torch.Tensor) else list(hx)
        x, seen = _padded(data, batch_sizes, hx[0].shape[1])
        y, *ends = _layers(kind, x, seen.sum(0), hx, list(weights), *options)
        return (y[seen], *ends)

    return layers


def unless_packed(check):
    """The check of a layer's operands, which asks for the number of packed sequences as a number"""

    def checked(self, x, hx, batch_sizes):
        if batch_sizes is None:
            check(self, x, hx, batch_sizes)

    return checked


REPLACED = {
    torch._VF._pack_padded_sequence: pack_padded_sequence,
    torch._VF._pad_packed_sequence: pad_packed_sequence,
    **{getattr(torch._VF, kind): _layers_of(kind) for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu")},
}
