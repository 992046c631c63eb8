# SPDX-License-Identifier: Apache-2.0
"""Random numbers: types and shapes are compared, numbers are not."""

import numpy as np
from onnx import TensorProto

from operators.common import FLOATS

RANDOM = frozenset("Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split())


def maybe_type(g):
    return {"dtype": g.choose([TensorProto.FLOAT, TensorProto.DOUBLE])} if g.chance(0.5) else {}


def bernoulli(g):
    types = {"dtype": g.choose([TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT32])} if g.chance(0.5) else {}
    return [g.new_value((np.float32,), low=0, high=1)], types


def multinomial(g):
    shape = [int(g.rng.integers(1, 4)), int(g.rng.integers(1, 6))]
    kind = {"dtype": g.choose([TensorProto.INT32, TensorProto.INT64])} if g.chance(0.6) else {}
    return [g.new_value((np.float32,), shape=shape)], {"sample_size": int(g.rng.integers(1, 9)), **kind}


def random_of_shape(g):
    return [], {"shape": g.shape(1), **maybe_type(g)}


def random_like(g):
    return [g.value(FLOATS[:3])], maybe_type(g)
