"""Prefix sums of each block of 256 values in NumPy."""

import numpy as np

BLOCK = 256


def reference(inputs):
    values = inputs["values"]
    starts = range(0, values.size, BLOCK)
    return {"sums": np.concatenate([np.cumsum(values[s : s + BLOCK], dtype=np.int32) for s in starts])}
