# SPDX-License-Identifier: Apache-2.0
"""Operators of the domain com.microsoft."""

import numpy as np

from operators.attention import packed
from operators.products import matmul_shapes
from operators.quantised import BYTES, scale, weights, words, zero_point
from operators.windows import window_attributes

F32 = (np.float32,)


def floats(g, shape, open_axes=(), low=-2, high=2):
    return g.new_value((), array=g.numbers(shape, np.float32, low, high), open_axes=list(open_axes))


def table(g, shape, low=-2, high=2):
    return g.constant(g.numbers(shape, np.float32, low, high))


# ---- activations, norms, products ----------------------------------------------------------------


def with_bias(biased):
    def generate(g):
        x = g.new_value(F32, least_rank=1, static_last=True)
        return [x, *([table(g, [x.array.shape[-1]])] if biased or g.chance(0.4) else [])], {}
    return generate


def one(g):
    return [g.new_value(F32, least_rank=1)], {}


def quick_gelu(g):
    return [g.new_value(F32, least_rank=1)], {"alpha": float(np.float32(g.rng.uniform(0.5, 2)))}


def fused_matmul(g):
    a, b = matmul_shapes(g)
    attributes = {"alpha": float(np.float32(g.rng.uniform(0.5, 2)))}
    if len(a) >= 2 and len(b) >= 2:
        for name, shape in (("transA", a), ("transB", b)):
            if g.chance(0.4):
                attributes[name] = 1
                shape[-2:] = shape[-1:-3:-1]
    return [floats(g, a), table(g, b)], attributes


def simplified_norm(g):
    width = int(g.rng.integers(2, 9))
    return [floats(g, [*g.shape(1, 2), width], [0]), table(g, [width])], {"axis": -1, "epsilon": 1e-5}


def skip_norm(subtract_mean):
    def generate(g):
        width = int(g.rng.integers(2, 9))
        shape = [int(e) for e in g.rng.integers(1, 4, 2)] + [width]
        inputs = [floats(g, shape, [0, 1]), floats(g, shape, [0, 1]), table(g, [width])]
        inputs += [table(g, [width]) for _ in range(int(g.rng.integers(0, 3 if subtract_mean else 2)))]
        return inputs, {"epsilon": 1e-5}
    return generate


