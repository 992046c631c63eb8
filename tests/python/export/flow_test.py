#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""forge.export of sizes that depend on data and of control flow: flow_test.py [unittest options]. Needs torch."""

import copy
import unittest

import torch
from torch import nn
from torch._higher_order_ops import map, scan, while_loop
from torch.export import Dim
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torchvision.models.detection import roi_heads

import forge

DEVICES = ("reference", "cpu", "vulkan")


class Function(nn.Module):
    """A function as a module, with a layer that it may use"""

    def __init__(self, function):
        super().__init__()
        self.function, self.layer = function, nn.Linear(3, 3)

    def forward(self, *inputs):
        return self.function(*inputs, self.layer)


def counted(x, mask, numbers, _):
    """Results whose sizes depend on the mask and on the numbers"""
    n = numbers.sum().item()
    torch._check(n >= 0)
    groups = torch.unique(numbers, return_inverse=True, return_counts=True)
    rows = torch.repeat_interleave(x, numbers, dim=0)
    return (x[mask].sum(0), torch.nonzero(mask), torch.masked_select(x, mask) * 2, rows, torch.bincount(numbers),
            torch.repeat_interleave(numbers), torch.zeros(n), *groups, torch.unique_consecutive(numbers))


def controlled(x, weights, layer):
    """One of each construct"""
    branch = torch.cond(x.sum() > 0, lambda x: layer(x), lambda x: x - 1, (x,))
    steps, last = while_loop(lambda i, z: i < 5, lambda i, z: (i + 1, z * layer(z)), (torch.tensor(0), x))
    total, products = scan(lambda c, row: (c + row, c * row), x[0], x)
    return branch, steps, last, total, products, map(lambda row, w: row * w, x, weights)


def nested(x, _):
    """A loop within a branch, whose length depends on data"""
    count = (x[:, 0] > 0).sum()

    def grown(x, count):
        return while_loop(lambda i, y: i < count, lambda i, y: (i + 1, y * 2), (count * 0, x))[1]

    return torch.cond(count > 1, grown, lambda x, count: x * 2, (x, count))


class Recurrent(nn.Module):
    """A branch, a scan and a loop with one layer, and the same in plain Python"""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def cell(self, carry, row):
        return torch.tanh(self.layer(carry + row)), carry * row

    def forward(self, x):
        x = torch.cond(x.sum() > 0, lambda x: torch.tanh(self.layer(x)), lambda x: x - self.layer(x), (x,))
        total, products = scan(lambda carry, row: self.cell(carry, row), x[0], x)
        y = total + products.sum(0)
        return while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, torch.tanh(self.layer(z))), (torch.tensor(0), y))[1]

    def plain(self, x):
        x = torch.tanh(self.layer(x)) if x.sum() > 0 else x - self.layer(x)
        total, products = x[0], []
        for row in x:
            total, product = self.cell(total, row)
            products.append(product)
        y = total + torch.stack(products).sum(0)
        for _ in range(3):
            y = torch.tanh(self.layer(y))
        return y


class Reader(nn.Module):
    """Sentences of different lengths, read both ways"""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 8)
        self.layers = nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True)

    def forward(self, words, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.words(words), lengths, batch_first=True, enforce_sorted=False)
        packed, (last, _) = self.layers(packed)
        return (*nn.utils.rnn.pad_packed_sequence(packed, batch_first=True), last)


class Keypoints(nn.Module):
    """What Keypoint R-CNN does with its heat maps: a loop over boxes, each resized to an extent of its own"""

    def forward(self, maps, boxes):
        return roi_heads.heatmaps_to_keypoints(maps, boxes)


class FlowTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def agree(self, module, variants, dynamic_shapes=None):
        """The first inputs are exported; all of them give what PyTorch gives on each device."""
        module = module.eval()
        with torch.no_grad():
            model = forge.export(module, variants[0], dynamic_shapes=dynamic_shapes)
            for device in DEVICES:
                session = model.session(device)
                for inputs in variants:
                    expected = module(*inputs)
                    expected = expected if isinstance(expected, tuple) else (expected,)
                    got = session.run(*inputs).values()
                    for y, z in zip(got, expected, strict=True):
                        torch.testing.assert_close(y, z, rtol=1e-4, atol=1e-5)

    def test_sizes_depend_on_data(self):
        x = torch.randn(4, 3)
        self.agree(Function(counted), [(x, x > 0, torch.tensor([1, 2, 0, 3])), (x, x > -9, torch.tensor([0, 4, 1, 1])),
                                       (x, x > 9, torch.tensor([0, 0, 0, 0]))])

    def test_packed_sequences(self):
        batch, length = Dim("batch", min=2), Dim("length", min=2)
        variants = [(torch.randint(0, 50, shape), torch.tensor(lengths))
                    for shape, lengths in (((3, 7), [7, 2, 5]), ((5, 11), [1, 4, 10, 4, 3]), ((2, 4), [4, 4]))]
        self.agree(Reader(), variants, ({0: batch, 1: length}, {0: batch}))

    def test_loops_over_boxes(self):
        number = {0: Dim("number", min=2)}
        variants = []
        for count in (5, 3):
            corners = torch.rand(count, 2) * 40
            boxes = torch.cat([corners, corners + torch.rand(count, 2) * 40], 1)
            boxes[0, 2:] = boxes[0, :2]  # without extent
            variants.append((torch.randn(count, 3, 14, 14), boxes))
        self.agree(Keypoints(), variants, (number, number))

    def test_control_flow(self):
        weights = torch.randn(3)
        self.agree(Function(controlled), [(torch.rand(4, 3), weights), (-torch.rand(6, 3), weights)],
                   (({0: Dim("rows")}, None),))

    def test_nested_control_flow(self):
        self.agree(Function(nested), [(torch.rand(4, 3),), (-torch.rand(4, 3),)])

    def test_training_through_control_flow(self):
        exported, batches = Recurrent(), [torch.rand(4, 3), -torch.rand(4, 3), torch.rand(4, 3)]
        labels = torch.randn(3)
        with torch.no_grad():
            model = forge.export(exported, (batches[0],))
        module = copy.deepcopy(exported)  # the model uses the parameters in place
        trainings = [model.training(device, loss="mse", optimizer="sgd", momentum=0.9) for device in DEVICES]
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        for x in batches:
            optimizer.zero_grad()
            nn.functional.mse_loss(module.plain(x), labels).backward()
            optimizer.step()
            for training in trainings:
                training.step(0.1, x=x, label=labels)
        for training in trainings:
            trained = training.variables()
            for name, parameter in module.named_parameters():
                torch.testing.assert_close(torch.as_tensor(trained[name]), parameter.detach(), rtol=1e-4, atol=1e-5)

    def test_flex_attention(self):
        batch, heads, length, size = 2, 4, 128, 16
        causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, length, length, device="cpu")
        distance = torch.randn(2 * length)

        def linear(score, b, h, q, k):
            return score + (k - q) * 0.1 * (h + 1)

        def learned(score, b, h, q, k):
            return score + distance[q - k + length]

        for groups, options in ((heads, {"block_mask": causal, "scale": 0.3}), (heads, {"score_mod": learned}),
                                (2, {"score_mod": linear, "block_mask": causal, "enable_gqa": True})):
            q, k, v = (torch.randn(batch, n, length, size) for n in (heads, groups, groups))
            self.agree(Function(lambda q, k, v, _, options=options: flex_attention(q, k, v, **options)), [(q, k, v)])


if __name__ == "__main__":
    unittest.main()
