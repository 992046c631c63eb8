#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random numbers of exported and of compiled modules, by their distributions: random_test.py [unittest options].
Needs torch."""

import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import forge
from forge.pytorch import backend

DEVICES = ("reference", "cpu", "vulkan")
SHAPE = (1000, 50)


class Function(nn.Module):
    """A function as a module"""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


# What each draws from x, which is 1; its mean, its standard deviation, and between what it lies
DISTRIBUTIONS = {
    "rand": (lambda x: torch.rand(SHAPE), 0.5, 12**-0.5, 0, 1),
    "rand_f16": (lambda x: torch.rand(SHAPE, dtype=torch.float16), 0.5, 12**-0.5, 0, 1 - 2**-11),
    "rand_like": (torch.rand_like, 0.5, 12**-0.5, 0, 1),
    "randn": (lambda x: torch.randn(SHAPE), 0, 1, -6, 6),
    "normal": (lambda x: torch.normal(2.0, 3.0, SHAPE), 2, 3, -20, 20),
    "normal_of_tensors": (lambda x: torch.normal(x * 2, x * 3), 2, 3, -20, 20),
    "uniform_": (lambda x: torch.empty_like(x).uniform_(-1, 3), 1, 4 * 12**-0.5, -1, 3),
    "exponential_": (lambda x: torch.empty_like(x).exponential_(2.0), 0.5, 0.5, 0, 20),
    "randint": (lambda x: torch.randint(-3, 9, SHAPE), 2.5, (143 / 12) ** 0.5, -3, 8),
    "bernoulli": (lambda x: torch.bernoulli(x * 0.3), 0.3, 0.21**0.5, 0, 1),
    "dropout": (lambda x: F.dropout(x, 0.2, True), 1, 0.5, 0, 1.25),
    "dropout2d": (lambda x: F.dropout2d(x.reshape(1000, 50, 1, 1), 0.2, True), 1, 0.5, 0, 1.25),
    "alpha_dropout": (lambda x: F.alpha_dropout(torch.randn_like(x), 0.3, True), 0, 1, -7, 7),
    "rrelu": (lambda x: F.rrelu(-x, 0.1, 0.3, True), -0.2, 0.2 * 12**-0.5, -0.3, -0.1),
    "multinomial": (lambda x: torch.multinomial(torch.tensor([1.0, 2, 3, 4]), 50000, replacement=True), 2, 1, 0, 3),
}


class ExportTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)

    def runs(self, function, *inputs, count=2):
        """Results of several runs; all devices give the same"""
        model = forge.export(Function(function), inputs)
        first = None
        for device in DEVICES:
            session = model.session(device)
            results = [next(iter(session.run(*inputs).values())) for _ in range(count)]
            first = first or results
            for ours, theirs in zip(results, first):
                torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
        return first

    def test_distributions(self):
        for name, (function, mean, deviation, low, high) in DISTRIBUTIONS.items():
            with self.subTest(name):
                numbers, others = (y.double() for y in self.runs(function, torch.ones(SHAPE)))
                spread = deviation / numbers.numel() ** 0.5  # of the mean
                self.assertAlmostEqual(numbers.mean().item(), mean, delta=5 * spread)
                self.assertAlmostEqual(numbers.std().item(), deviation, delta=deviation / 50)
                self.assertGreaterEqual(numbers.min().item(), low)
                self.assertLessEqual(numbers.max().item(), high)
                self.assertFalse(torch.equal(numbers, others), "two runs draw the same")

    def test_permutations(self):
        for order in self.runs(lambda x: torch.randperm(50), torch.ones(1)):
            self.assertEqual(sorted(order.tolist()), list(range(50)))

    def test_samples_without_replacement(self):
        weights = torch.tensor([1.0, 0, 3, 4])
        for samples in self.runs(lambda x: torch.multinomial(x, 3), weights):
            self.assertEqual(sorted(samples.tolist()), [0, 2, 3])

    def test_dropout_of_attention(self):
        q, k, v = (torch.randn(2, 4, 6, 8) for _ in range(3))
        drawn = self.runs(lambda q: F.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True), q,
                          count=400)
        expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        torch.testing.assert_close(torch.stack(drawn).mean(0), expected, rtol=0.1, atol=0.1)

    def test_seeds(self):
        def first(seed):
            torch.manual_seed(seed)
            return self.runs(lambda x: torch.rand(4), torch.ones(1))[0]

        self.assertTrue(torch.equal(first(1), first(1)))
        self.assertFalse(torch.equal(first(1), first(2)))

    def test_exported_modules_train_with_dropout(self):
        module = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1)).train()
        x = torch.randn(64, 4)
        label = x.sum(1, keepdim=True)
        training = forge.export(module, (x,)).training("cpu", loss="mse", optimizer="adam")
        losses = [training.step(0.02, input=x.numpy(), label=label.numpy()).loss for _ in range(200)]
        self.assertLess(np.mean(losses[-20:]), losses[0] / 5)


class CompileTest(unittest.TestCase):
    def test_trains_with_dropout(self):
        torch.manual_seed(3)
        layer = nn.Linear(50, 50, bias=False)
        nn.init.eye_(layer.weight)
        fast = torch.compile(nn.Sequential(layer, nn.Dropout(0.2)), backend=backend.forge_backend,
                             options={"device": "cpu"})
        x = torch.ones(SHAPE, requires_grad=True)
        y = fast(x)
        y.sum().backward()
        self.assertAlmostEqual(y.mean().item(), 1, delta=0.02)
        torch.testing.assert_close(x.grad, y)  # the same elements are left out
        torch.manual_seed(5)
        first, second = fast(x), fast(x)
        torch.manual_seed(5)
        self.assertTrue(torch.equal(fast(x), first))
        self.assertFalse(torch.equal(first, second))


if __name__ == "__main__":
    unittest.main()
