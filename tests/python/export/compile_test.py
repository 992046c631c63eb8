#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The backend forge of torch.compile and what forge.export says: compile_test.py [unittest options]. Needs torch."""

import unittest
import warnings

import torch
from torch import nn
from torch.export import Dim

import forge
from forge.pytorch import UnsupportedError, backend

torch._dynamo.config.suppress_errors = False
DEVICE = {"device": "cpu"}


class Block(nn.Module):
    """A convolution, its norm and a head"""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.head, self.layer_norm = nn.Linear(4, 5), nn.LayerNorm(5)

    def forward(self, x):
        y = torch.relu_(self.norm(self.conv(x)))
        return self.layer_norm(self.head(y.mean((2, 3)))), x.shape[0]


class Odd(nn.Module):
    """Has an operator in its middle that has no counterpart"""

    def forward(self, x):
        return torch.linalg.inv(x @ x + 3 * torch.eye(3)) * 2


class CompileTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        torch._dynamo.reset()
        self.module = Block().eval()

    def compiled(self, module, **options):
        return torch.compile(module, backend=backend.forge_backend, options=DEVICE | options, fullgraph=False)

    def test_runs_all_batches_with_dynamic_shapes(self):
        fast = self.compiled(self.module)
        with torch.no_grad():
            for n in (2, 3, 5, 7):
                x = torch.randn(n, 3, 8, 8)
                (got, count), (expected, _) = fast(x), self.module(x)
                torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
                self.assertEqual(count, n)

    def test_sees_parameters_that_change(self):
        fast, x = self.compiled(self.module), torch.randn(2, 3, 8, 8)
        with torch.no_grad():
            fast(x)
            self.module.head.weight.mul_(2)
            self.module.norm.running_mean.add_(1)
            torch.testing.assert_close(fast(x)[0], self.module(x)[0], rtol=1e-4, atol=1e-5)

    def test_survives_graph_breaks(self):
        def broken(x):
            y = x * 2
            torch._dynamo.graph_break()
            return y + 1

        with torch.no_grad():
            torch.testing.assert_close(self.compiled(broken)(torch.ones(3)), torch.full((3,), 3.0))

    def test_refuses_gradients(self):
        with self.assertRaisesRegex(Exception, "computes no gradients"):
            self.compiled(self.module)(torch.randn(2, 3, 8, 8))

    def test_refuses_what_has_no_counterpart(self):
        with torch.no_grad(), self.assertRaisesRegex(Exception, "aten.linalg_inv"):
            self.compiled(Odd())(torch.randn(3, 3))

    def test_falls_back_aloud(self):
        x = torch.randn(3, 3)
        with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got = self.compiled(Odd(), fallback=True)(x)
        torch.testing.assert_close(got, Odd()(x), rtol=1e-4, atol=1e-5)
        self.assertTrue(any("aten.linalg_inv" in str(w.message) for w in caught))


class Gaps(nn.Module):
    """Two operators without counterparts"""

    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleList([Odd(), Odd()])

    def forward(self, x):
        return torch.linalg.det(self.inner[1](self.inner[0](x)))


class ExportTest(unittest.TestCase):
    def test_lists_all_gaps_with_counts_and_modules(self):
        with self.assertRaises(UnsupportedError) as caught:
            forge.export(Gaps(), (torch.randn(3, 3),), path="/nowhere/never-written.bin")
        text = str(caught.exception)
        self.assertIn("2 x aten.linalg_inv_ex", text)
        self.assertRegex(text, "1 x aten._?linalg_det")
        self.assertIn("inner.0", text)
        self.assertIn("inner.1", text)

    def test_tells_inputs_from_weights(self):
        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.register_buffer("mask", torch.tril(torch.ones(4, 4)), persistent=False)

            def forward(self, x, *, scale):
                return {"scores": self.linear(x) * self.mask, "scaled": x * scale}

        module, x, scale = Masked(), torch.randn(4, 4), torch.randn(4)
        session = forge.export(module, (x,), {"scale": scale}).session("reference")
        self.assertEqual([str(p) for p in session.inputs], ["x: f32[4, 4]", "scale: f32[4]"])
        self.assertEqual([p.name for p in session.outputs], ["scores", "scaled"])
        outputs, expected = session.run(x, scale=scale), module(x, scale=scale)
        for name in expected:
            torch.testing.assert_close(outputs[name], expected[name].detach(), rtol=1e-4, atol=1e-5)

    def test_dropout_in_training_mode_is_refused(self):
        module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        with self.assertRaisesRegex(UnsupportedError, "training mode"):
            forge.export(module.train(), (torch.randn(2, 4),))
        forge.export(module.eval(), (torch.randn(2, 4),))

    def test_names_dimensions_as_the_caller_does(self):
        program = forge.export(nn.Linear(4, 4), (torch.randn(2, 4),), dynamic_shapes={"input": {0: Dim("rows", max=9)}})
        session = program.session("reference")
        self.assertEqual(session.inputs[0].shape, ("rows", 4))
        with self.assertRaisesRegex(forge.UsageError, "1 to 9|0 to 9|rows"):
            session.run(torch.randn(10, 4))

    def test_keeps_states(self):
        class Counter(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("total", torch.zeros(3))

            def forward(self, x):
                self.total.add_(x)
                return self.total * 1

        session = forge.export(Counter(), (torch.ones(3),)).session("cpu")
        for runs in (1, 2, 3):
            torch.testing.assert_close(session.run(torch.ones(3))["output"], torch.full((3,), float(runs)))

    def test_tied_weights_are_stored_once(self):
        import pathlib
        import tempfile

        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.head = nn.Embedding(1000, 64), nn.Linear(64, 1000, bias=False)
                self.head.weight = self.embedding.weight

            def forward(self, i):
                return self.head(self.embedding(i))

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tied.bin"
            forge.export(Tied(), (torch.tensor([[1, 2]]),), path=path)
            self.assertLess(path.stat().st_size, 1.5 * 4 * 64000)


if __name__ == "__main__":
    unittest.main()
