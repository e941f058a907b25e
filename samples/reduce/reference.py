"""Partial and total sums in NumPy: element i belongs to block (i // 256) % 100."""

import numpy as np

THREADS, BLOCKS = 256, 100


def reference(inputs):
    values = inputs["values"].astype(np.float64)
    block = np.arange(values.size) // THREADS % BLOCKS
    sums = np.bincount(block, weights=values, minlength=BLOCKS)
    return {
        "sums": sums.astype(np.float32),
        "finished": np.array([BLOCKS], np.uint32),
        "result": np.array([values.sum()], np.float32),
    }
