# SPDX-License-Identifier: Apache-2.0
"""Element types, and what generators share."""

import numpy as np

FLOATS = (np.float32, np.float32, np.float32, np.float16, np.float64)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
NUMBERS = FLOATS + FLOATS + SIGNED + UNSIGNED
ANYTHING = NUMBERS + (np.bool_, np.bool_)


def ints(values):
    return np.array(values, np.int64)
