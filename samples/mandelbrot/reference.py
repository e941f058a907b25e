"""Escape counts in NumPy single precision, all points at once; exact, since the kernel uses no fused operations."""

import numpy as np

F32 = np.float32


def escape_counts(cx, cy, limit):
    x, y = np.zeros_like(cx), np.zeros_like(cx)
    counts = np.zeros(cx.shape, np.int32)
    alive = np.ones(cx.shape, bool)
    for _ in range(limit):
        xx, yy = x * x, y * y
        alive &= xx + yy <= 4
        if not alive.any():
            break
        counts[alive] += 1
        y = np.where(alive, F32(2) * x * y + cy, y)
        x = np.where(alive, xx - yy + cx, x)
    return counts


def reference(inputs):
    step, limit = F32(inputs["step"]), inputs["limit"]
    columns = np.arange(inputs["width"], dtype=F32) * step + F32(inputs["left"])
    rows = F32(inputs["top"]) - np.arange(inputs["height"], dtype=F32) * step
    cx, cy = np.meshgrid(columns, rows)
    counts = escape_counts(cx, cy, limit)
    inside = counts == limit
    channels = [np.where(inside, 0, c) for c in (counts * 9, counts * 5, 255 - counts * 3)]
    picture = np.stack([*channels, np.full_like(counts, 255)], axis=-1)
    return {"counts": counts, "picture": (picture & 255).astype(np.uint8)}
