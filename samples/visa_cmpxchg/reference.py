"""Both instructions in NumPy. The rows from 12 on lie outside the surface of words: they return zero."""

import numpy as np

ROWS = 12


def reference(inputs):
    fresh, comparand = inputs["fresh"], inputs["comparand"]
    enabled = (inputs["enabled"][:, None] >> np.arange(8) & 1).astype(bool)
    words = np.where(enabled & (comparand == 0), fresh, 0)[:ROWS].astype(np.uint32)
    old = np.where(enabled, 0, inputs["old"]).astype(np.uint32)
    halves = (0xFFFF + fresh.astype(np.uint64) & 0xFFFF).astype(np.uint16)
    return {"words": words, "halves": halves, "old_out": old, "half_out": np.full((16, 8), 0xFFFF, np.uint32)}
