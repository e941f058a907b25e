"""The colour discs in NumPy single precision, rounded to bytes as the manual's UNORM conversion does."""

import numpy as np

F32 = np.float32


def disc(u, v, cx, cy, radius):
    dx, dy = u - F32(cx), v - F32(cy)
    level = F32(1) - (dx * dx + dy * dy) / (F32(radius) * F32(radius))
    return np.where(level > 0, level * F32(1.25), F32(0))


def reference(inputs):
    width, height = inputs["width"], inputs["height"]
    u = ((np.arange(width, dtype=F32) + F32(0.5)) / F32(width))[None, :]
    v = ((np.arange(height, dtype=F32) + F32(0.5)) / F32(height))[:, None]
    discs = [disc(u, v, 0.5, 0.375, 0.34375), disc(u, v, 0.375, 0.625, 0.34375), disc(u, v, 0.625, 0.625, 0.34375)]
    colour = np.stack([*discs, np.ones((height, width), F32)], axis=-1).astype(np.float64)
    return {"picture": np.rint(np.clip(colour, 0, 1) * 255).astype(np.uint8)}
