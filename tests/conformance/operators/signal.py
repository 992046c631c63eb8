# SPDX-License-Identifier: Apache-2.0
"""Windows of signals, and their transforms."""

from onnx import helper
import numpy as np


def scalar(value, dtype=np.int64):
    return np.array(value, dtype)


def window(*dtypes):
    def generate(g):
        size = scalar(g.rng.integers(2, 20), g.choose((np.int64, np.int32)))  # of 1, onnxruntime divides 0 by 0
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(g.choose(dtypes)))
        return [g.constant(size)], {"periodic": int(g.rng.integers(0, 2)), "output_datatype": kind}

    return generate


def mel_weight_matrix(g):
    bins, length = int(g.rng.integers(1, 9)), int(g.choose([16, 32, 50, 64]))
    rate = int(g.choose([8000, 16000]))
    low, high = float(g.rng.integers(0, 300)), float(g.rng.integers(rate // 4, rate // 2 + 1))
    numbers = [scalar(bins), scalar(length), scalar(rate), scalar(low, np.float32), scalar(high, np.float32)]
    return [g.constant(n) for n in numbers], {"output_datatype": int(g.choose([1, 1, 11]))}


def dft(g):
    signal = g.shape(1, 3)
    parts = int(g.rng.integers(1, 3))
    inverse = int(g.chance(0.4))
    onesided = int(parts == 1 and not inverse and g.chance(0.5))
    shape = [int(g.rng.integers(1, 3)), *signal, parts]
    rank = len(shape)
    axis = int(g.rng.integers(0 if g.opset >= 20 else 1, rank - 1))
    x = g.new_value((np.float32, np.float32, np.float64), shape=shape,
                    open_axes=[a for a in range(rank - 1) if a != axis])
    attributes = {"inverse": inverse, "onesided": onesided}
    inputs = [x, g.constant(scalar(g.rng.integers(1, shape[axis] + 5))) if g.chance(0.4) else None]
    named = axis - (rank if g.chance(0.4) else 0)
    if g.opset < 20:
        attributes["axis"] = named
    else:
        inputs.append(g.constant(scalar(named)))
    while inputs[-1] is None:
        inputs.pop()
    return inputs, attributes


def stft(g):
    batch, length = int(g.rng.integers(1, 3)), int(g.rng.integers(8, 30))
    frame, step = int(g.rng.integers(2, 9)), int(g.rng.integers(1, 6))
    dtype = np.dtype(g.choose((np.float32, np.float32, np.float64)))
    parts = int(g.choose([1, 1, 1, 2]))
    x = g.new_value((dtype.type,), shape=[batch, length, parts], open_axes=[0])
    weights = g.constant(g.numbers([frame], dtype, 0.1, 1)) if g.chance(0.6) else None
    inputs = [x, g.constant(scalar(step)), weights]
    if weights is None or g.chance(0.5):
        inputs.append(g.constant(scalar(frame)))
    return inputs, {"onesided": int(parts == 1 and g.chance(0.6))}
