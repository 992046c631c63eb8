#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports the samples of PyTorch's operator database and compares: run_operators.py [--device cpu] [--compile] [FILTER]

With --compile they run through torch.compile, and the gradients of their floats are compared, too. An operator has
passed where all of its samples that were exported are equal; it is wrong where one is not. Operators of random numbers
and those that change their operands are left out.
"""

import argparse
import collections
import re
import sys

import torch
from compare import difference, first_line, tensors_of
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import forge
from forge.pytorch import backend

RANDOM = re.compile(r"rand|bernoulli|dropout|multinomial|normal(?!ize)|empty|uniform|exponential|cauchy|geometric|rrelu|"
                    r"alpha_dropout|lu|svd|qr|eig|pca|geqrf|ormqr|lobpcg|item|resize_|data_ptr")

REFUSAL = re.compile(r"\d+ x \S+: [^;\n]*")  # a line of UnsupportedError
GRADIENT = 0.1  # what flows back has elements of about 1: gradients that cancel out are compared with this size


class Call(nn.Module):
    """A function whose tensors are the inputs."""

    def __init__(self, function, arguments):
        super().__init__()
        self.function = function
        leaves, self.spec = pytree.tree_flatten(arguments)
        self.leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.where = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.tensors = [leaves[i] for i in self.where]

    def forward(self, *tensors):
        leaves = list(self.leaves)
        for i, tensor in zip(self.where, tensors):
            leaves[i] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)


def outcome_of(operator, sample, device, examine):
    """("equal" | "refused" | "wrong" | "not run" | "skipped", a reason)"""
    call = Call(operator.get_op(), ((sample.input, *sample.args), sample.kwargs))
    if any(t.layout != torch.strided or t.numel() == 0 for t in call.tensors):
        return "skipped", "sparse, or no elements"
    return examine(call, [t.detach().contiguous().requires_grad_(t.requires_grad) for t in call.tensors], device)


def exported(call, inputs, device):
    """An outcome through forge.export"""
    try:
        with torch.no_grad():
            expected = tensors_of(call(*inputs))
            model = forge.export(call, tuple(inputs))
    except Exception as error:
        return "refused", first_line(error)
    try:
        with model.session(device) as session:
            result = session.run(*inputs[:len(session.inputs)])
    except forge.Error as error:
        return "not run", first_line(error)
    got = [torch.as_tensor(result[port.name]) for port in session.outputs]
    if len(got) != len(expected):
        return "wrong", f"{len(got)} results instead of {len(expected)}"
    problems = [p for p in map(difference, got, expected) if p]
    return ("wrong", problems[0]) if problems else ("equal", "")


def with_gradients(function, inputs):
    """The tensors of a result, and those of the gradients where seeded ones flow back to its floats."""
    leaves = [t.detach().clone().requires_grad_(t.requires_grad) for t in inputs]
    results = tensors_of(function(*leaves))
    torch.manual_seed(7)
    of = [r for r in results if r.requires_grad]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    if not of or not wanted:
        return results, []
    seeds = [torch.randn(r.shape, dtype=r.dtype) for r in of]
    gradients = torch.autograd.grad(of, wanted, seeds, allow_unused=True)
    return [r.detach() for r in results], [g for g in gradients if g is not None]


def compiled(call, inputs, device):
    """An outcome through torch.compile, with gradients"""
    torch._dynamo.reset()
    fast = torch.compile(call, backend=backend.forge_backend, options={"device": device}, fullgraph=True, dynamic=False)
    try:
        expected, got = with_gradients(call, inputs), with_gradients(fast, inputs)
    except Exception as error:
        refusals = REFUSAL.findall(str(error))
        return "refused", "; ".join(refusals) or first_line(error)
    for what, ours, theirs in zip(("", "a gradient "), got, expected):
        if len(ours) != len(theirs):
            return "wrong", f"{len(ours)} {what or 'results'} instead of {len(theirs)}"
        for problem in filter(None, (difference(a, b, floor=GRADIENT if what else 1e-30) for a, b in zip(ours, theirs))):
            return "wrong", what + problem
    return "equal", ""


def samples_of(operator, dtype, limit, gradients):
    """The first samples of an operator, and every so many after them"""
    torch.manual_seed(5)
    found = list(operator.sample_inputs("cpu", dtype, requires_grad=gradients and operator.supports_autograd))
    return found[:: max(1, len(found) // limit)][:limit]


def main():
    """Prints a line for each operator that did not pass, and the sums; status 1 where one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", action="store_true", help="through torch.compile, with gradients")
    parser.add_argument("--samples", type=int, default=6, help="of each operator")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("filter", nargs="?", default="", help="a regular expression of names")
    options = parser.parse_args()
    dtype, sums = getattr(torch, options.dtype), collections.Counter()
    for operator in sorted(op_db, key=lambda o: o.full_name):
        name = operator.full_name
        if not re.search(options.filter, name) or RANDOM.search(name) or dtype not in operator.dtypes:
            continue
        examine = compiled if options.compile else exported
        samples = samples_of(operator, dtype, options.samples, options.compile)
        outcomes = [outcome_of(operator, s, options.device, examine) for s in samples]
        counts = collections.Counter(kind for kind, _ in outcomes)
        verdict = next((kind for kind in ("wrong", "not run") if counts[kind]), "passed" if counts["equal"] else "refused")
        sums[verdict] += 1
        reason = next((why for kind, why in outcomes if kind == verdict), "")
        if verdict != "passed" or counts["refused"]:
            part = "" if verdict != "passed" else next(why for kind, why in outcomes if kind == "refused")
            print(f"{name}: {verdict}, {dict(counts)}: {reason or part}"[:300], flush=True)
    print(f"{options.device}, {options.dtype}: {sum(sums.values())} operators, {dict(sums)}")
    sys.exit(1 if sums["wrong"] or not sums else 0)


if __name__ == "__main__":
    main()
