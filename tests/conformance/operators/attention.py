# SPDX-License-Identifier: Apache-2.0
"""Attention, and what models with caches have beside it."""

import numpy as np

WIDE = (np.float32, np.float32, np.float32, np.float16, np.float64)


def packed(array):
    """[batch, heads, steps, width] as [batch, steps, heads * width]."""
    batch, heads, steps, width = array.shape
    return np.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(batch, steps, heads * width)


def mask_of(g, shape, dtype):
    """Numbers to add or truths, of a shape that broadcasts; each row lets its first key through."""
    shape = [e if g.chance(0.7) else 1 for e in shape[:-1]] + shape[-1:]
    shape = shape[int(g.rng.integers(0, 3)):]
    if g.chance(0.5):
        return g.numbers(shape, dtype, -2, 2)
    mask = g.rng.random(shape) < 0.6
    mask[..., 0] = True
    return mask


def attention(g):
    batch, kv_heads, group, steps, keys, width, v_width, past = (
        int(n) for n in g.rng.integers([1, 1, 1, 1, 1, 1, 1, 1], [3, 3, 4, 6, 7, 7, 7, 5]))
    dtype = np.dtype(g.choose(WIDE))
    heads, three = kv_heads * group, g.chance(0.4)
    v_width = width if g.chance(0.5) else v_width
    arrays = [g.numbers([batch, h, n, w], dtype, -2, 2)
              for h, n, w in ((heads, steps, width), (kv_heads, keys, width), (kv_heads, keys, v_width))]
    arrays = [packed(a) for a in arrays] if three else arrays
    has_mask = g.chance(0.5)
    # A mask must not repeat an open extent.
    inputs = [g.new_value((), array=a, open_axes=[] if has_mask else [0, 1 if three else 2]) for a in arrays]
    attributes = {"q_num_heads": heads, "kv_num_heads": kv_heads} if three else {}
    cached = g.chance(0.4)
    valid = not cached and g.opset >= 24 and g.chance(0.4)
    total = keys + (past if cached else 0)
    optional = [None] * 4
    if has_mask:
        mask = mask_of(g, [batch, heads, steps, total], dtype)
        optional[0] = g.constant(mask) if g.chance(0.5) else g.new_value((), array=mask, static=True)
    if cached:
        optional[1:3] = [g.new_value((), array=g.numbers([batch, kv_heads, past, w], dtype, -2, 2),
                                     open_axes=[] if has_mask else [0, 2])
                         for w in (width, v_width)]
    if valid:
        optional[3] = g.index_operand(g.rng.integers(min(steps, keys), keys + 1, batch).astype(np.int64))
    while optional and optional[-1] is None:
        optional.pop()
    if g.chance(0.4):
        attributes["is_causal"] = 1
    if g.chance(0.4):
        attributes["scale"] = float(np.float32(g.rng.uniform(0.2, 1.5)))
    if g.chance(0.3):
        attributes["softcap"] = float(np.float32(g.rng.uniform(1, 4)))
    outputs = 1 if valid or g.chance(0.4) else 3
    if outputs == 3 and g.chance(0.4):
        attributes["qk_matmul_output_mode"] = int(g.rng.integers(0, 4))
        outputs = 4
    return inputs + optional, attributes, outputs


def rotary_embedding(g):
    batch, heads, steps = (int(n) for n in g.rng.integers(1, 5, 3))
    width = 2 * int(g.rng.integers(1, 5))
    dtype = np.dtype(g.choose((np.float32, np.float32, np.float16)))
    attributes = {"interleaved": int(g.rng.integers(0, 2))}
    rotated = width
    if g.chance(0.3):
        rotated = attributes["rotary_embedding_dim"] = 2 * int(g.rng.integers(1, width // 2 + 1))
    three = g.chance(0.4)
    if three or rotated != width or g.chance(0.3):
        attributes["num_heads"] = heads
    array = g.numbers([batch, heads, steps, width], dtype)
    x = g.new_value((), array=packed(array) if three else array, open_axes=[0, 1 if three else 2])
    table = [int(g.rng.integers(steps, steps + 5))] if g.chance(0.6) else [batch, steps]
    caches = [g.numbers([*table, rotated // 2], dtype, -1, 1) for _ in range(2)]
    inputs = [x] + [g.constant(c) if g.chance(0.6) else g.new_value((), array=c, static=True) for c in caches]
    if len(table) == 1:
        positions = g.rng.integers(0, table[0], [batch, steps]).astype(np.int64)
        inputs.append(g.constant(positions) if g.chance(0.4) else g.new_value((), array=positions))
    return inputs, attributes


def linear_attention(g):
    batch, steps, kv_heads, group, width, v_width = (int(n) for n in g.rng.integers(1, 5, 6))
    heads, dtype = kv_heads * group, np.dtype(g.choose((np.float32, np.float32, np.float16)))
    rule = str(g.choose(["linear", "gated", "delta", "gated_delta"]))

    def rows(extent, low=-1, high=1):
        return g.new_value((), array=g.numbers([batch, steps, extent], dtype, low, high), open_axes=[0, 1])

    inputs = [rows(heads * width), rows(kv_heads * width), rows(kv_heads * v_width)]
    state = [batch, kv_heads, width, v_width]
    inputs.append(g.new_value((dtype.type,), shape=state, low=-1, high=1, static=True) if g.chance(0.5) else None)
    inputs.append(rows(kv_heads * (width if g.chance(0.5) else 1), -1, 0) if "gated" in rule else None)
    inputs.append(rows(kv_heads if g.chance(0.6) else 1, 0, 1) if "delta" in rule else None)
    while inputs[-1] is None:
        inputs.pop()
    attributes = {"q_num_heads": heads, "kv_num_heads": kv_heads, "update_rule": rule}
    if g.chance(0.4):
        attributes["scale"] = float(np.float32(g.rng.uniform(0.2, 1.5)))
    return inputs, attributes, 2


def causal_conv_with_state(g):
    batch, channels, steps, kernel = (int(n) for n in g.rng.integers(1, 6, 4))
    x = g.new_value((np.float32, np.float32, np.float16), shape=[batch, channels, steps], open_axes=[0, 2])
    dtype = x.array.dtype
    bias = g.constant(g.numbers([channels], dtype)) if g.chance(0.5) else None
    inputs = [x, g.constant(g.numbers([channels, 1, kernel], dtype)), bias]
    if g.chance(0.5):
        inputs.append(g.new_value((dtype.type,), shape=[batch, channels, kernel - 1], open_axes=[0]))
    elif bias is None:
        inputs.pop()
    return inputs, {"activation": str(g.choose(["none", "silu", "swish"]))}, 2


def tensor_scatter(g):
    rank = int(g.rng.integers(2, 5))
    shape = [int(n) for n in g.rng.integers(1, 6, rank)]
    axis = int(g.rng.integers(1, rank))
    longest, mode = shape[axis], str(g.choose(["linear", "circular"]))
    steps = int(g.rng.integers(1, longest + 1))
    x = g.new_value((np.float32, np.float16, np.int32, np.int64, np.int8), shape=shape, static=True)
    update = g.new_value((x.array.dtype.type,), shape=[*shape[:axis], steps, *shape[axis + 1:]], static=True)
    inputs = [x, update]
    if g.chance(0.7):
        most = longest - steps if mode == "linear" else longest - 1
        inputs.append(g.index_operand(g.rng.integers(0, most + 1, shape[0]).astype(np.int64)))
    return inputs, {"mode": mode, "axis": axis - (rank if g.chance(0.4) else 0)}
