"""The box blur in NumPy: the sum of nine shifted copies of the padded picture."""

import numpy as np


def box(source, mode):
    padded = np.pad(source.astype(np.float64), 1, mode=mode)
    height, width = source.shape
    shifted = [padded[dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
    return (sum(shifted) / 9).astype(np.float32)


def reference(inputs):
    return {"clamped": box(inputs["source"], "edge"), "zeroed": box(inputs["source"], "constant")}
