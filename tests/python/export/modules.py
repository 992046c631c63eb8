# SPDX-License-Identifier: Apache-2.0
"""The modules of modules.tsv, with seeded weights and inputs."""

import ast
import pathlib
import re
import zlib

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

TABLE = pathlib.Path(__file__).with_name("modules.tsv")
DTYPES = {"f32": torch.float32, "f16": torch.float16, "i64": torch.int64, "i8": torch.int8, "bool": torch.bool,
          "c64": torch.complex64}
EXTENTS = {"B": 2, "S": 5}  # of dimensions that vary; OTHER_EXTENTS are tried with the same model
OTHER_EXTENTS = {"B": 3, "S": 7}


class Expression(nn.Module):
    """An expression as a module: what nn.X(...) makes of numbers alone are its submodules."""

    def __init__(self, text, names):
        super().__init__()
        tree = _Hoist(self, names).visit(ast.parse(text, mode="eval"))
        self.names = names
        self.code = compile(ast.fix_missing_locations(tree), text, "eval")

    def forward(self, *inputs):
        return eval(self.code, {"torch": torch, "nn": nn, "F": F, "self": self, **dict(zip(self.names, inputs))})


class _Hoist(ast.NodeTransformer):
    def __init__(self, owner, names):
        self.owner, self.names = owner, names

    def visit_Call(self, node):
        called = ast.unparse(node.func)
        uses = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        if re.fullmatch(r"nn\.[A-Z]\w*", called) and not uses & set(self.names):
            name = f"m{len(list(self.owner.children()))}"
            setattr(self.owner, name, eval(ast.unparse(node), {"nn": nn, "torch": torch}).eval())
            return ast.parse(f"self.{name}", mode="eval").body
        return self.generic_visit(node)


def _filled(kind, dtype, shape, generator):
    numbers = torch.randn(shape, generator=generator)
    if kind is None and dtype == "c64":
        return torch.complex(numbers, torch.randn(shape, generator=generator))
    span = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", kind or "")
    if span:
        numbers = torch.randint(int(span[1]), int(span[2]) + 1, shape, generator=generator)
    elif kind == "unit":
        numbers = torch.rand(shape, generator=generator) * 0.98 + 0.01
    elif kind == "pos":
        numbers = numbers.abs() + 0.1
    elif kind == "pm1":
        numbers = numbers.sign()
    elif kind == "bin":
        numbers = (numbers > 0).float()
    elif kind == "half_zero":
        numbers = numbers * (torch.rand(shape, generator=generator) > 0.5)
    elif kind == "2of4":
        numbers = numbers * torch.tensor([1.0, 0.0, 1.0, 0.0]).repeat(shape[-1] // 4)
    return numbers.to(DTYPES[dtype])


def _input(text, extents, generator):
    """(name, tensor, names of its dimensions by axis)"""
    match = re.fullmatch(r"(\w+):(\w+)\[([^\]]*)\](?:\{(.*)\}|=(.*))?", text)
    name, dtype, dims, kind, given = match.groups()
    dims = [d.strip() for d in dims.split(",") if d.strip()]
    shape = [extents[d] if d in extents else int(d) for d in dims]
    symbols = {i: d for i, d in enumerate(dims) if d in extents}
    if given in ("tril", "triu1"):
        ones = torch.ones(shape)
        return name, (torch.tril(ones) if given == "tril" else torch.triu(ones, 1)).bool(), symbols
    if given:
        return name, torch.tensor(ast.literal_eval(given)).to(DTYPES[dtype]).reshape(shape), symbols
    return name, _filled(kind, dtype, shape, generator), symbols


class Case:
    """A row of the table."""

    def __init__(self, identifier, expression, inputs):
        self.id, self.expression = identifier, expression
        text, _, self.dynamic = inputs.partition("; dynamic ")
        self.inputs = re.findall(r"\w+:\w+\[[^\]]*\](?:\{[^}]*\}|=\[\[.*?\]\]|=\[[^\]]*\]|=\w+)?", text)
        self.seed = zlib.crc32(identifier.encode()) % 2**31

    def tensors(self, extents=None):
        """(name, tensor, names of its dimensions by axis) of each input"""
        generator = torch.Generator().manual_seed(self.seed)
        return [_input(text, extents or EXTENTS, generator) for text in self.inputs]

    def module(self):
        """The module, in evaluation mode, with weights of its own seed."""
        torch.manual_seed(self.seed)
        return Expression(self.expression, [name for name, _, _ in self.tensors()]).eval()

    def dynamic_shapes(self):
        """As torch.export takes them; None where nothing varies."""
        if not self.dynamic:
            return None
        dims = {name: Dim(name) for name in EXTENTS}
        return (tuple({axis: dims[d] for axis, d in symbols.items()} for _, _, symbols in self.tensors()),)


def cases():
    """All rows."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [Case(*line.split("\t")) for line in lines[1:]]
