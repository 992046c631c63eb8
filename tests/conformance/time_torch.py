#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the benchmark cases of reductions, scans, sorts, transforms, samples, resizes, histograms, embedding bags,
LSTMs, attention and its gradients on a device beside PyTorch, in turns, with the same number of threads; and the
selection of boxes, which has no benchmark case because it is a step on the host, beside torchvision.

  ~/.cache/forge/export-venv/bin/python tests/conformance/time_torch.py '^(sort|top_k|nms)'

The virtual environment is the one of tests/python/export. A case has the same element types, shapes and range of
numbers in both; the numbers differ. Both time the second of two runs after other work. The boxes are the same in both,
and a run of Forge is one of a whole session.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i32": torch.int32,
          "i64": torch.int64, "c64": torch.complex64, "c128": torch.complex128}


def scan(a, x):
    functions = {"sum": torch.cumsum, "prod": torch.cumprod, "max": torch.cummax, "min": torch.cummin,
                 "log_sum_exp": torch.logcumsumexp}
    return functions[a.get("kind", "sum")](x, a.get("axis", -1))


def reduce(a, x):
    functions = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}
    axes = a.get("axes") or list(range(x.ndim))
    if a.get("kind") == "prod":
        return torch.prod(x, axes[0], keepdim=True)
    return functions[a.get("kind", "sum")](x, axes, keepdim=True)


def fourier(function):
    def run(a, x):
        return function(x, None, a.get("axes", [-1]))

    return run


def dft(a, x):
    return (torch.fft.ifft if a.get("inverse") else torch.fft.fft)(x, dim=a.get("axis", -1))


def grid_sample(a, x, grid):
    kinds = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}
    return torch.nn.functional.grid_sample(x, grid / 4, kinds[a.get("kind", "linear")], a.get("padding", "zeros"),
                                           a.get("align_corners", False))


def embedding_bag(a, weight, indices):
    return torch.nn.functional.embedding_bag(indices, weight, mode=a.get("kind", "mean"))


def resize(a, x):
    modes = {"linear": {3: "linear", 4: "bilinear", 5: "trilinear"}[x.ndim], "cubic": "bicubic", "nearest": "nearest"}
    kind = a.get("kind", "nearest")
    corners = None if kind == "nearest" else a.get("coordinates") == "align_corners"
    return torch.nn.functional.interpolate(x, a["sizes"], mode=modes[kind], align_corners=corners)


def lstm_of(x, weight_x, weight_h, bias):
    return [torch.nn.LSTM(x.shape[2], weight_h.shape[2]), x]


def attention_gradient_of(q, k, v, log_sum, dy, delta):
    q, k, v, dy = (x[None] for x in (q, k, v, dy))
    return [dy, q, k, v, *torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)]


# How operands become those of PyTorch's function, outside of what is timed.
PREPARED = {
    "attention_gradient": attention_gradient_of,
    "dft": lambda re, im=None: [torch.complex(re, torch.zeros_like(re) if im is None else im)],
    "embedding_bag": lambda weight, indices: [weight, indices % weight.shape[0]],
    "lstm": lstm_of,
}

FUNCTIONS = {
    "arg_reduce": lambda a, x: (torch.argmin if a.get("kind") == "min" else torch.argmax)(x, a.get("axis", -1)),
    "attention": lambda a, *x: torch.nn.functional.scaled_dot_product_attention(*x),
    "attention_gradient":
        lambda a, *x: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(*x, 0.0, False),
    "dft": dft, "embedding_bag": embedding_bag,
    "histogram": lambda a, x: torch.histc(x, a["bins"], a["low"], a["high"]),
    "fft": fourier(torch.fft.fftn), "grid_sample": grid_sample, "lstm": lambda a, layer, x: layer(x),
    "reduce": reduce, "resize": resize,
    "rfft": fourier(torch.fft.rfftn), "scan": scan,
    "scan_with_index": lambda a, x: (torch.cummin if a.get("kind") == "min" else torch.cummax)(x, a.get("axis", -1)),
    "sort": lambda a, x: torch.sort(x, a.get("axis", -1), a.get("descending", False)),
    "top_k": lambda a, x: torch.topk(x, a["k"], a.get("axis", -1), a.get("largest", True)),
}