def matmul_nbits(g):
    k, n, block = int(g.rng.integers(1, 70)), int(g.rng.integers(1, 20)), int(g.choose([16, 32, 64]))
    blocks = -(-k // block)
    packed_weights = g.constant(words(g, np.uint8, [n, blocks, block // 2]))
    inputs = [floats(g, [*g.shape(0, 1), int(g.rng.integers(1, 4)), k], [0]), packed_weights,
              table(g, [n * blocks], 0.01, 0.2)]
    if g.chance(0.4):
        inputs.append(g.constant(words(g, np.uint8, [n * ((blocks + 1) // 2)])))
    return inputs, {"K": k, "N": n, "bits": 4, "block_size": block}


def embed_layer_norm(g):
    batch, steps, width = (int(e) for e in g.rng.integers([1, 1, 2], [4, 6, 9]))
    ids = lambda most: g.new_value((), array=g.rng.integers(0, most, [batch, steps]).astype(np.int32))  # noqa: E731
    segments = g.chance(0.6)
    inputs = [ids(11), ids(2) if segments else None, table(g, [11, width]), table(g, [8, width]),
              table(g, [2, width]) if segments else None, table(g, [width]), table(g, [width])]
    if g.chance(0.5):
        lengths = g.rng.integers(1, steps + 1, batch)
        mask = (np.arange(steps) < lengths[:, None]).astype(np.int32)
        inputs.append(g.new_value((), array=mask))
    return inputs, {"epsilon": 1e-5}, 2


def fused_conv(g):
    kernel = [int(e) for e in g.rng.integers(1, 4, 2)]
    attributes, least = window_attributes(g, kernel, g.chance(0.3))
    inner, outer = int(g.rng.integers(1, 4)), int(g.rng.integers(1, 4))
    shape = [int(g.rng.integers(1, 3)), inner, *(int(e) for e in g.rng.integers(max(least, 3), 10, 2))]
    kinds = {"": None, "Relu": None, "Tanh": None, "Sigmoid": None, "LeakyRelu": [0.1], "Clip": [-0.5, 1.5],
             "HardSigmoid": [0.25, 0.4]}
    kind = g.choose(list(kinds))
    if kind:
        attributes["activation"] = kind
        if kinds[kind]:
            attributes["activation_params"] = kinds[kind]
    inputs = [floats(g, shape, [0, 2, 3]), table(g, [outer, inner, *kernel])]
    return inputs + ([table(g, [outer])] if g.chance(0.5) else []), attributes


# ---- attention -----------------------------------------------------------------------------------


def sizes(g):
    return (int(e) for e in g.rng.integers([1, 1, 1, 1, 1], [4, 4, 6, 7, 5]))


def heads_mask(g, batch, steps, keys):
    """How many keys of each sequence count, or which of them."""
    lengths = g.rng.integers(1, keys + 1, batch)
    each = np.arange(keys) < lengths[:, None]
    arrays = [lengths, each, np.broadcast_to(each[:, None], [batch, steps, keys])]
    return g.new_value((), array=np.ascontiguousarray(g.choose(arrays)).astype(np.int32), open_axes=[])


def attention(g):
    batch, heads, steps, width, past = sizes(g)
    inner = int(g.rng.integers(1, 9))
    hidden = heads * width
    cached, masked = g.chance(0.4), g.chance(0.5)
    # Here and below: a mask, or a cache, must not repeat an open extent.
    inputs = [floats(g, [batch, steps, inner], [] if cached or masked else [0, 1]), table(g, [inner, 3 * hidden]),
              table(g, [3 * hidden])]
    if masked:
        inputs.append(heads_mask(g, batch, steps, steps + (past if cached else 0)))
    if cached:
        inputs += [None] * (4 - len(inputs)) + [floats(g, [2, batch, heads, past, width])]
    return inputs, {"num_heads": heads, "unidirectional": int(g.chance(0.4))}, 2 if cached else 1


def multi_head_attention(g):
    batch, heads, steps, width, past = sizes(g)
    keys = int(g.rng.integers(1, 7))
    hidden = heads * width
    cached = g.chance(0.3)
    inputs = [floats(g, [batch, steps, hidden]), *(floats(g, [batch, keys, hidden]) for _ in range(2)),
              table(g, [3 * hidden]) if g.chance(0.5) else None]
    total = keys + (past if cached else 0)
    inputs.append(heads_mask(g, batch, steps, total) if g.chance(0.5) else None)
    inputs.append(table(g, [batch, heads, steps, total]) if g.chance(0.4) else None)
    if cached:
        inputs += [floats(g, [batch, heads, past, width]) for _ in range(2)]
    while inputs[-1] is None:
        inputs.pop()
    attributes = {"unidirectional": 1} if not cached and keys == steps and g.chance(0.4) else {}
    return inputs, attributes | {"num_heads": heads}, 3 if cached else 1


def group_query_attention(g):
    batch, kv_heads, steps, half, before = sizes(g)
    heads, width = kv_heads * int(g.rng.integers(1, 4)), 8 * half  # onnxruntime turns eight elements or more
    begins = g.chance(0.4)  # the first call: no keys before it
    steps = max(steps, 2) if begins else 1
    before = 0 if begins else before
    lengths = np.full(batch, before + steps) - (0 if begins else g.rng.integers(0, before + 1, batch))
    q, k, v = (floats(g, [batch, steps, h * width]) for h in (heads, kv_heads, kv_heads))
    if g.chance(0.3):
        q, k, v = floats(g, [batch, steps, (heads + 2 * kv_heads) * width]), None, None
    past = [floats(g, [batch, kv_heads, before, width]) for _ in range(2)]
    turns = g.chance(0.5)
    angles = [table(g, [before + steps + 3, width // 2], -1, 1) for _ in range(2)] if turns else []
    inputs = [q, k, v, *past, g.constant((lengths - 1).astype(np.int32)),
              g.constant(np.asarray([lengths.max()], np.int32)), *angles]
    attributes = {"num_heads": heads, "kv_num_heads": kv_heads, "do_rotary": int(turns)}
    if turns:
        attributes["rotary_interleaved"] = int(g.chance(0.4))
    if g.chance(0.3):
        attributes["local_window_size"] = int(g.rng.integers(1, 5))
    if g.chance(0.3):
        attributes["softcap"] = float(np.float32(g.rng.uniform(1, 4)))
    return inputs, attributes, 3


def rotary_embedding(g):
    batch, heads, steps = (int(e) for e in g.rng.integers(1, 4, 3))
    width = 8 * int(g.rng.integers(1, 4))
    array = g.numbers([batch, heads, steps, width], np.float32)
    three = g.chance(0.5)
    x = g.new_value((), array=packed(array) if three else array, open_axes=[0])
    if g.chance(0.5):
        positions = g.rng.integers(0, 3, [1])
    else:
        positions = g.rng.integers(0, steps + 3, [batch, steps])
    tables = [table(g, [steps + 3, width // 2], -1, 1) for _ in range(2)]
    return [x, g.index_operand(positions.astype(np.int64)), *tables], {"interleaved": int(g.chance(0.5))}


# ---- quantised -----------------------------------------------------------------------------------


def quantised(g, dtype, shape, open_axes=None):
    """A tensor of bytes, its scale and its zero point."""
    return [g.new_value((), array=words(g, dtype, shape), open_axes=open_axes), scale(g), zero_point(g, dtype)]


def result(g, dtype):
    return [scale(g, low=0.05), zero_point(g, dtype)]


def qlinear_unary(**attributes):
    def generate(g):
        dtype = g.choose(BYTES)
        made = {name: make(g) for name, make in attributes.items()}
        return quantised(g, dtype, g.shape(1)) + result(g, dtype), made
    return generate


def qlinear_binary(g):
    dtype, shape = g.choose(BYTES), g.shape(1)
    return quantised(g, dtype, shape) + quantised(g, dtype, g.broadcastable(shape)) + result(g, dtype), {}


def qlinear_softmax(g):
    dtype, shape = g.choose(BYTES), g.shape(1)
    made = {"axis": int(g.rng.integers(-len(shape), len(shape))), "opset": int(g.choose([12, 13]))}
    out = [g.constant(np.float32(1 / 255)), g.constant(np.asarray(0 if dtype == np.uint8 else -128, dtype))]
    return quantised(g, dtype, shape) + out, made


def qlinear_average_pool(g):
    kernel = [int(e) for e in g.rng.integers(1, 4, 2)]
    shape = [int(g.rng.integers(1, 3)), int(g.rng.integers(1, 4)), *(int(e) for e in g.rng.integers(4, 9, 2))]
    made = {"kernel_shape": kernel, "strides": [int(e) for e in g.rng.integers(1, 3, 2)]}
    if g.chance(0.5):
        made["pads"] = [int(g.rng.integers(0, k)) for k in kernel * 2]
        made["count_include_pad"] = int(g.chance(0.5))
    made["channels_last"] = int(g.chance(0.5))
    dtype = np.uint8
    return quantised(g, dtype, placed(shape, made), open_axes(made)) + result(g, dtype), made


def open_axes(made):
    return [0] if made["channels_last"] else [0, 2, 3]


def placed(shape, made):
    """[n, c, h, w], or [n, h, w, c] where the attributes say so."""
    return [shape[0], *shape[2:], shape[1]] if made["channels_last"] else shape


def qlinear_conv(g):
    kernel = [int(e) for e in g.rng.integers(1, 4, 2)]
    made, least = window_attributes(g, kernel, g.chance(0.3))
    made["channels_last"] = int(g.chance(0.5))
    made["group"], each, outer = (int(e) for e in g.rng.integers(1, 4, 3))
    shape = [int(g.rng.integers(1, 3)), made["group"] * each, *(int(e) for e in g.rng.integers(max(least, 3), 10, 2))]
    outer *= made["group"]
    x_type, w_type = g.choose([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    w = g.constant(weights(g, w_type, [outer, each, *kernel]))
    zero = zero_point(g, w_type) if g.chance(0.5) else g.constant(np.full([], 0 if w_type == np.int8 else 128, w_type))
    depth = float(each * kernel[0] * kernel[1]) ** 0.5
    inputs = [*quantised(g, x_type, placed(shape, made), [0]), w, scale(g), zero,
              scale(g, (), np.float32, 5 * depth, 20 * depth), zero_point(g, x_type)]
    if g.chance(0.5):
        inputs.append(g.constant(g.rng.integers(-2000, 2000, outer).astype(np.int32)))
    return inputs, made


def qlinear_global_average_pool(g):
    dtype = g.choose(BYTES)
    shape = [int(g.rng.integers(1, 3)), int(g.rng.integers(1, 4)), *(int(e) for e in g.rng.integers(2, 9, 2))]
    made = {"channels_last": int(g.chance(0.5))}
    return quantised(g, dtype, placed(shape, made), open_axes(made)) + result(g, dtype), made


def qlinear_concat(g):
    dtype, shape = g.choose(BYTES), g.shape(1)
    axis = int(g.rng.integers(0, len(shape)))
    inputs = result(g, dtype)
    for _ in range(int(g.rng.integers(1, 4))):
        one_shape = [int(g.rng.integers(1, 5)) if a == axis else e for a, e in enumerate(shape)]
        inputs += quantised(g, dtype, one_shape, [])
    return inputs, {"axis": axis}


def qlinear_where(g):
    dtype, shape = g.choose(BYTES), g.shape(1)
    condition = g.new_value((np.bool_,), shape=shape, open_axes=[])
    return [condition, *quantised(g, dtype, shape, []), *quantised(g, dtype, shape, []), *result(g, dtype)], {}


def qgemm(g):
    m, k, n = (int(e) for e in g.rng.integers(1, 9, 3))
    made = {"transA": int(g.chance(0.4)), "transB": int(g.chance(0.4)), "alpha": float(np.float32(g.rng.uniform(0.5, 2)))}
    a, b = [k, m] if made["transA"] else [m, k], [n, k] if made["transB"] else [k, n]
    a_type, b_type = g.choose([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    inputs = [*quantised(g, a_type, a, []), g.constant(weights(g, b_type, b)), scale(g), zero_point(g, b_type)]
    inputs.append(g.constant(g.rng.integers(-999, 999, [n]).astype(np.int32)) if g.chance(0.5) else None)
    if g.chance(0.6):
        inputs += result(g, a_type)
    elif inputs[-1] is None:
        inputs.pop()
    return inputs, made


def dynamic_quantize_matmul(g):
    m, k, n = (int(e) for e in g.rng.integers(1, 9, 3))
    dtype = g.choose(BYTES)
    inputs = [floats(g, [m, k], [0]), g.constant(weights(g, dtype, [k, n])), scale(g), zero_point(g, dtype)]
    return inputs + ([table(g, [n])] if g.chance(0.4) else []), {}


def matmul_integer_to_float(g):
    m, k, n = (int(e) for e in g.rng.integers(1, 9, 3))
    a_type, b_type = g.choose([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    a = g.new_value((), array=words(g, a_type, [m, k]), open_axes=[0])
    inputs = [a, g.constant(weights(g, b_type, [k, n])), scale(g), scale(g), zero_point(g, a_type), zero_point(g, b_type)]
    return inputs + ([table(g, [n])] if g.chance(0.4) else []), {}


MICROSOFT = {
    "Attention": attention,
    "BiasGelu": with_bias(True),
    "DynamicQuantizeMatMul": dynamic_quantize_matmul,
    "EmbedLayerNormalization": embed_layer_norm,
    "FastGelu": with_bias(False),
    "FusedConv": fused_conv,
    "FusedMatMul": fused_matmul,
    "Gelu": one,
    "GroupQueryAttention": group_query_attention,
    "MatMulIntegerToFloat": matmul_integer_to_float,
    "MatMulNBits": matmul_nbits,
    "MultiHeadAttention": multi_head_attention,
    "QGemm": qgemm,
    "QLinearAdd": qlinear_binary,
    "QLinearAveragePool": qlinear_average_pool,
    "QLinearConcat": qlinear_concat,
    "QLinearConv": qlinear_conv,
    "QLinearGlobalAveragePool": qlinear_global_average_pool,
    "QLinearLeakyRelu": qlinear_unary(alpha=lambda g: float(np.float32(g.rng.uniform(0.01, 0.5)))),
    "QLinearMul": qlinear_binary,
    "QLinearSigmoid": qlinear_unary(),
    "QLinearSoftmax": qlinear_softmax,
    "QLinearWhere": qlinear_where,
    "QuickGelu": quick_gelu,
    "RotaryEmbedding": rotary_embedding,
    "SkipLayerNormalization": skip_norm(True),
    "SkipSimplifiedLayerNormalization": skip_norm(False),
}
