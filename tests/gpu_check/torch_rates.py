#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times of PyTorch on the first CUDA device, for tests/gpu_check: a JSON object of name to microseconds."""

import json

import torch
import torch.nn.functional as F

TIMES = {}


def time(name, f, runs=20):
    for _ in range(5):
        f()
    torch.cuda.synchronize()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
    events[0].record()
    for event in events[1:]:
        f()
        event.record()
    torch.cuda.synchronize()
    times = sorted(a.elapsed_time(b) for a, b in zip(events, events[1:]))
    TIMES[name] = times[runs // 2] * 1e3


def tensor(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = False
    for name, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16), ("f32", torch.float32)):
        for n in (1024, 2048, 4096):
            a, b = tensor(n, n, dtype=dtype), tensor(n, n, dtype=dtype)
            time(f"matmul({name}[{n}, {n}], {name}[{n}, {n}])", lambda: a @ b)
    row, square = tensor(1, 4096), tensor(4096, 4096)
    time("matmul(f32[1, 4096], f32[4096, 4096])", lambda: row @ square)
    for name, dtype, shape in (("f32", torch.float32, (12, 256, 32)), ("f32", torch.float32, (8, 1024, 64)),
                               ("f16", torch.float16, (8, 1024, 64))):
        q = tensor(1, *shape, dtype=dtype)
        text = name + "[" + ", ".join(map(str, shape)) + "]"
        time(f"attention({text}, {text}, {text})", lambda: F.scaled_dot_product_attention(q, q, q))
    time("softmax(f32[4096, 4096])", lambda: F.softmax(square, -1))
    time("reduce{axes = [0]}(f32[4096, 4096])", lambda: square.sum(0))
    time("reduce{axes = [1]}(f32[4096, 4096])", lambda: square.sum(1))
    x, w = tensor(1024, 384), tensor(384)
    time("layer_norm(f32[1024, 384], f32[384], f32[384])", lambda: F.layer_norm(x, (384,), w, w))
    picture, weights = tensor(1, 64, 56, 56), tensor(64, 64, 3, 3)
    time("conv{padding = [1, 1, 1, 1]}(f32[1, 64, 56, 56], f32[64, 64, 3, 3])",
         lambda: F.conv2d(picture, weights, padding=1))
    large = torch.empty(1 << 28, device="cuda")
    other = torch.empty_like(large)
    time("copy of 1 GiB", lambda: other.copy_(large))
    try:
        from transformers import BertConfig, BertModel
        config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        model = BertModel(config).eval().cuda()
        for batch, length in ((1, 16), (32, 256)):
            ids = torch.randint(0, 30000, (batch, length), device="cuda")
            mask = torch.ones_like(ids)
            with torch.no_grad():
                time(f"minilm {batch}x{length}, eager", lambda: model(ids, attention_mask=mask))
        compiled = torch.compile(model)
        with torch.no_grad():
            time(f"minilm {batch}x{length}, torch.compile", lambda: compiled(ids, attention_mask=mask))
    except ImportError:
        pass
    print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name(), "us": TIMES}))


if __name__ == "__main__":
    main()