def parse(name):
    """The op, the attributes and the operands, of type and shape, of a case as forge-bench names it."""
    op, attributes, operands = re.fullmatch(r"(\w+)(?:\{(.*)\})?\((.*)\)", name).groups()
    values = {}
    for key, text in re.findall(r"(\w+) = (\[[^]]*\]|[^,]+)", attributes or ""):
        try:
            values[key] = json.loads(text)
        except json.JSONDecodeError:
            values[key] = text
    found = re.findall(r"(\w+)\[([^]]*)\]", operands)
    return op, values, [(DTYPES[dtype], [int(extent) for extent in shape.split(",")]) for dtype, shape in found]


def random(generator, dtype, shape):
    if dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=dtype)
    if dtype.is_floating_point:
        return (torch.rand(shape, generator=generator) * 8 - 4).to(dtype)
    bound = 10**18 if dtype == torch.int64 else 2**31
    return torch.randint(-bound, bound, shape, generator=generator).to(dtype)


def time_torch(name, seconds):
    op, attributes, operands = parse(name)
    generator = torch.Generator().manual_seed(1)
    values = [random(generator, dtype, shape) for dtype, shape in operands]
    values = PREPARED[op](*values) if op in PREPARED else values
    times = []
    other = torch.empty(2**24)  # leaves nothing of the op's in the caches
    end = time.perf_counter() + seconds
    while len(times) < 8 or time.perf_counter() < end:
        other.fill_(len(times))
        FUNCTIONS[op](attributes, *values)
        begin = time.perf_counter()
        FUNCTIONS[op](attributes, *values)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:]) * 1e6


def time_forge(options):
    command = [options.forge_bench, "ops", "--device", options.device, "--threads", str(options.threads), "--filter",
               options.filter, "--json"]
    out = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    return {case["name"]: case["time_us"] for case in out if re.match(r"\w+", case["name"])[0] in FUNCTIONS}


class Boxes(torch.nn.Module):
    def forward(self, boxes, scores):
        return torch.ops.torchvision.nms(boxes, scores, 0.5)


def median_us(function, times=15):
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        function()
        found.append(time.perf_counter() - begin)
    return statistics.median(found) * 1e6


def time_boxes(options, count):
    """Of `count` boxes in a square in which many overlap: microseconds of Forge and of torchvision."""
    os.environ.setdefault("FORGE_LIBRARY", str(pathlib.Path(options.forge_bench).parents[1] / "lib/libforge.so"))
    import forge
    import torchvision

    generator = torch.Generator().manual_seed(count)
    corner = torch.rand((count, 2), generator=generator) * 1000
    boxes = torch.cat([corner, corner + torch.rand((count, 2), generator=generator) * 100 + 10], 1)
    scores = torch.rand(count, generator=generator)
    session = forge.export(Boxes(), (boxes, scores)).session(device=options.device, threads=options.threads)
    kept = torch.as_tensor(next(iter(session.run(boxes, scores).values())))
    if not torch.equal(kept, torchvision.ops.nms(boxes, scores, 0.5)):
        raise SystemExit(f"other boxes of {count} are kept than torchvision keeps")
    return (median_us(lambda: session.run(boxes, scores)),
            median_us(lambda: torchvision.ops.nms(boxes, scores, 0.5)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("filter", help="regular expression of cases, as for forge-bench")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each case in each turn with PyTorch")
    parser.add_argument("--forge-bench", default=str(ROOT / "build/release/bin/forge-bench"))
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    ours, theirs = {}, {}
    for _ in range(options.turns):
        for name, us in time_forge(options).items():
            ours.setdefault(name, []).append(us)
            theirs.setdefault(name, []).append(time_torch(name, options.seconds))
        for count in (1000, 10000) if re.search(options.filter, "nms") else ():
            us = time_boxes(options, count)
            name = f"nms(f32[{count}, 4], f32[{count}])"
            ours.setdefault(name, []).append(us[0])
            theirs.setdefault(name, []).append(us[1])
    print(f"medians of {options.turns} turns in us, {options.threads} threads")
    print(f"{'case':60} torch {torch.__version__:12} forge {options.device:8} ratio")
    for name in ours:
        a, b = statistics.median(theirs[name]), statistics.median(ours[name])
        print(f"{name:60} {a:18.0f} {b:14.0f} {b / a:5.2f}")


if __name__ == "__main__":
    main()
