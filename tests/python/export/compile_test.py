#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The backend forge of torch.compile and what forge.export says: compile_test.py [unittest options]. Needs torch."""

import copy
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


class Tokens(nn.Module):
    """A layer of a transformer with embeddings"""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 16, padding_idx=0)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, activation="gelu")

    def forward(self, tokens):
        return self.layer(self.table(tokens), is_causal=True, src_mask=nn.Transformer.generate_square_subsequent_mask(
            tokens.shape[1])).mean(1)


class Pictures(nn.Module):
    """Convolutions, their norms, pools and an interpolation"""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8)
        self.second, self.groups = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=4), nn.GroupNorm(2, 8)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        y = nn.functional.max_pool2d(torch.relu(self.norm(self.first(x))), 2)
        y = nn.functional.avg_pool2d(nn.functional.silu(self.groups(self.second(y))), 3, 1, 1)
        y = nn.functional.interpolate(self.up(y), scale_factor=2, mode="bilinear")
        return self.head(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1))


class Rounded(nn.Module):
    """Weights and activations that are rounded to steps, those of the result to steps that are learned"""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 5)
        self.scale, self.zero = nn.Parameter(torch.tensor([0.1])), nn.Parameter(torch.tensor([1.0]))

    def forward(self, x):
        weight = torch.fake_quantize_per_channel_affine(self.linear.weight, torch.full((5,), 0.05),
                                                        torch.zeros(5, dtype=torch.int32), 0, -7, 7)
        y = nn.functional.linear(torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15), weight, self.linear.bias)
        return torch._fake_quantize_learnable_per_tensor_affine(y, self.scale, self.zero, -8, 7, 0.5)


class TrainTest(unittest.TestCase):
    """Gradients of compiled modules are those of PyTorch."""

    def setUp(self):
        torch.manual_seed(3)
        torch._dynamo.reset()

    def check(self, module, make, classes=5, steps=2):
        """Trains two copies, one of them compiled, and compares losses, gradients, parameters and buffers."""
        copies = [module, copy.deepcopy(module)]
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in copies]
        run = [module, torch.compile(copies[1], backend=backend.forge_backend, options=DEVICE)]
        for _ in range(steps):
            x, target = make(), torch.randint(0, classes, (4,))
            losses = []
            for forward, optimizer in zip(run, optimizers):
                optimizer.zero_grad()
                losses.append(nn.functional.cross_entropy(forward(x), target))
                losses[-1].backward()
            torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
            for (name, a), b in zip(copies[0].named_parameters(), copies[1].parameters()):
                torch.testing.assert_close(b.grad, a.grad, rtol=1e-3, atol=1e-5, msg=lambda text, n=name: f"{n}: {text}")
            for optimizer in optimizers:
                optimizer.step()
        for (name, a), b in zip(module.named_buffers(), copies[1].buffers()):
            torch.testing.assert_close(b, a, rtol=1e-4, atol=1e-5, msg=lambda text, n=name: f"{n}: {text}")

    def test_pictures(self):
        self.check(Pictures(), lambda: torch.randn(4, 3, 16, 16))

    def test_tokens(self):
        self.check(Tokens(), lambda: torch.randint(0, 20, (4, 7)), classes=16)

    def test_sizes_that_vary(self):
        sizes = iter((5, 7, 6, 9))
        self.check(Tokens(), lambda: torch.randint(0, 20, (4, next(sizes))), classes=16, steps=4)

    def test_losses_within_the_graph(self):
        module = nn.Linear(3, 6)
        weight = torch.rand(6)

        def loss(x, target):
            return nn.functional.cross_entropy(module(x), target, weight, ignore_index=2, label_smoothing=0.1)

        x, target = torch.randn(5, 3), torch.tensor([0, 2, 5, 1, 2])
        loss(x, target).backward()
        expected = [p.grad.clone() for p in module.parameters()]
        module.zero_grad()
        torch.compile(loss, backend=backend.forge_backend, options=DEVICE)(x, target).backward()
        for p, gradient in zip(module.parameters(), expected):
            torch.testing.assert_close(p.grad, gradient, rtol=1e-4, atol=1e-6)

    def test_roundings_to_steps(self):
        self.check(Rounded(), lambda: torch.randn(4, 6))

    def test_norms_in_narrow_types(self):
        for affine in (True, False):
            module = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8, elementwise_affine=affine)).bfloat16()
            compiled = copy.deepcopy(module)
            x = torch.randn(4, 6, dtype=torch.bfloat16)
            for forward in module, torch.compile(compiled, backend=backend.forge_backend, options=DEVICE):
                (forward(x).float() ** 3).sum().backward()
            for a, b in zip(module.parameters(), compiled.parameters()):
                largest = float(a.grad.abs().max())  # of whose rounding the others have as much
                torch.testing.assert_close(b.grad, a.grad, rtol=0, atol=0.02 * largest)

    def test_names_what_cannot_be_trained(self):
        with self.assertRaisesRegex(Exception, "linalg_inv"):
            torch.compile(Odd(), backend=backend.forge_backend, options=DEVICE)(torch.randn(3, 3, requires_grad=True))


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

    def test_warns_of_dropout_in_training_mode(self):
        module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        with self.assertWarnsRegex(UserWarning, "training mode"):
            forge.export(module.train(), (torch.randn(2, 4),))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
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

    def test_blocks_without_gradients_are_part_of_the_program(self):
        class Detached(nn.Module):
            def forward(self, x):
                with torch.no_grad():
                    y = x.exp() + 1
                return x * y

        x = torch.randn(4)
        session = forge.export(Detached(), (x,)).session("reference")
        torch.testing.assert_close(session.run(x)["output"], Detached()(x))

    def test_parameters_that_the_program_changes_are_states(self):
        class Shrinks(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.full((3,), 8.0), requires_grad=False)

            def forward(self, x):
                with torch.no_grad():
                    self.weight.div_(2)
                return x * self.weight

        x = torch.ones(3)
        session = forge.export(Shrinks(), (x,)).session("reference")
        self.assertEqual([session.run(x)["output"][0].item() for _ in range(3)], [4, 2, 1])

    def test_norms_of_the_batch_without_running_statistics(self):
        norm, x = nn.BatchNorm1d(4, track_running_stats=False).eval(), torch.randn(6, 4)
        session = forge.export(norm, (x,)).session("reference")
        torch.testing.assert_close(session.run(x)["output"], norm(x).detach(), rtol=1e-4, atol=1e-5)

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
