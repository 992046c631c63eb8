#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the test cases of ops, and their gradients, with PyTorch: goldens that share no code with Forge.

  python3 -m venv ~/.cache/forge/goldens-venv
  ~/.cache/forge/goldens-venv/bin/pip install -r tests/goldens/requirements.txt
  ~/.cache/forge/goldens-venv/bin/python tests/goldens/make_goldens.py

Asks build/release/bin/forge-ops-doc --cases for the cases and writes tests/goldens/goldens.npz:
  f64, i64   all numbers, one after the other; booleans and integers are in i64, complex numbers are two in f64
  index      JSON: for each case its text and where its operands, results and gradients lie (of a result that
             PyTorch does not give: null)
Inputs are part of the file, so that a golden holds while the list of cases changes. Cases that PyTorch has no
counterpart for are counted by op.
"""

import argparse
import collections
import json
import math
import operator
import pathlib
import re
import subprocess
import sys

import numpy as np
import torch
import torch.nn.functional as F

from torch_ops.common import DTYPES, NotInTorch, parse, require
from torch_ops.composites import blocks, diff, one_hot
from torch_ops.elementwise import (
    bit_cast, cast, clamp, divide, fake_quantize, hard_swish, one_sided, prelu, selu, shrink, sign, softplus,
)
from torch_ops.fourier import dft, fourier, nan_in_both, overflowing
from torch_ops.losses import (
    bce_with_logits, binary_cross_entropy, cosine_similarity, cross_entropy, cross_entropy_of_probabilities,
    ctc_loss, gaussian_nll_loss, kl_div, log_softmax_at, multi_margin_loss, multilabel_soft_margin_loss, nll_loss,
    poisson_nll_loss, regression, soft_margin_loss, triplet_margin_loss,
)
from torch_ops.movement import (
    embedding, embedding_bag, embedding_renorm, gather, gather_elements, gather_nd, index_add, index_copy,
    index_fill, index_key, index_put, index_reduce, nonzero, pad, put, scatter, scatter_nd, scatter_reduce, slice_,
    wrapped,
)
from torch_ops.recurrent import gru_cell, layer, lstm_cell, rnn_cell, steps, steps_gradient
from torch_ops.reductions import (
    batch_norm_training, local_response_norm, logsumexp, over_axes, spread, standard_deviation, truth, vector_norm,
)
from torch_ops.sums import (
    Digamma, adaptive, affine_grid, arg_reduce, attention, attention_gradient, batch_norm, conv, conv_integer,
    conv_transpose, conv_weight_gradient, fill, fmod, folded, grid_sample, instance_norm, iota, layer_norm,
    layer_norm_gradient, lp_pool, matmul, matmul_integer, max_pool_gradient, max_unpool, median, mul_high, polygamma,
    pool, quantile, reduce, remainder, resize, rms_norm, roi_align, scan, scan_with_index, softmax, softmax_statistics,
    strided_gather, sum_pool, update_slice,
)
from torch_ops.tokens import (
    axial_rotary_embedding, grouped_matmul, histogram, log_mel, random_uniform, rotary_embedding, sample_token,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Other ops without attributes are the function of PyTorch that their source names.
OPS = {
    "adaptive_avg_pool": adaptive("avg"),
    "adaptive_max_pool": adaptive("max"),
    "add_matmul": lambda a, c, x, y: a["beta"] * (c if a["beta"] else torch.zeros_like(c)) + a["alpha"] * (x @ y),
    "affine_grid": affine_grid,
    "all": over_axes(truth(torch.all)),
    "any": over_axes(truth(torch.any)),
    "arg_reduce": arg_reduce,
    "arg_sort": lambda a, x: torch.argsort(x, dim=a["axis"], descending=a["descending"], stable=True),
    "atan": nan_in_both(torch.atan),
    "atanh": nan_in_both(torch.atanh),
    "attention": attention, "attention_gradient": attention_gradient,
    "axial_rotary_embedding": axial_rotary_embedding,
    "batch_norm": batch_norm,
    "batch_norm_training": batch_norm_training,
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": bce_with_logits,
    "broadcast_to": lambda a, x: x.broadcast_to(a["shape"]),
    "bit_cast": bit_cast,
    "cast": cast,
    "celu": lambda a, x: F.celu(x, a["alpha"]),
    "clamp": clamp,
    "concat": lambda a, *xs: torch.cat(xs, a["axis"]),
    "conv": conv,
    "conv_integer": conv_integer,
    "conv_transpose": conv_transpose,
    "conv_weight_gradient": conv_weight_gradient,
    "cosine_embedding_loss": lambda a, x, y, t: F.cosine_embedding_loss(x, y, t, a["margin"], reduction=a["reduction"]),
    "cosine_similarity": cosine_similarity,
    "cross_entropy": cross_entropy,
    "cross_entropy_of_probabilities": cross_entropy_of_probabilities,
    "ctc_loss": ctc_loss,
    "depth_to_space": blocks(torch.pixel_shuffle, "up"),
    "dft": dft,
    "diagonal": lambda a, x: torch.diagonal(x, a["offset"], a["axis1"], a["axis2"]),
    "diff": diff,
    "digamma": lambda a, x: Digamma.apply(x),
    "div": divide,
    "einsum": lambda a, *xs: torch.einsum(a["equation"], *xs),
    "elu": lambda a, x: F.elu(x, a["alpha"]),
    "embedding": embedding,
    "embedding_bag": embedding_bag,
    "embedding_renorm": embedding_renorm,
    "fake_quantize": fake_quantize,
    "fft": fourier(torch.fft.fftn, torch.fft.ifftn),
    "fill": fill,
    "flip": lambda a, x: torch.flip(x, a["axes"]),
    "floor_divide": lambda a, x, y: torch.floor_divide(x.detach(), y.detach()),
    "fmod": fmod,
    "fold": lambda a, x: F.fold(x, a["sizes"], *folded(a)),
    "gather": gather,
    "gather_elements": gather_elements,
    "gather_nd": gather_nd,
    "gaussian_nll_loss": gaussian_nll_loss,
    "gelu": lambda a, x: F.gelu(x, approximate="tanh" if a["tanh_form"] else "none"),
    "glu": lambda a, x: F.glu(x, a["axis"]),
    "grid_sample": grid_sample,
    "group_norm": lambda a, x, gamma=None, beta=None: F.group_norm(x, a["groups"], gamma, beta, a["epsilon"]),
    "grouped_matmul": grouped_matmul,
    "gru": layer(lambda a: torch.gru, 1),
    "gru_steps": steps(gru_cell, 1),
    "hard_sigmoid": lambda a, x: torch.clamp(a["alpha"] * x + a["beta"], 0, 1),
    "hard_swish": hard_swish,
    "hinge_embedding_loss": regression("hinge_embedding_loss", ("margin", "margin")),
    "histogram": histogram,
    "huber_loss": regression("huber_loss", ("delta", "delta")),
    "index": lambda a, x, *indices: x[tuple(index_key(a, x, indices))],
    "index_add": index_add,
    "index_copy": index_copy,
    "index_fill": index_fill,
    "index_put": index_put,
    "index_reduce": index_reduce,
    "instance_norm": instance_norm,
    "iota": iota,
    "irfft": fourier(None, torch.fft.irfftn),
    "is_inf": one_sided,
    "kl_div": kl_div,
    "kth_value": lambda a, x: torch.kthvalue(x, a["k"], a["axis"], a["keep_dims"]).values,
    "l1_loss": regression("l1_loss"),
    "layer_norm": layer_norm,
    "layer_norm_gradient": layer_norm_gradient,
    "leaky_relu": lambda a, x: F.leaky_relu(x, a["slope"]),
    "local_response_norm": local_response_norm,
    "log_mel": log_mel,
    "log_softmax": lambda a, x: F.log_softmax(x, a["axis"]), "log_softmax_at": log_softmax_at,
    "log_sum_exp": over_axes(logsumexp),
    "lp_pool": lp_pool,
    "lstm": layer(lambda a: torch.lstm, 2),
    "lstm_steps": steps(lstm_cell, 2),
    "lookup": lambda a, x, table: table[x.long()],
    "margin_ranking_loss": regression("margin_ranking_loss", ("margin", "margin")),
    "masked_fill": lambda a, x, mask: torch.masked_fill(x, mask, a["value"]),
    "matmul": matmul,
    "matmul_integer": matmul_integer,
    "max_pool": lambda a, x: pool({**a, "kind": "max", "indices": True}, x),
    "max_pool_gradient": max_pool_gradient, "max_unpool": max_unpool,
    "median": median,
    "mode": lambda a, x: torch.mode(x, a["axis"], a["keep_dims"]).values,
    "mse_loss": regression("mse_loss"),
    "mul_high": mul_high,
    "multi_margin_loss": multi_margin_loss,
    "multilabel_margin_loss": lambda a, x, t: F.multilabel_margin_loss(x, t.long(), reduction=a["reduction"]),
    "multilabel_soft_margin_loss": multilabel_soft_margin_loss,
    "nll_loss": nll_loss,
    "nonzero": nonzero,
    "not": lambda a, x: torch.bitwise_not(x),
    "one_hot": one_hot,
    "pad": pad,
    "pairwise_distance": lambda a, x, y: F.pairwise_distance(x, y, a["p"], a["epsilon"], a["keep_dims"]),
    "poisson_nll_loss": poisson_nll_loss,
    "polygamma": polygamma,
    "pool": pool,
    "prelu": prelu,
    "put": put,
    "quantile": quantile,
    "random_uniform": random_uniform,
    "reduce": reduce,
    "remainder": remainder,
    "reshape": lambda a, x: x.reshape(a["shape"]),
    "resize": resize,
    "rfft": fourier(torch.fft.rfftn, None),
    "rms_norm": rms_norm,
    "rnn": layer(lambda a: getattr(torch, "rnn_" + a["activation"]), 1),
    "rnn_steps": steps(rnn_cell, 1),
    "roi_align": roi_align,
    "roll": lambda a, x: torch.roll(x, a["shifts"], a["axes"] or None),
    "rotary_embedding": rotary_embedding,
    "sample_token": sample_token,
    "scan": scan,
    "scan_with_index": scan_with_index,
    "scatter": scatter,
    "scatter_nd": scatter_nd,
    "scatter_reduce": scatter_reduce,
    "selu": selu,
    "shape_of": lambda a, x: torch.tensor(x.shape, dtype=torch.int64),
    "shrink": shrink,
    "sigmoid": overflowing(torch.sigmoid),
    "sign": sign,
    "silu": overflowing(F.silu, -sys.float_info.max),
    "slice": slice_,
    "smooth_l1_loss": regression("smooth_l1_loss", ("beta", "beta")),
    "soft_margin_loss": soft_margin_loss,
    "softmax": softmax, "softmax_statistics": softmax_statistics,
    "softplus": softplus,
    "sort": lambda a, x: tuple(torch.sort(x, dim=a["axis"], descending=a["descending"], stable=True)),
    "space_to_depth": blocks(torch.pixel_unshuffle, "down"),
    "stack": lambda a, *xs: torch.stack(xs, a["axis"]),
    "standard_deviation": over_axes(spread(standard_deviation)),
    "strided_gather": strided_gather,
    "steps_gradient": steps_gradient,
    "sum_pool": sum_pool,
    "take": lambda a, x, indices: torch.take(x, wrapped(indices, x.numel())),
    "tensor_dot": lambda a, x, y: torch.tensordot(x, y, (a["axes_a"], a["axes_b"])),
    "threshold": lambda a, x: F.threshold(x, a["threshold"], a["value"]),
    "tile": lambda a, x: torch.tile(x, a["repeats"]),
    "top_k": lambda a, x: torch.topk(x, a["k"], a["axis"], a["largest"]).values,
    "transpose": lambda a, x: x.permute(a["permutation"]),
    "triangle": lambda a, x: (torch.triu if a["upper"] else torch.tril)(x, a["diagonal"]),
    "triplet_margin_loss": triplet_margin_loss,
    "unfold": lambda a, x: F.unfold(x, *folded(a)),
    "update_slice": update_slice,
    "variance": over_axes(spread(torch.var)),
    "vector_norm": over_axes(vector_norm),
}


def function_of(case):
    """Takes attributes and operands.  errors: NotInTorch"""
    named = re.search(r"torch\.([\w.]+)", case["source"])
    if case["op"] in OPS:
        return OPS[case["op"]]
    require(named and not case["attributes"])
    function = operator.attrgetter(named[1])(torch)
    return lambda a, *operands: function(*operands)


def tensor_of(operand):
    if operand is None:
        return None
    require(operand["dtype"] in DTYPES)
    numbers = operand["numbers"]
    if operand["dtype"] == "f64":
        numbers = [float.fromhex(n) for n in numbers]
    if operand["dtype"] == "c128":
        numbers = [complex(*map(float.fromhex, n)) for n in numbers]
    return torch.tensor(numbers, dtype=DTYPES[operand["dtype"]]).reshape(operand["shape"])


def cotangent(shape):
    """The same numbers as goldens_test.cc feeds to a gradient."""
    count = math.prod(shape)
    return (0.5 + 0.5 * torch.arange(count, dtype=torch.float64).remainder(7) / 7).reshape(shape)


class Writer:
    """Numbers of all cases, one after the other."""

    def __init__(self):
        self.numbers = {"f64": [], "i64": []}
        self.index = []

    def place(self, tensor):
        if tensor is None:
            return None
        name = next(name for name, dtype in DTYPES.items() if dtype == tensor.dtype)
        shape = list(tensor.shape)
        tensor = torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()
        floats = tensor.dtype.is_floating_point
        pool = self.numbers["f64" if floats else "i64"]
        at = len(pool)
        pool += tensor.to(torch.float64 if floats else torch.int64).reshape(-1).tolist()
        return {"dtype": name, "shape": shape, "at": at}

    def add(self, case, operands, results, gradients):
        self.index.append({"case": case["case"], "op": case["op"], "operands": [self.place(t) for t in operands],
                           "results": [self.place(t) for t in results],
                           "gradients": [self.place(t) for t in gradients]})

    def save(self, path):
        text = json.dumps(self.index, separators=(",", ":")).encode()
        np.savez_compressed(path, f64=np.array(self.numbers["f64"], np.float64),
                            i64=np.array(self.numbers["i64"], np.int64), index=np.frombuffer(text, np.uint8))


def compute(case):
    """Operands, results and gradients (of the first result) of a case.  errors: NotInTorch"""
    function = function_of(case)
    attributes = {name: parse(text) for name, text in case["attributes"].items()}
    operands = [tensor_of(operand) for operand in case["operands"]]
    wanted = [t for t in operands if t is not None and t.dtype == torch.float64]
    differentiable = case["gradient"] and not case["edges"] and bool(wanted)
    for tensor in wanted:
        tensor.requires_grad_(differentiable)
    try:
        results = function(attributes, *operands)
        results = results if isinstance(results, (tuple, list)) else [results]
        result, gradients = results[0], []
        if differentiable and result.requires_grad and result.dtype == torch.float64:
            found = torch.autograd.grad(result, wanted, cotangent(result.shape), allow_unused=True)
            gradients = [torch.zeros_like(t) if g is None else g for t, g in zip(wanted, found)]
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        raise NotInTorch(str(error)) from error
    return operands, results, gradients


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", default=str(ROOT / "build/release/bin/forge-ops-doc"), help="the program")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/goldens/goldens.npz")
    options = parser.parse_args()
    lines = subprocess.run([options.cases, "--cases"], check=True, stdout=subprocess.PIPE).stdout.splitlines()
    writer, absent, reasons = Writer(), collections.Counter(), {}
    for case in map(json.loads, lines):
        try:
            writer.add(case, *compute(case))
        except NotInTorch as reason:
            absent[case["op"]] += 1
            reasons[case["op"]] = str(reason).split("\n")[0]
    writer.save(options.out)
    made = collections.Counter(entry["op"] for entry in writer.index)
    gradients = sum(bool(entry["gradients"]) for entry in writer.index)
    print(f"{len(writer.index)} cases of {len(made)} ops with PyTorch {torch.__version__}, {gradients} with gradients: "
          f"{options.out.stat().st_size} bytes")
    for op, count in sorted(absent.items()):
        print(f"  without a counterpart: {count} cases of {op}{': ' + reasons[op] if reasons[op] else ''}")


if __name__ == "__main__":
    sys.exit(main())
