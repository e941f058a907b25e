"""Mirroring and running sums in NumPy; axes are z, y, x, component."""

import numpy as np


def reference(inputs):
    mirrored = inputs["volume"][:, :, ::-1]
    return {"volume": mirrored, "layers": np.cumsum(mirrored, axis=0, dtype=np.int32)}
