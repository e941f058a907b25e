"""The rotation in NumPy, by the CUDA programming guide's formulas of linear filtering, in the whole numbers of a GPU."""

import numpy as np

F = np.float32


def picture(height, width):
    y, x = np.mgrid[:height, :width]
    blue = np.where((x // 16 + y // 16) % 2, 32, 224)
    return np.stack([x * 255 // (width - 1), y * 255 // (height - 1), blue, np.full_like(x, 255)], axis=2)


def neighbours(u, extent):
    """Indices of the two texels around a position that repeats, and the weight of the second in 256ths."""
    kept = np.floor(u.astype(np.float64) * 2**21) / 2**21
    at = np.floor((kept * extent - 0.5) * 256 + 0.5).astype(int)
    first = at // 256
    return first % extent, (first + 1) % extent, (at % 256)[..., None]


def tex2d(source, u, v):
    height, width, _ = source.shape
    i, i1, a = neighbours(u, width)
    j, j1, b = neighbours(v, height)
    both = (a * b + 128) // 256  # weights are whole numbers, too
    upper = (256 - a - b + both) * source[j, i] + (a - both) * source[j, i1]
    lower = (b - both) * source[j1, i] + both * source[j1, i1]
    return ((257 * (upper + lower) + 128) // 256 / 65535).astype(F)


def reference(inputs):
    height, width, _ = inputs["rotated"].shape
    cosine, sine = F(inputs["cosine"]), F(inputs["sine"])
    source = picture(height, width)
    y, x = np.mgrid[:height, :width].astype(F)
    u = (x + F(0.5)) / F(width) - F(0.5)
    v = (y + F(0.5)) / F(height) - F(0.5)
    texel = tex2d(source, u * cosine - v * sine + F(0.5), v * cosine + u * sine + F(0.5))
    return {"picture": source.astype(np.uint8), "rotated": (texel * F(255) + F(0.5)).astype(np.uint8)}
